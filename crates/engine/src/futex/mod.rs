//! Futex waits of all rings, without a thread per wait.
//!
//! A *lane* is one thread that sleeps in `futex_waitv(2)` on the words of many waits at once, and on one word
//! of the engine's own, the bell, which is rung when the lane's set of waits changes. A new lane is opened only when the words
//! of the others are all taken.
//!
//! `futex_waitv` names one woken word, the last in the order of the array. Waits on one word are woken in the order in
//! which they were queued, which is the order of the array; so the number of wakes that a word received is the number of its
//! places up to the one named, and that many of its waits have ended. A place whose wait was already gone
//! passes its wake on.
//!
//! While a lane is outside the call its words are not queued, and a wake by a thread is not seen. A value that changed
//! tells: its wait is *suspected* to have been woken, and ends after a moment. Ending a wait that nobody woke is allowed,
//! missing a wake is not. A wake that comes through a ring explains the change before it: it knows itself whom it woke.
//!
//! The hub's lock is taken after a ring's state, and never held while a ring is completed.

mod lane;

use crate::engine::Inner;
use crate::host::futex::{self as host, Waitv};
use crate::host::user;
use crate::limits::FUTEX_WORDS_MAX;
use crate::req::Key;
use crate::ring::Ring;
use crate::sync::Lock;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One word of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Address.
    pub addr: usize,
    /// Sleep only while it has this value.
    pub value: u32,
    /// `FUTEX2_*`.
    pub flags: u32,
    /// There is no memory at the address any more.
    pub unmapped: bool,
}

/// What tells futexes apart: address, and whether it is private to the process.
pub type Place = (usize, bool);

impl Word {
    /// See [`Place`].
    pub fn place(&self) -> Place {
        (self.addr, self.flags & host::PRIVATE != 0)
    }
}

/// A wait in a lane.
struct Wait {
    ring: Arc<Ring>,
    key: Key,
    words: Vec<Word>,
    lane: u64,
    /// Its words are in the array that the lane sleeps on.
    queued: bool,
    suspicion: Option<Suspicion>,
}

/// A word changed and no wake was seen.
#[derive(Clone, Copy)]
struct Suspicion {
    /// Which word.
    index: usize,
    /// Monotonic nanoseconds at which the wait ends.
    until: u64,
}

/// A wait that has ended: whose, and its result.
pub struct Ended {
    /// The ring.
    pub ring: Arc<Ring>,
    /// Its place there.
    pub key: Key,
    /// Index of the word that was woken, or an error.
    pub res: i32,
}

/// What an in-ring wake found among the waits of rings.
pub struct Served {
    /// How many waits have ended.
    pub count: u32,
    /// Those of the ring that wakes, which completes them; lanes complete the others.
    pub own: Vec<Ended>,
    /// How many ended waits on the word are still queued in the host, where they take wakes that are meant for
    /// others: a wake by the host has to reach further by so many.
    pub stale: u32,
    /// Lanes to be told with [`Futexes::ring_bells`] once no more wakes follow.
    pub lanes: Vec<u64>,
}

struct Lane {
    bell: Arc<AtomicU32>,
    /// Rung since it last looked.
    rung: bool,
    /// Words in use.
    words: usize,
    /// Words of waits that are gone, still queued in the host until the lane looks.
    stale: Vec<Place>,
    /// Those of them whose wake was accounted for by a wake through a ring.
    counted: Vec<Place>,
    /// Ended by wakes through other rings, to be completed by the lane.
    ended: Vec<Ended>,
}

#[derive(Default)]
struct Hub {
    /// Oldest first.
    waits: BTreeMap<u64, Wait>,
    lanes: BTreeMap<u64, Lane>,
    next: u64,
    missing: bool,
}

/// See the module's description.
pub struct Futexes {
    hub: Lock<Hub>,
}

impl Lane {
    fn ring_bell(&mut self) {
        if !core::mem::replace(&mut self.rung, true) {
            self.bell.fetch_add(1, Ordering::Release);
            crate::host::time::futex_wake(&self.bell, 1);
        }
    }
}

