//! `io_uring_enter(2)` on one ring: who may, submit, then wait.

use super::complete::TurnEnd;
use super::state::State;
use super::timeout::monotonic_deadline;
use super::wait::Wait;
use super::Ring;
use crate::host::time::{now_ns, Clock};
use crate::host::user;
use crate::limits::EVENTS_BATCH;
use crate::{Caller, Errno, Inner};
use anyring_uapi::enter::{RegWait, Timespec, REG_WAIT_TS};
use anyring_uapi::enter::{ABS_TIMER, EXT_ARG, EXT_ARG_REG, GETEVENTS, SQ_WAIT, SQ_WAKEUP};
use anyring_uapi::setup::{DEFER_TASKRUN, IOPOLL, SINGLE_ISSUER, SQPOLL};
use anyring_uapi::GeteventsArg;
use std::sync::Arc;

/// The arguments after the descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Enter {
    /// SQEs to submit.
    pub to_submit: u32,
    /// CQEs to wait for.
    pub min_complete: u32,
    /// `IORING_ENTER_*`.
    pub flags: u32,
    /// Signal mask or extended argument.
    pub arg: usize,
    /// Its size.
    pub argsz: usize,
}

impl Ring {
    /// See the module's description. What neither waits nor leaves anything to look after is over with one hold of
    /// the state lock; from then on the thread is a visitor, see [`super::visitors`].
    pub fn enter(
        self: &Arc<Ring>,
        engine: &Arc<Inner>,
        caller: &Caller,
        e: &Enter,
    ) -> Result<u32, Errno> {
        if self.is_disabled() {
            return Err(Errno::BADFD);
        }
        let mut st = self.state.lock_as(caller.tid);
        if st.closed {
            return Err(Errno::BADF);
        }
        if st.aio.note_user(caller.tid) {
            self.end_naps();
        }
        if self.has(SQPOLL) {
            let _visit = self.visit(engine, caller);
            drop(st);
            let submitted = self.enter_sqpoll(e)?;
            return self.enter_wait(caller, e, submitted);
        }
        st.holder = caller.tid;
        let submitted = self.enter_submit(&mut st, engine, caller, e);
        if e.flags & GETEVENTS != 0 && submitted == Ok(e.to_submit) {
            self.early_task_work(&mut st, caller, e.min_complete);
        }
        let end = self.finish_turn(&mut st);
        st.holder = 0;
        let submitted = submitted?;
        let waits = e.flags & GETEVENTS != 0 && submitted == e.to_submit;
        let over = if waits { self.is_satisfied(&st, caller, e, end) } else { self.may_be_left() };
        if over {
            return Ok(submitted);
        }
        let _visit = self.visit(engine, caller);
        drop(st);
        if waits {
            return self.enter_wait(caller, e, submitted);
        }
        self.attend();
        Ok(submitted)
    }

    /// The first round of an owner's task work, while the lock is held anyway and there is nothing to be done before.
    fn early_task_work(self: &Arc<Ring>, st: &mut State, caller: &Caller, min: u32) {
        let owner = self.has(DEFER_TASKRUN) && st.owner == Some(caller.tid);
        if owner && !self.has_armed() && !st.tw.is_empty() {
            self.run_task_work(st, Some(EVENTS_BATCH.max(min as usize)));
        }
    }

    fn enter_submit(
        self: &Arc<Ring>,
        st: &mut State,
        engine: &Arc<Inner>,
        caller: &Caller,
        e: &Enter,
    ) -> Result<u32, Errno> {
        if e.to_submit == 0 {
            return Ok(0);
        }
        if self.has(SINGLE_ISSUER) && st.owner != Some(caller.tid) {
            return Err(Errno::EXIST);
        }
        if caller.tid == self.task.tid && !self.task.is_dead() {
            return Ok(self.submit(st, &self.task, e.to_submit));
        }
        let task = engine.task(caller.tid, self.mem.sq_entries());
        Ok(self.submit(st, &task, e.to_submit))
    }

    /// Whether a wait without further arguments finds all it asks for, and nothing that it would have to do first.
    fn is_satisfied(&self, st: &State, caller: &Caller, e: &Enter, end: TurnEnd) -> bool {
        let min = e.min_complete.min(self.mem.geometry().cq_entries);
        e.flags == GETEVENTS
            && e.arg == 0
            && !self.has(IOPOLL)
            && !self.has_waiting()
            && !end.backlog
            && !self.has_task_work()
            && (!self.has(DEFER_TASKRUN) || st.owner == Some(caller.tid))
            && end.tail.wrapping_sub(self.mem.cq_head()) >= min
    }

