//! One ring: its memory, its two locks, its descriptors.
//!
//! `state` guards everything but the completion queue; it is held while SQEs are issued inline and while
//! events are handled, never while waiting. `cq` guards the completion queue, is taken after
//! `state`, and alone suffices to look whether enough has completed.

pub mod aio;
pub mod by_data;
pub mod cancel;
pub mod chain;
pub mod complete;
pub mod cq;
pub mod crowd;
pub mod deferred;
pub mod enter;
pub mod finished;
pub mod futex;
pub mod inbox;
mod inline;
pub mod issue;
pub mod nap;
pub mod pending;
pub mod poll;
pub mod setup;
pub mod shared;
pub mod staged;
pub mod standing;
pub mod state;
pub mod submit;
pub mod timeout;
pub mod timers;
pub mod visitors;
pub mod wait;

use crate::aio::Aio;
use crate::bias::Biased;
use crate::engine::Inner;
use crate::host::{self, fd, fd::OwnedFd};
use crate::inline::Inline;
use crate::registered::region::Memory;
use crate::sqpoll::SqPoll;
use crate::sync::Lock;
use crate::task::Task;
use crate::{Errno, Policy};
use anyring_uapi::setup::{
    CQE32, CQE_MIXED, DEFER_TASKRUN, IOPOLL, OFF_PARAM_REGION, SQPOLL, TASKRUN_FLAG,
};
use anyring_uapi::Cqe;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use cq::{Cq, Entry};
use shared::SharedRings;
use state::State;
use std::sync::{Arc, Weak};

/// Token of the wake eventfd in a ring's epoll.
pub const TOKEN_WAKE: u64 = 0;
/// Token of the timer descriptor.
pub const TOKEN_TIMER: u64 = 1;

/// Token of the eventfd that kernel AIO signals.
pub const TOKEN_AIO: u64 = 2;

/// In place of a descriptor number: never again.
const CLOSED: i32 = -2;

/// See the module's description.
pub struct Ring {
    /// Unique in the process.
    pub id: u64,
    /// Setup flags.
    pub flags: u32,
    /// Shared memory.
    pub mem: SharedRings,
    /// See the module's description.
    pub state: Biased<State>,
    /// See the module's description.
    pub cq: Biased<Cq>,
    /// The task that made it.
    pub task: Arc<Task>,
    /// The engine.
    pub engine: Weak<Inner>,
    /// The engine's.
    pub inline: Arc<Inline>,
    /// Submits for the program, with SQPOLL.
    pub sqpoll: Lock<Option<Arc<SqPoll>>>,
    /// The engine's duplicate of the ring's eventfd: wakes sleepers, and shows readiness.
    efd: AtomicI32,
    /// Open descriptors of the program (dups), and registered ring indices.
    pub refs: AtomicU32,
    /// Requests that wait for readiness or a timer: somebody has to look after them.
    pub armed: AtomicU32,
    /// Requests in kernel AIO, or about to be; set under `state`.
    pub flying: AtomicU32,
    /// Threads that sleep in kernel AIO, see [`nap`].
    pub naps: Lock<nap::Naps>,
    /// How many do.
    pub napping: AtomicU32,
    /// Threads inside enter.
    pub visitors: Lock<visitors::Visitors>,
    /// Poll sets of the program contain the ring.
    pub watched: AtomicBool,
    /// Task work waits (a hint, set under `state`).
    pub tw_pending: AtomicBool,
    /// See [`deferred`].
    pub deferred: deferred::Deferred,
    /// `lazy_wake` of the policy.
    pub lazy_wake: bool,
    /// See [`inbox`].
    pub inbox: Lock<Vec<Cqe>>,
    disabled: AtomicBool,
    /// `closed` of the state, for those who do not hold its lock.
    pub gone: AtomicBool,
    /// Whether the reactor is to look at the ring at its next tick, see [`crate::reactor`].
    pub left: AtomicU32,
    /// Waits since the reactor had to be armed.
    pub habit: AtomicU32,
    /// The reactor is to be told of events (its registration is armed).
    pub reactor_armed: AtomicBool,
    /// Resources with a tag were registered: what a request lets go of may post a CQE that belongs behind its own.
    pub tagged: AtomicBool,
    /// Wake-ups sent.
    pub wakeups: AtomicU64,
    epfd: AtomicI32,
    timerfd: AtomicI32,
    fds: Lock<Vec<OwnedFd>>,
}

