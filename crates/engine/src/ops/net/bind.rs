//! BIND, LISTEN.

use super::connect::read_address;
use super::{must_be_zero, Ctx, Issue, Op, OpDef};
use crate::host::nr;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// BIND: the address, copied at prep.
#[derive(Debug)]
pub struct Bind {
    addr: Vec<u8>,
}

fn prep_bind(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[
        sqe.len as u64,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
    ])?;
    Ok(Op::Bind(Bind { addr: read_address(sqe.addr, sqe.off & 0xffff_ffff)? }))
}

fn issue_bind(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Bind(b) = &req.op else { return Issue::err(Errno::INVAL) };
    let args = [req.file.raw() as usize, b.addr.as_ptr() as usize, b.addr.len(), 0, 0, 0];
    // SAFETY: the address is a copy.
    Issue::from_result(unsafe { ctx.call(nr::__NR_bind, args) })
}

fn prep_listen(sqe: &Sqe) -> Result<Op, Errno> {
    let zero =
        [sqe.off, sqe.addr, sqe.op_flags as u64, sqe.buf_index as u64, sqe.file_index as u64];
    must_be_zero(&zero)?;
    Ok(Op::Listen(sqe.len))
}

fn issue_listen(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Listen(backlog) = req.op else { return Issue::err(Errno::INVAL) };
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe {
        ctx.call(nr::__NR_listen, [req.file.raw() as usize, backlog as usize, 0, 0, 0, 0])
    })
}

/// BIND.
pub const BIND: OpDef = OpDef::new("BIND", op::BIND, prep_bind, issue_bind);
/// LISTEN.
pub const LISTEN: OpDef = OpDef::new("LISTEN", op::LISTEN, prep_listen, issue_listen);
