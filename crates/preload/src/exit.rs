//! Ends of threads and of the process.

use crate::sys::SignalsOff;
use crate::{next, report, state, sys, tls};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The key whose destructor reports a thread's end, plus one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Makes the key. Early keys need no memory when a thread sets them.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the destructor takes what `announce_thread` sets.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } == 0 {
        KEY.store(key + 1, Relaxed);
    }
}

/// The end of the calling thread will be reported; `false` if it cannot be.
pub fn announce_thread(tid: i32) -> bool {
    match KEY.load(Relaxed) {
        0 => false,
        // SAFETY: the value is not a pointer to anything.
        key => unsafe { libc::pthread_setspecific(key - 1, tid as usize as *const c_void) == 0 },
    }
}

/// As [`announce_thread`], unless that was done.
pub fn announce_thread_once(tid: i32) {
    // SAFETY: the thread's own variable.
    let thread = unsafe { &mut *tls::current() };
    if !thread.announced {
        thread.announced = announce_thread(tid);
    }
}

unsafe extern "C" fn thread_ends(_: *mut c_void) {
    // Other destructors may still use rings: then this one runs again.
    // SAFETY: the thread's own variable.
    unsafe { (*tls::current()).announced = false };
    if let Some(engine) = state::process().own_engine() {
        let _signals = SignalsOff::new();
        // Not the key's value: a forked child inherits that.
        engine.thread_exit(sys::gettid());
    }
}

#[cfg(not(test))]
#[used]
#[link_section = ".fini_array"]
static END: extern "C" fn() = process_ends;

#[cfg_attr(test, allow(dead_code))]
extern "C" fn process_ends() {
    report::at_exit();
}

fn exit_now(status: c_int) -> ! {
    report::at_exit();
    loop {
        // SAFETY: does not return.
        unsafe { sys::call6(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// `_exit(2)`
#[cfg_attr(not(test), no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    exit_now(status)
}

/// `_Exit(3)`
#[allow(non_snake_case)]
#[cfg_attr(not(test), no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    exit_now(status)
}

/// `quick_exit(3)`: the C library runs the program's functions first and then leaves on its own.
#[cfg_attr(not(test), no_mangle)]
pub extern "C" fn quick_exit(status: c_int) -> ! {
    report::at_exit();
    // SAFETY: does not return, unless it does not exist.
    unsafe { next::quick_exit(status) };
    exit_now(status)
}
