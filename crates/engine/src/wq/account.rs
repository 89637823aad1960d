//! One account: what waits, and the workers for it.
//!
//! Inserting pushes to the lock-free inbox. A worker takes the lock once for each item: it moves the inbox to the queue,
//! ends the hash of its last item, and takes the next one. `coarse` has the way before.

use super::crew::{Activated, Crew};
use super::linger::Linger;
use super::queue::Queue;
use super::slot::Slot;
use super::WorkItem;
use crate::limits::WORKER_IDLE_NS;
use crate::policy::{Policy, WqLocking};
use crate::req::Req;
use crate::stack::Stack;
use crate::sync::Lock;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// What [`super::Pool::stop`] did.
pub enum Stopped {
    /// It waited; here is its request.
    Queued(Box<Req>),
    /// A worker has it and was interrupted.
    Running,
    /// It has ended.
    Gone,
}

/// What a worker got.
pub enum Take {
    /// An item; the slot names it.
    Item(Arc<WorkItem>),
    /// There is none that can run.
    Nothing,
    /// The worker is of an older generation, and takes nothing more.
    Stale,
}

/// What is under the lock.
#[derive(Default)]
pub(super) struct Inner {
    pub(super) queue: Queue,
    slots: Vec<Arc<Slot>>,
}

/// See the module's description.
pub struct Account {
    pub(super) inner: Lock<Inner>,
    coarse: bool,
    inbox: Stack<WorkItem>,
    /// Its workers.
    pub crew: Crew,
    /// Items of the queue that could run.
    ready: AtomicU32,
    /// Cold reads that were started and wait.
    started: AtomicU32,
    /// Workers that wait in cold reads, and go on with those that were started and those that come.
    readers: AtomicU32,
    /// Changes with the process's credentials.
    generation: AtomicU32,
    /// Workers in calls that may wait.
    watched: AtomicU32,
    /// Workers that the watcher is to start.
    pub owed: AtomicU32,
    linger: Linger,
    wakeups: AtomicU64,
}

impl Account {
    /// An account without workers.
    pub fn new(max: u32, policy: &Policy) -> Account {
        Account {
            inner: Lock::new(Inner::default()),
            coarse: policy.wq_locking == WqLocking::Coarse,
            inbox: Stack::default(),
            crew: Crew::new(max),
            ready: AtomicU32::new(0),
            started: AtomicU32::new(0),
            readers: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            watched: AtomicU32::new(0),
            owed: AtomicU32::new(0),
            linger: Linger::new(policy.wq_linger),
            wakeups: AtomicU64::new(0),
        }
    }

    /// Adds an item and sees that a worker is active, or says what the caller must do for that.
    pub fn push(&self, item: Arc<WorkItem>) -> Activated {
        if self.coarse {
            return self.count(self.push_coarse(item));
        }
        let cold = item.cold;
        self.inbox.push(item);
        if cold && self.has_readers() {
            return Activated::Enough;
        }
        self.activate()
    }

    /// Adds an item, and leaves it to the caller to see that a worker is active.
    pub fn insert(&self, item: Arc<WorkItem>) {
        self.inbox.push(item);
    }

    /// Sees that a worker is active.
    pub fn activate(&self) -> Activated {
        self.count(self.crew.activate())
    }

    /// One more worker than are active.
    pub fn activate_another(&self) -> Activated {
        self.count(self.crew.activate_beyond(self.crew.counts().active))
    }

    fn count(&self, activated: Activated) -> Activated {
        if activated == Activated::Woken {
            self.wakeups.fetch_add(1, Relaxed);
        }
        activated
    }

    /// A new worker; its slot.
    pub fn enlist(&self, slot: impl FnOnce(u32) -> Slot) -> Arc<Slot> {
        let mut inner = self.inner.lock();
        let slot = Arc::new(slot(self.generation.load(SeqCst)));
        inner.slots.push(slot.clone());
        slot
    }

    /// It has left.
    pub fn dismiss(&self, slot: &Arc<Slot>) {
        self.inner.lock().slots.retain(|s| !Arc::ptr_eq(s, slot));
    }

    /// The next item for a worker, whose last one had the hash `ended`.
    pub fn take(&self, slot: &Slot, ended: Option<u64>, reading: bool) -> Take {
        if self.coarse {
            return self.take_coarse(slot, ended, reading);
        }
        let mut inner = self.inner.lock();
        self.gather(&mut inner, ended);
        let taken = self.next(&mut inner, slot, reading);
        self.note_ready(&inner);
        taken
    }

    /// See [`Queue::start_while`].
    pub fn start_while(&self, most: usize, fits: impl Fn(&WorkItem) -> bool) -> Vec<Arc<WorkItem>> {
        let mut inner = self.inner.lock();
        self.gather(&mut inner, None);
        let run = inner.queue.start_while(most, fits);
        self.note_ready(&inner);
        run
    }

    /// Brings the queue up to date.
    pub(super) fn gather(&self, inner: &mut Inner, ended: Option<u64>) {
        for item in self.inbox.take_all() {
            inner.queue.push(item);
        }
        if let Some(hash) = ended {
            inner.queue.release(hash);
        }
    }

    pub(super) fn note_ready(&self, inner: &Inner) {
        self.ready.store(inner.queue.ready(), SeqCst);
        self.started.store(inner.queue.started(), SeqCst);
    }

