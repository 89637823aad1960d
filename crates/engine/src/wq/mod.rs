//! io-wq: the worker pool of one task, with a bounded and an unbounded account.
//!
//! An item goes: [`Pool::enqueue`] (inbox, no lock) → a worker takes it (account lock, once) → the request is issued,
//! first in its form that does not wait → its CQE is posted (CQ lock) → the request is returned with others ([`batch`], ring state lock).
//! `crew` decides who must be woken or started, and has the memory-ordering contract; `slot` is how a
//! running item is interrupted; `watch` notices workers that wait although nothing said so.
//!
//! Who may touch what: a request is in its item until a worker or a canceller takes it out, under the item's own lock,
//! which is innermost. An account's lock guards its queue and the list of its workers. It is taken after a ring's
//! state lock; workers take it with no other lock held.

mod account;
pub mod batch;
mod coarse;
mod crew;
mod item;
mod linger;
mod manner;
mod queue;
mod quiet;
mod reads;
mod running;
mod slot;
mod watch;
mod worker;

#[cfg(all(test, not(loom)))]
mod tests;

pub use account::{Counts, Stopped};
pub use item::{Hand, Spare, WorkItem};
pub use quiet::Quiet;
pub use watch::Watch;

use crate::engine::Inner;
use crate::host::thread;
use crate::limits::BOUND_WORKERS_PER_CPU;
use crate::policy::Policy;
use crate::sync::Lock;
use crate::Errno;
use account::Account;
use batch::{Batch, Returns};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use crew::Activated;
use std::sync::{Arc, Weak};

/// The two accounts of one task.
pub struct Pool {
    bound: Account,
    unbound: Account,
    tid: i32,
    engine: Weak<Inner>,
    policy: Policy,
    /// The watcher knows it.
    watched: AtomicBool,
    exiting: AtomicBool,
    affinity: Lock<Option<Vec<u8>>>,
    returns: Arc<Returns>,
}

impl Pool {
    /// A pool without threads. The bound comes from the ring that was made first.
    pub fn new(tid: i32, sq_entries: u32, engine: Weak<Inner>) -> Pool {
        let bound = sq_entries.min(BOUND_WORKERS_PER_CPU * thread::cpus()).max(1);
        let unbound = thread::nproc_limit().clamp(1, i32::MAX as u64) as u32;
        let policy = engine.upgrade().map_or(Policy::DEFAULT, |e| e.config.policy);
        Pool {
            bound: Account::new(bound, &policy),
            unbound: Account::new(unbound, &policy),
            tid,
            engine,
            policy,
            watched: AtomicBool::new(false),
            exiting: AtomicBool::new(false),
            affinity: Lock::new(None),
            returns: Arc::default(),
        }
    }

    fn account(&self, bound: bool) -> &Account {
        if bound {
            &self.bound
        } else {
            &self.unbound
        }
    }

    /// Queues an item and sees that somebody will run it. An error if nobody will, unless its request is gone already: EAGAIN
    /// if no worker exists and none can be made, ECANCELED at the end of the task.
    pub fn enqueue(self: &Arc<Pool>, item: &Arc<WorkItem>) -> Result<(), Errno> {
        let account = self.account(item.bound);
        match account.push(item.clone()) {
            Activated::Start => {
                let started = self.start_worker(item.bound);
                if started.is_err() && account.crew.counts().workers == 0 {
                    return started;
                }
            }
            // It may sit in a call that waits.
            Activated::Enough if account.has_watched() => self.tick(),
            _ => {}
        }
        if self.is_exiting() {
            return Err(Errno::CANCELED);
        }
        Ok(())
    }

    /// Queues an item whose submitter calls [`Pool::see_to`] soon.
    pub fn insert(&self, item: &Arc<WorkItem>) -> Result<(), Errno> {
        self.account(item.bound).insert(item.clone());
        if self.is_exiting() {
            return Err(Errno::CANCELED);
        }
        Ok(())
    }

    /// If work waits in an account, sees that a worker is active.
    pub fn see_to(self: &Arc<Pool>, bound: bool) {
        let account = self.account(bound);
        if !account.work_waits() {
            return;
        }
        match account.activate() {
            // Where it fails, and nobody is left, the watcher tries again.
            Activated::Start if self.start_worker(bound).is_err() => self.tick(),
            Activated::Enough if account.has_watched() => self.tick(),
            _ => {}
        }
    }

    fn is(&self, other: &Arc<Pool>) -> bool {
        core::ptr::eq(self, Arc::as_ptr(other))
    }

    /// Starts a worker that is counted already.
    fn start_worker(self: &Arc<Pool>, bound: bool) -> Result<(), Errno> {
        let started = self.engine.upgrade().ok_or(Errno::AGAIN).and_then(|engine| {
            if !self.watched.swap(true, SeqCst) {
                engine.watch.add(self);
            }
            engine.count_worker(1);
            let pool = self.clone();
            let spawned = engine.spawn(Box::new(move || worker::run(pool, bound)));
            if spawned.is_err() {
                engine.count_worker(-1);
            }
            spawned
        });
        if started.is_err() {
            self.account(bound).crew.leave();
        }
        started.map_err(|_| Errno::AGAIN)
    }

    /// The watcher has something to look after.
    fn tick(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.watch.tick(&engine);
        }
    }

    fn is_exiting(&self) -> bool {
        self.exiting.load(SeqCst)
    }

    fn batch(&self) -> Batch {
        let policy = &self.policy;
        Batch::new(policy.wq_free_batch, policy.wq_free_max_delay_us, self.returns.clone())
    }

    /// Stops an item: takes its request, or interrupts the worker that runs it.
    pub fn stop(&self, item: &WorkItem) -> Stopped {
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        self.account(item.bound).stop(item, signal)
    }

    /// The task ends: queued unbounded work and what blocks is cancelled, the rest still runs.
    pub fn exit(&self) {
        self.exiting.store(true, SeqCst);
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        let dropped = self.unbound.drain();
        for account in [&self.bound, &self.unbound] {
            account.interrupt_all(signal);
        }
        for item in dropped {
            worker::finish(&item, Errno::CANCELED.res());
        }
    }

    /// Present workers leave; new ones have the credentials of the thread that starts them.
    pub fn replace_workers(self: &Arc<Pool>) {
        for bound in [true, false] {
            let account = self.account(bound);
            let retired = account.retire_all();
            if retired && account.work_waits() && account.activate() == Activated::Start {
                let _ = self.start_worker(bound);
            }
        }
    }

    /// What both accounts did so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.bound.counts();
        counts += self.unbound.counts();
        counts.returned = self.returns.requests.load(Relaxed);
        counts.batches = self.returns.pushes.load(Relaxed);
        counts.held_max_ns = self.returns.held_max_ns.load(Relaxed);
        counts
    }

    /// IORING_REGISTER_IOWQ_MAX_WORKERS: 0 keeps; returns the old limits.
    pub fn set_max(&self, bound: u32, unbound: u32) -> [u32; 2] {
        let most = thread::nproc_limit().min(i32::MAX as u64) as u32;
        [self.bound.set_max(bound.min(most)), self.unbound.set_max(unbound.min(most))]
    }

    /// IORING_REGISTER_IOWQ_AFF, or its removal. As with the kernel's, workers that are there finish where they are; what
    /// comes later runs where the mask says.
    pub fn set_affinity(self: &Arc<Pool>, mask: Option<Vec<u8>>) {
        *self.affinity.lock() = mask;
        self.replace_workers();
    }
}