impl Ring {
    /// Builds a ring around its memory and eventfd.
    pub fn new(
        id: u64,
        flags: u32,
        mem: SharedRings,
        task: Arc<Task>,
        engine: Weak<Inner>,
        efd: OwnedFd,
        state: State,
    ) -> Ring {
        let above = engine.upgrade();
        let lazy_wake = above.as_ref().is_none_or(|e| e.config.policy.lazy_wake);
        let favours = above.as_ref().is_some_and(|e| e.favours());
        let policy = above.as_ref().map_or(Policy::DEFAULT, |e| e.config.policy);
        let mut state = state;
        state.aio = Aio::new(policy.reap_ordered && flags & IOPOLL != 0);
        let inline = above.map_or_else(
            || Arc::new(Inline::new(crate::policy::Inline::Never)),
            |e| e.inline.clone(),
        );
        let cq = Cq::new(mem.geometry().cq_entries, flags, lazy_wake);
        let enabled = state.enabled;
        Ring {
            id,
            flags,
            mem,
            state: Biased::new(state, favours),
            cq: Biased::new(cq, favours),
            task,
            engine,
            inline,
            sqpoll: Lock::new(None),
            efd: AtomicI32::new(efd.raw()),
            refs: AtomicU32::new(1),
            armed: AtomicU32::new(0),
            flying: AtomicU32::new(0),
            naps: Lock::new(nap::Naps::default()),
            napping: AtomicU32::new(0),
            visitors: visitors::Visitors::none(),
            watched: AtomicBool::new(false),
            tw_pending: AtomicBool::new(false),
            deferred: deferred::Deferred::default(),
            lazy_wake,
            inbox: Lock::new(Vec::new()),
            disabled: AtomicBool::new(!enabled),
            gone: AtomicBool::new(false),
            left: AtomicU32::new(0),
            habit: AtomicU32::new(0),
            reactor_armed: AtomicBool::new(false),
            tagged: AtomicBool::new(false),
            wakeups: AtomicU64::new(0),
            epfd: AtomicI32::new(-1),
            timerfd: AtomicI32::new(-1),
            fds: Lock::new(vec![efd]),
        }
    }

