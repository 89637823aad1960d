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
    /// The set of waits has changed.
    Rung,
    /// A value was not what it should be.
    Changed,
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
    Missing(Vec<(Arc<Ring>, Key)>, Vec<Ended>),
    Leave,
}

/// A lane's life.
pub fn run(engine: &Arc<Inner>, id: u64) {
    thread::set_name(&format!("iou-ftx-{}", thread::getpid()));
    let mut outcome = Outcome::Rung;
    loop {
        match engine.futexes.turn(id, outcome) {
            Turn::Leave => return,
            Turn::Missing(waits, ended) => {
                finish(ended);
                waits.into_iter().for_each(|(ring, key)| ring.futex_to_worker(key));
                return;
            }
            Turn::Sleep(array, ended) => {
                finish(ended);
                outcome = sleep(array);
            }
        }
    }
}

fn finish(ended: Vec<Ended>) {
    ended.into_iter().for_each(|e| e.ring.finish_futex(e.key, e.res));
}

fn sleep(array: Array) -> Outcome {
    match host::wait_any(&array.entries, array.until) {
        Ok(0) | Err(Errno::INTR) => Outcome::Rung,
        Err(Errno::AGAIN) => Outcome::Changed,
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
            Outcome::Rung => {}
            Outcome::Changed => _ = look_at_values(hub, id),
            Outcome::Woken(words, index) => ended.append(&mut deliver(hub, id, &words, index)),
            Outcome::Idle if lane.words == 0 && ended.is_empty() => {
                hub.lanes.remove(&id);
                return Turn::Leave;
            }
            // Words that were set aside may be mapped again.
            Outcome::Idle => _ = look_at_values(hub, id),
            Outcome::Refused(Errno::NOSYS | Errno::PERM) => return hub.give_up(id, ended),
            Outcome::Refused(e) => ended.append(&mut refuse(hub, id, e)),
        }
        ended.append(&mut end_suspected(hub, id));
        match array(hub, id) {
            Some(array) => Turn::Sleep(array, ended),
            None => Turn::Leave,
        }
    }
}

/// Ends the waits that a word's wakes were for; hands on what nobody here takes.
fn deliver(hub: &mut Hub, id: u64, words: &[Word], index: usize) -> Vec<Ended> {
    let place = words[index].place();
    let received = words[..=index].iter().filter(|w| w.place() == place).count();
    let counted =
        hub.lanes.get(&id).map_or(0, |l| l.counted.iter().filter(|p| **p == place).count());
    let wakes = received.saturating_sub(counted) as u32;
    let ended: Vec<Ended> =
        hub.end_oldest(place, wakes).into_iter().map(|(_, ended)| ended).collect();
    let left = wakes - ended.len() as u32;
    if left > 0 {
        let _ = host::wake(place.0, left as i32, host::MATCH_ANY, words[index].flags);
    }
    ended
}

/// Raises suspicions where values changed, and sets words aside that cannot be read. How many of those are new.
fn look_at_values(hub: &mut Hub, id: u64) -> usize {
    let now = time::now_ns(time::Clock::Monotonic);
    let mut lost = 0;
    for (_, wait) in hub.waits.iter_mut().filter(|(_, w)| w.lane == id) {
        for (index, word) in wait.words.iter_mut().enumerate() {
            match user::read::<u32>(word.addr) {
                Ok(value) if value == word.value => {}
                Ok(value) => {
                    word.value = value;
                    wait.suspicion
                        .get_or_insert(Suspicion { index, until: now + FUTEX_SUSPICION_NS });
                }
                Err(_) => {
                    lost += usize::from(!word.unmapped);
                    word.unmapped = true;
                    continue;
                }
            }
            word.unmapped = false;
        }
    }
    lost
}

/// Ends the waits whose suspicion nothing has explained in time.
fn end_suspected(hub: &mut Hub, id: u64) -> Vec<Ended> {
    let suspected = hub
        .waits
        .iter()
        .filter(|(_, w)| w.lane == id)
        .filter_map(|(n, w)| w.suspicion.map(|s| (*n, s)));
    let suspected: Vec<_> = suspected.collect();
    if suspected.is_empty() {
        return Vec::new();
    }
    let now = time::now_ns(time::Clock::Monotonic);
    end(
        hub,
        suspected
            .into_iter()
            .filter(|(_, s)| s.until <= now)
            .map(|(n, s)| (n, s.index as i32))
            .collect(),
    )
}

fn end(hub: &mut Hub, over: Vec<(u64, i32)>) -> Vec<Ended> {
    // The first of a wait's words decides; the wait is gone for the others.
    let taken = over
        .into_iter()
        .filter_map(|(n, res)| hub.take(n).map(|w| Ended { ring: w.ring, key: w.key, res }));
    taken.collect()
}

/// A word whose memory is gone is set aside: its wait goes on, as in the kernel, for whatever may be mapped there. If
/// the host refuses the array for another reason there is nothing to wait for.
fn refuse(hub: &mut Hub, id: u64, e: Errno) -> Vec<Ended> {
    if look_at_values(hub, id) > 0 {
        return Vec::new();
    }
    let all = hub.waits.iter().filter(|(_, w)| w.lane == id && w.queued);
    let over = all.map(|(n, _)| (*n, e.res())).collect();
    end(hub, over)
}

fn array(hub: &mut Hub, id: u64) -> Option<Array> {
    let lane = hub.lanes.get_mut(&id)?;
    lane.rung = false;
    lane.stale.clear();
    lane.counted.clear();
    let bell = lane.bell.clone();
    let own = Word {
        addr: bell.as_ptr() as usize,
        value: bell.load(Ordering::Acquire),
        flags: host::SIZE_U32 | host::PRIVATE,
        unmapped: false,
    };
    let mut words = Vec::new();
    for wait in hub.waits.values_mut().filter(|w| w.lane == id) {
        wait.queued = true;
        words.extend(wait.words.iter().filter(|w| !w.unmapped));
    }
    let suspicions = hub.waits.values().filter(|w| w.lane == id).filter_map(|w| w.suspicion);
    let idle = words.is_empty().then(|| time::now_ns(time::Clock::Monotonic) + WORKER_IDLE_NS);
    let until = suspicions.map(|s| s.until).min().or(idle);
    let entries = core::iter::once(&own).chain(&words).map(waitv).collect();
    Some(Array { entries, words, until, _bell: bell })
}

impl Hub {
    fn give_up(&mut self, id: u64, ended: Vec<Ended>) -> Turn {
        self.missing = true;
        let numbers: Vec<u64> =
            self.waits.iter().filter(|(_, w)| w.lane == id).map(|(n, _)| *n).collect();
        let waits = numbers
            .into_iter()
            .filter_map(|n| self.waits.remove(&n))
            .map(|w| (w.ring, w.key))
            .collect();
        self.lanes.remove(&id);
        Turn::Missing(waits, ended)
    }
}
