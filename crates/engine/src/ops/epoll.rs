//! EPOLL_CTL, EPOLL_WAIT.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::{nr, poll, syscall, user};
use crate::req::Req;
use crate::{Errno, PASS_MAGIC};
use anyring_uapi::{op, Sqe};

/// EPOLL_CTL.
#[derive(Debug)]
pub struct Ctl {
    op: u32,
    fd: i32,
    /// `struct epoll_event`, packed.
    event: [u32; 3],
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let has_event = sqe.len == nr::EPOLL_CTL_ADD || sqe.len == nr::EPOLL_CTL_MOD;
    let event = if has_event { user::read(sqe.addr as usize)? } else { [0; 3] };
    Ok(Op::Epoll(Ctl { op: sqe.len, fd: sqe.off as i32, event }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Epoll(c) = &req.op else { return Issue::err(Errno::INVAL) };
    if let Some(engine) = ctx.ring.engine.upgrade() {
        engine.watch(c.fd);
    }
    let args = [
        req.fd as usize,
        c.op as usize,
        c.fd as usize,
        c.event.as_ptr() as usize,
        0,
        PASS_MAGIC as usize,
    ];
    // SAFETY: the event is a copy.
    Issue::from_result(unsafe { ctx.call(nr::__NR_epoll_ctl, args) })
}

/// EPOLL_WAIT.
#[derive(Debug)]
pub struct Wait {
    /// Where the events go.
    events: usize,
    most: u32,
}

fn prep_wait(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.op_flags as u64, sqe.buf_index as u64, sqe.file_index as u64])?;
    Ok(Op::EpollWait(Wait { events: sqe.addr as usize, most: sqe.len }))
}

/// Takes what is there; with nothing there the request waits for the epoll descriptor's own readiness.
fn issue_wait(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::EpollWait(w) = &req.op else { return Issue::err(Errno::INVAL) };
    if let Some(engine) = ctx.ring.engine.upgrade() {
        engine.drop_stale_readiness();
    }
    // SAFETY: the array is the program's, which the kernel checks; a timeout of 0 never waits.
    match unsafe {
        syscall(nr::__NR_epoll_wait, [req.file.raw() as usize, w.events, w.most as usize, 0, 0, 0])
    } {
        Ok(0) => Issue::Poll(poll::IN),
        other => Issue::from_result(other),
    }
}

/// EPOLL_CTL.
pub const EPOLL_CTL: OpDef = OpDef {
    file: FileUse::Ignored,
    on_ring: true,
    ..OpDef::new("EPOLL_CTL", op::EPOLL_CTL, prep, issue)
};
/// EPOLL_WAIT.
pub const EPOLL_WAIT: OpDef = OpDef::new("EPOLL_WAIT", op::EPOLL_WAIT, prep_wait, issue_wait);
