//! Batched return of finished work: a finished request's CQE is posted at once; what is returned later, many in one go
//! under one taking of the ring's lock, is the request and what it holds: its place in the table, its file, its buffers.
//!
//! A worker holds such requests of one ring at a time and returns them when there are as many as the policy says, when the
//! oldest is as old as it says, when the ring changes, when no work is left, and before a call that will wait. In a
//! call that may wait or not, the watcher returns them for it once the oldest is too old.

use crate::host::time::{now_ns, Clock};
use crate::req::{Key, Req};
use crate::ring::Ring;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Room made for a batch at its start.
const RESERVED: usize = 32;

/// A finished request, whose CQE is posted, and its place in the ring's table.
pub type Finished = (Key, Box<Req>);

/// Counters of what was returned.
#[derive(Default)]
pub struct Returns {
    /// Requests.
    pub requests: AtomicU64,
    /// In so many goes.
    pub pushes: AtomicU64,
    /// The longest that one was held, in nanoseconds.
    pub held_max_ns: AtomicU64,
}

/// Requests of one ring that are to be returned.
pub struct Held {
    ring: Arc<Ring>,
    finished: Vec<Finished>,
    since: u64,
    returns: Arc<Returns>,
}

impl Held {
    /// Returns them. No lock is held by the caller.
    pub fn give_back(self) {
        let ns = now_ns(Clock::Monotonic).saturating_sub(self.since);
        self.returns.requests.fetch_add(self.finished.len() as u64, Relaxed);
        self.returns.pushes.fetch_add(1, Relaxed);
        self.returns.held_max_ns.fetch_max(ns, Relaxed);
        self.ring.take_back(self.finished);
    }
}

/// See the module's description.
pub struct Batch {
    most: usize,
    delay_ns: u64,
    ring: Option<Arc<Ring>>,
    finished: Vec<Finished>,
    /// When the oldest finished.
    since: u64,
    returns: Arc<Returns>,
}

impl Batch {
    /// An empty one that is returned at `most` requests or after a delay.
    pub fn new(most: u32, delay_us: u32, returns: Arc<Returns>) -> Batch {
        let delay_ns = delay_us as u64 * 1000;
        Batch { most: most as usize, delay_ns, ring: None, finished: Vec::new(), since: 0, returns }
    }

    /// Adds a request; what is to be returned now. Another ring's are returned first. The time is asked for the first of a
    /// batch, and where more than an instant may have passed since the last.
    pub fn add(
        &mut self,
        ring: &Arc<Ring>,
        one: Finished,
        instant: bool,
        now: impl Fn() -> u64,
    ) -> [Option<Held>; 2] {
        let other = self.ring.as_ref().is_some_and(|r| !Arc::ptr_eq(r, ring));
        let before = if other { self.take() } else { None };
        if self.finished.is_empty() {
            self.ring = Some(ring.clone());
            self.since = now();
            self.finished.reserve(self.most.min(RESERVED));
            self.finished.push(one);
            return [before, None];
        }
        self.finished.push(one);
        let after = match self.finished.len() >= self.most {
            true => self.take(),
            false if instant => None,
            false => self.take_old(now()),
        };
        [before, after]
    }

    /// Takes all.
    pub fn take(&mut self) -> Option<Held> {
        let ring = self.ring.take()?;
        let finished = core::mem::take(&mut self.finished);
        Some(Held { ring, finished, since: self.since, returns: self.returns.clone() })
    }

    /// Takes all if the oldest is too old.
    pub fn take_old(&mut self, now: u64) -> Option<Held> {
        if now.saturating_sub(self.since) < self.delay_ns {
            return None;
        }
        self.take()
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.ring.is_none()
    }
}
