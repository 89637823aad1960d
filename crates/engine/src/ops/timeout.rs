//! TIMEOUT, TIMEOUT_REMOVE, LINK_TIMEOUT.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::time::{now_ns, Clock};
use crate::host::user;
use crate::req::Req;
use crate::ring::timeout::monotonic_deadline;
use crate::Errno;
use anyring_uapi::enter::Timespec;
use anyring_uapi::{op, Sqe};

const ABS: u32 = 1 << 0;
const UPDATE: u32 = 1 << 1;
const BOOTTIME: u32 = 1 << 2;
const REALTIME: u32 = 1 << 3;
const LINK_UPDATE: u32 = 1 << 4;
const ETIME_SUCCESS: u32 = 1 << 5;
const MULTISHOT: u32 = 1 << 6;
const CLOCKS: u32 = BOOTTIME | REALTIME;

/// How often a timeout fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Once.
    Once,
    /// So many times.
    Times(u32),
    /// Until removed.
    Forever,
}

/// TIMEOUT or LINK_TIMEOUT.
#[derive(Clone, Debug)]
pub struct Timeout {
    /// Clock of `ns`.
    pub clock: Clock,
    /// `ns` is a time of that clock, not a span.
    pub absolute: bool,
    /// Nanoseconds.
    pub ns: u64,
    /// Complete after this many other CQEs.
    pub count: Option<u32>,
    /// See [`Repeat`].
    pub repeat: Repeat,
    /// Expiry is no failure.
    pub etime_success: bool,
}

impl Timeout {
    /// The time has come.
    pub fn is_past(&self) -> bool {
        monotonic_deadline(self.clock, self.absolute, self.ns) <= now_ns(Clock::Monotonic)
    }
}

/// TIMEOUT_REMOVE.
#[derive(Clone, Debug)]
pub struct Remove {
    /// Target.
    pub user_data: u64,
    /// New time, with UPDATE: (nanoseconds, absolute).
    pub update: Option<(u64, bool)>,
    /// The target is a LINK_TIMEOUT.
    pub link: bool,
}

fn read_time(addr: u64) -> Result<u64, Errno> {
    let ts: Timespec = user::read(addr as usize)?;
    if ts.sec < 0 || ts.nsec < 0 {
        return Err(Errno::INVAL);
    }
    Ok((ts.sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(ts.nsec as u64)
        .min(i64::MAX as u64))
}

fn clock_of(flags: u32) -> Result<Clock, Errno> {
    match flags & CLOCKS {
        0 => Ok(Clock::Monotonic),
        BOOTTIME => Ok(Clock::Boottime),
        REALTIME => Ok(Clock::Realtime),
        _ => Err(Errno::INVAL),
    }
}

fn prep_any(sqe: &Sqe, link: bool) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64, sqe.addr3, sqe.pad2])?;
    if sqe.len != 1 || (link && sqe.off != 0) {
        return Err(Errno::INVAL);
    }
    let flags = sqe.op_flags;
    if flags & !(ABS | CLOCKS | ETIME_SUCCESS | MULTISHOT) != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = flags & MULTISHOT != 0;
    if multishot && flags & ABS != 0 {
        return Err(Errno::INVAL);
    }
    let clock = clock_of(flags)?;
    let count = sqe.off as u32;
    let repeat = match (multishot, count) {
        (false, _) => Repeat::Once,
        (true, 0) => Repeat::Forever,
        (true, n) => Repeat::Times(n),
    };
    Ok(Op::Timeout(Timeout {
        clock,
        absolute: flags & ABS != 0,
        ns: read_time(sqe.addr)?,
        count: (!multishot && count > 0).then_some(count),
        repeat,
        etime_success: flags & ETIME_SUCCESS != 0,
    }))
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    prep_any(sqe, false)
}

fn prep_link(sqe: &Sqe) -> Result<Op, Errno> {
    prep_any(sqe, true)
}

fn issue(_: &mut Req, _: &mut Ctx<'_>) -> Issue {
    Issue::ArmTimer
}

/// A link timeout never starts by itself: it is armed with the request before it, or ended with it.
fn issue_link(_: &mut Req, _: &mut Ctx<'_>) -> Issue {
    Issue::err(Errno::CANCELED)
}

fn prep_remove(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[
        sqe.buf_index as u64,
        sqe.file_index as u64,
        sqe.addr3,
        sqe.pad2,
        sqe.len as u64,
    ])?;
    let flags = sqe.op_flags;
    if flags & (UPDATE | LINK_UPDATE) == 0 {
        return if flags == 0 {
            Ok(Op::TimeoutRemove(Remove { user_data: sqe.addr, update: None, link: false }))
        } else {
            Err(Errno::INVAL)
        };
    }
    if flags & CLOCKS != 0 || flags & !(UPDATE | LINK_UPDATE | ABS) != 0 {
        return Err(Errno::INVAL);
    }
    let update = Some((read_time(sqe.off)?, flags & ABS != 0));
    // LINK_UPDATE alone looks among plain timeouts, and finds none by a link timeout's user_data.
    let link = flags & LINK_UPDATE != 0 && flags & UPDATE != 0;
    Ok(Op::TimeoutRemove(Remove { user_data: sqe.addr, update, link }))
}

fn issue_remove(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::TimeoutRemove(remove) = &req.op else { return Issue::err(Errno::INVAL) };
    let (ring, remove) = (ctx.ring.clone(), remove.clone());
    let result = ctx.with_state(|st| match remove.update {
        None => ring.remove_timeout(st, remove.user_data),
        Some((ns, absolute)) => {
            ring.update_timeout(st, remove.user_data, remove.link, ns, absolute)
        }
    });
    match result {
        Ok(()) => Issue::Done(0, 0),
        Err(e) => Issue::err(e),
    }
}

/// TIMEOUT.
pub const TIMEOUT: OpDef = OpDef {
    file: FileUse::Ignored,
    on_ring: true,
    ..OpDef::new("TIMEOUT", op::TIMEOUT, prep, issue)
};
/// TIMEOUT_REMOVE.
pub const TIMEOUT_REMOVE: OpDef = OpDef {
    file: FileUse::Refused(Errno::INVAL),
    on_ring: true,
    ..OpDef::new("TIMEOUT_REMOVE", op::TIMEOUT_REMOVE, prep_remove, issue_remove)
};
/// LINK_TIMEOUT.
pub const LINK_TIMEOUT: OpDef = OpDef {
    file: FileUse::Ignored,
    on_ring: true,
    ..OpDef::new("LINK_TIMEOUT", op::LINK_TIMEOUT, prep_link, issue_link)
};
