//! A futex lock that needs neither libc nor thread-local storage. All zeroes is "free".

use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;
/// Looks at a held lock this often before sleeping: what it guards takes nanoseconds.
const SPINS: u32 = 100;

/// See the module. Not recursive.
pub struct Lock(AtomicU32);

/// The lock is held while this lives.
pub struct Held<'a>(&'a Lock);

impl Lock {
    /// Takes the lock. Acquire: what the last holder wrote is visible.
    pub fn hold(&self) -> Held<'_> {
        let swap =
            |old, new| self.0.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed);
        for _ in 0..SPINS {
            if swap(FREE, HELD).is_ok() {
                return Held(self);
            }
            core::hint::spin_loop();
        }
        while self.0.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, WAITED_FOR);
        }
        Held(self)
    }

    fn futex(&self, operation: i32, value: u32) {
        let operation = (operation | libc::FUTEX_PRIVATE_FLAG) as usize;
        let at = self.0.as_ptr() as usize;
        // SAFETY: the word lives as long as the lock, and there is no timeout.
        unsafe { sys::call6(libc::SYS_futex, [at, operation, value as usize, 0, 0, 0]) };
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder.
        if self.0 .0.swap(FREE, Ordering::Release) == WAITED_FOR {
            self.0.futex(libc::FUTEX_WAKE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::UnsafeCell;

    struct Counter(Lock, UnsafeCell<u64>);
    // SAFETY: the number is only touched with the lock held.
    unsafe impl Sync for Counter {}

    #[test]
    fn one_at_a_time() {
        let counter = &Counter(Lock(AtomicU32::new(FREE)), UnsafeCell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let _held = counter.0.hold();
                        // SAFETY: the lock is held.
                        unsafe { *counter.1.get() += 1 };
                    }
                });
            }
        });
        // SAFETY: the threads are gone.
        assert_eq!(unsafe { *counter.1.get() }, 80_000);
    }
}
