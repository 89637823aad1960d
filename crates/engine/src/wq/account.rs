//! One account: a queue, its workers, and the serialisation of hashed work.

use super::WorkItem;
use crate::host::{thread, time};
use crate::limits::WORKER_IDLE_NS;
use crate::sync::Lock;
use crate::Errno;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What [`super::Pool::stop`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was queued; its request can be taken.
    Queued,
    /// A worker has it and was interrupted.
    Running,
}

/// What an idle worker is to do.
pub enum Next {
    /// Run this.
    Run(Arc<WorkItem>),
    /// Leave.
    Leave,
}

/// Counters of an account, a pool, or several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Acquisitions of accounts' locks.
    pub locks: u64,
    /// Idle workers that were woken.
    pub wakeups: u64,
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.locks += other.locks;
        self.wakeups += other.wakeups;
    }
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Arc<WorkItem>>,
    max: u32,
    workers: u32,
    /// Idle workers of the present generation.
    idle: u32,
    /// Idle workers that were woken and have not looked yet.
    claimed: u32,
    /// Workers of an older generation have credentials that the process gave up: they take nothing more.
    generation: u32,
    running: Vec<(i32, Arc<WorkItem>)>,
    /// Idle workers that were woken so far.
    wakeups: u64,
    /// Queued and running items of each hash.
    hashes: BTreeMap<u64, u32>,
}

/// See the module's description.
pub struct Account {
    inner: Lock<Inner>,
    /// Idle workers sleep on this.
    bell: AtomicU32,
}

impl Account {
    /// An account without workers.
    pub fn new(max: u32) -> Account {
        Account { inner: Lock::new(Inner { max, ..Inner::default() }), bell: AtomicU32::new(0) }
    }

    /// Queues an item; true if the caller must start a worker, which is already counted in.
    pub fn push(&self, item: Arc<WorkItem>) -> bool {
        let mut inner = self.inner.lock();
        let behind_another = item.hash.is_some_and(|h| {
            let n = inner.hashes.entry(h).or_insert(0);
            *n += 1;
            *n > 1
        });
        inner.queue.push_back(item);
        if behind_another {
            return false;
        }
        if inner.idle > inner.claimed {
            inner.claimed += 1;
            inner.wakeups += 1;
            self.bell.fetch_add(1, Ordering::Relaxed);
            drop(inner);
            time::futex_wake(&self.bell, 1);
            return false;
        }
        let more = inner.workers < inner.max;
        inner.workers += u32::from(more);
        more
    }

    /// No worker could be started: takes the item back unless somebody else will run it.
    pub fn give_up(&self, item: &Arc<WorkItem>) -> bool {
        let mut inner = self.inner.lock();
        inner.workers == 0 && inner.unqueue(item)
    }

    /// A worker could not be started after all, or has left.
    pub fn worker_gone(&self) {
        self.inner.lock().workers -= 1;
    }

    /// Blocks a worker until there is work, or it is to leave.
    pub fn next(&self, tid: i32, generation: u32, exiting: impl Fn() -> bool) -> Next {
        let mut timed_out = false;
        loop {
            let mut inner = self.inner.lock();
            if inner.generation != generation {
                return Next::Leave;
            }
            if let Some(item) = inner.next_runnable() {
                inner.running.push((tid, item.clone()));
                return Next::Run(item);
            }
            let last = inner.workers == 1;
            if exiting() || (timed_out && !last) {
                inner.workers -= 1;
                return Next::Leave;
            }
            inner.idle += 1;
            let ring = self.bell.load(Ordering::Relaxed);
            drop(inner);
            let slept = time::futex_wait(&self.bell, ring, Some(WORKER_IDLE_NS));
            const TIMEDOUT: Errno = Errno(110);
            let mut inner = self.inner.lock();
            if inner.generation != generation {
                // It was taken out of the count when its generation ended.
                continue;
            }
            inner.idle -= 1;
            timed_out = slept == Err(TIMEDOUT) && inner.claimed == 0;
            inner.claimed = inner.claimed.saturating_sub(1);
        }
    }