    /// An item's hash is free, and its worker does not come for another item at once.
    pub fn end_hash(&self, hash: u64) {
        let mut inner = self.inner.lock();
        self.gather(&mut inner, Some(hash));
        self.note_ready(&inner);
    }

    /// Something waits that could run.
    pub fn work_waits(&self) -> bool {
        self.ready.load(SeqCst) != 0
            || !self.inbox.is_empty()
            || (self.started.load(SeqCst) != 0 && !self.has_readers())
    }

    /// A worker waits in a cold read.
    pub fn has_readers(&self) -> bool {
        self.readers.load(SeqCst) != 0
    }
    /// One goes to do so; true if others are behind it.
    pub fn enter_reading(&self) -> bool {
        self.readers.fetch_add(1, SeqCst);
        self.started.load(SeqCst) != 0
    }
    /// It is back, and counted as active again.
    pub fn leave_reading(&self) {
        self.readers.fetch_sub(1, SeqCst);
    }
    /// Cold reads wait for their reader.
    pub fn reads_wait(&self) -> bool {
        self.started.load(SeqCst) != 0 || !self.inbox.is_empty()
    }

    /// An active worker without work waits for some. False if it is to leave, and is counted out already.
    pub fn rest(&self, leaving: impl Fn() -> bool) -> bool {
        let awaited = || self.work_waits() || leaving();
        if self.crew.counts().active == 1 && self.linger.look(awaited) {
            return true;
        }
        self.crew.lie_down();
        if awaited() && self.crew.get_up() {
            return true;
        }
        loop {
            if self.crew.sleep(WORKER_IDLE_NS) {
                return true;
            }
            if self.crew.leave_asleep() {
                return false;
            }
        }
    }

    /// See [`super::Pool::stop`].
    pub fn stop(&self, item: &WorkItem, signal: i32) -> Stopped {
        let mut inner = self.inner.lock();
        if let Some(req) = item.take_request() {
            self.gather(&mut inner, None);
            inner.queue.remove(item);
            self.note_ready(&inner);
            return Stopped::Queued(req);
        }
        match inner.slots.iter().any(|slot| slot.interrupt(Some(item.id()), signal)) {
            true => Stopped::Running,
            false => Stopped::Gone,
        }
    }

    /// Takes all that waits.
    pub fn drain(&self) -> Vec<Arc<WorkItem>> {
        let mut inner = self.inner.lock();
        self.gather(&mut inner, None);
        let items = inner.queue.drain();
        self.note_ready(&inner);
        items
    }

    /// Interrupts whatever runs, and wakes those who sleep so that they leave.
    pub fn interrupt_all(&self, signal: i32) {
        for slot in self.slots() {
            slot.interrupt(None, signal);
        }
        self.crew.wake_all();
    }

    /// All present workers leave as soon as they are free. Whether there are any.
    pub fn retire_all(&self) -> bool {
        self.generation.fetch_add(1, SeqCst);
        self.crew.wake_all();
        self.crew.counts().workers > 0
    }

    /// The workers.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.inner.lock().slots.clone()
    }

    /// A worker goes into a call that may wait. Whether somebody must watch it: work waits behind it.
    pub fn watch(&self, slot: &Slot) -> bool {
        slot.enter_watched();
        self.watched.fetch_add(1, SeqCst);
        self.work_waits()
    }
    /// It is out.
    pub fn unwatch(&self) {
        self.watched.fetch_sub(1, SeqCst);
    }
    /// Workers are in calls that may wait.
    pub fn has_watched(&self) -> bool {
        self.watched.load(SeqCst) != 0
    }

    /// Sets the limit unless 0; returns the old one.
    pub fn set_max(&self, max: u32) -> u32 {
        let old = self.crew.max();
        if max != 0 {
            self.crew.set_max(max);
        }
        old
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        let (linger_hits, linger_misses) = self.linger.counts();
        let wakeups = self.wakeups.load(Relaxed);
        Counts {
            locks: self.inner.acquisitions(),
            wakeups,
            linger_hits,
            linger_misses,
            ..Counts::default()
        }
    }
}

impl Account {
    /// Takes one for a worker.
    pub(super) fn next(&self, inner: &mut Inner, slot: &Slot, reading: bool) -> Take {
        if self.is_stale(slot) {
            return Take::Stale;
        }
        match inner.queue.take(reading) {
            Some(item) => {
                slot.begin(item.id());
                Take::Item(item)
            }
            None => Take::Nothing,
        }
    }
    /// The process has changed its credentials since this worker was started.
    pub fn is_stale(&self, slot: &Slot) -> bool {
        slot.generation != self.generation.load(SeqCst)
    }
}

/// Counters of an account, a pool, or several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Acquisitions of accounts' locks.
    pub locks: u64,
    /// Idle workers that were woken.
    pub wakeups: u64,
    /// Looks for more work before sleeping, that found some.
    pub linger_hits: u64,
    /// Others.
    pub linger_misses: u64,
    /// Requests returned in batches.
    pub returned: u64,
    /// Those batches.
    pub batches: u64,
    /// The longest that a finished request was held.
    pub held_max_ns: u64,
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.locks += other.locks;
        self.wakeups += other.wakeups;
        self.linger_hits += other.linger_hits;
        self.linger_misses += other.linger_misses;
        self.returned += other.returned;
        self.batches += other.batches;
        self.held_max_ns = self.held_max_ns.max(other.held_max_ns);
    }
}
