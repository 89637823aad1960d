//! Interposed: signal masks. SIGSYS is kept out of all of them, because the kernel kills a
//! thread that blocks it when one of its calls traps. Everything else passes through.

use crate::sys::{self, SIGSYS_BIT};
use crate::{next, state};
use core::ffi::c_int;
use libc::{posix_spawnattr_t, pthread_attr_t, sigset_t};

/// The set without SIGSYS.
pub fn stripped(set: &sigset_t) -> sigset_t {
    let mut copy = *set;
    // SAFETY: a set is larger than eight bytes and aligned to them.
    unsafe { *(&raw mut copy).cast::<u64>() &= !SIGSYS_BIT };
    copy
}

/// Calls `f` with the set without SIGSYS; with null for null.
///
/// # Safety
/// `set` is null or valid.
pub unsafe fn with_stripped<R>(set: *const sigset_t, f: impl FnOnce(*const sigset_t) -> R) -> R {
    // SAFETY: the caller's.
    match unsafe { set.as_ref() } {
        Some(set) if state::active() => f(&stripped(set)),
        _ => f(set),
    }
}

macro_rules! mask_setters {
    ($($name:ident;)*) => {$(
        /// Changes the thread's mask.
        ///
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(test), no_mangle)]
        pub unsafe extern "C" fn $name(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
            if how == libc::SIG_UNBLOCK {
                // SAFETY: the caller's.
                return unsafe { next::$name(how, new, old) };
            }
            // SAFETY: the caller's.
            unsafe { with_stripped(new, |new| next::$name(how, new, old)) }
        }
    )*};
}

mask_setters! {
    sigprocmask;
    pthread_sigmask;
}

/// `sigsuspend(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::sigsuspend(mask)) }
}

/// The mask new threads start with.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn pthread_attr_setsigmask_np(
    attr: *mut pthread_attr_t,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::pthread_attr_setsigmask_np(attr, mask)) }
}

/// The mask a spawned program starts with.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn posix_spawnattr_setsigmask(
    attr: *mut posix_spawnattr_t,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::posix_spawnattr_setsigmask(attr, mask)) }
}

/// The old interface's mask: an integer with a bit per signal.
fn stripped_old(mask: c_int) -> c_int {
    if state::active() {
        mask & !(SIGSYS_BIT as c_int)
    } else {
        mask
    }
}

/// `sigblock(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigblock(mask: c_int) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { next::sigblock(stripped_old(mask)) }
}

/// `sigsetmask(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigsetmask(mask: c_int) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { next::sigsetmask(stripped_old(mask)) }
}

/// `sighold(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sighold(signal: c_int) -> c_int {
    if state::active() && signal == libc::SIGSYS {
        return 0;
    }
    // SAFETY: takes no pointer.
    unsafe { next::sighold(signal) }
}

/// `rt_sigprocmask(2)` by number.
///
/// # Safety
/// As the call demands.
pub unsafe fn raw_sigprocmask(mut a: [usize; 6]) -> isize {
    let mut copy = 0u64;
    if a[0] != libc::SIG_UNBLOCK as usize && a[1] != 0 && a[3] == size_of::<u64>() {
        if let Err(errno) = sys::fetch(a[1], &mut copy) {
            return errno;
        }
        copy &= !SIGSYS_BIT;
        a[1] = &raw const copy as usize;
    }
    // SAFETY: the caller's; `copy` lives across the call.
    unsafe { sys::call6(libc::SYS_rt_sigprocmask, a) }
}