    /// A worker is done with an item.
    pub fn done(&self, tid: i32, item: &Arc<WorkItem>) {
        let mut inner = self.inner.lock();
        inner.running.retain(|(t, i)| *t != tid || !Arc::ptr_eq(i, item));
        inner.release_hash(item);
    }

    /// See [`super::Pool::stop`].
    pub fn stop(&self, item: &Arc<WorkItem>, signal: i32) -> Stopped {
        let mut inner = self.inner.lock();
        if inner.unqueue(item) {
            return Stopped::Queued;
        }
        item.cancel.store(1, Ordering::Release);
        if let Some((tid, _)) = inner.running.iter().find(|(_, i)| Arc::ptr_eq(i, item)) {
            let _ = thread::tgkill(*tid, signal);
        }
        Stopped::Running
    }

    /// Takes all queued items.
    pub fn drain_queue(&self) -> Vec<Arc<WorkItem>> {
        let mut inner = self.inner.lock();
        let items: Vec<_> = inner.queue.drain(..).collect();
        for item in &items {
            inner.release_hash(item);
        }
        items
    }

    /// Interrupts every running item and wakes idle workers so that they leave.
    pub fn interrupt_all(&self, signal: i32) {
        let inner = self.inner.lock();
        for (tid, item) in &inner.running {
            item.cancel.store(1, Ordering::Release);
            let _ = thread::tgkill(*tid, signal);
        }
        drop(inner);
        self.ring_all();
    }

    /// All present workers leave as soon as they are free, and count no more. Returns how many new ones the
    /// caller must start for what is queued; they are counted in.
    pub fn retire_all(&self) -> u32 {
        let mut inner = self.inner.lock();
        inner.generation += 1;
        (inner.idle, inner.claimed) = (0, 0);
        inner.workers = inner.max.min(inner.queue.len() as u32);
        let needed = inner.workers;
        drop(inner);
        self.ring_all();
        needed
    }

    /// The generation of a worker that starts now.
    pub fn generation(&self) -> u32 {
        self.inner.lock().generation
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        let wakeups = self.inner.lock().wakeups;
        Counts { locks: self.inner.acquisitions(), wakeups }
    }

    fn ring_all(&self) {
        self.bell.fetch_add(1, Ordering::Relaxed);
        time::futex_wake(&self.bell, i32::MAX as u32);
    }

    /// Sets the limit unless 0; returns the old one.
    pub fn set_max(&self, max: u32) -> u32 {
        let mut inner = self.inner.lock();
        let old = inner.max;
        if max != 0 {
            inner.max = max;
        }
        old
    }

    /// Calls `f` with the thread id of each running worker.
    pub fn each_worker(&self, f: impl Fn(i32) -> Result<(), Errno>) -> Result<(), Errno> {
        let inner = self.inner.lock();
        inner.running.iter().try_for_each(|(tid, _)| f(*tid))
    }
}

impl Inner {
    /// The first item whose hash no running item has.
    fn next_runnable(&mut self) -> Option<Arc<WorkItem>> {
        let free = |item: &Arc<WorkItem>| {
            item.hash.is_none_or(|h| !self.running.iter().any(|(_, r)| r.hash == Some(h)))
        };
        let at = self.queue.iter().position(free)?;
        self.queue.remove(at)
    }

    fn unqueue(&mut self, item: &Arc<WorkItem>) -> bool {
        match self.queue.iter().position(|i| Arc::ptr_eq(i, item)) {
            Some(at) => {
                self.queue.remove(at);
                self.release_hash(item);
                true
            }
            None => false,
        }
    }

    fn release_hash(&mut self, item: &WorkItem) {
        if let Some(h) = item.hash {
            if let Some(n) = self.hashes.get_mut(&h) {
                *n -= 1;
                if *n == 0 {
                    self.hashes.remove(&h);
                }
            }
        }
    }
}
