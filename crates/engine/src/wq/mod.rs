//! io-wq: the worker pool of one task, with a bounded and an unbounded account.
//!
//! An account's lock guards its queue, its counts and what each worker runs. It is taken after a
//! ring's state lock; workers take it with no other lock held. A work item's request is in the
//! item while it is queued and with the worker while it runs; [`Pool::stop`] decides under the account
//! lock which of the two holds.

mod account;
mod worker;

pub use account::{Counts, Stopped};

use crate::engine::Inner;
use crate::host::{fd, thread};
use crate::limits::BOUND_WORKERS_PER_CPU;
use crate::req::{Key, Req};
use crate::ring::Ring;
use crate::sync::Lock;
use crate::task::Task;
use crate::Errno;
use account::Account;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// A request for a worker.
pub struct WorkItem {
    /// Its ring.
    pub ring: Arc<Ring>,
    /// Its place in the ring's table.
    pub key: Key,
    /// Whose pool runs it.
    pub task: Arc<Task>,
    /// Match keys for cancel.
    pub user_data: u64,
    /// See `user_data`.
    pub opcode: u8,
    /// See `user_data`.
    pub file: i32,
    /// Set to stop it while it runs.
    pub cancel: AtomicU32,
    /// Items with the same value run one at a time.
    pub hash: Option<u64>,
    /// The account.
    pub bound: bool,
    req: Lock<Option<Box<Req>>>,
}

impl WorkItem {
    /// Wraps a request whose file is its own.
    pub fn new(ring: Arc<Ring>, key: Key, req: Box<Req>, task: Arc<Task>) -> WorkItem {
        let def = req.def;
        let needs_stat = def.unbound || def.hashed;
        let stat = needs_stat.then(|| fd::stat(req.file.raw()).ok()).flatten();
        let regular = stat.is_some_and(|s| s.is_regular());
        let on_disk = regular || stat.is_some_and(|s| s.is_block());
        let hash = stat.filter(|_| def.hashed && regular).map(|s| s.dev.rotate_left(32) ^ s.ino);
        WorkItem {
            ring,
            key,
            task,
            user_data: req.user_data,
            opcode: def.code,
            file: req.file.raw(),
            cancel: AtomicU32::new(0),
            hash,
            bound: !def.unbound || on_disk,
            req: Lock::new(Some(req)),
        }
    }
    /// Takes the request: whoever gets it completes it.
    pub fn take_request(&self) -> Option<Box<Req>> {
        self.req.lock().take()
    }
    /// It was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Acquire) != 0
    }
}

/// The two accounts of one task.
pub struct Pool {
    bound: Account,
    unbound: Account,
    tid: i32,
    engine: Weak<Inner>,
    exiting: AtomicBool,
    affinity: Lock<Option<Vec<u8>>>,
}

impl Pool {
    /// A pool without threads. The bound comes from the ring that was made first.
    pub fn new(tid: i32, sq_entries: u32, engine: Weak<Inner>) -> Pool {
        let bound = sq_entries.min(BOUND_WORKERS_PER_CPU * thread::cpus()).max(1);
        let unbound = crate::host::thread::nproc_limit().clamp(1, i32::MAX as u64) as u32;
        Pool {
            bound: Account::new(bound),
            unbound: Account::new(unbound),
            tid,
            engine,
            exiting: AtomicBool::new(false),
            affinity: Lock::new(None),
        }
    }

    fn account(&self, bound: bool) -> &Account {
        if bound {
            &self.bound
        } else {
            &self.unbound
        }
    }

    /// Queues an item and sees that somebody will run it. EAGAIN if no worker exists and none can be made.
    pub fn enqueue(self: &Arc<Pool>, item: &Arc<WorkItem>) -> Result<(), Errno> {
        if self.exiting.load(Ordering::Acquire) {
            return Err(Errno::CANCELED);
        }
        let account = self.account(item.bound);
        if !account.push(item.clone()) {
            return Ok(());
        }
        self.start_worker(item.bound)
            .or_else(|e| if account.give_up(item) { Err(e) } else { Ok(()) })
    }

    /// Starts the worker that was counted in by the account.
    fn start_worker(self: &Arc<Pool>, bound: bool) -> Result<(), Errno> {
        let started = match self.engine.upgrade() {
            Some(engine) => {
                engine.count_worker(1);
                let pool = self.clone();
                let generation = self.account(bound).generation();
                let spawned = engine.spawn(Box::new(move || worker::run(&pool, bound, generation)));
                if spawned.is_err() {
                    engine.count_worker(-1);
                }
                spawned
            }
            None => Err(Errno::AGAIN),
        };
        if started.is_err() {
            self.account(bound).worker_gone();
        }
        started.map_err(|_| Errno::AGAIN)
    }

    /// Stops an item: takes it off the queue, or interrupts the worker that runs it.
    pub fn stop(&self, item: &Arc<WorkItem>) -> Stopped {
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        self.account(item.bound).stop(item, signal)
    }

    /// The task ends: queued unbounded work and what blocks is cancelled, the rest still runs.
    pub fn exit(&self) {
        self.exiting.store(true, Ordering::Release);
        let signal = self.engine.upgrade().map_or(0, |e| e.config.interrupt_signal);
        let dropped = self.unbound.drain_queue();
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
            for _ in 0..self.account(bound).retire_all() {
                let _ = self.start_worker(bound);
            }
        }
    }

    /// What both accounts did so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.bound.counts();
        counts += self.unbound.counts();
        counts
    }

    /// IORING_REGISTER_IOWQ_MAX_WORKERS: 0 keeps; returns the old limits.
    pub fn set_max(&self, bound: u32, unbound: u32) -> [u32; 2] {
        let most = crate::host::thread::nproc_limit().min(i32::MAX as u64) as u32;
        [self.bound.set_max(bound.min(most)), self.unbound.set_max(unbound.min(most))]
    }

    /// IORING_REGISTER_IOWQ_AFF, or its removal.
    pub fn set_affinity(&self, mask: Option<Vec<u8>>) -> Result<(), Errno> {
        let apply = mask.clone().unwrap_or_else(thread::affinity);
        for account in [&self.bound, &self.unbound] {
            account.each_worker(|tid| thread::set_affinity(tid, &apply))?;
        }
        *self.affinity.lock() = mask;
        Ok(())
    }
}