    /// The second half, without locks: the wait, if there is to be one.
    fn enter_wait(
        self: &Arc<Ring>,
        caller: &Caller,
        e: &Enter,
        submitted: u32,
    ) -> Result<u32, Errno> {
        if e.flags & GETEVENTS == 0 {
            self.attend();
            return Ok(submitted);
        }
        let waited = self.wait_as_asked(caller, e);
        self.attend();
        match waited {
            _ if submitted > 0 => Ok(submitted),
            Err(errno) if matches!(errno, Errno::TIME | Errno::INTR) && self.has_ready() => Ok(0),
            other => other.map(|()| 0),
        }
    }

    fn enter_sqpoll(self: &Arc<Ring>, e: &Enter) -> Result<u32, Errno> {
        let Some(sqpoll) = self.sqpoll.lock().clone() else { return Err(Errno::OWNERDEAD) };
        if sqpoll.is_dead() {
            return Err(Errno::OWNERDEAD);
        }
        if e.flags & SQ_WAKEUP != 0 {
            sqpoll.wake();
        }
        if e.flags & SQ_WAIT != 0 {
            sqpoll.wait_for_room(self)?;
        }
        Ok(e.to_submit)
    }

    fn wait_as_asked(self: &Arc<Ring>, caller: &Caller, e: &Enter) -> Result<(), Errno> {
        if self.has(DEFER_TASKRUN) && self.state.lock().owner != Some(caller.tid) {
            return Err(Errno::EXIST);
        }
        let wait = self.parse_wait(caller, e)?;
        self.wait(&wait)
    }

    /// Reads the signal mask and the times.
    fn parse_wait(&self, caller: &Caller, e: &Enter) -> Result<Wait, Errno> {
        let mut wait =
            Wait { min: e.min_complete, mask: caller.mask, tid: caller.tid, ..Wait::default() };
        if e.flags & EXT_ARG == 0 {
            if e.arg != 0 {
                wait.mask_at = Some((e.arg, e.argsz));
            }
            return Ok(wait);
        }
        let (arg, ts) = if e.flags & EXT_ARG_REG != 0 {
            self.registered_argument(e)?
        } else {
            given_argument(e)?
        };
        if arg.sigmask != 0 {
            wait.mask_at = Some((arg.sigmask as usize, arg.sigmask_sz as usize));
        }
        if arg.min_wait_usec != 0 {
            wait.min_wait_until = Some(now_ns(Clock::Monotonic) + arg.min_wait_usec as u64 * 1000);
        }
        if let Some(ts) = ts {
            let ns = ts.sec.saturating_mul(1_000_000_000).saturating_add(ts.nsec).max(0) as u64;
            let clock = if self.state.lock().boottime { Clock::Boottime } else { Clock::Monotonic };
            wait.deadline = Some(monotonic_deadline(clock, e.flags & ABS_TIMER != 0, ns));
        }
        Ok(wait)
    }

    /// The extended argument at an offset of the registered region.
    fn registered_argument(&self, e: &Enter) -> Result<(GeteventsArg, Option<Timespec>), Errno> {
        if e.argsz != size_of::<RegWait>() {
            return Err(Errno::INVAL);
        }
        let region = self.state.lock().region.clone().ok_or(Errno::FAULT)?;
        let w = region.wait_argument(e.arg)?;
        if w.flags & !REG_WAIT_TS != 0 {
            return Err(Errno::INVAL);
        }
        let (min_wait_usec, sigmask, sigmask_sz) = (w.min_wait_usec, w.sigmask, w.sigmask_sz);
        let arg = GeteventsArg { sigmask, sigmask_sz, min_wait_usec, ts: 0 };
        Ok((arg, (w.flags & REG_WAIT_TS != 0).then_some(w.ts)))
    }
}

/// The extended argument at an address.
fn given_argument(e: &Enter) -> Result<(GeteventsArg, Option<Timespec>), Errno> {
    if e.argsz != size_of::<GeteventsArg>() {
        return Err(Errno::INVAL);
    }
    let arg: GeteventsArg = user::read(e.arg)?;
    let ts = if arg.ts == 0 { None } else { Some(user::read(arg.ts as usize)?) };
    Ok((arg, ts))
}
