//! A memory barrier on all CPUs that run threads of this process: `membarrier(2)`.

use super::{nr, syscall, time};
use core::sync::atomic::{fence, AtomicU32, Ordering};

const PRIVATE_EXPEDITED: usize = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;

/// How long a store may stay where only its own CPU sees it, with a margin of some thousand times.
const STORES_ARE_OUT_NS: u64 = 2_000_000;

fn membarrier(command: usize) -> bool {
    // SAFETY: integers only.
    unsafe { syscall(nr::__NR_membarrier, [command, 0, 0, 0, 0, 0]) }.is_ok()
}

/// When it returns, each of the process's threads has been through a full barrier since the call. If the process has
/// given up the right to the call since [`is_available`], it waits until that must have happened anyway.
pub fn everywhere() {
    fence(Ordering::SeqCst);
    let done = membarrier(PRIVATE_EXPEDITED)
        || (membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED));
    if !done {
        let never = AtomicU32::new(0);
        let _ = time::futex_wait(&never, 0, Some(STORES_ARE_OUT_NS));
    }
    fence(Ordering::SeqCst);
}

/// Whether the host has the call; registers the process for it.
pub fn is_available() -> bool {
    membarrier(REGISTER_PRIVATE_EXPEDITED)
}
