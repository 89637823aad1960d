//! A lock that costs its usual holder no atomic read-modify-write.
//!
//! Most rings are used by one thread, whose calls take a lock that nobody contends; there the two locked instructions of
//! an ordinary lock are most of what an empty call costs. After some acquisitions in a row by one thread, which names
//! itself, that thread is *favoured*: it enters by a plain store to `inside` and a look at `favoured`. Anybody else takes
//! the ordinary lock word, ends the favour, and waits until the favoured thread is not inside.
//!
//! Memory order. Favoured side: store `inside` = 1, then load `favoured`. Other side: store `favoured` = 0, then load
//! `inside`. One of the two must see the other, which takes a full barrier on both sides. The favoured side has only a
//! compiler barrier; the other side makes up for it with a barrier on all CPUs of the process
//! ([`crate::host::barrier`]), which costs it some microseconds. So a favour that was ended is granted again only after
//! twice as many acquisitions. Leaving is a release store of `inside`, which the other side's acquire load pairs with; the
//! word's own order is that of [`crate::sync`]. Only who holds the word grants or ends a favour. A thread never takes the
//! lock twice.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::sync::RawLock;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

/// Acquisitions in a row after which a thread is favoured, at first and at most.
const STREAK: (u32, u32) = if cfg!(loom) { (1, 1) } else { (64, 1 << 20) };

/// Nobody.
const NONE: i32 = 0;

/// What the word's holder keeps: who took it last, how often in a row, and how often is enough.
struct Habit {
    last: AtomicI32,
    streak: AtomicU32,
    enough: AtomicU32,
}

/// See the module's description.
pub struct Biased<T> {
    word: RawLock,
    /// Thread id of the favoured thread, or [`NONE`].
    favoured: AtomicI32,
    /// The favoured thread holds the lock by favour.
    inside: AtomicU32,
    habit: Habit,
    /// Favours are granted.
    grants: bool,
    /// How often it was taken. Only its holder writes.
    taken: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Biased<T> {}
// SAFETY: the value may move between threads.
unsafe impl<T: Send> Send for Biased<T> {}

#[cfg(not(loom))]
fn light_barrier() {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}
#[cfg(not(loom))]
fn heavy_barrier() {
    crate::host::barrier::everywhere();
}
/// The model has no barrier that acts on other threads, so each side has its own.
#[cfg(loom)]
fn light_barrier() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}
#[cfg(loom)]
fn heavy_barrier() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
fn wait_a_little(inside: &AtomicU32, tries: u32) {
    const SPINS: u32 = 60;
    const NAP_NS: u64 = 50_000;
    if tries < SPINS {
        core::hint::spin_loop();
    } else {
        // Nobody wakes it: whoever leaves by favour does not know that somebody waits.
        let _ = crate::host::time::futex_wait(inside, 1, Some(NAP_NS));
    }
}
#[cfg(loom)]
fn wait_a_little(_: &AtomicU32, _: u32) {
    loom::thread::yield_now();
}

impl<T> Biased<T> {
    /// An unlocked value; without `grants` it is an ordinary lock.
    pub fn new(value: T, grants: bool) -> Biased<T> {
        Biased {
            word: RawLock::new(),
            favoured: AtomicI32::new(NONE),
            inside: AtomicU32::new(0),
            habit: Habit {
                last: AtomicI32::new(NONE),
                streak: AtomicU32::new(0),
                enough: AtomicU32::new(STREAK.0),
            },
            grants,
            taken: AtomicU64::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock for the calling thread, whose id is `tid`; 0 does not say who it is.
    #[inline]
    pub fn lock_as(&self, tid: i32) -> Guard<'_, T> {
        if self.favoured.load(Ordering::Relaxed) == tid && tid != NONE {
            self.inside.store(1, Ordering::Relaxed);
            light_barrier();
            if self.favoured.load(Ordering::Relaxed) == tid {
                return self.held(true);
            }
            self.inside.store(0, Ordering::Release);
        }
        self.lock_word(tid)
    }

    /// Takes the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.lock_word(NONE)
    }

