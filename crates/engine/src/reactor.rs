//! The reactor: one background thread that looks after rings nobody waits on.
//!
//! A program may watch its CQ without entering, or sleep in its own poll set; then events of armed
//! requests must be handled all the same. Each ring's epoll is registered one-shot in the reactor's;
//! a thread that waits on the ring disarms the registration first, and the last thing an enter does is to arm it
//! again if requests still wait. On a DEFER_TASKRUN ring the reactor handles nothing: it only signals that there is work.
//!
//! A ring whose threads keep coming back to wait is spared that: arming costs two calls for each wait, and whatever
//! arrives meanwhile would wake the reactor to compete with the thread that is about to handle it. Such a ring is only
//! noted as left ([`Ring::attend`]). While rings are noted the reactor looks once a tick; a ring that it finds left at two
//! ticks in a row is armed after all, and has to earn the favour anew. So a program that turns from waiting to watching its
//! CQ is served late once, by two ticks at most. No look is lost when the ticking stops: a ring is noted before it is
//! asked whether the reactor ticks, and the reactor looks once more after it said that it stops.

use crate::engine::Inner;
use crate::host::fd::{self, OwnedFd};
use crate::host::poll::{self as epoll, Event};
use crate::host::thread;
use crate::host::time::{now_ns, Clock};
use crate::ring::Ring;
use crate::sync::Lock;
use anyring_uapi::setup::TASKRUN_FLAG;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Waits after which a ring's threads are expected to come back.
const HABIT: u32 = 8;
/// Nanoseconds between two looks at rings that were left.
const TICK_NS: u64 = 1_000_000;
/// Looks without any such ring after which there are no more.
const IDLE_TICKS: u32 = 8;
/// Token of the bell that makes the reactor tick; no ring has this id.
const BELL: u64 = u64::MAX;

/// A thread waits on the ring, or it is armed, or nothing is armed.
const ATTENDED: u32 = 0;
/// The last thread went, and is expected back.
const LEFT: u32 = 1;
/// So it was at the last tick.
const LEFT_FOR_A_TICK: u32 = 2;

/// The reactor's epoll; the thread is started with it.
pub struct Reactor {
    epfd: Lock<Option<OwnedFd>>,
    bell: Lock<Option<OwnedFd>>,
    ticking: AtomicBool,
}

impl Reactor {
    /// An engine's, not started.
    pub fn idle() -> Reactor {
        Reactor { epfd: Lock::new(None), bell: Lock::new(None), ticking: AtomicBool::new(false) }
    }

    fn ensure(&self, engine: &Arc<Inner>) -> Option<i32> {
        let mut slot = self.epfd.lock();
        if let Some(fd) = &*slot {
            return Some(fd.raw());
        }
        let ep = engine.fds.move_high(epoll::create().ok()?).ok()?;
        let raw = ep.raw();
        let bell = engine.fds.move_high(fd::eventfd().ok()?).ok()?;
        epoll::add(raw, bell.raw(), epoll::IN | epoll::ET, BELL).ok()?;
        *self.bell.lock() = Some(bell);
        let inner = engine.clone();
        engine.spawn(Box::new(move || run(&inner, raw))).ok()?;
        *slot = Some(ep);
        Some(raw)
    }

    /// Sees to it that rings which were left are looked at. False if there is no reactor to do it.
    fn tick(&self, engine: &Arc<Inner>) -> bool {
        if self.ensure(engine).is_none() {
            return false;
        }
        if !self.ticking.swap(true, Ordering::SeqCst) {
            if let Some(bell) = &*self.bell.lock() {
                fd::eventfd_signal(bell.raw());
            }
        }
        true
    }
}

/// One look at the rings that were left. Whether there were any.
fn look(engine: &Inner) -> bool {
    let mut any = false;
    let mut rings = engine.all_rings();
    rings.sort_unstable_by_key(|r| r.id);
    rings.dedup_by_key(|r| r.id);
    for ring in rings {
        let left = ring.left.load(Ordering::SeqCst);
        any |= left != ATTENDED;
        let next = if left == LEFT { LEFT_FOR_A_TICK } else { ATTENDED };
        let swap = ring.left.compare_exchange(left, next, Ordering::SeqCst, Ordering::Relaxed);
        if left == LEFT_FOR_A_TICK && swap.is_ok() {
            ring.habit.store(0, Ordering::Relaxed);
            ring.attend();
        }
    }
    any
}

/// The reactor's side of the ticking.
#[derive(Default)]
struct Ticks {
    next: u64,
    idle: u32,
}

impl Ticks {
    /// How long to wait for events at most.
    fn timeout(&self, engine: &Inner) -> Option<(i64, i64)> {
        engine.reactor.ticking.load(Ordering::SeqCst).then_some((0, TICK_NS as i64))
    }
    /// Looks if it is time.
    fn turn(&mut self, engine: &Inner) {
        let ticking = &engine.reactor.ticking;
        let now = now_ns(Clock::Monotonic);
        if !ticking.load(Ordering::SeqCst) || now < self.next {
            return;
        }
        self.next = now + TICK_NS;
        if look(engine) {
            self.idle = 0;
            return;
        }
        self.idle += 1;
        if self.idle < IDLE_TICKS {
            return;
        }
        self.idle = 0;
        ticking.store(false, Ordering::SeqCst);
        if look(engine) {
            ticking.store(true, Ordering::SeqCst);
        }
    }
}

