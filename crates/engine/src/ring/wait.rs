//! Waiting in enter(GETEVENTS): the waiting thread itself handles readiness and timers.
//!
//! A wait ends when the CQ tail has reached the target, when a TIMEOUT fired, when the time is up, or by a
//! signal. No lock is held while sleeping, and the program's signal mask is in force only there; a
//! handler that runs then may call the engine again, or leave by longjmp.

use super::Ring;
use crate::host::poll::{self as epoll, Event};
use crate::host::signals;
use crate::host::time::{now_ns, Clock};
use crate::host::user;
use crate::limits::EVENTS_BATCH;
use crate::Errno;
use anyring_uapi::setup::{IOPOLL, SQPOLL};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// What a thread waits for. Times are monotonic nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// Who waits.
    pub tid: i32,
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
        if self.has(IOPOLL) && self.has_ready() {
            // A polled wait reports what is there.
            self.owner_turn(batch, 0);
            return Ok(());
        }
        self.owner_turn(batch, self.reap_limit(min, batch));
        if self.has(IOPOLL) && !self.has(SQPOLL) && min > 0 {
            self.poll_for(min);
            if self.has_ready() || !self.expects_any() {
                return Ok(());
            }
        }
        if self.cq.lock().tail().wrapping_sub(self.mem.cq_head()) >= min {
            return Ok(());
        }
        if let Ok(Some(mask)) = mask_of(wait) {
            signals::drop_ignored(mask);
        }
        let mut any = false;
        let result = loop {
            let target = if any { self.mem.cq_head().wrapping_add(1) } else { target };
            match self.look(target, timeouts) {
                Look::Enough => break Ok(()),
                Look::Sleep(target) if !self.may_sleep(target) => {
                    self.cq.lock().remove_sleeper(target);
                    self.owner_turn(batch, self.reap_limit(min, batch));
                }
                Look::Sleep(target) => {
                    let slept = self.sleep_or_nap(wait, any, batch, target);
                    self.deferred.lazy.awake();
                    let over = !matches!(slept, Ok(Some(())));
                    if self.defers() && (over || self.has_task_work()) {
                        // Less than was wanted may be there, and counts now: the time is up, or a TIMEOUT has fired.
                        self.owner_turn(batch, self.reap_limit(min, batch));
                    }
                    match slept {
                        Ok(Some(())) => {}
                        Ok(None) if !any && wait.min_wait_until.is_some() => {
                            match self.min_wait_over(wait) {
                                Some(end) => break end,
                                None => any = true,
                            }
                        }
                        Ok(None) => break Err(Errno::TIME),
                        Err(e) => break Err(e),
                    }
                }
            }
        };
        self.pass_wake_on();
        result
    }

    /// What the waiting thread does before it sleeps: ready files, task work, the backlog.
    /// At most `reap` completions of kernel AIO are landed.
    fn owner_turn(self: &Arc<Ring>, batch: usize, reap: usize) {
        let mut st = self.state.lock();
        self.mem.clear_sq_flags(anyring_uapi::setup::SQ_TASKRUN);
        if self.has_flying() {
            self.reap_aio(&mut st, reap);
        }
        if self.has_armed() {
            self.poll_now(&mut st, batch);
        }
        self.run_task_work(&mut st, self.defers().then_some(batch));
        self.cq.lock().flush_backlog(&self.mem);
        self.finish_turn(&mut st);
    }

    /// Whether any request is under way: a polled wait without one is over.
    fn expects_any(&self) -> bool {
        self.has_waiting() || self.has_task_work() || !self.state.lock().pending.is_empty()
    }

    /// Completions that a turn lands: a polled wait takes no more than it asked for.
    fn reap_limit(&self, min: u32, batch: usize) -> usize {
        if self.has(IOPOLL) && min > 0 {
            min as usize
        } else if self.defers() {
            batch
        } else {
            usize::MAX
        }
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

    /// One sleep, wherever this thread hears of what it waits for; it is no sleeper any more afterwards. `Ok(None)` if the time
    /// was up.
    fn sleep_or_nap(
        self: &Arc<Ring>,
        wait: &Wait,
        any: bool,
        batch: usize,
        target: u32,
    ) -> Result<Option<()>, Errno> {
        let until = match (wait.min_wait_until, any) {
            // A timeout shorter than the minimum wait does not cut that short.
            (Some(min), false) => Some(min),
            _ => wait.deadline,
        };
        let mask = match mask_of(wait) {
            Ok(mask) => mask,
            Err(e) => {
                self.cq.lock().remove_sleeper(target);
                return Err(e);
            }
        };
        let wait = Wait { mask, ..*wait };
        if let Some(nap) = self.plan_nap(target) {
            self.come_back();
            return self.nap(&nap, &wait, until, target);
        }
        self.sleep(&wait, until, batch, target)
    }

    /// One sleep in the ring's epoll.
    fn sleep(
        self: &Arc<Ring>,
        wait: &Wait,
        until: Option<u64>,
        batch: usize,
        target: u32,
    ) -> Result<Option<()>, Errno> {
        let timeout = match until {
            None => None,
            Some(at) => {
                let left = at.saturating_sub(now_ns(Clock::Monotonic));
                Some(((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64))
            }
        };
        self.come_back();
        let mut events = [Event::default(); 64];
        let limit = if self.defers() { batch.min(events.len()) } else { events.len() };
        let slept = self
            .epfd_with_aio()
            .and_then(|ep| epoll::wait(ep, &mut events[..limit], timeout, wait.mask));
        // First, or what this thread is about to post would wake it.
        self.cq.lock().remove_sleeper(target);
        let n = slept?;
        if n == 0 {
            return Ok(None);
        }
        if events[..n].iter().any(|e| e.token != super::TOKEN_WAKE) {
            self.handle_events(&events[..n], if self.defers() { batch } else { usize::MAX });
        }
        Ok(Some(()))
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
