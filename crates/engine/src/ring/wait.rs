//! Waiting in enter(GETEVENTS): the waiting thread itself handles readiness and timers.
//!
//! A wait ends when the CQ tail has reached the target, when a TIMEOUT fired, when the time is up, or by a
//! signal. No lock is held while sleeping, and the program's signal mask is in force only there; a
//! handler that runs then may call the engine again, or leave by longjmp.

use super::Ring;
use crate::host::poll::{self as epoll, Event};
use crate::host::time::{now_ns, Clock};
use crate::host::user;
use crate::limits::EVENTS_BATCH;
use crate::Errno;
use anyring_uapi::setup::IOPOLL;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// What a thread waits for. Times are monotonic nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// CQEs.
    pub min: u32,
    /// Give up with ETIME then.
    pub deadline: Option<u64>,
    /// Until then only `min` CQEs end the wait; afterwards any one does.
    pub min_wait_until: Option<u64>,
    /// Signal mask while sleeping.
    pub mask: Option<u64>,
    /// Address and size of the program's mask for the wait; read only if there is a wait.
    pub mask_at: Option<(usize, usize)>,
}

/// SIGKILL and SIGSTOP cannot be blocked; SIGSYS must not be, or the next trapped call would kill the thread.
fn mask_of(wait: &Wait) -> Result<Option<u64>, Errno> {
    const SIGSYS: u64 = 31;
    match wait.mask_at {
        None => Ok(wait.mask),
        Some((_, size)) if size != 8 => Err(Errno::INVAL),
        Some((addr, _)) => user::read::<u64>(addr).map(|mask| Some(mask & !(1 << (SIGSYS - 1)))),
    }
}

enum Look {
    Enough,
    Sleep(u32),
}

impl Ring {
    /// Waits as `wait` says. Err(ETIME), Err(EINTR) are the caller's to suppress if CQEs are there.
    pub fn wait(self: &Arc<Ring>, wait: &Wait) -> Result<(), Errno> {
        let min = wait.min.min(self.mem.geometry().cq_entries);
        let target = self.mem.cq_head().wrapping_add(min);
        let timeouts = self.cq.lock().timeouts;
        let batch = EVENTS_BATCH.max(min as usize);
        if min > 0 {
            self.come_back();
        }
        self.owner_turn(batch);
        if self.has(IOPOLL) && self.has_ready() {
            // A polled wait reports what is there.
            return Ok(());
        }
        if self.cq.lock().tail().wrapping_sub(self.mem.cq_head()) >= min {
            return Ok(());
        }
        let (mut any, mut events) = (false, [Event::default(); 64]);
        let result = loop {
            let target = if any { self.mem.cq_head().wrapping_add(1) } else { target };
            match self.look(target, timeouts) {
                Look::Enough => break Ok(()),
                Look::Sleep(target) if !self.may_sleep(target) => {
                    self.cq.lock().remove_sleeper(target);
                    self.owner_turn(batch);
                }
                Look::Sleep(target) => {
                    let slept = mask_of(wait).and_then(|mask| {
                        self.sleep(&Wait { mask, ..*wait }, any, batch, &mut events)
                    });
                    self.deferred.lazy.awake();
                    // First, or what this thread is about to post would wake it.
                    self.cq.lock().remove_sleeper(target);
                    if self.defers() && !matches!(slept, Ok(1..)) {
                        // Less than was wanted may be there, and counts now.
                        self.owner_turn(batch);
                    }
                    match slept {
                        Ok(n) if n > 0 => self.handle_woken(&events[..n], batch),
                        Ok(_) if !any && wait.min_wait_until.is_some() => {
                            match self.min_wait_over(wait) {
                                Some(end) => break end,
                                None => any = true,
                            }
                        }
                        Ok(_) => break Err(Errno::TIME),
                        Err(e) => break Err(e),
                    }
                }
            }
        };
        self.pass_wake_on();
        result
    }

