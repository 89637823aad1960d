//! Waiting for kernel AIO in the submitter's own thread: by sleeping in `io_pgetevents(2)`, or on a polled ring by looking.
//!
//! While nothing but AIO can end a wait, the thread sleeps in the queue itself and asks for as many completions as it
//! lacks CQEs: the kernel wakes it once, whatever the order they come in. That is lazy wake for direct I/O (`lazy_wake=off` asks for one at
//! a time). Whatever else posts to the ring meanwhile (another thread, a message) has to fetch it out of there: such a poster sees it
//! among the sleepers, sets the flag of its nap and sends the interrupt signal, which ends the call whether it has begun or not.
//! A napper is entered in `naps` before it looks at the completion queue for the last time, and a poster looks at `naps` after
//! it has posted, so one of the two sees the other; both take the queue's lock in between.
//!
//! With anything else to wait for, or after it was fetched a few times, the thread sleeps in the ring's epoll as always, in which the queue's eventfd
//! then is.

use super::state::State;
use super::wait::Wait;
use super::Ring;
use crate::aio::queue::Queue;
use crate::aio::EVENTS;
use crate::host::aio::{Event, Limits};
use crate::host::thread;
use crate::host::time::{now_ns, Clock};
use crate::Errno;
use anyring_uapi::setup::{HYBRID_IOPOLL, IOPOLL, SQPOLL};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Times a napper may be fetched before the ring gives up on naps.
const FETCHES_MAX: u32 = 16;
/// Nanoseconds without a completion after which a polling thread goes to sleep.
const SPIN_NS: u64 = 100_000;

/// A sleep that is about to begin.
pub struct Nap {
    queue: Arc<Queue>,
    /// Completions to sleep for.
    min: usize,
}

/// Threads that nap.
#[derive(Default)]
pub struct Naps {
    list: Vec<(i32, Arc<AtomicU32>)>,
    fetched: u32,
}

impl Ring {
    /// Whether a thread that lacks CQEs up to `target` can sleep in the queue; it counts as a sleeper there from now on.
    pub fn plan_nap(&self, target: u32) -> Option<Nap> {
        if !self.has_flying() {
            return None;
        }
        let mut st = self.state.lock();
        let queue = st.aio.queue.clone()?;
        let unfinished = st.aio.flight.unfinished();
        // A model has no bell: nothing but a nap makes its time pass.
        if unfinished == 0 || (queue.bell().is_some() && self.has_other_waits(&st)) {
            return None;
        }
        let min = if self.naps_lazily(&st) {
            let lacks = target.wrapping_sub(self.cq.lock().tail()) as i32;
            unfinished.min(lacks.max(1) as usize).min(EVENTS)
        } else {
            1
        };
        st.aio.sleepers += 1;
        Some(Nap { queue, min })
    }

    fn has_other_waits(&self, st: &State) -> bool {
        self.has_armed()
            || self.has(SQPOLL)
            || !st.pending.is_empty()
            || self.naps.lock().fetched > FETCHES_MAX
    }

    /// Whether nobody minds that completions are seen only when all that are waited for are there.
    fn naps_lazily(&self, st: &State) -> bool {
        let lazy = self.engine.upgrade().is_none_or(|e| e.config.policy.lazy_wake);
        lazy && !st.aio.shared
            && st.aio.linked == 0
            && st.drain.is_empty()
            && !self.watched.load(Ordering::Relaxed)
            && self.cq.lock().eventfd.is_none()
    }

