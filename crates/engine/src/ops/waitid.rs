//! WAITID. Waiting for one child's exit is waiting for a pidfd's readiness; any other wait needs a worker that
//! sits in waitid(2), where a cancel interrupts it.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Support};
use crate::host::fd::{self, OwnedFd};
use crate::host::{nr, poll, syscall, user};
use crate::req::{FileRef, Req};
use crate::Errno;
use anyring_uapi::{op, Sqe};

const P_PID: u32 = 1;
const P_PIDFD: u32 = 3;
const NOHANG: u32 = nr::WNOHANG;
/// Changes that a pidfd does not show.
const NOT_EXIT: u32 = nr::WSTOPPED | nr::WCONTINUED;

/// WAITID.
#[derive(Debug)]
pub struct Waitid {
    which: u32,
    id: i32,
    options: u32,
    /// Where the `siginfo_t` goes, or 0.
    info: usize,
    /// The request holds a pidfd of the child.
    held: bool,
}

/// `siginfo_t` as an array of integers.
type Info = [i32; 32];
/// Index of `si_pid`: 0 if no child was there to report.
const SI_PID: usize = 4;

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.addr, sqe.op_flags as u64, sqe.buf_index as u64, sqe.addr3])?;
    let (which, id, options, info) = (sqe.len, sqe.fd, sqe.file_index, sqe.off as usize);
    Ok(Op::Waitid(Waitid { which, id, options, info, held: false }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Waitid(w) = &req.op else { return Issue::err(Errno::INVAL) };
    let may_wait = w.options & NOHANG == 0 && !(w.which == P_PIDFD && !w.held && never_waits(w.id));
    let options = if ctx.may_block() { w.options } else { w.options | NOHANG };
    let (which, id) = if w.held { (P_PIDFD, req.file.raw()) } else { (w.which, w.id) };
    let mut info: Info = [0; 32];
    let args = [which as usize, id as usize, info.as_mut_ptr() as usize, options as usize, 0, 0];
    // SAFETY: the kernel fills one `siginfo_t` of 128 bytes.
    match unsafe { ctx.call(nr::__NR_waitid, args) } {
        Ok(_) if info[SI_PID] == 0 && may_wait && !ctx.may_block() => wait_for_child(req, ctx),
        Ok(_) => report(w.info, &info, 0),
        Err(Errno::CHILD) => report(w.info, &[0; 32], Errno::CHILD.res()),
        Err(e) => Issue::err(e),
    }
}

/// Writes the fields that waitid(2) writes: signo, errno, code; pid, uid, status.
fn report(to: usize, info: &Info, res: i32) -> Issue {
    if to == 0 {
        return Issue::Done(res, 0);
    }
    let first = user::write_slice(to, &info[..3]);
    match first
        .and_then(|()| user::write_slice(to.wrapping_add(4 * SI_PID), &info[SI_PID..SI_PID + 3]))
    {
        Ok(()) => Issue::Done(res, 0),
        Err(e) => Issue::err(e),
    }
}

fn wait_for_child(req: &mut Req, ctx: &Ctx<'_>) -> Issue {
    let Op::Waitid(w) = &mut req.op else { return Issue::err(Errno::INVAL) };
    if !w.held {
        if w.options & NOT_EXIT != 0 {
            return Issue::Worker;
        }
        let pidfd = match w.which {
            P_PID => pidfd_open(w.id).and_then(|fd| ctx.ring.duplicate(fd.raw())),
            P_PIDFD => ctx.ring.duplicate(w.id),
            _ => return Issue::Worker,
        };
        match pidfd {
            Ok(fd) => req.file = FileRef::Owned(fd),
            Err(_) => return Issue::Worker,
        }
        w.held = true;
    }
    Issue::Poll(poll::IN)
}

/// A pidfd may be non-blocking.
fn never_waits(pidfd: i32) -> bool {
    fd::status_flags(pidfd).is_ok_and(|flags| flags & nr::O_NONBLOCK != 0)
}

fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_pidfd_open, [pid as usize, 0, 0, 0, 0, 0]) }
        .map(|fd| OwnedFd::from_raw(fd as i32))
}

/// WAITID.
pub const WAITID: OpDef = OpDef {
    support: Support::Partial("__WNOTHREAD sees the children of whichever thread looks"),
    file: FileUse::Ignored,
    on_ring: true,
    unbound: true,
    ..OpDef::new("WAITID", op::WAITID, prep, issue)
};
