//! Deadlines of a ring's timers. Deadlines are monotonic nanoseconds; one timer descriptor
//! in the ring's epoll is set to the earliest.

use crate::req::Key;
use std::collections::BTreeSet;

/// See the module's description.
#[derive(Default)]
pub struct Timers {
    deadlines: BTreeSet<(u64, Key)>,
    /// TIMEOUTs with a completion count, oldest first.
    pub counted: Vec<Key>,
    /// What the timer descriptor is set to.
    pub set_to: Option<u64>,
}

impl Timers {
    /// Adds a deadline.
    pub fn insert(&mut self, deadline: u64, key: Key) {
        self.deadlines.insert((deadline, key));
    }
    /// Removes a timer in all its roles.
    pub fn remove(&mut self, deadline: u64, key: Key) {
        self.deadlines.remove(&(deadline, key));
        self.counted.retain(|k| *k != key);
    }
    /// The earliest deadline.
    pub fn earliest(&self) -> Option<u64> {
        self.deadlines.first().map(|(at, _)| *at)
    }
    /// Takes the earliest timer if it has expired.
    pub fn pop_expired(&mut self, now: u64) -> Option<Key> {
        let &(at, key) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        Some(key)
    }
}
