//! Receiving from sockets.
//!
//! The multishot kinds take a buffer of a group for each completion, and go on as long as there
//! are buffers; every completion but the last has [`more`](crate::cqueue::more) set.

use super::define::set_file;
use crate::types::sealed::UseFixed;
use anyring_uapi::{op, sqe};
use libc::msghdr;

/// `IORING_RECV_MULTISHOT`
const MULTISHOT: u16 = 1 << 1;
/// `IORING_RECVSEND_BUNDLE`
const BUNDLE: u16 = 1 << 4;

opcode! {
    /// Receives into a buffer, as `recv(2)`.
    Recv = op::RECV;
    new(fd: impl UseFixed, buf: *mut u8, len: u32) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
    }
    /// `IORING_RECVSEND_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// The group to take a buffer from, with [`Flags::BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT).
    buf_group(buf_group: u16) |s| { s.buf_index = buf_group; }
}

opcode! {
    /// Receives again and again into buffers of a group. `MSG_WAITALL` does not go with it.
    ///
    /// ```
    /// use anyring::{cqueue, opcode, types, Backend, IoUring};
    /// use std::io::Write;
    /// use std::os::{fd::AsRawFd, unix::net::UnixStream};
    ///
    /// const GROUP: u16 = 1;
    /// # fn main() -> std::io::Result<()> {
    /// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
    /// let (mut client, server) = UnixStream::pair()?;
    ///
    /// // Four buffers of 16 bytes, numbered from 0.
    /// let mut bufs = [[0u8; 16]; 4];
    /// let provide = opcode::ProvideBuffers::new(bufs.as_mut_ptr().cast(), 16, 4, GROUP, 0).build();
    /// let recv = opcode::RecvMulti::new(types::Fd(server.as_raw_fd()), GROUP).build().user_data(1);
    /// // SAFETY: the buffers live until the last completion was seen.
    /// unsafe { ring.submission().push_multiple(&[provide, recv]).expect("there is room") };
    /// ring.submit_and_wait(1)?;
    /// assert_eq!(ring.completion().next().map(|done| done.result()), Some(0), "provided");
    ///
    /// for message in ["one", "three"] {
    ///     client.write_all(message.as_bytes())?;
    ///     ring.submit_and_wait(1)?;
    ///     let done = ring.completion().next().expect("one completion");
    ///     let buf = cqueue::buffer_select(done.flags()).expect("a buffer was used");
    ///     assert_eq!(&bufs[usize::from(buf)][..done.result() as usize], message.as_bytes());
    ///     assert!(cqueue::more(done.flags()), "it goes on");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    RecvMulti = op::RECV;
    new(fd: impl UseFixed, buf_group: u16) |s| {
        set_file(s, fd);
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
        s.ioprio = MULTISHOT;
    }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// Most bytes in all; 0 for no end.
    len(len: u32) |s| { s.len = len; }
}

opcode! {
    /// Receives into as many buffers of a group as there is data for, in one request.
    RecvBundle = op::RECV;
    new(fd: impl UseFixed, buf_group: u16) |s| {
        set_file(s, fd);
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
        s.ioprio = BUNDLE;
    }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Receives again and again, each time into as many buffers as there is data for.
    RecvMultiBundle = op::RECV;
    new(fd: impl UseFixed, buf_group: u16) |s| {
        set_file(s, fd);
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
        s.ioprio = MULTISHOT | BUNDLE;
    }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Receives a message, as `recvmsg(2)`.
    RecvMsg = op::RECVMSG;
    new(fd: impl UseFixed, msg: *mut msghdr) |s| {
        set_file(s, fd);
        s.addr = msg as u64;
        s.len = 1;
    }
    /// `IORING_RECVSEND_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `MSG_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
    /// The group to take a buffer from, with [`Flags::BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT).
    buf_group(buf_group: u16) |s| { s.buf_index = buf_group; }
}

opcode! {
    /// Receives message after message into buffers of a group.
    ///
    /// Of `msg` only `msg_namelen` and `msg_controllen` count. Each buffer starts with a
    /// description of what it holds: [`RecvMsgOut`](crate::types::RecvMsgOut) reads it.
    RecvMsgMulti = op::RECVMSG;
    new(fd: impl UseFixed, msg: *const msghdr, buf_group: u16) |s| {
        set_file(s, fd);
        s.addr = msg as u64;
        s.len = 1;
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
        s.ioprio = MULTISHOT;
    }
    /// `IORING_RECVSEND_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio | MULTISHOT; }
    /// `MSG_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Receives without copying, from a registered queue of a network device. Only the kernel
    /// can do that: the user-space engine answers as a kernel without it.
    RecvZc = op::RECV_ZC;
    new(fd: impl UseFixed, len: u32) |s| {
        set_file(s, fd);
        s.len = len;
        s.ioprio = MULTISHOT;
    }
    /// Number of the registered queue.
    ifq(ifq: u32) |s| { s.file_index = ifq; }
    /// `IORING_RECVSEND_*` bits beside `IORING_RECV_MULTISHOT`, which is always there.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio | MULTISHOT; }
}
