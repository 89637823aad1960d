//! Locks over futexes. They never touch thread-local storage, so they work in raw
//! threads and in signal handlers whose signals are blocked.
//!
//! Memory order: taking the lock is an acquire that pairs with the release of the
//! unlock. Lock order of the engine, outermost first: ring state (`Ring::state`) → worker pool account
//! (`wq`) → completion queue (`Ring::cq`) → registries (`Engine` maps) → inboxes (`Ring::inbox`). No lock is
//! held over a call that may wait, and of two rings' locks of one kind the second is only tried.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Not held.
const FREE: u32 = 0;
/// Held, nobody sleeps.
const HELD: u32 = 1;
/// Held, somebody may sleep.
const CONTENDED: u32 = 2;

/// Tries before a thread goes to sleep: a critical section is short.
const SPINS: u32 = 60;

/// The lock word alone: the transitions, without the data.
pub(crate) struct RawLock(AtomicU32);

#[cfg(not(loom))]
fn sleep(word: &AtomicU32) {
    let _ = crate::host::time::futex_wait(word, CONTENDED, None);
}
#[cfg(not(loom))]
fn wake(word: &AtomicU32) {
    crate::host::time::futex_wake(word, 1);
}
#[cfg(loom)]
fn sleep(_: &AtomicU32) {
    loom::thread::yield_now();
}
#[cfg(loom)]
fn wake(_: &AtomicU32) {}

impl RawLock {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> RawLock {
        RawLock(AtomicU32::new(FREE))
    }
    #[cfg(loom)]
    pub(crate) fn new() -> RawLock {
        RawLock(AtomicU32::new(FREE))
    }
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
    #[inline]
    pub(crate) fn lock(&self) {
        if !self.try_lock() {
            self.lock_slow();
        }
    }
    #[cold]
    fn lock_slow(&self) {
        for _ in 0..if cfg!(loom) { 0 } else { SPINS } {
            core::hint::spin_loop();
            if self.0.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        // From here on the lock is taken as CONTENDED, so that its holder wakes the next sleeper.
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            sleep(&self.0);
        }
    }
    #[inline]
    pub(crate) fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            wake(&self.0);
        }
    }
}

/// A value behind a lock.
pub struct Lock<T> {
    raw: RawLock,
    /// How often it was taken. Only its holder writes.
    taken: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the value may move between threads.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T: Default> Default for Lock<T> {
    fn default() -> Lock<T> {
        Lock::new(T::default())
    }
}

impl<T> Lock<T> {
    /// An unlocked value.
    pub fn new(value: T) -> Lock<T> {
        Lock { raw: RawLock::new(), taken: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }
    /// Takes the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw.lock();
        self.held()
    }
    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.raw.try_lock().then(|| self.held())
    }
    #[inline]
    fn held(&self) -> Guard<'_, T> {
        self.taken.store(self.taken.load(Relaxed) + 1, Relaxed);
        Guard { lock: self }
    }
    /// How often it was taken so far.
    pub fn acquisitions(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

/// The right to use the value, until dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
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
        self.lock.raw.unlock();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn acquisitions_are_counted_and_failed_tries_are_not() {
        let lock = Lock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
        assert_eq!(lock.acquisitions(), 2);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_two_threads_never_hold_it_together() {
        loom::model(|| {
            let shared = Arc::new((RawLock::new(), loom::cell::UnsafeCell::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || {
                        shared.0.lock();
                        // SAFETY: loom checks that no other access overlaps.
                        shared.1.with_mut(|v| unsafe { *v += 1 });
                        shared.0.unlock();
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
            shared.0.lock();
            // SAFETY: both threads have ended.
            assert_eq!(shared.1.with(|v| unsafe { *v }), 2);
            shared.0.unlock();
        });
    }
}