impl Hub {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn ring_bell(&mut self, lane: u64) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.ring_bell();
        }
    }

    /// Takes a wait out; its words are free.
    fn take(&mut self, number: u64) -> Option<Wait> {
        let wait = self.waits.remove(&number)?;
        if let Some(lane) = self.lanes.get_mut(&wait.lane) {
            lane.words -= wait.words.len();
            if wait.queued {
                lane.stale.extend(wait.words.iter().map(Word::place));
            }
        }
        Some(wait)
    }

    /// The oldest wait on a word, and the index of that word in it.
    fn oldest(&self, place: Place) -> Option<(u64, usize)> {
        self.waits.iter().find_map(|(n, w)| {
            w.words.iter().position(|word| word.place() == place).map(|i| (*n, i))
        })
    }

    /// Ends the oldest waits on a word, at most `most`; each with its lane.
    fn end_oldest(&mut self, place: Place, most: u32) -> Vec<(u64, Ended)> {
        let mut ended = Vec::new();
        while (ended.len() as u32) < most {
            let Some((number, index)) = self.oldest(place) else { break };
            let Some(wait) = self.take(number) else { break };
            ended.push((wait.lane, Ended { ring: wait.ring, key: wait.key, res: index as i32 }));
        }
        ended
    }

    /// A wake by the host follows that counts the places at which nobody waits any more: how many. The lanes will
    /// not pass these wakes on.
    fn count_stale(&mut self, place: Place) -> u32 {
        let mut stale = 0;
        for lane in self.lanes.values_mut() {
            let before = lane.stale.len();
            lane.stale.retain(|p| *p != place);
            let here = before - lane.stale.len();
            lane.counted.extend(core::iter::repeat_n(place, here));
            stale += here as u32;
        }
        stale
    }
}

impl Hub {
    /// The waits that are left on a word go on with the value that it has now.
    fn explain(&mut self, place: Place, value: u32) {
        for wait in self.waits.values_mut() {
            for (index, word) in
                wait.words.iter_mut().enumerate().filter(|(_, w)| w.place() == place)
            {
                word.value = value;
                wait.suspicion = wait.suspicion.filter(|s| s.index != index);
            }
        }
    }
}

impl Default for Futexes {
    /// No lane yet.
    fn default() -> Futexes {
        Futexes { hub: Lock::new(Hub::default()) }
    }
}

impl Futexes {
    /// Hands a wait to a lane. False where the host cannot wait for several words, or no thread could be started.
    pub fn add(&self, engine: &Arc<Inner>, ring: &Arc<Ring>, key: Key, words: Vec<Word>) -> bool {
        let mut hub = self.hub.lock();
        if hub.missing || words.len() > FUTEX_WORDS_MAX {
            return false;
        }
        let room = hub
            .lanes
            .iter()
            .find(|(_, l)| l.words + words.len() <= FUTEX_WORDS_MAX)
            .map(|(id, _)| *id);
        let Some(id) = room.or_else(|| open(&mut hub, engine)) else { return false };
        let number = hub.number();
        if let Some(lane) = hub.lanes.get_mut(&id) {
            lane.words += words.len();
        }
        hub.waits.insert(
            number,
            Wait { ring: ring.clone(), key, words, lane: id, queued: false, suspicion: None },
        );
        hub.ring_bell(id);
        true
    }

    /// Takes a wait back; false if it has ended already.
    pub fn remove(&self, ring: &Ring, key: Key) -> bool {
        let mut hub = self.hub.lock();
        let number =
            hub.waits.iter().find(|(_, w)| w.key == key && w.ring.id == ring.id).map(|(n, _)| *n);
        let Some(wait) = number.and_then(|n| hub.take(n)) else { return false };
        hub.ring_bell(wait.lane);
        true
    }

    /// Ends the oldest waits on a word, at most `most`, for a wake that comes through the ring of this id.
    pub fn serve(&self, ring: u64, place: Place, most: u32) -> Served {
        let mut hub = self.hub.lock();
        let all = hub.end_oldest(place, most);
        let count = all.len() as u32;
        let stale = if count < most { hub.count_stale(place) } else { 0 };
        let mut served = Served { count, own: Vec::new(), stale, lanes: Vec::new() };
        for (id, ended) in all {
            if !served.lanes.contains(&id) {
                served.lanes.push(id);
            }
            match hub.lanes.get_mut(&id) {
                Some(lane) if ended.ring.id != ring => lane.ended.push(ended),
                _ => served.own.push(ended),
            }
        }
        if let Ok(value) = user::read::<u32>(place.0) {
            hub.explain(place, value);
        }
        served
    }

    /// Lets lanes take places out that [`Futexes::serve`] has emptied.
    pub fn ring_bells(&self, lanes: &[u64]) {
        let mut hub = self.hub.lock();
        lanes.iter().for_each(|lane| hub.ring_bell(*lane));
    }
}

/// Opens a lane with a thread of its own.
fn open(hub: &mut Hub, engine: &Arc<Inner>) -> Option<u64> {
    let id = hub.number();
    let inner = engine.clone();
    engine.spawn(Box::new(move || lane::run(&inner, id))).ok()?;
    let bell = Arc::new(AtomicU32::new(0));
    hub.lanes.insert(
        id,
        Lane {
            bell,
            rung: false,
            words: 0,
            stale: Vec::new(),
            counted: Vec::new(),
            ended: Vec::new(),
        },
    );
    Some(id)
}

/// The entry of the host's array for a word.
fn waitv(word: &Word) -> Waitv {
    Waitv { value: word.value as u64, addr: word.addr as u64, flags: word.flags, reserved: 0 }
}
