//! Readiness.

use super::define::{set_file, NO_FILE};
use crate::types::epoll_event;
use crate::types::sealed::{UseFd, UseFixed};
use anyring_uapi::op;

/// `IORING_POLL_ADD_MULTI`
const POLL_ADD_MULTI: u32 = 1;

opcode! {
    /// Completes when the file is ready for one of the events (`POLL*` bits of `poll(2)`); the
    /// result is what it is ready for.
    PollAdd = op::POLL_ADD;
    new(fd: impl UseFixed, flags: u32) |s| {
        set_file(s, fd);
        s.op_flags = flags;
    }
    /// Goes on after the first event, with a completion for each; every completion but the last
    /// has [`more`](crate::cqueue::more) set.
    multi(multi: bool) |s| { s.len = if multi { POLL_ADD_MULTI } else { 0 }; }
}

opcode! {
    /// Ends a [`PollAdd`] with this user data. The result is 0, or `-ENOENT` if there is none.
    PollRemove = op::POLL_REMOVE;
    new(user_data: u64) |s| {
        s.fd = NO_FILE;
        s.addr = user_data;
    }
}

opcode! {
    /// Changes what an epoll descriptor watches, as `epoll_ctl(2)`.
    EpollCtl = op::EPOLL_CTL;
    new(epfd: impl UseFixed, fd: impl UseFd, op: i32, ev: *const epoll_event) |s| {
        set_file(s, epfd);
        s.addr = ev as u64;
        s.len = op as u32;
        s.off = fd.into() as u64;
    }
}

opcode! {
    /// Waits for events of an epoll descriptor, as `epoll_wait(2)`.
    EpollWait = op::EPOLL_WAIT;
    new(fd: impl UseFixed, events: *mut epoll_event, max_events: u32) |s| {
        set_file(s, fd);
        s.addr = events as u64;
        s.len = max_events;
    }
    /// None are defined.
    flags(flags: u32) |s| { s.op_flags = flags; }
}