fn run(engine: &Arc<Inner>, epfd: i32) {
    thread::set_name(&format!("iou-rct-{}", thread::getpid()));
    let mut events = [Event::default(); 64];
    let mut ticks = Ticks::default();
    loop {
        ticks.turn(engine);
        let n = match epoll::wait(epfd, &mut events, ticks.timeout(engine), None) {
            Ok(n) => n,
            Err(crate::Errno::INTR) => continue,
            // The program closed the descriptor: the next ring that needs it starts anew.
            Err(_) => return engine.reactor_lost(),
        };
        for event in &events[..n] {
            let id = event.token;
            if let Some(ring) = engine.ring_by_id(id) {
                ring.reactor_armed.store(false, Ordering::Release);
                serve(&ring);
            }
        }
    }
}

fn serve(ring: &Arc<Ring>) {
    if ring.cq.lock().has_sleepers() {
        // That thread handles its own events.
        return;
    }
    if ring.defers() {
        // Under the lock under which the owner handles events and clears the flag: it may have been faster.
        let st = ring.state.lock();
        let ready = |ep| epoll::ready(ep, epoll::IN).is_ok_and(|events| events != 0);
        if !st.closed && ring.existing_epfd().is_some_and(ready) {
            ring.tell_task_work(true);
        }
        return;
    }
    {
        let mut st = ring.state.lock();
        if st.closed {
            return;
        }
        ring.poll_now(&mut st, usize::MAX);
        ring.finish_turn(&mut st);
    }
    ring.attend();
}

impl Ring {
    /// Whether a thread may leave without a word: nothing waits, or only direct transfers do and the reactor will look
    /// after the ring at its next tick anyway.
    #[inline]
    pub fn may_be_left(&self) -> bool {
        !self.has_waiting() || (!self.has_armed() && self.left.load(Ordering::SeqCst) == LEFT)
    }

    /// Called when a thread leaves the ring: while requests wait for events, the reactor is told to look after them.
    pub fn attend(self: &Arc<Ring>) {
        if !self.has_waiting()
            || self.reactor_armed.load(Ordering::Acquire)
            || !self.needs_reactor()
        {
            return;
        }
        let Some(engine) = self.engine.upgrade() else { return };
        if self.cq.lock().has_sleepers() {
            return;
        }
        if self.is_expected_back(&engine) {
            self.left.store(LEFT, Ordering::SeqCst);
            if engine.reactor.tick(&engine) {
                return;
            }
        }
        let Ok(own) = self.epfd_with_aio() else { return };
        let Some(reactor) = engine.reactor.ensure(&engine) else { return };
        if self.reactor_armed.swap(true, Ordering::AcqRel) {
            return;
        }
        let events = epoll::IN | epoll::ONESHOT;
        let armed = epoll::modify(reactor, own, events, self.id)
            .or_else(|_| epoll::add(reactor, own, events, self.id));
        if armed.is_err() {
            self.reactor_armed.store(false, Ordering::Release);
        }
    }

    /// The ring's threads use to come back to wait, and nobody sleeps on its descriptor or eventfd instead.
    fn is_expected_back(&self, engine: &Inner) -> bool {
        self.habit.load(Ordering::Relaxed) >= HABIT
            && engine.config.policy.lazy_reactor
            && !self.watched.load(Ordering::Relaxed)
            && self.cq.lock().eventfd.is_none()
    }

    /// A thread waits on the ring: it handles the events by itself.
    pub fn come_back(&self) {
        if self.reactor_armed.load(Ordering::Acquire) {
            self.leave_reactor();
        }
        self.left.store(ATTENDED, Ordering::SeqCst);
        let habit = self.habit.load(Ordering::Relaxed);
        if habit < HABIT {
            self.habit.store(habit + 1, Ordering::Relaxed);
        }
    }

    /// On a ring with deferred task work somebody must want to hear of it.
    fn needs_reactor(&self) -> bool {
        !self.defers()
            || self.has(TASKRUN_FLAG)
            || self.watched.load(Ordering::Relaxed)
            || self.cq.lock().eventfd.is_some()
    }

    /// Takes the ring from the reactor.
    fn leave_reactor(&self) {
        let (Some(engine), Some(own)) = (self.engine.upgrade(), self.existing_epfd()) else {
            return;
        };
        let Some(reactor) = engine.reactor.epfd.lock().as_ref().map(OwnedFd::raw) else { return };
        if self.reactor_armed.swap(false, Ordering::AcqRel) {
            let _ = epoll::modify(reactor, own, 0, self.id);
        }
    }
}

impl Inner {
    fn reactor_lost(&self) {
        *self.reactor.epfd.lock() = None;
        for ring in self.all_rings() {
            ring.reactor_armed.store(false, Ordering::Release);
        }
    }
}
