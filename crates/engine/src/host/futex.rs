//! Futexes of the program: waiting for one or many words, waking. The old call stands in where the newer are missing.

use super::{nr, syscall};
use crate::Errno;

/// `FUTEX2_SIZE_U32`.
pub const SIZE_U32: u32 = 2;
/// The bits of `FUTEX2_SIZE_*`.
pub const SIZE_MASK: u32 = 3;
/// `FUTEX2_PRIVATE`.
pub const PRIVATE: u32 = 128;
/// `FUTEX2_NUMA`.
pub const NUMA: u32 = 4;
/// `FUTEX2_MPOL`.
pub const MPOL: u32 = 8;
/// `FUTEX_BITSET_MATCH_ANY`.
pub const MATCH_ANY: u32 = u32::MAX;

/// `struct futex_waitv`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waitv {
    /// Expected value.
    pub value: u64,
    /// Address.
    pub addr: u64,
    /// `FUTEX2_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// Arguments of `futex_waitv(2)` on an array without a deadline.
pub fn waitv_args(entries: &[Waitv]) -> [usize; 6] {
    [entries.as_ptr() as usize, entries.len(), 0, 0, 0, 0]
}

/// Sleeps until one of several words is woken: its index. `until` is on the monotonic clock.
pub fn wait_any(entries: &[Waitv], until: Option<u64>) -> Result<usize, Errno> {
    let ts = until.map(|t| [(t / 1_000_000_000) as i64, (t % 1_000_000_000) as i64]);
    let mut args = waitv_args(entries);
    args[3] = ts.as_ref().map_or(0, |t| t.as_ptr() as usize);
    args[4] = super::time::Clock::Monotonic as usize;
    // SAFETY: the array and the time are ours; the words are the program's, which the kernel checks.
    unsafe { syscall(nr::__NR_futex_waitv, args) }
}

/// Arguments of a wait with a mask: the call's number, then for the old call.
pub fn wait_args(addr: usize, value: u32, mask: u32, flags: u32) -> [(super::Nr, [usize; 6]); 2] {
    const WAIT_BITSET: usize = 9;
    let old = WAIT_BITSET | (flags & PRIVATE) as usize;
    [
        (nr::__NR_futex_wait, [addr, value as usize, mask as usize, flags as usize, 0, 0]),
        (nr::__NR_futex, [addr, old, value as usize, 0, 0, mask as usize]),
    ]
}

/// Wakes up to `count` waiters whose mask meets `mask`; how many.
pub fn wake(addr: usize, count: i32, mask: u32, flags: u32) -> Result<usize, Errno> {
    // SAFETY: only the address is used; the kernel checks it.
    match unsafe {
        syscall(nr::__NR_futex_wake, [addr, mask as usize, count as usize, flags as usize, 0, 0])
    } {
        Err(Errno::NOSYS | Errno::PERM) if flags & (NUMA | MPOL) == 0 => {
            wake_old(addr, count, mask, flags)
        }
        other => other,
    }
}

/// The old call wakes one where none was asked for.
fn wake_old(addr: usize, count: i32, mask: u32, flags: u32) -> Result<usize, Errno> {
    const WAKE_BITSET: usize = 10;
    if count == 0 && mask != 0 && addr % 4 == 0 {
        return Ok(0);
    }
    let op = WAKE_BITSET | (flags & PRIVATE) as usize;
    // SAFETY: as above.
    unsafe { syscall(nr::__NR_futex, [addr, op, count as usize, 0, 0, mask as usize]) }
}
