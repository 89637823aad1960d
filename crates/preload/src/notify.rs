//! Interposed: what asks for a callback in a thread of the C library's own (SIGEV_THREAD). That thread starts with all
//! signals blocked; SIGSYS must not be.
//!
//! The callback asked for is ours, which lets SIGSYS in and calls the program's. What it has to know lives as long as the
//! process, since nothing says when the last callback has run; the same callback with the same value is kept once.

use crate::sys::{self, SIGSYS_BIT};
use crate::{next, state};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// `struct sigevent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigEvent {
    value: usize,
    signal: c_int,
    notify: c_int,
    function: usize,
    attributes: usize,
    rest: [usize; 4],
}

/// A callback of the program's. Never freed and, but for `before` until it is in the list, never changed.
struct Callback {
    function: usize,
    value: usize,
    before: *mut Callback,
}

/// The latest; they lead to each other.
static CALLBACKS: AtomicPtr<Callback> = AtomicPtr::new(core::ptr::null_mut());

fn known(mut at: *mut Callback, event: &SigEvent) -> *mut Callback {
    // SAFETY: null, or a callback that is never freed.
    while let Some(callback) = unsafe { at.as_ref() } {
        if callback.function == event.function && callback.value == event.value {
            break;
        }
        at = callback.before;
    }
    at
}

fn remember(event: &SigEvent) -> *mut Callback {
    let mut latest = CALLBACKS.load(Ordering::Acquire);
    let found = known(latest, event);
    if !found.is_null() {
        return found;
    }
    let (function, value) = (event.function, event.value);
    let new = Box::into_raw(Box::new(Callback { function, value, before: latest }));
    while let Err(now) =
        CALLBACKS.compare_exchange(latest, new, Ordering::AcqRel, Ordering::Acquire)
    {
        latest = now;
        // SAFETY: not in the list yet, so nobody else knows it.
        unsafe { (*new).before = now };
    }
    new
}

/// Runs in the C library's thread.
extern "C" fn run(value: *mut c_void) {
    let mask = sys::set_mask(!SIGSYS_BIT);
    sys::set_mask(mask & !SIGSYS_BIT);
    // SAFETY: `value` is what `with_ours` gave with this function, and is never freed.
    let callback = unsafe { &*value.cast::<Callback>() };
    // SAFETY: the program's function for this purpose; a `union sigval` is passed like an integer.
    unsafe {
        let f: extern "C" fn(usize) = core::mem::transmute(callback.function);
        f(callback.value);
    }
}

/// Calls `f` with the event, its callback replaced if it has one.
///
/// # Safety
/// `event` is null or valid.
unsafe fn with_ours(event: *const SigEvent, f: impl FnOnce(*const SigEvent) -> c_int) -> c_int {
    // SAFETY: the caller's.
    let given = unsafe { event.as_ref() };
    match given.filter(|e| state::active() && e.notify == libc::SIGEV_THREAD && e.function != 0) {
        Some(given) => {
            let function = run as extern "C" fn(*mut c_void) as usize;
            f(&SigEvent { function, value: remember(given) as usize, ..*given })
        }
        None => f(event),
    }
}

/// `timer_create(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn timer_create(
    clock: c_int,
    event: *const SigEvent,
    timer: *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { with_ours(event, |event| next::timer_create(clock, event, timer)) }
}

/// `mq_notify(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn mq_notify(queue: c_int, event: *const SigEvent) -> c_int {
    // SAFETY: the caller's.
    unsafe { with_ours(event, |event| next::mq_notify(queue, event)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_callback_is_kept_once() {
        let event = |function, value| SigEvent {
            value,
            signal: 0,
            notify: libc::SIGEV_THREAD,
            function,
            attributes: 0,
            rest: [0; 4],
        };
        let (one, other) = (remember(&event(10, 1)), remember(&event(10, 2)));
        assert!(one != other);
        assert_eq!((remember(&event(10, 1)), remember(&event(10, 2))), (one, other));
    }

    #[test]
    fn the_event_has_the_c_librarys_size() {
        assert_eq!(size_of::<SigEvent>(), size_of::<libc::sigevent>());
    }
}
