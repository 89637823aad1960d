//! SPLICE and TEE.

use super::{must_be_zero, Ctx, Issue, Op, OpDef};
use crate::host::nr;
use crate::req::{FileRef, Req};
use crate::Errno;
use anyring_uapi::{op, Sqe};

const FD_IN_FIXED: u32 = 1 << 31;
const SPLICE_F_ALL: u32 = 0xf;

/// Both operations.
#[derive(Debug)]
pub struct Splice {
    tee: bool,
    /// Source number or slot.
    pub input: i32,
    /// The source is a slot.
    pub input_fixed: bool,
    /// Hold on the source.
    pub input_file: FileRef,
    off_in: u64,
    off_out: u64,
    len: u32,
    flags: u32,
}

fn prep_any(sqe: &Sqe, tee: bool) -> Result<Op, Errno> {
    if sqe.op_flags & !(SPLICE_F_ALL | FD_IN_FIXED) != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Splice(Splice {
        tee,
        input: sqe.splice_fd_in(),
        input_fixed: sqe.op_flags & FD_IN_FIXED != 0,
        input_file: FileRef::None,
        off_in: sqe.addr,
        off_out: sqe.off,
        len: sqe.len,
        flags: sqe.op_flags & SPLICE_F_ALL,
    }))
}

fn prep_splice(sqe: &Sqe) -> Result<Op, Errno> {
    prep_any(sqe, false)
}

fn prep_tee(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.addr])?;
    prep_any(sqe, true)
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Splice(s) = &req.op else { return Issue::err(Errno::INVAL) };
    if s.len == 0 {
        return Issue::Done(0, 0);
    }
    let (input, output, len, flags) =
        (s.input_file.raw() as usize, req.file.raw() as usize, s.len, s.flags as usize);
    let (off_in, off_out) = (s.off_in, s.off_out);
    let offset = |value: &u64| if *value == u64::MAX { 0 } else { value as *const u64 as usize };
    let result = if s.tee {
        // SAFETY: integer arguments only.
        unsafe { ctx.call(nr::__NR_tee, [input, output, len as usize, flags, 0, 0]) }
    } else {
        let args = [input, offset(&off_in), output, offset(&off_out), len as usize, flags];
        // SAFETY: the offsets are locals that the kernel advances; nobody reads them afterwards.
        unsafe { ctx.call(nr::__NR_splice, args) }
    };
    req.failed |= result != Ok(len as usize);
    Issue::from_result(result)
}

const fn row(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef { always_async: true, unbound: true, hashed: true, ..OpDef::new(name, code, prep, issue) }
}

/// SPLICE.
pub const SPLICE: OpDef = row("SPLICE", op::SPLICE, prep_splice);
/// TEE.
pub const TEE: OpDef = row("TEE", op::TEE, prep_tee);
