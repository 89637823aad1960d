//! A thread of the program that uses rings: its worker pool and its registered ring descriptors.

use crate::limits::RING_FDS;
use crate::ring::Ring;
use crate::sync::Lock;
use crate::wq::Pool;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// See the module's description. Rings and requests hold it; it ends with its thread.
pub struct Task {
    /// Thread id.
    pub tid: i32,
    /// Its io-wq.
    pub pool: Arc<Pool>,
    /// IORING_REGISTER_RING_FDS.
    pub ring_fds: Lock<[Option<Arc<Ring>>; RING_FDS]>,
    dead: AtomicBool,
}

impl Task {
    /// A task whose pool takes its bound from the ring it was made for.
    pub fn new(tid: i32, pool: Arc<Pool>) -> Task {
        Task { tid, pool, ring_fds: Lock::new(Default::default()), dead: AtomicBool::new(false) }
    }
    /// The thread has ended.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }
    /// The thread ends: its workers finish or are interrupted.
    pub fn exit(&self) {
        self.dead.store(true, Ordering::Release);
        *self.ring_fds.lock() = Default::default();
        self.pool.exit();
    }
}