    /// What the waiting thread does before it sleeps: ready files, task work, the backlog.
    fn owner_turn(self: &Arc<Ring>, batch: usize) {
        let mut st = self.state.lock();
        self.mem.clear_sq_flags(anyring_uapi::setup::SQ_TASKRUN);
        if self.has_armed() {
            self.poll_now(&mut st, batch);
        }
        self.run_task_work(&mut st, self.defers().then_some(batch));
        self.cq.lock().flush_backlog(&self.mem);
        self.finish_turn(&mut st);
    }

    /// Whether there is nothing left to do before the sleep; if so, workers know what it is for.
    fn may_sleep(&self, target: u32) -> bool {
        if self.tw_pending.load(Ordering::Acquire) {
            return false;
        }
        if !self.defers() {
            return true;
        }
        let st = self.state.lock();
        let held_back = !st.drain.is_empty() || !st.timers.counted.is_empty();
        drop(st);
        // What a completion sets free may be what this thread waits for.
        let still = if held_back { 1 } else { target.wrapping_sub(self.cq.lock().tail()) };
        self.deferred.lazy.want(still)
    }

    /// Enough already? If not, this thread is registered as a sleeper.
    fn look(&self, target: u32, timeouts: u32) -> Look {
        let mut cq = self.cq.lock();
        if cq.has_backlog() {
            cq.flush_backlog(&self.mem);
            // Its eventfd signal was sent when the CQEs went to the backlog.
        }
        if cq.tail().wrapping_sub(target) as i32 >= 0 || cq.timeouts != timeouts {
            return Look::Enough;
        }
        let others = cq.sleeper_is_met();
        cq.add_sleeper(target);
        drop(cq);
        if others {
            // The wake that this thread received was meant for another one.
            self.tell(true);
        }
        Look::Sleep(target)
    }

    /// One sleep. How many events ended it; 0 if the time was up.
    fn sleep(
        self: &Arc<Ring>,
        wait: &Wait,
        any: bool,
        batch: usize,
        events: &mut [Event],
    ) -> Result<usize, Errno> {
        let until = match (wait.min_wait_until, any) {
            // A timeout shorter than the minimum wait does not cut that short.
            (Some(min), false) => Some(min),
            _ => wait.deadline,
        };
        let timeout = match until {
            None => None,
            Some(at) => {
                let left = at.saturating_sub(now_ns(Clock::Monotonic));
                Some(((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64))
            }
        };
        self.come_back();
        let limit = if self.defers() { batch.min(events.len()) } else { events.len() };
        epoll::wait(self.epfd()?, &mut events[..limit], timeout, wait.mask)
    }

    fn handle_woken(self: &Arc<Ring>, events: &[Event], batch: usize) {
        if events.iter().any(|e| e.token != super::TOKEN_WAKE) {
            self.handle_events(events, if self.defers() { batch } else { usize::MAX });
        }
    }

    /// `min_wait` expired: with a CQE there the wait is over, with more time left any CQE will do.
    fn min_wait_over(&self, wait: &Wait) -> Option<Result<(), Errno>> {
        let cq = self.cq.lock();
        if cq.ready(&self.mem) > 0 || cq.has_backlog() {
            return Some(Ok(()));
        }
        match (wait.deadline, wait.min_wait_until) {
            (Some(deadline), Some(min)) if deadline > min => None,
            _ => Some(Err(Errno::TIME)),
        }
    }

    /// Another sleeper may be waiting for the same CQEs: an edge-triggered wake reaches one thread only.
    fn pass_wake_on(&self) {
        let cq = self.cq.lock();
        if cq.has_sleepers() && cq.ready(&self.mem) > 0 {
            drop(cq);
            self.tell(true);
        }
    }

    /// Whether the program has a CQE to consume.
    pub fn has_ready(&self) -> bool {
        self.cq.lock().ready(&self.mem) > 0
    }
}
