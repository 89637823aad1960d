//! Interposed: what the program does at signals. SIGSYS stays ours, the program's wish for it
//! is recorded; and no handler of the program runs with SIGSYS blocked, since it may make calls
//! that trap.

use crate::masks::stripped;
use crate::program_sigsys;
use crate::sys::{self, SIGSYS_BIT};
use crate::trap::KernelAction;
use crate::{next, state};
use core::ffi::c_int;
use libc::sigaction as Sigaction;

const SIGSYS: c_int = libc::SIGSYS;

/// `sigaction(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const Sigaction,
    old: *mut Sigaction,
) -> c_int {
    // SAFETY: the caller's pointers are null or valid.
    unsafe {
        if !state::active() {
            return next::sigaction(signal, new, old);
        }
        if signal == SIGSYS {
            sigsys_action(new, old);
            return 0;
        }
        let Some(&action) = new.as_ref() else { return next::sigaction(signal, new, old) };
        let action = Sigaction { sa_mask: stripped(&action.sa_mask), ..action };
        next::sigaction(signal, &action, old)
    }
}

/// # Safety
/// Both are null or valid.
unsafe fn sigsys_action(new: *const Sigaction, old: *mut Sigaction) {
    let before = program_sigsys::get();
    // SAFETY: the caller's; the first eight bytes of a set are the kernel's set.
    unsafe {
        if let Some(new) = new.as_ref() {
            program_sigsys::set(&KernelAction {
                handler: new.sa_sigaction,
                flags: new.sa_flags as u32 as u64,
                restorer: 0,
                mask: (&raw const new.sa_mask).cast::<u64>().read(),
            });
        }
        if let Some(old) = old.as_mut() {
            old.sa_sigaction = before.handler;
            old.sa_flags = before.flags as c_int;
            libc::sigemptyset(&mut old.sa_mask);
            (&raw mut old.sa_mask).cast::<u64>().write(before.mask);
        }
    }
}

/// The functions that set a plain handler, and give the old one back.
fn set_handler(handler: usize, flags: c_int) -> usize {
    let before = program_sigsys::get().handler;
    let flags = flags as u32 as u64;
    program_sigsys::set(&KernelAction { handler, flags, ..Default::default() });
    before
}

macro_rules! plain_handlers {
    ($($name:ident as $next:ident with $flags:expr;)*) => {$(
        /// Sets the handler of a signal.
        ///
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(test), no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            if state::active() && signal == SIGSYS {
                return set_handler(handler, $flags);
            }
            // SAFETY: the caller's.
            unsafe { next::$next(signal, handler) }
        }
    )*};
}

plain_handlers! {
    signal as signal with libc::SA_RESTART;
    bsd_signal as signal with libc::SA_RESTART;
    ssignal as signal with libc::SA_RESTART;
    sysv_signal as __sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
    __sysv_signal as __sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
}

/// `sigset(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigset(signal: c_int, handler: usize) -> usize {
    const SIG_HOLD: usize = 2;
    if !state::active() || signal != SIGSYS {
        // SAFETY: the caller's.
        return unsafe { next::sigset(signal, handler) };
    }
    if handler == SIG_HOLD {
        program_sigsys::get().handler
    } else {
        set_handler(handler, 0)
    }
}

/// `sigignore(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    if state::active() && signal == SIGSYS {
        set_handler(libc::SIG_IGN, 0);
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { next::sigignore(signal) }
}

/// `siginterrupt(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, flag: c_int) -> c_int {
    if state::active() && signal == SIGSYS {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { next::siginterrupt(signal, flag) }
}

/// `rt_sigaction(2)` by number.
///
/// # Safety
/// As the call demands.
pub unsafe fn raw_sigaction(mut a: [usize; 6]) -> isize {
    let mut action = KernelAction::default();
    if a[1] != 0 {
        if let Err(errno) = sys::fetch(a[1], &mut action) {
            return errno;
        }
    }
    if a[0] as c_int == SIGSYS {
        return raw_sigsys_action((a[1] != 0).then_some(&action), a[2]);
    }
    if a[1] != 0 {
        action.mask &= !SIGSYS_BIT;
        a[1] = &raw const action as usize;
    }
    // SAFETY: the caller's; `action` lives across the call.
    unsafe { sys::call6(libc::SYS_rt_sigaction, a) }
}

fn raw_sigsys_action(new: Option<&KernelAction>, old_at: usize) -> isize {
    let before = program_sigsys::get();
    if old_at != 0 {
        if let Err(errno) = sys::store(old_at, &before) {
            return errno;
        }
    }
    if let Some(new) = new {
        program_sigsys::set(new);
    }
    0
}
