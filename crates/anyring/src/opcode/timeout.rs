//! Timeouts.

use super::define::NO_FILE;
use crate::types::{TimeoutFlags, Timespec};
use anyring_uapi::op;

/// `IORING_TIMEOUT_UPDATE`
const UPDATE: u32 = 1 << 1;

opcode! {
    /// Completes with `-ETIME` when the time is up, or with 0 after so many completions.
    Timeout = op::TIMEOUT;
    new(timespec: *const Timespec) |s| {
        s.fd = NO_FILE;
        s.addr = timespec as u64;
        s.len = 1;
    }
    /// Completions that end the timeout early; with
    /// [`MULTISHOT`](TimeoutFlags::MULTISHOT) the number of times it fires, 0 for ever.
    count(count: u32) |s| { s.off = count as u64; }
    /// Which clock, and how often.
    flags(flags: TimeoutFlags) |s| { s.op_flags = flags.bits(); }
}

opcode! {
    /// Ends the [`Timeout`] with this user data.
    TimeoutRemove = op::TIMEOUT_REMOVE;
    new(user_data: u64) |s| {
        s.fd = NO_FILE;
        s.addr = user_data;
    }
}

opcode! {
    /// Gives the [`Timeout`] with this user data another time; its count stays.
    TimeoutUpdate = op::TIMEOUT_REMOVE;
    new(user_data: u64, timespec: *const Timespec) |s| {
        s.fd = NO_FILE;
        s.addr = user_data;
        s.off = timespec as u64;
        s.op_flags = UPDATE;
    }
    /// Which clock, and whether it is a [`LinkTimeout`].
    flags(flags: TimeoutFlags) |s| { s.op_flags = flags.bits() | UPDATE; }
}

opcode! {
    /// Cancels the request before it, to which it is linked
    /// ([`IO_LINK`](crate::squeue::Flags::IO_LINK)), when the time is up.
    LinkTimeout = op::LINK_TIMEOUT;
    new(timespec: *const Timespec) |s| {
        s.fd = NO_FILE;
        s.addr = timespec as u64;
        s.len = 1;
    }
    /// Which clock.
    flags(flags: TimeoutFlags) |s| { s.op_flags = flags.bits(); }
}
