//! The workers of one account as numbers: who is there, who is active, who sleeps. No lock.
//!
//! One word has three counts. A worker is *active* (it runs, or was woken or started and will soon), *asleep*,
//! or in a call that waits; the last is what remains of the total. All changes are named transitions below.
//!
//! No lost wake-up. Who brings work makes it visible first, then calls [`Crew::activate`], which does nothing only
//! if it sees an active worker. A worker stops being active only by [`Crew::lie_down`], [`Crew::block`] or
//! [`Crew::leave`], and looks for work once more afterwards. All of these are sequentially consistent, as the look and the publication must be:
//! one of the two sees the other.
//!
//! A wake is a token. The waker moves one sleeper's count to the active, puts a token down and wakes the futex;
//! whichever sleeper takes the token is that worker. So activation is done when a sleeper was counted over,
//! whether or not the futex found it asleep already.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Bits of one count.
const BITS: u32 = 21;
/// Most workers of an account.
pub const WORKERS_MAX: u32 = (1 << BITS) - 1;

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All, also those being started.
    pub workers: u32,
    /// Asleep, and not chosen to wake.
    pub asleep: u32,
    /// Active.
    pub active: u32,
}

impl Counts {
    fn pack(self) -> u64 {
        self.workers as u64 | (self.asleep as u64) << BITS | (self.active as u64) << (2 * BITS)
    }
    fn unpack(word: u64) -> Counts {
        let at = |shift: u32| (word >> shift) as u32 & WORKERS_MAX;
        Counts { workers: at(0), asleep: at(BITS), active: at(2 * BITS) }
    }
}

/// What [`Crew::activate`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activated {
    /// An active worker will find the work.
    Enough,
    /// A sleeper was woken.
    Woken,
    /// The caller must start a worker, which is counted already.
    Start,
    /// All workers that may be are there, and wait in their calls.
    Full,
}

/// See the module's description.
pub struct Crew {
    counts: AtomicU64,
    /// Wakes that no sleeper has taken yet; sleepers sleep on it.
    tokens: AtomicU32,
    max: AtomicU32,
}

#[cfg(not(loom))]
fn futex_wait(word: &AtomicU32, timeout_ns: u64) -> bool {
    const TIMEDOUT: crate::Errno = crate::Errno(110);
    crate::host::time::futex_wait(word, 0, Some(timeout_ns)) == Err(TIMEDOUT)
}
#[cfg(not(loom))]
fn futex_wake(word: &AtomicU32, count: u32) -> usize {
    crate::host::time::futex_wake(word, count)
}
/// The model's futex never times out.
#[cfg(loom)]
fn futex_wait(word: &AtomicU32, _: u64) -> bool {
    if word.load(SeqCst) == 0 {
        loom::thread::yield_now();
    }
    false
}
#[cfg(loom)]
fn futex_wake(_: &AtomicU32, _: u32) -> usize {
    1
}

/// The sequential consistency of the accesses around it. The model knows that only of fences.
#[inline]
fn in_one_order() {
    #[cfg(loom)]
    loom::sync::atomic::fence(SeqCst);
}

impl Crew {
    /// Nobody.
    pub fn new(max: u32) -> Crew {
        let max = AtomicU32::new(max);
        Crew { counts: AtomicU64::new(0), tokens: AtomicU32::new(0), max }
    }

    /// How many there may be.
    pub fn max(&self) -> u32 {
        self.max.load(SeqCst)
    }
    /// Sets it.
    pub fn set_max(&self, max: u32) {
        self.max.store(max, SeqCst);
    }
    /// How many there are.
    pub fn counts(&self) -> Counts {
        Counts::unpack(self.counts.load(SeqCst))
    }

    /// Changes the counts as `f` says; `None` leaves them. What they were.
    fn change(&self, f: impl Fn(Counts) -> Option<Counts>) -> Result<Counts, Counts> {
        let step = |word| f(Counts::unpack(word)).map(Counts::pack);
        let result = self.counts.fetch_update(SeqCst, SeqCst, step);
        result.map(Counts::unpack).map_err(Counts::unpack)
    }

    /// Work was made visible: sees that somebody is active.
    pub fn activate(&self) -> Activated {
        self.activate_beyond(0)
    }