    /// Not enabled yet.
    pub fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Acquire)
    }
    /// ENABLE_RINGS.
    pub fn enable(&self, st: &mut State) {
        st.enabled = true;
        self.disabled.store(false, Ordering::Release);
    }
    /// A setup flag.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
    /// Completions of workers and polls are posted by the owner, inside enter(GETEVENTS).
    #[inline]
    pub fn defers(&self) -> bool {
        self.has(DEFER_TASKRUN) || (self.has(IOPOLL) && !self.has(SQPOLL))
    }
    /// Its work is looked for, and its readiness kept right, when the program waits elsewhere.
    pub fn is_looked_after(&self) -> bool {
        self.watched.load(Ordering::Relaxed) || self.has(TASKRUN_FLAG)
    }
    /// A thread comes into enter.
    fn arrive(&self, tid: i32, stack: usize) {
        let mut visitors = self.visitors.lock();
        if visitors.forget_gone(tid, stack) && visitors.is_empty() {
            self.cq.lock().forget_sleepers();
        }
        visitors.arrive(tid, stack);
    }
    /// 32-byte CQEs are possible.
    pub fn has_large_cqes(&self) -> bool {
        self.has(CQE32 | CQE_MIXED)
    }

    /// The number of the engine's duplicate of the ring's eventfd; −1 once the ring is closed.
    pub fn efd(&self) -> i32 {
        self.efd.load(Ordering::Acquire)
    }

    /// The ring is closed.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Gives up the descriptors of a ring that is closed, even if somebody still has a reference to it.
    pub fn close_descriptors(&self) {
        let mut fds = self.fds.lock();
        self.efd.store(-1, Ordering::Release);
        self.epfd.store(CLOSED, Ordering::Release);
        self.timerfd.store(CLOSED, Ordering::Release);
        fds.clear();
    }

    /// The ring's epoll descriptor, made at first need; EBADF once the ring is closed.
    pub fn epfd(&self) -> Result<i32, Errno> {
        let fd = self.epfd.load(Ordering::Acquire);
        if fd >= 0 {
            return Ok(fd);
        }
        let mut fds = self.fds.lock();
        if self.epfd.load(Ordering::Acquire) == CLOSED {
            return Err(Errno::BADF);
        }
        if self.epfd.load(Ordering::Acquire) < 0 {
            let ep = self.keep_high(host::poll::create()?)?;
            host::poll::add(ep.raw(), self.efd(), host::poll::IN | host::poll::ET, TOKEN_WAKE)?;
            self.epfd.store(ep.raw(), Ordering::Release);
            fds.push(ep);
        }
        Ok(self.epfd.load(Ordering::Acquire))
    }

    /// The epoll descriptor, if there is one.
    pub fn existing_epfd(&self) -> Option<i32> {
        Some(self.epfd.load(Ordering::Acquire)).filter(|fd| *fd >= 0)
    }

    /// The ring's timer descriptor, made at first need and registered in its epoll.
    pub fn timerfd(&self) -> Result<i32, Errno> {
        let fd = self.timerfd.load(Ordering::Acquire);
        if fd >= 0 {
            return Ok(fd);
        }
        let ep = self.epfd()?;
        let mut fds = self.fds.lock();
        if self.timerfd.load(Ordering::Acquire) == CLOSED {
            return Err(Errno::BADF);
        }
        if self.timerfd.load(Ordering::Acquire) < 0 {
            let timer = self.keep_high(host::poll::timerfd()?)?;
            host::poll::add(ep, timer.raw(), host::poll::IN | host::poll::ET, TOKEN_TIMER)?;
            self.timerfd.store(timer.raw(), Ordering::Release);
            fds.push(timer);
        }
        Ok(self.timerfd.load(Ordering::Acquire))
    }

    fn keep_high(&self, fd: OwnedFd) -> Result<OwnedFd, Errno> {
        match self.engine.upgrade() {
            Some(engine) => engine.fds.move_high(fd),
            None => Err(Errno::BADFD),
        }
    }

    /// `mmap(2)` of the ring: its shared memory, or a registered region of its own.
    pub fn map(
        &self,
        addr: usize,
        len: usize,
        prot: u32,
        flags: u32,
        offset: u64,
    ) -> Result<usize, Errno> {
        if offset != OFF_PARAM_REGION {
            return self.mem.map(addr, len, prot, flags, offset);
        }
        match self.state.lock().region.as_ref().map(|r| &r.memory) {
            Some(Memory::Own(shared)) if len <= shared.bytes() => {
                shared.map_again(addr, len, prot, flags)
            }
            _ => Err(Errno::NOMEM),
        }
    }

    /// A private duplicate of a descriptor.
    pub fn duplicate(&self, fd: i32) -> Result<OwnedFd, Errno> {
        match self.engine.upgrade() {
            Some(engine) => engine.fds.duplicate(fd),
            None => Err(Errno::BADFD),
        }
    }

    /// Posts a CQE in a turn that [`Ring::finish_turn`] ends.
    #[inline]
    pub fn post(&self, st: &mut State, entry: Entry, kind: cq::Kind, from_worker: bool) {
        if kind == cq::Kind::Normal && !entry.large && entry.extra == [0; 2] {
            return self.stage(st, entry.cqe, from_worker);
        }
        self.empty_stage(st);
        self.cq.lock_as(st.holder).post(&self.mem, entry, kind, from_worker);
    }

    /// Makes the ring's eventfd readable where somebody sleeps on it or polls it.
    pub fn tell(&self, wake: bool) {
        if wake {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
            self.end_naps();
        }
        if wake || self.watched.load(Ordering::Relaxed) {
            fd::eventfd_signal(self.efd());
        }
    }

    /// Posts the CQE of a released resource's tag.
    pub fn post_tag(&self, tag: u64) {
        let mut cq = self.cq.lock();
        let cqe = Cqe { user_data: tag, res: 0, flags: 0 };
        cq.post(&self.mem, cqe.into(), cq::Kind::Normal, false);
        let commit = cq.commit(&self.mem);
        drop(cq);
        self.tell(commit.wake);
    }

    /// Task work was queued for the owner of a DEFER_TASKRUN ring.
    pub fn tell_task_work(&self, first: bool) {
        let cq = self.cq.lock();
        if first {
            if self.has(TASKRUN_FLAG) {
                self.mem.set_sq_flags(anyring_uapi::setup::SQ_TASKRUN);
            }
            cq.signal_eventfd(&self.mem, true);
        }
        let sleeping = cq.has_sleepers();
        drop(cq);
        self.tell(sleeping);
    }

    /// One more request waits for readiness or a timer.
    pub fn arm(&self) {
        self.armed.fetch_add(1, Ordering::Relaxed);
    }
    /// One fewer.
    pub fn disarm(&self) {
        self.armed.fetch_sub(1, Ordering::Relaxed);
    }
    /// Whether any request waits for readiness or a timer.
    pub fn has_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) != 0
    }

    /// Whether any request waits for readiness, a timer or a device.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.has_armed() || self.has_flying()
    }

    fn shows_readiness(&self) -> bool {
        let cq = self.cq.lock();
        cq.ready(&self.mem) > 0 || cq.has_backlog() || self.has_task_work()
    }

    /// Makes the descriptor readable if there is something.
    pub fn show_ready(&self) {
        if self.shows_readiness() {
            fd::eventfd_signal(self.efd());
        }
    }

    /// Does for a program that is about to poll the ring what the kernel does on every return to it: handles what is
    /// ready. On a ring with deferred task work it only shows that there is some.
    pub fn look_for_work(self: &Arc<Ring>) {
        let Some(ep) = self.existing_epfd().filter(|_| self.has_waiting()) else { return };
        if self.defers() {
            if host::poll::ready(ep, host::poll::IN).is_ok_and(|r| r != 0) {
                self.tell_task_work(true);
            }
            return;
        }
        let mut st = self.state.lock();
        self.poll_now(&mut st, usize::MAX);
        self.finish_turn(&mut st);
    }

    /// Drops a stale readiness of the descriptor: the program has consumed all CQEs.
    pub fn refresh_readiness(&self) {
        if self.shows_readiness() {
            return;
        }
        fd::eventfd_clear(self.efd());
        if self.shows_readiness() {
            fd::eventfd_signal(self.efd());
        }
    }
}
