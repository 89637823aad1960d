//! POLL_ADD and POLL_REMOVE.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::poll as host_poll;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

const ADD_MULTI: u32 = 1 << 0;
const UPDATE_EVENTS: u32 = 1 << 1;
const UPDATE_USER_DATA: u32 = 1 << 2;

/// POLL_ADD.
#[derive(Clone, Copy, Debug)]
pub struct Add {
    /// Poll events.
    pub events: u32,
    /// One CQE a wake-up.
    pub multishot: bool,
}

/// POLL_REMOVE.
#[derive(Clone, Copy, Debug)]
pub struct Remove {
    /// Target.
    pub user_data: u64,
    /// New events.
    pub events: Option<u32>,
    /// The events are those of a multishot poll.
    pub multishot: bool,
    /// New user_data.
    pub new_user_data: Option<u64>,
}

/// Event bits a program may ask for: the low 16 less what is always watched.
fn events_of(raw: u32) -> u32 {
    (raw & 0xffff) & !host_poll::NVAL
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.addr, sqe.buf_index as u64])?;
    if sqe.len & !ADD_MULTI != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = sqe.len & ADD_MULTI != 0;
    if multishot && sqe.flags & sqe::CQE_SKIP_SUCCESS != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Poll(Add { events: events_of(sqe.op_flags), multishot }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Poll(add) = req.op else { return Issue::err(Errno::INVAL) };
    let fd = req.file.raw();
    let mut multishot = add.multishot;
    if let Some(engine) = ctx.ring.engine.upgrade() {
        engine.watch(fd);
        if multishot && engine.ring(fd).is_some() {
            // A ring's own CQEs would feed the poll for ever.
            multishot = false;
            req.op = Op::Poll(Add { multishot, ..add });
        }
    }
    if multishot {
        return Issue::ArmPoll;
    }
    match host_poll::ready(fd, add.events) {
        Ok(r) if r & host_poll::NVAL != 0 => Issue::err(Errno::BADF),
        Ok(0) => Issue::ArmPoll,
        Ok(r) => Issue::Done(r as i32, 0),
        Err(e) => Issue::err(e),
    }
}

fn prep_remove(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let flags = sqe.len;
    if flags & !(ADD_MULTI | UPDATE_EVENTS | UPDATE_USER_DATA) != 0 || flags == ADD_MULTI {
        return Err(Errno::INVAL);
    }
    let new_user_data = (flags & UPDATE_USER_DATA != 0).then_some(sqe.off);
    let events = (flags & UPDATE_EVENTS != 0).then(|| events_of(sqe.op_flags));
    if (new_user_data.is_none() && sqe.off != 0) || (events.is_none() && sqe.op_flags != 0) {
        return Err(Errno::INVAL);
    }
    let multishot = flags & ADD_MULTI != 0;
    Ok(Op::PollRemove(Remove { user_data: sqe.addr, events, multishot, new_user_data }))
}

fn issue_remove(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::PollRemove(remove) = req.op else { return Issue::err(Errno::INVAL) };
    let ring = ctx.ring.clone();
    match ctx.with_state(|st| ring.change_poll(st, &remove)) {
        Ok(()) => Issue::Done(0, 0),
        Err(e) => Issue::err(e),
    }
}

/// POLL_ADD.
pub const POLL_ADD: OpDef =
    OpDef { unbound: true, on_ring: true, ..OpDef::new("POLL_ADD", op::POLL_ADD, prep, issue) };
/// POLL_REMOVE.
pub const POLL_REMOVE: OpDef = OpDef {
    file: FileUse::Ignored,
    on_ring: true,
    ..OpDef::new("POLL_REMOVE", op::POLL_REMOVE, prep_remove, issue_remove)
};
