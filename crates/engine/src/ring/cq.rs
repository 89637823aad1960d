//! The completion queue: posting, the overflow backlog, and whom a post wakes.
//!
//! All fields are touched under `Ring::cq`'s lock. The tail published to the program is a copy of
//! `tail`; the program's head is read, never trusted: a head that makes the queue look
//! fuller than it can be counts as full.
//!
//! No lost wake-up: a thread that goes to sleep registers itself in `sleepers` under the lock in the same
//! critical section in which it found too few CQEs; a poster publishes under the same lock and
//! then looks at `sleepers`. The wake is the edge of a descriptor in the ring's epoll, which any thread that polls
//! the ring may receive: one that does not need it signals it again (`Ring::return_wake`).

use super::shared::SharedRings;
use crate::host::fd::{self, OwnedFd};
use anyring_uapi::{cqe, op, setup, Cqe};
use std::collections::VecDeque;

/// A CQE on its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// The 16 bytes everybody sees.
    pub cqe: Cqe,
    /// The rest of a 32-byte CQE.
    pub extra: [u64; 2],
    /// Takes two slots of a mixed ring.
    pub large: bool,
}

impl From<Cqe> for Entry {
    fn from(cqe: Cqe) -> Entry {
        Entry { cqe, ..Entry::default() }
    }
}

/// How a CQE counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counted timeouts count it.
    Normal,
    /// A TIMEOUT that fired: not counted, but it ends every wait.
    Fired,
    /// Another end of a TIMEOUT: neither.
    Timeout,
}

/// A registered eventfd.
pub struct EventFd {
    /// The engine's own duplicate.
    pub fd: OwnedFd,
    /// Only completions of workers signal it.
    pub async_only: bool,
}

/// What remains to be told to others once a batch of CQEs was posted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Dirty {
    posted: bool,
    /// Into the ring, not only to the backlog.
    visible: bool,
    from_worker: bool,
    fired: bool,
}

/// See the module's description.
pub struct Cq {
    tail: u32,
    entries: u32,
    mixed: bool,
    backlog: VecDeque<Entry>,
    /// CQEs other than timeouts', ever; counted timeouts wait for it.
    pub non_timeouts: u32,
    /// TIMEOUT requests that fired, ever; one ends a wait.
    pub timeouts: u32,
    /// CQEs that went through the backlog, ever.
    pub overflowed: u64,
    /// Registered by the program.
    pub eventfd: Option<EventFd>,
    /// Somebody counts completions one by one: each is made under the state's lock.
    pub exact: bool,
    /// Normal CQEs posted without the state's lock since the last turn ended under it.
    pub early_now: u32,
    /// Such CQEs by opcode, ever.
    pub early: Box<[u64; op::COUNT]>,
    dirty: Dirty,
    lazy_wake: bool,
    /// Tail positions at which sleeping threads want to wake.
    sleepers: Vec<u32>,
}

/// What [`Cq::commit`] found to do.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Commit {
    /// CQEs were posted since the last commit.
    pub posted: bool,
    /// A sleeping thread is to be woken.
    pub wake: bool,
}

impl Cq {
    /// An empty queue.
    pub fn new(entries: u32, flags: u32, lazy_wake: bool) -> Cq {
        Cq {
            tail: 0,
            entries,
            mixed: flags & setup::CQE_MIXED != 0,
            backlog: VecDeque::new(),
            non_timeouts: 0,
            timeouts: 0,
            overflowed: 0,
            eventfd: None,
            exact: false,
            early_now: 0,
            early: Box::new([0; op::COUNT]),
            dirty: Dirty::default(),
            lazy_wake,
            sleepers: Vec::new(),
        }
    }

    /// The ring was resized; what was in the backlog may fit now.
    pub fn resize(&mut self, entries: u32) {
        self.entries = entries;
    }
    /// The tail.
    pub fn tail(&self) -> u32 {
        self.tail
    }
    /// CQEs the program has not consumed.
    pub fn ready(&self, mem: &SharedRings) -> u32 {
        self.tail.wrapping_sub(mem.cq_head()).min(self.entries)
    }
    /// CQEs wait in the backlog.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Writes into the ring if it has room.
    #[inline]
    fn put(&mut self, mem: &SharedRings, e: &Entry) -> bool {
        let mut room = self.entries.wrapping_sub(self.tail.wrapping_sub(mem.cq_head()));
        if room == 0 || room > self.entries {
            return false;
        }
        if e.large && self.mixed {
            if self.tail & (self.entries - 1) == self.entries - 1 {
                if room < 3 {
                    return false;
                }
                mem.write_cqe(self.tail, &Cqe { flags: cqe::F_SKIP, ..Cqe::default() }, [0; 2]);
                self.tail = self.tail.wrapping_add(1);
                room -= 1;
            }
            if room < 2 {
                return false;
            }
            mem.write_cqe(self.tail, &Cqe { flags: e.cqe.flags | cqe::F_32, ..e.cqe }, [0; 2]);
            let second = Cqe {
                user_data: e.extra[0],
                res: e.extra[1] as i32,
                flags: (e.extra[1] >> 32) as u32,
            };
            mem.write_cqe(self.tail.wrapping_add(1), &second, [0; 2]);
            self.tail = self.tail.wrapping_add(2);
        } else {
            mem.write_cqe(self.tail, &e.cqe, e.extra);
            self.tail = self.tail.wrapping_add(1);
        }
        mem.set_cq_tail(self.tail);
        self.dirty.visible = true;
        true
    }

