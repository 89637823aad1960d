//! Interposed: what liburing exports for the three calls, so that programs that call it there
//! need no trap. (Its inline copies do.) These give negative error numbers, as liburing does.

use crate::sys::{self, SignalsOff};
use crate::{calls, state};
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::Ordering::Relaxed;

/// One of the three calls, arrived through a function; a raw result.
pub fn call(nr: i64, a: [usize; 6]) -> isize {
    let process = state::process();
    if !state::active() {
        process.count_kernel_call();
        // SAFETY: the program's own call, made as it asked for.
        return unsafe { sys::call6(nr, a) };
    }
    process.direct.fetch_add(1, Relaxed);
    let signals = SignalsOff::new();
    // Before the thread is described: the engine's birth starts a new epoch of thread ids.
    process.engine_or_new();
    calls::io_uring(nr, a, &state::caller(&signals))
}

/// `io_uring_setup`, as liburing exports it.
///
/// # Safety
/// As liburing's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn io_uring_setup(entries: c_uint, params: *mut c_void) -> c_int {
    let a = [entries as usize, params as usize, 0, 0, 0, 0];
    call(anyring_uapi::NR_SETUP, a) as c_int
}

/// `io_uring_enter`, as liburing exports it.
///
/// # Safety
/// As liburing's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn io_uring_enter(
    fd: c_uint,
    to_submit: c_uint,
    min_complete: c_uint,
    flags: c_uint,
    mask: *mut c_void,
) -> c_int {
    const KERNEL_SET: usize = 8;
    // SAFETY: the caller's.
    unsafe { io_uring_enter2(fd, to_submit, min_complete, flags, mask, KERNEL_SET) }
}

/// `io_uring_enter2`, as liburing exports it.
///
/// # Safety
/// As liburing's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn io_uring_enter2(
    fd: c_uint,
    to_submit: c_uint,
    min_complete: c_uint,
    flags: c_uint,
    arg: *mut c_void,
    size: usize,
) -> c_int {
    let numbers = [fd, to_submit, min_complete, flags].map(|n| n as usize);
    let a = [numbers[0], numbers[1], numbers[2], numbers[3], arg as usize, size];
    call(anyring_uapi::NR_ENTER, a) as c_int
}

/// `io_uring_register`, as liburing exports it.
///
/// # Safety
/// As liburing's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn io_uring_register(
    fd: c_uint,
    opcode: c_uint,
    arg: *const c_void,
    nr_args: c_uint,
) -> c_int {
    let a = [fd as usize, opcode as usize, arg as usize, nr_args as usize, 0, 0];
    call(anyring_uapi::NR_REGISTER, a) as c_int
}