    /// Makes one more worker active unless more than `enough` are.
    pub fn activate_beyond(&self, enough: u32) -> Activated {
        in_one_order();
        let max = self.max().min(WORKERS_MAX);
        let before = self.change(|c| {
            if c.active > enough {
                None
            } else if c.asleep > 0 {
                Some(Counts { asleep: c.asleep - 1, active: c.active + 1, ..c })
            } else if c.workers < max {
                Some(Counts { workers: c.workers + 1, active: c.active + 1, ..c })
            } else {
                None
            }
        });
        match before {
            Ok(c) if c.asleep > 0 => {
                self.wake(1);
                Activated::Woken
            }
            Ok(_) => Activated::Start,
            Err(c) if c.active > enough => Activated::Enough,
            Err(_) => Activated::Full,
        }
    }

    /// Puts tokens down for sleepers that were counted over; how many slept.
    fn wake(&self, count: u32) -> usize {
        self.tokens.fetch_add(count, SeqCst);
        futex_wake(&self.tokens, count)
    }

    /// The old way to activate, under a lock of the caller's: one worker for each item, and a sleeper that is
    /// already on its way counts as none.
    pub fn activate_each(&self) -> Activated {
        let chosen = self
            .change(|c| {
                let asleep = c.asleep.checked_sub(1)?;
                Some(Counts { asleep, active: c.active + 1, ..c })
            })
            .is_ok();
        if chosen && self.wake(1) == 1 {
            return Activated::Woken;
        }
        let max = self.max().min(WORKERS_MAX);
        let added = self.change(|c| {
            (c.workers < max).then_some(Counts {
                workers: c.workers + 1,
                active: c.active + 1,
                ..c
            })
        });
        match (added, chosen) {
            (Ok(_), _) => Activated::Start,
            (Err(_), true) => Activated::Woken,
            (Err(_), false) => Activated::Full,
        }
    }

    /// An active worker goes to sleep; look for work afterwards.
    pub fn lie_down(&self) {
        let _ = self.change(|c| Some(Counts { active: c.active - 1, asleep: c.asleep + 1, ..c }));
        in_one_order();
    }

    /// It found some: it is active again, unless it was chosen to wake meanwhile; then its token is coming.
    pub fn get_up(&self) -> bool {
        self.change(|c| {
            let asleep = c.asleep.checked_sub(1)?;
            Some(Counts { asleep, active: c.active + 1, ..c })
        })
        .is_ok()
    }

    /// Sleeps until there is a token for it; false if the time is up.
    pub fn sleep(&self, timeout_ns: u64) -> bool {
        loop {
            if self.tokens.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok() {
                return true;
            }
            if futex_wait(&self.tokens, timeout_ns) {
                return self.tokens.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok();
            }
        }
    }

    /// One that slept long leaves, if it is not the last, nor the one that was chosen to wake.
    pub fn leave_asleep(&self) -> bool {
        self.change(|c| {
            let asleep = c.asleep.checked_sub(1)?;
            (c.workers > 1).then_some(Counts { asleep, workers: c.workers - 1, ..c })
        })
        .is_ok()
    }

    /// An active worker leaves, or could not be started; look for work afterwards.
    pub fn leave(&self) {
        let _ = self.change(|c| Some(Counts { active: c.active - 1, workers: c.workers - 1, ..c }));
        in_one_order();
    }

    /// An active worker is about to wait in a call; look for work afterwards. Whether none is active now.
    pub fn block(&self) -> bool {
        let before = self.change(|c| Some(Counts { active: c.active - 1, ..c }));
        in_one_order();
        before.is_ok_and(|c| c.active == 1)
    }

