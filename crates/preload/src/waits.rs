//! Interposed: calls that wait for descriptors, or wait with a signal mask.
//!
//! A ring in a poll set is announced to the engine, and before any wait the engine takes back
//! the readiness of rings whose completion queue the program has emptied. Both cost one load as
//! long as no ring is watched. `select` cannot name a ring: sets end at descriptor 1023.

use crate::masks::with_stripped;
use crate::sys::SignalsOff;
use crate::{calls, next, state};
use core::ffi::c_int;
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

/// Before a wait.
pub fn refresh() {
    if let Some(engine) = state::process().engine() {
        if engine.has_watched() {
            let _signals = SignalsOff::new();
            engine.refresh_readiness();
        }
    }
}

/// Before a wait for these descriptors.
///
/// # Safety
/// `fds` has `n` elements if the program's call is right; nothing is read without an engine.
pub unsafe fn prepare_poll(fds: *const pollfd, n: nfds_t) {
    if state::active() {
        if let Some(engine) = state::process().engine() {
            for i in 0..n as usize {
                // SAFETY: the caller's.
                let fd = unsafe { (*fds.add(i)).fd };
                if state::may_be_ring(fd) {
                    let _signals = SignalsOff::new();
                    calls::watch(Some(engine), fd);
                }
            }
        }
        refresh();
    }
}

macro_rules! polls {
    (@call ($mask:ident) $call:expr) => { with_stripped($mask, |$mask| $call) };
    (@call () $call:expr) => { $call };
    ($(#[$doc:meta] fn $name:ident($($arg:ident: $type:ty),*) $(masked by $mask:ident)?;)*) => {$(
        #[$doc]
        ///
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(test), no_mangle)]
        pub unsafe extern "C" fn $name(fds: *mut pollfd, n: nfds_t, $($arg: $type),*) -> c_int {
            // SAFETY: the caller's.
            unsafe {
                prepare_poll(fds, n);
                polls!(@call ($($mask)?) next::$name(fds, n, $($arg),*))
            }
        }
    )*};
}

polls! {
    /// `poll(2)`
    fn poll(timeout: c_int);
    /// `poll(2)` of programs built with fortification.
    fn __poll_chk(timeout: c_int, len: usize);
    /// `ppoll(2)`
    fn ppoll(timeout: *const timespec, mask: *const sigset_t) masked by mask;
    /// `ppoll(2)` of programs built with fortification.
    fn __ppoll_chk(timeout: *const timespec, mask: *const sigset_t, len: usize) masked by mask;
}

/// `select(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn select(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    refresh();
    // SAFETY: the caller's.
    unsafe { next::select(n, r, w, e, timeout) }
}

/// `pselect(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn pselect(
    n: c_int,
    r: *mut fd_set,
    w: *mut fd_set,
    e: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    refresh();
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::pselect(n, r, w, e, timeout, mask)) }
}

/// `epoll_wait(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    refresh();
    // SAFETY: the caller's.
    unsafe { next::epoll_wait(epoll, events, max, timeout) }
}

/// `epoll_pwait(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    refresh();
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::epoll_pwait(epoll, events, max, timeout, mask)) }
}

/// `epoll_pwait2(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    refresh();
    // SAFETY: the caller's.
    unsafe { with_stripped(mask, |mask| next::epoll_pwait2(epoll, events, max, timeout, mask)) }
}
