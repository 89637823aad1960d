//! ASYNC_CANCEL.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::fd;
use crate::req::Req;
use crate::ring::cancel::{Criteria, ALL_FLAGS, ANY, FD, FD_FIXED, OP};
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

/// What to cancel, as captured.
#[derive(Clone, Debug)]
pub struct Cancel(Criteria);

/// Refuses combinations that the kernel refuses.
pub fn check_flags(flags: u32) -> Result<(), Errno> {
    if flags & !ALL_FLAGS != 0 || (flags & ANY != 0 && flags & (FD | OP) != 0) {
        return Err(Errno::INVAL);
    }
    Ok(())
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.file_index as u64])?;
    check_flags(sqe.op_flags)?;
    let flags = sqe.op_flags;
    if flags & OP == 0 && sqe.len != 0 && flags & ANY != 0 {
        return Err(Errno::INVAL);
    }
    let opcode =
        if flags & OP != 0 { u8::try_from(sqe.len).map_err(|_| Errno::INVAL)? } else { 0 };
    Ok(Op::Cancel(Cancel(Criteria { flags, user_data: sqe.addr, fd: sqe.fd, opcode })))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Cancel(Cancel(what)) = &req.op else { return Issue::err(Errno::INVAL) };
    let mut what = what.clone();
    let fixed = what.flags & FD_FIXED != 0 || req.has(sqe::FIXED_FILE);
    let ring = ctx.ring.clone();
    let result = ctx.with_state(|st| {
        // Kept until the search is over.
        let mut file = None;
        if what.flags & FD != 0 {
            if fixed {
                let slot = st.files.get(what.fd as u32).ok_or(Errno::BADF)?;
                what.fd = slot.fd.raw();
                file = Some(slot);
            } else if !fd::is_open(what.fd) {
                return Err(Errno::BADF);
            }
        }
        let found = ring.cancel(st, &what);
        drop(file);
        found
    });
    match result {
        Ok(n) => Issue::Done(n as i32, 0),
        Err(e) => Issue::err(e),
    }
}

/// ASYNC_CANCEL.
pub const ASYNC_CANCEL: OpDef = OpDef {
    file: FileUse::Ignored,
    on_ring: true,
    ..OpDef::new("ASYNC_CANCEL", op::ASYNC_CANCEL, prep, issue)
};
