//! The reactor: one background thread that looks after rings nobody waits on.
//!
//! A program may watch its CQ without entering, or sleep in its own poll set; then events of armed
//! requests must be handled all the same. Each ring's epoll is registered one-shot in the reactor's;
//! a thread that waits on the ring disarms the registration first, and the last thing an enter does is to arm it
//! again if requests still wait. On a DEFER_TASKRUN ring the reactor handles nothing: it only signals that there is work.

use crate::engine::Inner;
use crate::host::fd::OwnedFd;
use crate::host::poll::{self as epoll, Event};
use crate::host::thread;
use crate::ring::Ring;
use crate::sync::Lock;
use anyring_uapi::setup::TASKRUN_FLAG;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// The reactor's epoll; the thread is started with it.
pub struct Reactor {
    epfd: Lock<Option<OwnedFd>>,
}

impl Reactor {
    /// An engine's, not started.
    pub fn idle() -> Reactor {
        Reactor { epfd: Lock::new(None) }
    }

    fn ensure(&self, engine: &Arc<Inner>) -> Option<i32> {
        let mut slot = self.epfd.lock();
        if let Some(fd) = &*slot {
            return Some(fd.raw());
        }
        let ep = engine.fds.move_high(epoll::create().ok()?).ok()?;
        let raw = ep.raw();
        let inner = engine.clone();
        engine.spawn(Box::new(move || run(&inner, raw))).ok()?;
        *slot = Some(ep);
        Some(raw)
    }
}

fn run(engine: &Arc<Inner>, epfd: i32) {
    thread::set_name(&format!("iou-rct-{}", thread::getpid()));
    let mut events = [Event::default(); 64];
    loop {
        let n = match epoll::wait(epfd, &mut events, None, None) {
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
        ring.tell_task_work(true);
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
    /// Called when a thread leaves the ring: while requests wait for events, the reactor is told to look after them.
    pub fn attend(self: &Arc<Ring>) {
        if !self.has_armed() || self.reactor_armed.load(Ordering::Acquire) || !self.needs_reactor()
        {
            return;
        }
        let (Some(engine), Some(own)) = (self.engine.upgrade(), self.existing_epfd()) else {
            return;
        };
        if self.cq.lock().has_sleepers() {
            return;
        }
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

    /// On a ring with deferred task work somebody must want to hear of it.
    fn needs_reactor(&self) -> bool {
        !self.defers()
            || self.has(TASKRUN_FLAG)
            || self.watched.load(Ordering::Relaxed)
            || self.cq.lock().eventfd.is_some()
    }

    /// A thread is about to wait by itself.
    pub fn leave_reactor(&self) {
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
