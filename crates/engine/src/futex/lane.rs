//! A lane's thread.

use super::{waitv, Ended, Futexes, Hub, Suspicion, Word};
use crate::engine::Inner;
use crate::host::futex::{self as host, Waitv};
use crate::host::{thread, time, user};
use crate::limits::{FUTEX_SUSPICION_NS, WORKER_IDLE_NS};
use crate::req::Key;
use crate::ring::Ring;
use crate::Errno;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// What a lane sleeps on: the bell first, so that a woken word is always named instead of it.
struct Array {
    entries: Vec<Waitv>,
    words: Vec<Word>,
    /// Look again then, on the monotonic clock.
    until: Option<u64>,
    /// Kept mapped while the host knows its address.
    _bell: Arc<AtomicU32>,
}

/// How a sleep ended.
enum Outcome {
    /// The set has changed, or a value was not what it should be.
    Look,
    /// This word and those before it that are the same word received wakes.
    Woken(Vec<Word>, usize),
    /// The time was up.
    Idle,
    /// The host refuses the array.
    Refused(Errno),
}

enum Turn {
    Sleep(Array, Vec<Ended>),
    /// The host has no such call: these waits are for workers.
    Missing(Vec<(Arc<Ring>, Key)>),
    Leave,
}

/// A lane's life.
pub fn run(engine: &Arc<Inner>, id: u64) {
    thread::set_name(&format!("iou-ftx-{}", thread::getpid()));
    let mut outcome = Outcome::Look;
    loop {
        match engine.futexes.turn(id, outcome) {
            Turn::Leave => return,
            Turn::Missing(waits) => {
                waits.into_iter().for_each(|(ring, key)| ring.futex_to_worker(key));
                return;
            }
            Turn::Sleep(array, ended) => {
                ended.into_iter().for_each(|e| e.ring.finish_futex(e.key, e.res));
                outcome = sleep(array);
            }
        }
    }
}

fn sleep(array: Array) -> Outcome {
    match host::wait_any(&array.entries, array.until) {
        Ok(0) | Err(Errno::AGAIN | Errno::INTR) => Outcome::Look,
        Ok(i) => Outcome::Woken(array.words, i - 1),
        Err(Errno::TIMEDOUT) => Outcome::Idle,
        Err(e) => Outcome::Refused(e),
    }
}

impl Futexes {
    /// Acts on the end of a sleep and prepares the next.
    fn turn(&self, id: u64, outcome: Outcome) -> Turn {
        let mut hub = self.hub.lock();
        let mut ended = Vec::new();
        let hub = &mut *hub;
        let Some(lane) = hub.lanes.get_mut(&id) else { return Turn::Leave };
        ended.append(&mut lane.ended);
        match outcome {
            Outcome::Look => {}
            Outcome::Woken(words, index) => ended.append(&mut deliver(hub, &words, index)),
            Outcome::Idle if lane.words == 0 && ended.is_empty() => {
                hub.lanes.remove(&id);
                return Turn::Leave;
            }
            Outcome::Idle => {}
            Outcome::Refused(Errno::NOSYS | Errno::PERM) => return hub.give_up(id),
            Outcome::Refused(e) => ended.append(&mut refuse(hub, id, e)),
        }
        ended.append(&mut look_at_values(hub, id));
        match array(hub, id) {
            Some(array) => Turn::Sleep(array, ended),
            None => Turn::Leave,
        }
    }
}

/// Ends the waits that a word's wakes were for; hands on what nobody here takes.
fn deliver(hub: &mut Hub, words: &[Word], index: usize) -> Vec<Ended> {
    let place = words[index].place();
    let wakes = words[..=index].iter().filter(|w| w.place() == place).count() as u32;
    let ended = hub.end_oldest(place, wakes).ended;
    let left = wakes - ended.len() as u32;
    if left > 0 {
        let _ = host::wake(place.0, left as i32, host::MATCH_ANY, words[index].flags);
    }
    ended
}

/// Raises suspicions where values changed, ends the waits whose time is up, and those whose address cannot be read.
fn look_at_values(hub: &mut Hub, id: u64) -> Vec<Ended> {
    let now = time::now_ns(time::Clock::Monotonic);
    let mut over = Vec::new();
    for (number, wait) in hub.waits.iter_mut().filter(|(_, w)| w.lane == id) {
        for (index, word) in wait.words.iter_mut().enumerate() {
            match user::read::<u32>(word.addr) {
                Ok(value) if value == word.value => {}
                Ok(value) => {
                    word.value = value;
                    wait.suspicion
                        .get_or_insert(Suspicion { index, until: now + FUTEX_SUSPICION_NS });
                }
                Err(e) => over.push((*number, e.res())),
            }
        }
        if let Some(suspicion) = wait.suspicion.filter(|s| s.until <= now) {
            over.push((*number, suspicion.index as i32));
        }
    }
    end(hub, over)
}

fn end(hub: &mut Hub, over: Vec<(u64, i32)>) -> Vec<Ended> {
    // The first of a wait's words decides; the wait is gone for the others.
    let taken = over
        .into_iter()
        .filter_map(|(n, res)| hub.take(n).map(|w| Ended { ring: w.ring, key: w.key, res }));
    taken.collect()
}

/// The host refuses the array though each word can be read: nothing to wait for.
fn refuse(hub: &mut Hub, id: u64, e: Errno) -> Vec<Ended> {
    let all = hub.waits.iter().filter(|(_, w)| w.lane == id && w.queued);
    let unreadable = |w: &Word| user::read::<u32>(w.addr).is_err();
    let bad: Vec<(u64, i32)> = all
        .clone()
        .filter(|(_, w)| w.words.iter().any(unreadable))
        .map(|(n, _)| (*n, Errno::FAULT.res()))
        .collect();
    let over = if bad.is_empty() { all.map(|(n, _)| (*n, e.res())).collect() } else { bad };
    end(hub, over)
}

fn array(hub: &mut Hub, id: u64) -> Option<Array> {
    let lane = hub.lanes.get_mut(&id)?;
    lane.rung = false;
    lane.stale.clear();
    let bell = lane.bell.clone();
    let own = Word {
        addr: bell.as_ptr() as usize,
        value: bell.load(Ordering::Acquire),
        flags: host::SIZE_U32 | host::PRIVATE,
    };
    let mut words = Vec::new();
    for wait in hub.waits.values_mut().filter(|w| w.lane == id) {
        wait.queued = true;
        words.extend_from_slice(&wait.words);
    }
    let suspicions = hub.waits.values().filter(|w| w.lane == id).filter_map(|w| w.suspicion);
    let idle = words.is_empty().then(|| time::now_ns(time::Clock::Monotonic) + WORKER_IDLE_NS);
    let until = suspicions.map(|s| s.until).min().or(idle);
    let entries = core::iter::once(&own).chain(&words).map(waitv).collect();
    Some(Array { entries, words, until, _bell: bell })
}

impl Hub {
    fn give_up(&mut self, id: u64) -> Turn {
        self.missing = true;
        let numbers: Vec<u64> =
            self.waits.iter().filter(|(_, w)| w.lane == id).map(|(n, _)| *n).collect();
        let waits = numbers
            .into_iter()
            .filter_map(|n| self.waits.remove(&n))
            .map(|w| (w.ring, w.key))
            .collect();
        self.lanes.remove(&id);
        Turn::Missing(waits)
    }
}
