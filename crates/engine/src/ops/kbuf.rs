//! PROVIDE_BUFFERS and REMOVE_BUFFERS.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// PROVIDE_BUFFERS.
#[derive(Debug)]
pub struct Provide {
    addr: usize,
    len: usize,
    count: u32,
    first: u16,
    group: u16,
}

/// REMOVE_BUFFERS.
#[derive(Debug)]
pub struct Remove {
    count: u32,
    group: u16,
}

const COUNT_MAX: u64 = 65536;

fn count(sqe: &Sqe) -> Result<u32, Errno> {
    let n = sqe.fd as u32;
    if n == 0 || n as u64 > COUNT_MAX {
        return Err(Errno::TOOBIG);
    }
    Ok(n)
}

/// The end of what a 64-bit program can name.
const ADDRESS_END: u64 = 1 << 47;

fn prep_provide(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.op_flags as u64, sqe.file_index as u64])?;
    let n = count(sqe)?;
    let size = (sqe.len as u64).checked_mul(n as u64).ok_or(Errno::OVERFLOW)?;
    let end = sqe.addr.checked_add(size).ok_or(Errno::OVERFLOW)?;
    if sqe.len == 0 {
        return Err(Errno::INVAL);
    }
    if end > ADDRESS_END {
        return Err(Errno::FAULT);
    }
    let first = u16::try_from(sqe.off).map_err(|_| Errno::TOOBIG)?;
    if first as u64 + n as u64 > COUNT_MAX {
        return Err(Errno::INVAL);
    }
    let (addr, len) = (sqe.addr as usize, sqe.len as usize);
    Ok(Op::Provide(Provide { addr, len, count: n, first, group: sqe.buf_index }))
}

fn issue_provide(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Provide(p) = &req.op else { return Issue::err(Errno::INVAL) };
    match ctx.with_state(|st| st.groups.provide(p.group, p.addr, p.len, p.count, p.first)) {
        Ok(()) => Issue::Done(0, 0),
        Err(e) => Issue::err(e),
    }
}

fn prep_remove(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.op_flags as u64, sqe.addr, sqe.len as u64, sqe.off, sqe.file_index as u64])?;
    let n = sqe.fd as u32;
    if n == 0 || n as u64 > COUNT_MAX {
        return Err(Errno::INVAL);
    }
    Ok(Op::Remove(Remove { count: n, group: sqe.buf_index }))
}

fn issue_remove(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Remove(r) = &req.op else { return Issue::err(Errno::INVAL) };
    match ctx.with_state(|st| st.groups.remove(r.group, r.count)) {
        Ok(n) => Issue::Done(n as i32, 0),
        Err(e) => Issue::err(e),
    }
}

/// PROVIDE_BUFFERS.
pub const PROVIDE_BUFFERS: OpDef = OpDef {
    file: FileUse::Ignored,
    iopoll: true,
    on_ring: true,
    ..OpDef::new("PROVIDE_BUFFERS", op::PROVIDE_BUFFERS, prep_provide, issue_provide)
};
/// REMOVE_BUFFERS.
pub const REMOVE_BUFFERS: OpDef = OpDef {
    file: FileUse::Ignored,
    iopoll: true,
    on_ring: true,
    ..OpDef::new("REMOVE_BUFFERS", op::REMOVE_BUFFERS, prep_remove, issue_remove)
};
