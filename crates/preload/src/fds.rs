//! Interposed: calls on descriptors. One comparison decides whether a call concerns a ring; all
//! others go on to the C library.

use crate::sys::{self, to_libc, SignalsOff};
use crate::{calls, next, report, state};
use core::ffi::{c_int, c_uint, c_void};
use libc::epoll_event;

/// Answers a call that names a descriptor of the ring range.
fn on_ring_range(nr: i64, a: [usize; 6]) -> isize {
    let _signals = SignalsOff::new();
    to_libc(calls::on_ring_range(nr, a))
}

fn is_ours(fd: c_int) -> bool {
    state::active() && state::may_be_ring(fd)
}

/// `close(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        return on_ring_range(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) as c_int;
    }
    let engines = state::process().engine().is_some_and(|engine| engine.is_private(fd));
    if report::owns(fd) || engines {
        sys::set_errno(libc::EBADF);
        return -1;
    }
    if !next::ready() {
        // SAFETY: takes no pointer.
        return to_libc(unsafe { sys::call6(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) })
            as c_int;
    }
    // SAFETY: takes no pointer.
    unsafe { next::close(fd) }
}

/// `dup(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    if is_ours(fd) {
        return on_ring_range(libc::SYS_dup, [fd as usize, 0, 0, 0, 0, 0]) as c_int;
    }
    // SAFETY: takes no pointer.
    unsafe { next::dup(fd) }
}

/// `dup2(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    if is_ours(old) || is_ours(new) {
        let a = [old as usize, new as usize, 0, 0, 0, 0];
        return on_ring_range(libc::SYS_dup2, a) as c_int;
    }
    // SAFETY: takes no pointer.
    unsafe { next::dup2(old, new) }
}

/// `dup3(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if is_ours(old) || is_ours(new) {
        let a = [old as usize, new as usize, flags as usize, 0, 0, 0];
        return on_ring_range(libc::SYS_dup3, a) as c_int;
    }
    // SAFETY: takes no pointer.
    unsafe { next::dup3(old, new, flags) }
}

/// `fcntl(2)`; its optional argument is an integer or a pointer, and arrives in the same register.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, op: c_int, arg: usize) -> c_int {
    if is_ours(fd) {
        return on_ring_range(libc::SYS_fcntl, [fd as usize, op as usize, arg, 0, 0, 0]) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { next::fcntl(fd, op, arg) }
}

/// `fcntl(2)` of programs built for large files.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, op: c_int, arg: usize) -> c_int {
    if is_ours(fd) {
        return on_ring_range(libc::SYS_fcntl, [fd as usize, op as usize, arg, 0, 0, 0]) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { next::fcntl64(fd, op, arg) }
}

/// `epoll_ctl(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if is_ours(fd) {
        let a = [epoll as usize, op as usize, fd as usize, event as usize, 0, 0];
        return on_ring_range(libc::SYS_epoll_ctl, a) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { next::epoll_ctl(epoll, op, fd, event) }
}

/// `mmap(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    if flags & libc::MAP_ANONYMOUS == 0 && is_ours(fd) {
        let (prot, flags) = (prot as usize, flags as usize);
        let a = [addr as usize, len, prot, flags, fd as usize, offset as usize];
        return on_ring_range(libc::SYS_mmap, a) as *mut c_void;
    }
    if !next::ready() {
        let (prot, flags) = (prot as usize, flags as usize);
        let a = [addr as usize, len, prot, flags, fd as usize, offset as usize];
        // SAFETY: the caller's.
        return to_libc(unsafe { sys::call6(libc::SYS_mmap, a) }) as *mut c_void;
    }
    // SAFETY: the caller's.
    unsafe { next::mmap(addr, len, prot, flags, fd, offset) }
}

/// `mmap(2)` of programs built for large files.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn mmap64(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the same function on x86-64.
    unsafe { mmap(addr, len, prot, flags, fd, offset) }
}

/// `close_range(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if !state::active() {
        // SAFETY: takes no pointer.
        return unsafe { next::close_range(first, last, flags) };
    }
    to_libc(close_all(first, last, flags)) as c_int
}

/// `closefrom(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn closefrom(low: c_int) {
    let first = low.max(0) as c_uint;
    // SAFETY: takes no pointer.
    if unsafe { close_range(first, c_uint::MAX, 0) } == 0 {
        return;
    }
    // Kernels before 5.9. What is open is below the limit the program sees.
    // SAFETY: takes no pointer.
    for fd in low.max(0)..unsafe { crate::limits::getdtablesize() } {
        // SAFETY: the program asked for it.
        unsafe { close(fd) };
    }
}

/// Closes the program's descriptors in `first..=last`, and not the engine's; a raw result.
pub fn close_all(first: c_uint, last: c_uint, flags: c_int) -> isize {
    const CLOEXEC: c_int = 4;
    let engine = state::process().own_engine();
    if flags & CLOEXEC != 0 || first > last {
        return kernels(first, last, flags);
    }
    let Some(engine) = engine else { return around_report(first, last, flags) };
    let layout = state::layout();
    let (private, base) = (layout.private_min as c_uint, layout.ring_base as c_uint);
    let end = layout.ring_end as c_uint;
    let below = around_report(first, last.min(private - 1), flags);
    if below < 0 {
        return below;
    }
    let signals = SignalsOff::new();
    let mut gap = first.max(base);
    for fd in first.max(base)..=last.min(end - 1) {
        if engine.is_ring(fd as c_int) {
            kernels_part(gap, fd.wrapping_sub(1), flags);
            engine.close(fd as c_int);
            gap = fd + 1;
        }
    }
    drop(signals);
    // What is left of the ring range, and everything above it.
    kernels_part(gap, last, flags)
}

fn around_report(first: c_uint, last: c_uint, flags: c_int) -> isize {
    let Some(own) = report::descriptor().filter(|own| (first..=last).contains(own)) else {
        return kernels_part(first, last, flags);
    };
    let below = kernels_part(first, own - 1, flags);
    let above = kernels_part(own + 1, last, flags);
    below.min(above)
}

/// As [`kernels`], if there is anything in the range.
fn kernels_part(first: c_uint, last: c_uint, flags: c_int) -> isize {
    if first <= last {
        kernels(first, last, flags)
    } else {
        0
    }
}

fn kernels(first: c_uint, last: c_uint, flags: c_int) -> isize {
    let a = [first as usize, last as usize, flags as usize, 0, 0, 0];
    // SAFETY: closes what the program asked to close.
    unsafe { sys::call6(libc::SYS_close_range, a) }
}
