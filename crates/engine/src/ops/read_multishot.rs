//! READ_MULTISHOT: reads into provided buffers for as long as its file has something to read.

use super::rw;
use super::{must_be_zero, Ctx, Issue, Op, OpDef};
use crate::host::{fd, poll};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.flags & sqe::BUFFER_SELECT == 0 {
        return Err(Errno::INVAL);
    }
    must_be_zero(&[sqe.addr, sqe.len as u64])?;
    let mut op = rw::prep_read(sqe)?;
    if let Op::Rw(rw) = &mut op {
        rw.multishot = true;
    }
    Ok(op)
}

/// Files whose readiness cannot be waited for.
fn is_pollable(file: i32) -> Result<bool, Errno> {
    let stat = fd::stat(file)?;
    Ok(!stat.is_regular() && !stat.is_block() && !stat.is_directory() && !stat.is_memory_device())
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    match is_pollable(req.file.raw()) {
        Ok(true) => {}
        Ok(false) => return Issue::err(Errno::BADFD),
        Err(e) => return Issue::err(e),
    }
    let Op::Rw(rw) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let posted = core::mem::take(&mut rw.posted);
    match rw::issue(req, ctx) {
        Issue::Done(n, flags) if n > 0 => {
            // A short read is no failure of a chain here.
            req.failed = false;
            if let Op::Rw(rw) = &mut req.op {
                rw.posted = true;
            }
            Issue::More(n, flags)
        }
        Issue::Done(e, _) if e == Errno::NOBUFS.res() && posted && !is_ready(req) => {
            Issue::Poll(poll::IN)
        }
        // Ready, but with a call that might wait.
        Issue::Worker => rw::bounded(req, ctx),
        other => other,
    }
}

fn is_ready(req: &Req) -> bool {
    poll::ready(req.file.raw(), poll::IN) != Ok(0)
}

/// READ_MULTISHOT.
pub const READ_MULTISHOT: OpDef = OpDef {
    ioprio: true,
    buffer_select: true,
    unbound: true,
    ..OpDef::new("READ_MULTISHOT", op::READ_MULTISHOT, prep, issue)
};