    /// Sleeps in the queue, takes the thread off the completion queue's sleepers, and lands what it got. `Ok(None)` if the time
    /// was up.
    pub fn nap(
        self: &Arc<Ring>,
        nap: &Nap,
        wait: &Wait,
        until: Option<u64>,
        target: u32,
    ) -> Result<Option<()>, Errno> {
        let flag = Arc::new(AtomicU32::new(0));
        self.naps.lock().list.push((wait.tid, flag.clone()));
        self.napping.fetch_add(1, Ordering::Relaxed);
        let mut events = [Event::default(); EVENTS];
        let got = if self.is_met(target) {
            Ok(None)
        } else {
            let limits = Limits { timeout: until.map(left), mask: self.nap_mask(wait) };
            nap.queue.wait(nap.min, &mut events[..self.room(nap)], &limits, Some(&flag)).map(Some)
        };
        self.end_nap(&flag);
        self.cq.lock().remove_sleeper(target);
        let mut st = self.state.lock();
        st.aio.sleepers -= 1;
        match got {
            Ok(None) => Ok(Some(())),
            Ok(Some(n)) => {
                self.land(&mut st, &events[..n]);
                self.finish_turn(&mut st);
                let late = n < nap.min && until.is_some_and(|at| now_ns(Clock::Monotonic) >= at);
                Ok((!late).then_some(()))
            }
            Err(Errno::INTR) if flag.load(Ordering::Acquire) != 0 => Ok(Some(())),
            Err(Errno::INTR) => Err(Errno::INTR),
            Err(_) => {
                // No such call here: from now on the epoll does it.
                self.naps.lock().fetched = u32::MAX;
                Ok(Some(()))
            }
        }
    }

    /// A polled wait takes no more than it asked for.
    fn room(&self, nap: &Nap) -> usize {
        if self.has(IOPOLL) {
            nap.min
        } else {
            EVENTS
        }
    }

    fn is_met(&self, target: u32) -> bool {
        let tail = self.cq.lock().tail();
        tail.wrapping_sub(target) as i32 >= 0 || self.has_task_work()
    }

    /// The signal that fetches a napper must reach it.
    fn nap_mask(&self, wait: &Wait) -> Option<u64> {
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        wait.mask.map(|mask| if signal > 0 { mask & !(1 << (signal - 1)) } else { mask })
    }

    fn end_nap(&self, flag: &Arc<AtomicU32>) {
        self.naps.lock().list.retain(|(_, f)| !Arc::ptr_eq(f, flag));
        self.napping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Fetches threads out of their naps: there is something for them to look at.
    pub fn end_naps(&self) {
        if self.napping.load(Ordering::Relaxed) == 0 {
            return;
        }
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        let mut naps = self.naps.lock();
        naps.fetched = naps.fetched.saturating_add(1);
        for (tid, flag) in &naps.list {
            flag.store(1, Ordering::Release);
            let _ = thread::tgkill(*tid, signal);
        }
    }

    /// On a polled ring: looks until `min` CQEs are there. Gives up, for the caller to sleep, when nothing came for a while, when
    /// there is nothing to poll for, or when there is other work.
    pub fn poll_for(self: &Arc<Ring>, min: u32) {
        let began = now_ns(Clock::Monotonic);
        let mut rested = !self.has(HYBRID_IOPOLL);
        while let Some((queue, rest)) = self.poll_turn(min, began) {
            if !rested && rest > 0 {
                rest_for(rest);
            }
            rested = true;
            if !queue.spin(SPIN_NS, || self.has_task_work()) {
                return;
            }
        }
    }

    /// Takes what there is. If that is not enough: what to poll next, and for how long the first sleep may be.
    fn poll_turn(self: &Arc<Ring>, min: u32, began: u64) -> Option<(Arc<Queue>, u64)> {
        let mut st = self.state.lock();
        let lacks = |ring: &Ring| min.saturating_sub(ring.cq.lock().ready(&ring.mem)) as usize;
        let missing = lacks(self);
        if missing > 0 {
            self.reap_aio(&mut st, missing);
            self.finish_turn(&mut st);
        }
        let nothing = st.aio.flight.unfinished() == 0 || self.has_task_work();
        if nothing || lacks(self) == 0 {
            let took = now_ns(Clock::Monotonic) - began;
            st.aio.polled_ns = (3 * st.aio.polled_ns + took) / 4;
            return None;
        }
        Some((st.aio.queue.clone()?, st.aio.polled_ns / 2))
    }
}

fn left(at: u64) -> (i64, i64) {
    let left = at.saturating_sub(now_ns(Clock::Monotonic));
    ((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64)
}

/// Sleeps for a part of the time that completions are expected to take.
fn rest_for(ns: u64) {
    let word = AtomicU32::new(0);
    let _ = crate::host::time::futex_wait(&word, 0, Some(ns));
}