    /// It is back.
    pub fn unblock(&self) {
        let _ = self.change(|c| Some(Counts { active: c.active + 1, ..c }));
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self) {
        in_one_order();
        let woken = self.change(|c| {
            (c.asleep > 0).then_some(Counts { asleep: 0, active: c.active + c.asleep, ..c })
        });
        if let Ok(c) = woken {
            self.wake(c.asleep);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_added_only_where_none_is_active() {
        let crew = Crew::new(2);
        assert_eq!(crew.activate(), Activated::Start);
        assert_eq!(crew.activate(), Activated::Enough);
        assert!(crew.block());
        assert_eq!(crew.activate(), Activated::Start);
        assert!(crew.block());
        assert_eq!(crew.activate(), Activated::Full);
        crew.unblock();
        assert_eq!(crew.activate(), Activated::Enough);
        crew.lie_down();
        assert_eq!(crew.counts(), Counts { workers: 2, asleep: 1, active: 0 });
        assert_eq!(crew.activate(), Activated::Woken);
        assert!(crew.sleep(0), "its token is there");
        assert!(!crew.sleep(0), "and there was one");
    }

    #[test]
    fn the_last_stays_and_the_chosen_does_not_leave() {
        let crew = Crew::new(3);
        assert_eq!(crew.activate(), Activated::Start);
        assert_eq!(crew.activate_beyond(1), Activated::Start);
        crew.lie_down();
        crew.lie_down();
        assert!(crew.leave_asleep());
        assert!(!crew.leave_asleep());
        assert_eq!(crew.activate(), Activated::Woken);
        assert!(!crew.get_up(), "it was chosen: its token comes");
        assert!(!crew.leave_asleep());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::atomic::{AtomicBool, AtomicU32 as Word};
    use loom::sync::Arc;

    /// Work that is pushed while the only worker goes to sleep is done: if the wake were lost, the model would not end.
    #[test]
    fn loom_push_against_going_to_sleep() {
        loom::model(|| {
            let shared = Arc::new((Crew::new(1), Word::new(0)));
            assert_eq!(shared.0.activate(), Activated::Start);
            let pusher = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    shared.1.store(1, SeqCst);
                    shared.0.activate()
                })
            };
            let (crew, work) = (&shared.0, &shared.1);
            while work.load(SeqCst) == 0 {
                crew.lie_down();
                if work.load(SeqCst) != 0 && crew.get_up() {
                    continue;
                }
                crew.sleep(0);
            }
            let activated = pusher.join().unwrap();
            assert_ne!(activated, Activated::Start);
            assert_eq!(crew.counts().active, 1);
        });
    }

    /// Work that is pushed while the only worker is about to block gets another one, from one of the two.
    #[test]
    fn loom_push_against_blocking() {
        loom::model(|| {
            let shared = Arc::new((Crew::new(2), Word::new(0)));
            assert_eq!(shared.0.activate(), Activated::Start);
            let pusher = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    shared.1.store(1, SeqCst);
                    shared.0.activate()
                })
            };
            let mut mine = Activated::Enough;
            if shared.0.block() && shared.1.load(SeqCst) != 0 {
                mine = shared.0.activate();
            }
            let theirs = pusher.join().unwrap();
            let started = [mine, theirs].iter().filter(|a| **a == Activated::Start).count();
            assert_eq!(started, 1);
        });
    }

    /// The pool ends while its worker goes to sleep: it wakes and sees it.
    #[test]
    fn loom_exit_against_going_to_sleep() {
        loom::model(|| {
            let shared = Arc::new((Crew::new(1), AtomicBool::new(false)));
            assert_eq!(shared.0.activate(), Activated::Start);
            let ender = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    shared.1.store(true, SeqCst);
                    shared.0.wake_all();
                })
            };
            let (crew, exiting) = (&shared.0, &shared.1);
            while !exiting.load(SeqCst) {
                crew.lie_down();
                if exiting.load(SeqCst) && crew.get_up() {
                    continue;
                }
                crew.sleep(0);
            }
            ender.join().unwrap();
            crew.leave();
            assert_eq!(crew.counts(), Counts::default());
        });
    }

    /// Two pushers and one sleeper: one wakes it, the other sees it awake.
    #[test]
    fn loom_two_pushers_wake_one() {
        loom::model(|| {
            let crew = Arc::new(Crew::new(1));
            assert_eq!(crew.activate(), Activated::Start);
            crew.lie_down();
            let other = {
                let crew = crew.clone();
                loom::thread::spawn(move || crew.activate())
            };
            let answers = [crew.activate(), other.join().unwrap()];
            assert!(answers.contains(&Activated::Woken) && answers.contains(&Activated::Enough));
            assert!(crew.sleep(0));
        });
    }
}
