//! FIXED_FD_INSTALL: a registered file gets a descriptor of the program's own.

use super::{must_be_zero, Ctx, Issue, Op, OpDef};
use crate::host::fd;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

const NO_CLOEXEC: u32 = 1;

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    let zero =
        [sqe.off, sqe.addr, sqe.len as u64, sqe.buf_index as u64, sqe.file_index as u64, sqe.addr3];
    must_be_zero(&zero)?;
    if sqe.flags & sqe::FIXED_FILE == 0 {
        return Err(Errno::BADF);
    }
    if sqe.personality != 0 {
        // A descriptor is made for the task itself, not for somebody else's credentials.
        return Err(Errno::PERM);
    }
    if sqe.op_flags & !NO_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::FdInstall { cloexec: sqe.op_flags & NO_CLOEXEC == 0 })
}

fn issue(req: &mut Req, _: &mut Ctx<'_>) -> Issue {
    let Op::FdInstall { cloexec } = req.op else { return Issue::err(Errno::INVAL) };
    Issue::from_result(fd::dup_lowest(req.file.raw(), cloexec).map(|new| new.into_raw() as usize))
}

/// FIXED_FD_INSTALL.
pub const FIXED_FD_INSTALL: OpDef =
    OpDef { on_ring: true, ..OpDef::new("FIXED_FD_INSTALL", op::FIXED_FD_INSTALL, prep, issue) };