    fn lock_word(&self, tid: i32) -> Guard<'_, T> {
        self.word.lock();
        self.end_favour();
        let mut tries = 0;
        while self.inside.load(Ordering::Acquire) != 0 {
            wait_a_little(&self.inside, tries);
            tries += 1;
        }
        self.note(tid);
        self.held(false)
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        if !self.word.try_lock() {
            return None;
        }
        self.end_favour();
        if self.inside.load(Ordering::Acquire) != 0 {
            self.word.unlock();
            return None;
        }
        self.note(NONE);
        Some(self.held(false))
    }

    /// The word's holder: from now on the favoured thread comes by the word like everybody.
    fn end_favour(&self) {
        if self.favoured.load(Ordering::Relaxed) == NONE {
            return;
        }
        self.favoured.store(NONE, Ordering::SeqCst);
        heavy_barrier();
        let enough = self.habit.enough.load(Ordering::Relaxed);
        self.habit.enough.store((enough * 2).min(STREAK.1), Ordering::Relaxed);
    }

    /// The word's holder, with nobody inside: counts who comes, and grants the favour.
    fn note(&self, tid: i32) {
        let Habit { last, streak, enough } = &self.habit;
        if tid == NONE || last.load(Ordering::Relaxed) != tid {
            last.store(tid, Ordering::Relaxed);
            streak.store(0, Ordering::Relaxed);
            return;
        }
        let now = streak.load(Ordering::Relaxed) + 1;
        streak.store(now, Ordering::Relaxed);
        if self.grants && now >= enough.load(Ordering::Relaxed) {
            streak.store(0, Ordering::Relaxed);
            self.favoured.store(tid, Ordering::SeqCst);
        }
    }

    #[inline]
    fn held(&self, by_favour: bool) -> Guard<'_, T> {
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Guard { lock: self, by_favour }
    }

    /// How often it was taken so far.
    pub fn acquisitions(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// The right to use the value, until dropped.
pub struct Guard<'a, T> {
    lock: &'a Biased<T>,
    by_favour: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}
impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}
impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.by_favour {
            self.lock.inside.store(0, Ordering::Release);
        } else {
            self.lock.word.unlock();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn favour_is_granted_ended_and_granted_again() {
        let lock = Biased::new((), true);
        for _ in 0..=STREAK.0 {
            assert!(!lock.lock_as(7).by_favour);
        }
        assert!(lock.lock_as(7).by_favour);
        assert!(!lock.lock().by_favour);
        assert!(!lock.lock_as(7).by_favour, "the favour was ended");
        for _ in 0..2 * STREAK.0 {
            drop(lock.lock_as(7));
        }
        assert!(lock.lock_as(7).by_favour);
        assert!(!Biased::new((), false).lock_as(7).by_favour);
    }

    #[test]
    fn somebody_else_waits_for_the_favoured_thread() {
        let lock = Arc::new(Biased::new(0u64, true));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        *lock.lock() += 1;
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        for _ in 0..300_000 {
            *lock.lock_as(1) += 1;
        }
        others.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), 304_000);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// The favoured thread comes twice while another takes the lock once, by either way.
    #[test]
    fn loom_favoured_thread_and_another_never_hold_it_together() {
        for tries in [false, true] {
            loom::model(move || {
                let lock = Arc::new(Biased::new(loom::cell::UnsafeCell::new(0), true));
                for _ in 0..2 {
                    drop(lock.lock_as(1));
                }
                let other = {
                    let lock = lock.clone();
                    loom::thread::spawn(move || {
                        let guard = if tries { lock.try_lock() } else { Some(lock.lock()) };
                        // SAFETY: loom checks that no other access overlaps.
                        if let Some(guard) = guard {
                            guard.with_mut(|v| unsafe { *v += 1 });
                        }
                    })
                };
                for _ in 0..2 {
                    // SAFETY: as above.
                    lock.lock_as(1).with_mut(|v| unsafe { *v += 1 });
                }
                other.join().unwrap();
                // SAFETY: as above.
                let total = lock.lock().with(|v| unsafe { *v });
                assert!(total == 3 || (tries && total == 2));
            });
        }
    }
}
