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
    ///
    /// ```
    /// use anyring::{opcode, squeue::Flags, types, Backend, IoUring};
    /// use std::os::{fd::AsRawFd, unix::net::UnixStream};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
    /// let (silent, _other) = UnixStream::pair()?;
    /// let (mut buf, time) = ([0u8; 8], types::Timespec::new().nsec(1_000_000));
    ///
    /// let read = opcode::Read::new(types::Fd(silent.as_raw_fd()), buf.as_mut_ptr(), 8).build();
    /// let read = read.user_data(1).flags(Flags::IO_LINK);
    /// let timeout = opcode::LinkTimeout::new(&time).build().user_data(2);
    /// // SAFETY: the buffer and the time live until both completions were seen.
    /// unsafe { ring.submission().push_multiple(&[read, timeout]).expect("there is room") };
    /// ring.submit_and_wait(2)?;
    ///
    /// let mut done: Vec<_> = ring.completion().map(|c| (c.user_data(), c.result())).collect();
    /// done.sort();
    /// assert_eq!(done, [(1, -libc::ECANCELED), (2, -libc::ETIME)]);
    /// # Ok(())
    /// # }
    /// ```
    LinkTimeout = op::LINK_TIMEOUT;
    new(timespec: *const Timespec) |s| {
        s.fd = NO_FILE;
        s.addr = timespec as u64;
        s.len = 1;
    }
    /// Which clock.
    flags(flags: TimeoutFlags) |s| { s.op_flags = flags.bits(); }
}