    /// Posts one CQE, to the ring or behind the backlog. Follow with [`Cq::commit`].
    #[inline]
    pub fn post(&mut self, mem: &SharedRings, e: Entry, kind: Kind, from_worker: bool) {
        self.count(kind);
        self.dirty.from_worker |= from_worker;
        if self.backlog.is_empty() && self.put(mem, &e) {
            return;
        }
        if self.backlog.is_empty() {
            mem.set_sq_flags(setup::SQ_CQ_OVERFLOW);
        }
        self.overflowed += 1;
        self.backlog.push_back(e);
    }

    /// Posts several CQEs that count as [`Kind::Normal`]. Follow with [`Cq::commit`].
    pub fn post_all(&mut self, mem: &SharedRings, cqes: &[Cqe], from_worker: bool) {
        if cqes.is_empty() {
            return;
        }
        let room = self.entries.wrapping_sub(self.tail.wrapping_sub(mem.cq_head()));
        if room > self.entries || room < cqes.len() as u32 || !self.backlog.is_empty() {
            return cqes
                .iter()
                .for_each(|c| self.post(mem, (*c).into(), Kind::Normal, from_worker));
        }
        mem.write_cqes(self.tail, cqes);
        self.tail = self.tail.wrapping_add(cqes.len() as u32);
        mem.set_cq_tail(self.tail);
        self.non_timeouts = self.non_timeouts.wrapping_add(cqes.len() as u32);
        self.dirty = Dirty { posted: true, visible: true, ..self.dirty };
        self.dirty.from_worker |= from_worker;
    }

    /// Posts a CQE of a multishot request only if it fits into the ring now: such a request ends
    /// rather than fill the backlog.
    pub fn try_post(&mut self, mem: &SharedRings, e: Entry, kind: Kind) -> bool {
        if !self.backlog.is_empty() || !self.put(mem, &e) {
            return false;
        }
        self.count(kind);
        true
    }

    #[inline]
    fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Normal => self.non_timeouts = self.non_timeouts.wrapping_add(1),
            Kind::Fired => {
                self.timeouts = self.timeouts.wrapping_add(1);
                self.dirty.fired = true;
            }
            Kind::Timeout => {}
        }
        self.dirty.posted = true;
    }

    /// One was posted without the state's lock.
    pub fn count_early(&mut self, opcode: u8) {
        self.early_now += 1;
        self.early[opcode as usize] += 1;
    }

    /// Moves what fits from the backlog to the ring.
    pub fn flush_backlog(&mut self, mem: &SharedRings) {
        while let Some(e) = self.backlog.front().copied() {
            if !self.put(mem, &e) {
                return;
            }
            self.backlog.pop_front();
            self.dirty.posted = true;
        }
        mem.clear_sq_flags(setup::SQ_CQ_OVERFLOW);
    }

    /// Ends a batch of posts: signals the eventfd once and says whether sleepers are to be woken.
    pub fn commit(&mut self, mem: &SharedRings) -> Commit {
        if !self.dirty.posted {
            return Commit::default();
        }
        let dirty = core::mem::take(&mut self.dirty);
        if dirty.visible {
            self.signal_eventfd(mem, dirty.from_worker);
        }
        let wake = self.sleeper_is_met()
            || (!self.sleepers.is_empty()
                && (dirty.fired || !self.lazy_wake || !self.backlog.is_empty()));
        Commit { posted: true, wake }
    }

    /// Signals the registered eventfd.
    pub fn signal_eventfd(&self, mem: &SharedRings, from_worker: bool) {
        if let Some(ev) = &self.eventfd {
            if (from_worker || !ev.async_only) && !mem.eventfd_disabled() {
                fd::eventfd_signal(ev.fd.raw());
            }
        }
    }

    /// A thread is about to sleep until the tail reaches `target`.
    pub fn add_sleeper(&mut self, target: u32) {
        self.sleepers.push(target);
    }
    /// It woke.
    pub fn remove_sleeper(&mut self, target: u32) {
        if let Some(i) = self.sleepers.iter().position(|t| *t == target) {
            self.sleepers.swap_remove(i);
        }
    }
    /// Those that were registered are gone without a word.
    pub fn forget_sleepers(&mut self) {
        self.sleepers.clear();
    }
    /// A thread still sleeps though the tail has reached its target.
    pub fn sleeper_is_met(&self) -> bool {
        self.sleepers.iter().any(|target| self.tail.wrapping_sub(*target) as i32 >= 0)
    }
    /// Somebody sleeps.
    pub fn has_sleepers(&self) -> bool {
        !self.sleepers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::shared::Geometry;

    fn entry(n: u64) -> Entry {
        Entry { cqe: Cqe { user_data: n, ..Cqe::default() }, ..Entry::default() }
    }

    #[test]
    fn backlog_keeps_order_and_flag() {
        let mem = SharedRings::new(Geometry::new(2, 2, 0)).unwrap();
        let mut cq = Cq::new(2, 0, true);
        for n in 0..5 {
            cq.post(&mem, entry(n), Kind::Normal, false);
        }
        assert_eq!((cq.ready(&mem), cq.overflowed), (2, 3));
        assert!(cq.has_backlog() && !cq.try_post(&mem, entry(9), Kind::Normal));
        cq.flush_backlog(&mem);
        assert_eq!(cq.ready(&mem), 2);
    }

    #[test]
    fn sleepers_wake_at_their_target_only() {
        let mem = SharedRings::new(Geometry::new(8, 16, 0)).unwrap();
        let mut cq = Cq::new(16, 0, true);
        cq.add_sleeper(2);
        cq.post(&mem, entry(1), Kind::Normal, false);
        assert_eq!(cq.commit(&mem), Commit { posted: true, wake: false });
        cq.post(&mem, entry(2), Kind::Normal, false);
        assert_eq!(cq.commit(&mem), Commit { posted: true, wake: true });
        assert_eq!(cq.commit(&mem), Commit::default());
    }
}
