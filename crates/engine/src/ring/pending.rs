//! The table of requests that wait: for readiness, for a timer, for a worker.

use crate::host::fd::OwnedFd;
use crate::req::{Key, Req};
use crate::wq::WorkItem;
use anyring_uapi::op;
use slab::Slab;
use std::sync::Arc;

/// Why and how a request waits for readiness.
pub struct PollArm {
    /// The request.
    pub req: Box<Req>,
    /// A descriptor of this registration's own, where the request's may be shared.
    pub own_fd: Option<OwnedFd>,
    /// The number whose standing registration serves it, and whether its one event has come.
    pub standing: Option<(i32, bool)>,
    /// Poll events waited for.
    pub events: u32,
    /// Multishot: stays armed.
    pub multishot: bool,
    /// Attempts so far that found nothing in spite of an event.
    pub tries: u32,
}

impl PollArm {
    /// The registered descriptor.
    pub fn fd(&self) -> i32 {
        self.own_fd.as_ref().map_or(self.req.file.raw(), OwnedFd::raw)
    }
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// TIMEOUT.
    Timeout,
    /// LINK_TIMEOUT that watches this request.
    Link(Key),
}

/// A request that waits for a timer.
pub struct TimerArm {
    /// The request.
    pub req: Box<Req>,
    /// Monotonic nanoseconds.
    pub deadline: u64,
    /// Completes when so many other CQEs were posted since the count stood there: (start, number).
    pub count: Option<(u32, u32)>,
    /// See [`TimerKind`].
    pub kind: TimerKind,
}

/// One that waits.
pub enum Pending {
    /// For readiness.
    Poll(PollArm),
    /// For a timer.
    Timer(TimerArm),
    /// For a futex, in a lane.
    Futex(Box<Req>),
    /// For, or in, a worker.
    Work(Arc<WorkItem>),
}

impl Pending {
    fn opcode(&self) -> u8 {
        match self {
            Pending::Poll(arm) => arm.req.def.code,
            Pending::Timer(timer) => timer.req.def.code,
            Pending::Futex(req) => req.def.code,
            Pending::Work(item) => item.opcode,
        }
    }
    /// The kernel keeps some waits in lists of their own, and a cancel of any number in one list counts 1: which list.
    pub fn list(&self) -> Option<u8> {
        match self.opcode() {
            op::WAITID => Some(op::WAITID),
            op::FUTEX_WAIT | op::FUTEX_WAITV => Some(op::FUTEX_WAIT),
            _ => None,
        }
    }
}

struct Slot {
    generation: u32,
    what: Option<Pending>,
}

/// See the module's description.
#[derive(Default)]
pub struct Table {
    slots: Slab<Slot>,
    generation: u32,
}

impl Table {
    /// Reserves a place, to be filled with [`Table::fill`].
    pub fn reserve(&mut self) -> Key {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let index = self.slots.insert(Slot { generation, what: None });
        Key((generation as u64) << 32 | (index as u64 + 16))
    }
    /// Puts a waiting request into a reserved place.
    pub fn fill(&mut self, key: Key, what: Pending) {
        if let Some(slot) = self.slot(key) {
            slot.what = Some(what);
        }
    }
    fn index(key: Key) -> usize {
        (key.0 as u32 as usize).wrapping_sub(16)
    }
    fn slot(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots.get_mut(Table::index(key)).filter(|s| s.generation == (key.0 >> 32) as u32)
    }
    /// Looks at one.
    pub fn get(&mut self, key: Key) -> Option<&mut Pending> {
        self.slot(key)?.what.as_mut()
    }
    /// Takes one out; the place is free then.
    pub fn take(&mut self, key: Key) -> Option<Pending> {
        self.slot(key)?;
        self.slots.remove(Table::index(key)).what
    }
    /// Takes the request out but keeps its place reserved, to be filled again or freed with [`Table::take`].
    pub fn lift(&mut self, key: Key) -> Option<Pending> {
        self.slot(key)?.what.take()
    }
    /// All keys of those that match, oldest first.
    pub fn keys_where(&self, mut matches: impl FnMut(&Pending) -> bool) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .slots
            .iter()
            .filter(|(_, s)| s.what.as_ref().is_some_and(&mut matches))
            .map(|(i, s)| Key((s.generation as u64) << 32 | (i as u64 + 16)))
            .collect();
        keys.sort_unstable();
        keys
    }
    /// The first that matches, in table order.
    pub fn find(&self, mut matches: impl FnMut(&Pending) -> bool) -> Option<Key> {
        self.slots
            .iter()
            .find(|(_, s)| s.what.as_ref().is_some_and(&mut matches))
            .map(|(i, s)| Key((s.generation as u64) << 32 | (i as u64 + 16)))
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
