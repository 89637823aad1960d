//! Interposed: RLIMIT_NOFILE.
//!
//! The engine's descriptors lie above the program's soft limit, so it raises the real one. The
//! program goes on seeing its own value, and what it sets is kept in `NOFILE_WISH` without
//! lowering the real limit. Whatever is executed gets the program's value: set back before
//! exec, or, where the C library executes on its own (`posix_spawn`, `system`), by the library in
//! the new program, which finds the value in `ANYRING_FILTER`.

use crate::state::{self, NOFILE_WISH};
use crate::{exec, next, sys};
use anyring_engine::Engine;
use core::ffi::{c_int, c_uint};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use libc::{pid_t, rlimit};

const NOFILE: c_uint = libc::RLIMIT_NOFILE;

/// `prlimit(2)` on this process.
fn raw(new: Option<&rlimit>) -> rlimit {
    let mut old = rlimit { rlim_cur: 0, rlim_max: 0 };
    let new_at = new.map_or(0, |new| ptr::from_ref(new) as usize);
    let a = [0, NOFILE as usize, new_at, &raw mut old as usize, 0, 0];
    // SAFETY: both limits live across the call.
    unsafe { sys::call6(libc::SYS_prlimit64, a) };
    old
}

/// The hard limit.
pub fn nofile_hard() -> u64 {
    raw(None).rlim_max
}

fn set_soft(soft: u64) {
    let rlimit { rlim_max, .. } = raw(None);
    raw(Some(&rlimit { rlim_cur: soft.min(rlim_max), rlim_max }));
}

fn seen_with(engine: &Engine) -> Option<u64> {
    let own = engine.program_nofile_soft()?;
    match NOFILE_WISH.load(Relaxed) {
        0 => Some(own),
        wish => Some(wish as u64 - 1),
    }
}

/// The soft limit the program should see, if it is not the real one.
fn seen() -> Option<u64> {
    if !state::active() {
        return None;
    }
    state::engine_of_limits().and_then(seen_with)
}

/// After a ring was made: the engine may have raised the limit.
pub fn note_raise(engine: &Engine) {
    if let Some(soft) = seen_with(engine) {
        exec::set_nofile_soft(soft);
    }
}

/// At start: the parent could not put its limit back.
pub fn restore_inherited(soft: u32) {
    if soft != 0 && raw(None).rlim_cur > u64::from(soft) {
        set_soft(soft.into());
    }
}

/// In a forked child, which has no engine yet.
pub fn settle_in_child(parents: &Engine) {
    if let Some(soft) = seen_with(parents) {
        set_soft(soft);
        NOFILE_WISH.store(0, Relaxed);
        exec::set_nofile_soft(0);
    }
}

/// Before exec: the program's limit. Returns what to set if exec fails.
pub fn lower_for_exec() -> Option<u64> {
    let soft = seen()?;
    let real = raw(None).rlim_cur;
    // A child of vfork may have set its own.
    if real < state::layout().ring_end as u64 || real == soft {
        return None;
    }
    set_soft(soft);
    Some(real)
}

/// Exec failed.
pub fn raise_after_exec(real: Option<u64>) {
    if let Some(real) = real {
        set_soft(real);
    }
}

/// Sets the limit of this process as the program wants it; a raw result.
fn set_own(new: &rlimit) -> isize {
    let of_vfork = state::process().engine().is_some() && state::process().own_engine().is_none();
    if new.rlim_cur > new.rlim_max {
        return -(libc::EINVAL as isize);
    }
    let mut real = *new;
    if seen().is_some() && !of_vfork {
        real.rlim_cur = raw(None).rlim_cur.max(new.rlim_cur).min(new.rlim_max);
    }
    let a = [0, NOFILE as usize, &raw const real as usize, 0, 0, 0];
    // SAFETY: the limit lives across the call.
    let ret = unsafe { sys::call6(libc::SYS_prlimit64, a) };
    if ret == 0 && seen().is_some() && !of_vfork {
        NOFILE_WISH.store((new.rlim_cur as usize).saturating_add(1), Relaxed);
        exec::set_nofile_soft(new.rlim_cur);
    }
    ret
}

/// `getrlimit(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn getrlimit(what: c_uint, limit: *mut rlimit) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let ret = next::getrlimit(what, limit);
        if ret == 0 && what == NOFILE {
            (*limit).rlim_cur = seen().unwrap_or((*limit).rlim_cur);
        }
        ret
    }
}

/// `setrlimit(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn setrlimit(what: c_uint, limit: *const rlimit) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        match limit.as_ref() {
            Some(new) if what == NOFILE && state::active() => sys::to_libc(set_own(new)) as c_int,
            _ => next::setrlimit(what, limit),
        }
    }
}

/// `prlimit(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn prlimit(
    pid: pid_t,
    what: c_uint,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if what != NOFILE || !state::active() || (pid != 0 && pid != sys::getpid()) {
            return next::prlimit(pid, what, new, old);
        }
        let before = next::prlimit(0, what, ptr::null(), old);
        if before != 0 {
            return before;
        }
        if let (Some(old), Some(soft)) = (old.as_mut(), seen()) {
            old.rlim_cur = soft;
        }
        new.as_ref().map_or(0, |new| sys::to_libc(set_own(new)) as c_int)
    }
}

macro_rules! same_on_64_bits {
    ($(fn $name:ident = $of:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// The same, of programs built for large files.
        ///
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(test), no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            // SAFETY: the caller's.
            unsafe { $of($($arg),*) }
        }
    )*};
}

same_on_64_bits! {
    fn getrlimit64 = getrlimit(what: c_uint, limit: *mut rlimit);
    fn setrlimit64 = setrlimit(what: c_uint, limit: *const rlimit);
    fn prlimit64 = prlimit(pid: pid_t, what: c_uint, new: *const rlimit, old: *mut rlimit);
}

/// `sysconf(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn sysconf(name: c_int) -> i64 {
    if name == libc::_SC_OPEN_MAX {
        if let Some(soft) = seen() {
            return soft as i64;
        }
    }
    // SAFETY: takes no pointer.
    unsafe { next::sysconf(name) }
}

/// `getdtablesize(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn getdtablesize() -> c_int {
    match seen() {
        Some(soft) => soft as c_int,
        // SAFETY: takes no pointer.
        None => unsafe { next::getdtablesize() },
    }
}
