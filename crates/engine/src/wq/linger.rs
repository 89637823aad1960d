//! A worker that has run out of work looks for more for a moment before it sleeps, where that has paid: a wake
//! costs both sides far more than the look, if the work comes soon.
//!
//! It pays when work came. It does not when none came in time, nor when the worker was put off its CPU meanwhile: then
//! somebody else needs that more. An account that it did not pay for tries again now and then.

use crate::host::thread;
use crate::host::time::{now_ns, Clock};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Longest look.
const SPIN_NS: u64 = 50_000;
/// Between two looks at the clock more than this passes only off the CPU.
const PREEMPTED_NS: u64 = 15_000;
/// Pauses between two looks at the clock.
const PAUSES: u32 = 16;
/// Best and first standing; looks are made above 0.
const BEST: i32 = 8;
/// A hit adds one, a miss takes this.
const MISS: i32 = 2;
/// Sleeps without a look until one is tried.
const RETRY: u32 = 128;

/// One account's experience.
pub struct Linger {
    on: bool,
    standing: AtomicI32,
    skipped: AtomicU32,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Linger {
    /// Without experience. Never on where there is but one CPU.
    pub fn new(on: bool) -> Linger {
        Linger {
            on: on && thread::cpus() > 1,
            standing: AtomicI32::new(BEST),
            skipped: AtomicU32::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Looks until `found`, or until it is time to sleep.
    pub fn look(&self, found: impl Fn() -> bool) -> bool {
        if !self.is_due() {
            return false;
        }
        let hit = spin(found);
        self.learn(hit);
        hit
    }

    fn is_due(&self) -> bool {
        if !self.on {
            return false;
        }
        if self.standing.load(Relaxed) > 0 {
            return true;
        }
        if self.skipped.fetch_add(1, Relaxed) < RETRY {
            return false;
        }
        self.skipped.store(0, Relaxed);
        true
    }

    fn learn(&self, hit: bool) {
        let standing = self.standing.load(Relaxed);
        let (by, count) = if hit { (1, &self.hits) } else { (-MISS, &self.misses) };
        self.standing.store((standing + by).clamp(0, BEST), Relaxed);
        count.fetch_add(1, Relaxed);
    }

    /// Looks that found work, and others.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }
}

fn spin(found: impl Fn() -> bool) -> bool {
    let start = now_ns(Clock::Monotonic);
    let mut last = start;
    loop {
        for _ in 0..PAUSES {
            if found() {
                return true;
            }
            core::hint::spin_loop();
        }
        let now = now_ns(Clock::Monotonic);
        if now - start > SPIN_NS || now - last > PREEMPTED_NS {
            return false;
        }
        last = now;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_turns_itself_off_and_tries_again() {
        let linger = Linger { on: true, ..Linger::new(true) };
        while linger.is_due() {
            linger.learn(false);
        }
        let tries = (0..10 * RETRY).filter(|_| linger.is_due()).count();
        assert!((8..=10).contains(&tries), "{tries}");
        linger.learn(true);
        assert!(linger.is_due() && linger.is_due());
    }

    #[test]
    fn off_means_never() {
        assert!(!Linger::new(false).look(|| true));
    }
}
