//! What each call means, whichever way it arrived: by a trap, by a function of ours, or by
//! `syscall(2)` with a number. Results are raw: a negative error number, or the value.
//!
//! The program's signals are blocked while these run, see [`SignalsOff`].

use crate::state;
use crate::sys;
use anyring_engine::{Caller, Engine, Errno};
use core::sync::atomic::Ordering::Relaxed;

const SETUP: i64 = anyring_uapi::NR_SETUP;
const ENTER: i64 = anyring_uapi::NR_ENTER;
const REGISTER: i64 = anyring_uapi::NR_REGISTER;

/// Whether `nr` is one of the three calls.
pub fn is_io_uring(nr: i64) -> bool {
    (SETUP..=REGISTER).contains(&nr)
}

fn raw<T: TryInto<isize>>(result: Result<T, Errno>) -> isize {
    match result {
        Ok(value) => value.try_into().unwrap_or(isize::MAX),
        Err(errno) => -(errno.0 as isize),
    }
}

/// One of the three calls.
pub fn io_uring(nr: i64, a: [usize; 6], caller: &Caller) -> isize {
    let engine = state::process().engine_or_new();
    let result = match nr {
        SETUP => {
            let ring = engine.setup(caller, a[0] as u32, a[1]);
            crate::limits::note_raise(engine);
            ring
        }
        ENTER => {
            let [fd, submit, complete, flags] = [a[0], a[1], a[2], a[3]].map(|n| n as u32);
            engine.enter(caller, fd, submit, complete, flags, a[4], a[5])
        }
        REGISTER => engine.register(caller, a[0] as u32, a[1] as u32, a[2], a[3] as u32),
        _ => Err(Errno::NOSYS),
    };
    raw(result)
}

/// Whether a call with these arguments names a descriptor that may be a ring: what the filter
/// asks, and rings that dup2 put outside its range.
pub fn names_ring_range(nr: i64, a: [usize; 6]) -> bool {
    let ring = |i: usize| state::may_be_ring(a[i] as i32);
    match nr {
        libc::SYS_close | libc::SYS_dup | libc::SYS_fcntl => ring(0),
        libc::SYS_dup2 | libc::SYS_dup3 => ring(0) || ring(1),
        libc::SYS_epoll_ctl => ring(2),
        libc::SYS_mmap => ring(4) && a[3] & libc::MAP_ANONYMOUS as usize == 0,
        _ => false,
    }
}

/// A call that names a descriptor of the ring range. Without an engine, in a child of vfork,
/// and where the descriptor is no ring, the kernel's answer is the right one.
pub fn on_ring_range(nr: i64, a: [usize; 6]) -> isize {
    let engine = state::process().own_engine();
    match nr {
        libc::SYS_close => close(engine, a[0] as i32),
        libc::SYS_dup => duplicate(engine, a[0] as i32, None, false).unwrap_or_else(|| pass(nr, a)),
        libc::SYS_dup2 if a[0] as i32 == a[1] as i32 => same(a[0]),
        libc::SYS_dup3 if a[0] as i32 == a[1] as i32 => raw::<isize>(Err(Errno::INVAL)),
        libc::SYS_dup2 => dup_onto(engine, nr, a, false),
        libc::SYS_dup3 => dup_onto(engine, nr, a, a[2] & libc::O_CLOEXEC as usize != 0),
        libc::SYS_fcntl => fcntl(engine, a),
        libc::SYS_epoll_ctl => epoll_ctl(engine, a),
        libc::SYS_mmap => mmap(engine, a),
        _ => raw::<isize>(Err(Errno::NOSYS)),
    }
}

fn pass(nr: i64, a: [usize; 6]) -> isize {
    // SAFETY: the program's own call, made as it asked for.
    unsafe { sys::pass(nr, [a[0], a[1], a[2], a[3], a[4]]) }
}

fn close(engine: Option<&Engine>, fd: i32) -> isize {
    match engine.and_then(|engine| engine.close(fd)) {
        Some(result) => raw(result),
        None => pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]),
    }
}

/// `None` if `fd` is no ring.
fn duplicate(engine: Option<&Engine>, fd: i32, to: Option<i32>, cloexec: bool) -> Option<isize> {
    engine?.dup(fd, to, cloexec).map(raw)
}

/// The descriptor itself, if it is open.
fn same(fd: usize) -> isize {
    let flags = pass(libc::SYS_fcntl, [fd, libc::F_GETFD as usize, 0, 0, 0, 0]);
    if flags < 0 {
        flags
    } else {
        fd as isize
    }
}

fn dup_onto(engine: Option<&Engine>, nr: i64, a: [usize; 6], cloexec: bool) -> isize {
    let (old, new) = (a[0] as i32, a[1] as i32);
    let valid = same(a[0]);
    if valid < 0 {
        return valid;
    }
    if let Some(result) = duplicate(engine, old, Some(new), cloexec) {
        if result >= 0 && !state::in_ring_range(new) {
            state::process().low_rings.store(true, Relaxed);
        }
        return result;
    }
    if let Some(engine) = engine.filter(|engine| engine.is_ring(new)) {
        engine.close(new);
    }
    pass(nr, a)
}

fn fcntl(engine: Option<&Engine>, a: [usize; 6]) -> isize {
    let copied = match a[1] as i32 {
        libc::F_DUPFD => duplicate(engine, a[0] as i32, None, false),
        libc::F_DUPFD_CLOEXEC => duplicate(engine, a[0] as i32, None, true),
        _ => None,
    };
    copied.unwrap_or_else(|| pass(libc::SYS_fcntl, a))
}

fn epoll_ctl(engine: Option<&Engine>, a: [usize; 6]) -> isize {
    if a[1] as i32 != libc::EPOLL_CTL_DEL {
        watch(engine, a[2] as i32);
    }
    pass(libc::SYS_epoll_ctl, a)
}

/// The program puts `fd` into a poll set.
pub fn watch(engine: Option<&Engine>, fd: i32) {
    if let Some(engine) = engine.filter(|engine| engine.is_ring(fd)) {
        engine.watch(fd);
    }
}

fn mmap(engine: Option<&Engine>, a: [usize; 6]) -> isize {
    let fd = a[4] as i32;
    match engine.filter(|engine| engine.is_ring(fd)) {
        Some(engine) => raw(engine.mmap(fd, a[0], a[1], a[2] as u32, a[3] as u32, a[5] as u64)),
        None => mmap_other(a),
    }
}

/// mmap has no argument to spare for the filter, so the file is mapped through a duplicate
/// outside the range.
fn mmap_other(a: [usize; 6]) -> isize {
    let min = state::layout().private_min as usize;
    let fd = pass(libc::SYS_fcntl, [a[4], libc::F_DUPFD_CLOEXEC as usize, min, 0, 0, 0]);
    let fd = if fd < 0 || state::in_ring_range(fd as i32) {
        pass(libc::SYS_fcntl, [a[4], libc::F_DUPFD_CLOEXEC as usize, 0, 0, 0, 0])
    } else {
        fd
    };
    if fd < 0 {
        return fd;
    }
    if state::in_ring_range(fd as i32) {
        pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        return raw::<isize>(Err(Errno::MFILE));
    }
    let args = [a[0], a[1], a[2], a[3], fd as usize, a[5]];
    // SAFETY: the program's own call, made as it asked for.
    let ret = unsafe { sys::call6(libc::SYS_mmap, args) };
    pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
    ret
}
