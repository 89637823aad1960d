//! Readiness: `poll`, `epoll` and timer descriptors.

use super::fd::OwnedFd;
use super::{nr, syscall};
use crate::{Errno, PASS_MAGIC};

/// `struct epoll_event` of x86-64, which is packed.
#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct Event {
    /// `EPOLL*` bits.
    pub events: u32,
    /// The registration's token.
    pub token: u64,
}

/// Readable.
pub const IN: u32 = 0x1;
/// Urgent data.
pub const PRI: u32 = 0x2;
/// Writable.
pub const OUT: u32 = 0x4;
/// Error, always watched.
pub const ERR: u32 = 0x8;
/// Hang-up, always watched.
pub const HUP: u32 = 0x10;
/// Not open; only `poll(2)` says so.
pub const NVAL: u32 = 0x20;
/// The peer shut down its writing side.
pub const RDHUP: u32 = 0x2000;
/// Disarm after one event.
pub const ONESHOT: u32 = 1 << 30;
/// Report changes, not levels.
pub const ET: u32 = 1 << 31;

/// A close-on-exec epoll instance.
pub fn create() -> Result<OwnedFd, Errno> {
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_epoll_create1, [nr::EPOLL_CLOEXEC as usize, 0, 0, 0, 0, 0]) }
        .map(|fd| OwnedFd::from_raw(fd as i32))
}

fn ctl(epfd: i32, op: u32, fd: i32, events: u32, token: u64) -> Result<(), Errno> {
    let ev = Event { events, token };
    let args =
        [epfd as usize, op as usize, fd as usize, &raw const ev as usize, 0, PASS_MAGIC as usize];
    // SAFETY: the event is a local; the rest are integers.
    unsafe { syscall(nr::__NR_epoll_ctl, args) }.map(drop)
}

/// Adds a registration.
pub fn add(epfd: i32, fd: i32, events: u32, token: u64) -> Result<(), Errno> {
    ctl(epfd, nr::EPOLL_CTL_ADD, fd, events, token)
}
/// Adds one, or changes it if it is there.
pub fn add_or_modify(epfd: i32, fd: i32, events: u32, token: u64) -> Result<(), Errno> {
    match add(epfd, fd, events, token) {
        Err(Errno::EXIST) => modify(epfd, fd, events, token),
        other => other,
    }
}
/// Changes one.
pub fn modify(epfd: i32, fd: i32, events: u32, token: u64) -> Result<(), Errno> {
    ctl(epfd, nr::EPOLL_CTL_MOD, fd, events, token)
}
/// Removes one.
pub fn remove(epfd: i32, fd: i32) -> Result<(), Errno> {
    ctl(epfd, nr::EPOLL_CTL_DEL, fd, 0, 0)
}

/// Waits for events. `timeout` is relative (sec, nsec), `None` for ever; `mask` is installed
/// for the time of the wait. Returns how many events were stored.
pub fn wait(
    epfd: i32,
    events: &mut [Event],
    timeout: Option<(i64, i64)>,
    mask: Option<u64>,
) -> Result<usize, Errno> {
    let ts = timeout.map(|(s, n)| [s, n]);
    let ts_ptr = ts.as_ref().map_or(0, |t| t.as_ptr() as usize);
    let mask_ptr = mask.as_ref().map_or(0, |m| m as *const u64 as usize);
    let (buf, len) = (events.as_mut_ptr() as usize, events.len());
    // SAFETY: the kernel writes at most `len` events; timespec and mask are locals.
    let ret =
        unsafe { syscall(nr::__NR_epoll_pwait2, [epfd as usize, buf, len, ts_ptr, mask_ptr, 8]) };
    match ret {
        Err(Errno::NOSYS | Errno::PERM) => {
            let ms = timeout.map_or(-1i32, |(s, n)| {
                (s * 1000 + (n + 999_999) / 1_000_000).clamp(0, i32::MAX as i64) as i32
            });
            // SAFETY: as above, with milliseconds.
            unsafe {
                syscall(nr::__NR_epoll_pwait, [epfd as usize, buf, len, ms as usize, mask_ptr, 8])
            }
        }
        other => other,
    }
}

/// Whether one descriptor is ready now: its `revents` for the events asked for.
pub fn ready(fd: i32, events: u32) -> Result<u32, Errno> {
    #[repr(C)]
    struct PollFd {
        fd: i32,
        events: u16,
        revents: u16,
    }
    let mut p = PollFd { fd, events: events as u16, revents: 0 };
    // SAFETY: one local pollfd, no waiting.
    unsafe { syscall(nr::__NR_poll, [&raw mut p as usize, 1, 0, 0, 0, 0]) }?;
    Ok(p.revents as u32)
}

/// A monotonic timer descriptor, non-blocking.
pub fn timerfd() -> Result<OwnedFd, Errno> {
    let flags = nr::TFD_NONBLOCK | nr::TFD_CLOEXEC;
    // SAFETY: integer arguments only.
    unsafe {
        syscall(
            nr::__NR_timerfd_create,
            [super::time::Clock::Monotonic as usize, flags as usize, 0, 0, 0, 0],
        )
    }
    .map(|fd| OwnedFd::from_raw(fd as i32))
}

/// Sets a timer descriptor to fire at an absolute monotonic time in nanoseconds; `None` disarms.
pub fn timerfd_set(fd: i32, at_ns: Option<u64>) -> Result<(), Errno> {
    let at = at_ns.map_or(0, |t| t.max(1));
    let spec: [i64; 4] = [0, 0, (at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64];
    const ABSTIME: usize = 1;
    // SAFETY: the structure is a local of four integers.
    unsafe {
        syscall(nr::__NR_timerfd_settime, [fd as usize, ABSTIME, spec.as_ptr() as usize, 0, 0, 0])
    }
    .map(drop)
}
