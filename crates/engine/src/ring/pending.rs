//! The table of requests that wait: for readiness, for a timer, for a worker.

use super::by_data::{self, Entries, Index, Link};
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
    /// The crowd it waits in.
    pub crowd: Option<u32>,
    /// Poll events waited for.
    pub events: u32,
    /// Multishot: stays armed.
    pub multishot: bool,
    /// Attempts so far that found nothing in spite of an event.
    pub tries: u32,
}

impl PollArm {
    /// A one-shot wait with a registration by itself.
    pub fn alone(req: Box<Req>, events: u32) -> PollArm {
        PollArm {
            req,
            own_fd: None,
            standing: None,
            crowd: None,
            events,
            multishot: false,
            tries: 0,
        }
    }
    /// The thread that submitted it has ended: what happens next only ends it.
    pub fn is_orphan(&self) -> bool {
        self.req.task.as_ref().is_some_and(|task| task.is_dead())
    }
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

/// How a request waits. A cancel searches in this order, which is the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Pending::Work`].
    Work,
    /// [`Pending::Poll`].
    Poll,
    /// [`Pending::Futex`].
    Futex,
    /// [`Pending::Timer`].
    Timer,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Work, Kind::Poll, Kind::Futex, Kind::Timer];
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
    /// How it waits.
    pub fn kind(&self) -> Kind {
        match self {
            Pending::Work(_) => Kind::Work,
            Pending::Poll(_) => Kind::Poll,
            Pending::Futex(_) => Kind::Futex,
            Pending::Timer(_) => Kind::Timer,
        }
    }
    fn user_data(&self) -> u64 {
        match self {
            Pending::Work(item) => item.user_data,
            Pending::Poll(arm) => arm.req.user_data,
            Pending::Futex(req) => req.user_data,
            Pending::Timer(timer) => timer.req.user_data,
        }
    }
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
    /// Of the index by user_data, where the request stands from when it first waits until its place is free.
    link: Link,
}

impl Entries for Slab<Slot> {
    fn link(&mut self, at: u32) -> &mut Link {
        &mut self[at as usize].link
    }
}

/// See the module's description.
#[derive(Default)]
pub struct Table {
    slots: Slab<Slot>,
    index: Index,
    generation: u32,
}

impl Table {
    /// Reserves a place, to be filled with [`Table::fill`].
    pub fn reserve(&mut self) -> Key {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let index = self.slots.insert(Slot { generation, what: None, link: Link::default() });
        Table::key(index, generation)
    }
    /// Puts a waiting request into a reserved place.
    pub fn fill(&mut self, key: Key, what: Pending) {
        let hash = by_data::hash(what.kind() as u8, what.user_data());
        let Some(slot) = self.slot(key) else { return };
        slot.what = Some(what);
        if !slot.link.is_linked() {
            self.index.enter(&mut self.slots, Table::index(key) as u32, hash);
        }
    }
    /// Gives one that waits another user_data.
    pub fn rename(&mut self, key: Key, user_data: u64) {
        let Some(Pending::Poll(arm)) = self.get(key) else { return };
        arm.req.user_data = user_data;
        let at = Table::index(key) as u32;
        self.index.leave(&mut self.slots, at);
        self.index.enter(&mut self.slots, at, by_data::hash(Kind::Poll as u8, user_data));
    }
    fn key(index: usize, generation: u32) -> Key {
        Key((generation as u64) << 32 | (index as u64 + 16))
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
        self.index.leave(&mut self.slots, Table::index(key) as u32);
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
            .map(|(i, s)| Table::key(i, s.generation))
            .collect();
        keys.sort_unstable();
        keys
    }
    /// Those of a kind with this user_data that match, oldest first.
    pub fn with_data<'a>(
        &'a self,
        kind: Kind,
        user_data: u64,
        mut matches: impl FnMut(&Pending) -> bool + 'a,
    ) -> impl Iterator<Item = Key> + 'a {
        let first = self.index.first(by_data::hash(kind as u8, user_data));
        let chain =
            core::iter::successors(first, |at| Index::after(&self.slots[*at as usize].link));
        chain.filter_map(move |at| {
            let slot = &self.slots[at as usize];
            let what = slot.what.as_ref()?;
            let hit = what.kind() == kind && what.user_data() == user_data && matches(what);
            hit.then(|| Table::key(at as usize, slot.generation))
        })
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
