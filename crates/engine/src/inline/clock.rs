//! A clock that costs little where nearly every reading says 'quick': the processor's counter, turned into
//! nanoseconds only for the few intervals that look long.

use crate::host::time::{now_ns, ticks, Clock as Host};
use crate::limits::INLINE_SLOW_NS;

/// Intervals of fewer ticks are quick: counters tick at least once in two nanoseconds.
const SURELY_QUICK: u64 = INLINE_SLOW_NS / 2;

/// A reading.
#[derive(Clone, Copy, Debug)]
pub struct Ticks(u64);

/// See the module's description. Two readings of both clocks, the first and the last, give the counter's rate.
pub struct Clock {
    origin_ticks: u64,
    origin_ns: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

impl Clock {
    /// A clock whose rate is found as it goes.
    pub fn new() -> Clock {
        Clock { origin_ns: now_ns(Host::Monotonic), origin_ticks: ticks() }
    }

    /// Reads the counter.
    #[inline]
    pub fn now(&self) -> Ticks {
        Ticks(ticks())
    }

    /// Whether more than [`INLINE_SLOW_NS`] passed between two readings, the second of which is fresh.
    #[inline]
    pub fn is_slow(&self, since: Ticks, now: Ticks) -> bool {
        let passed = now.0.wrapping_sub(since.0);
        passed > SURELY_QUICK && self.to_ns(passed, now.0) > INLINE_SLOW_NS
    }

    #[cold]
    fn to_ns(&self, passed: u64, now: u64) -> u64 {
        let (ns, ticks) =
            (now_ns(Host::Monotonic) - self.origin_ns, now.wrapping_sub(self.origin_ticks));
        (u128::from(passed) * u128::from(ns) / u128::from(ticks.max(1))) as u64
    }
}
