//! Clocks and futexes.

use super::{nr, syscall};
use crate::Errno;
use core::sync::atomic::AtomicU32;

/// The clocks that timeouts may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Clock {
    /// `CLOCK_REALTIME`.
    Realtime = 0,
    /// `CLOCK_MONOTONIC`.
    Monotonic = 1,
    /// `CLOCK_BOOTTIME`.
    Boottime = 7,
}

extern "C" {
    /// The C library's, which reads the clock without entering the kernel and touches errno only on failure.
    fn clock_gettime(clock: i32, ts: *mut [i64; 2]) -> i32;
}

/// Nanoseconds on a clock.
pub fn now_ns(clock: Clock) -> u64 {
    let mut ts = [0i64; 2];
    // SAFETY: fills two integers; the clock exists on every Linux this runs on.
    unsafe { clock_gettime(clock as i32, &mut ts) };
    (ts[0] as u64).wrapping_mul(1_000_000_000).wrapping_add(ts[1] as u64)
}

/// A counter that goes on at an even pace, some ticks a nanosecond or one.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    now_ns(Clock::Monotonic)
}

/// CPU time of a thread of this process, in nanoseconds; 0 if it is gone.
pub fn thread_cpu_ns(tid: i32) -> u64 {
    const PER_THREAD_SCHED: i32 = 4 | 2;
    let clock = !tid << 3 | PER_THREAD_SCHED;
    let mut ts = [0u64; 2];
    let args = [clock as isize as usize, ts.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: fills two integers. The system call itself: the C library's function would set errno for a thread that is gone.
    let _ = unsafe { syscall(nr::__NR_clock_gettime, args) };
    ts[0] * 1_000_000_000 + ts[1]
}

const PRIVATE: usize = 128;

/// Sleeps while `*word == expected`, at most `timeout_ns`. ETIMEDOUT (110), EAGAIN and EINTR are all reasons to look again.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) -> Result<(), Errno> {
    let ts = timeout_ns.map(|t| [(t / 1_000_000_000) as i64, (t % 1_000_000_000) as i64]);
    let ts = ts.as_ref().map_or(0, |t| t.as_ptr() as usize);
    // SAFETY: the word outlives the call; the timespec is a local.
    unsafe {
        syscall(nr::__NR_futex, [word.as_ptr() as usize, PRIVATE, expected as usize, ts, 0, 0])
    }
    .map(drop)
}

/// Wakes up to `count` sleepers; returns how many.
pub fn futex_wake(word: &AtomicU32, count: u32) -> usize {
    const WAKE: usize = 1;
    // SAFETY: only the address is used.
    unsafe {
        syscall(nr::__NR_futex, [word.as_ptr() as usize, WAKE | PRIVATE, count as usize, 0, 0, 0])
    }
    .unwrap_or(0)
}
