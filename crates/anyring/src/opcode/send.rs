//! Sending on sockets.

use super::define::set_file;
use crate::types::sealed::UseFixed;
use anyring_uapi::{op, sqe};
use libc::{msghdr, sockaddr, socklen_t};

/// `IORING_RECVSEND_FIXED_BUF`
const FIXED_BUF: u16 = 1 << 2;
/// `IORING_RECVSEND_BUNDLE`
const BUNDLE: u16 = 1 << 4;

opcode! {
    /// Sends a buffer, as `send(2)` or, with an address, `sendto(2)`.
    Send = op::SEND;
    new(fd: impl UseFixed, buf: *const u8, len: u32) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
    }
    @pointer
    /// Where to, for a socket that is not connected; goes with
    /// [`dest_addr_len`](Self::dest_addr_len).
    dest_addr(*const sockaddr) => off;
    /// `IORING_RECVSEND_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// The group to take a buffer from, with [`Flags::BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT).
    buf_group(buf_group: u16) |s| { s.buf_index = buf_group; }
    /// Length of the address.
    dest_addr_len(dest_addr_len: socklen_t) |s| { s.file_index = dest_addr_len as u16 as u32; }
}

opcode! {
    /// Sends a message, as `sendmsg(2)`.
    SendMsg = op::SENDMSG;
    new(fd: impl UseFixed, msg: *const msghdr) |s| {
        set_file(s, fd);
        s.addr = msg as u64;
        s.len = 1;
    }
    /// `IORING_RECVSEND_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `MSG_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Sends a buffer without copying it where that is possible.
    ///
    /// Two completions: the first says how much was sent and has [`more`](crate::cqueue::more)
    /// set if a second follows, for which [`notif`](crate::cqueue::notif) holds; until then the
    /// buffer must not change.
    SendZc = op::SEND_ZC;
    new(fd: impl UseFixed, buf: *const u8, len: u32) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
    }
    @pointer
    /// Where to, for a socket that is not connected; goes with
    /// [`dest_addr_len`](Self::dest_addr_len).
    dest_addr(*const sockaddr) => off;
    /// The registered buffer that `buf` is a part of.
    buf_index(buf_index: Option<u16>) |s| {
        match buf_index {
            Some(index) => {
                s.buf_index = index;
                s.ioprio |= FIXED_BUF;
            }
            None => {
                s.buf_index = 0;
                s.ioprio &= !FIXED_BUF;
            }
        }
    }
    /// Length of the address.
    dest_addr_len(dest_addr_len: socklen_t) |s| { s.file_index = dest_addr_len as u16 as u32; }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// `IORING_RECVSEND_*` and `IORING_SEND_ZC_*` bits.
    zc_flags(zc_flags: u16) |s| { s.ioprio = zc_flags | (s.ioprio & FIXED_BUF); }
}

opcode! {
    /// Sends a message without copying its data where that is possible; completions as for
    /// [`SendZc`].
    SendMsgZc = op::SENDMSG_ZC;
    new(fd: impl UseFixed, msg: *const msghdr) |s| {
        set_file(s, fd);
        s.addr = msg as u64;
        s.len = 1;
    }
    /// `IORING_RECVSEND_*` and `IORING_SEND_ZC_*` bits.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio | (s.ioprio & FIXED_BUF); }
    /// `MSG_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
    /// The registered buffer that the message's data is a part of.
    buf_index(buf_index: Option<u16>) |s| {
        match buf_index {
            Some(index) => {
                s.buf_index = index;
                s.ioprio |= FIXED_BUF;
            }
            None => {
                s.buf_index = 0;
                s.ioprio &= !FIXED_BUF;
            }
        }
    }
}

opcode! {
    /// Sends as many buffers of a group as the socket takes, in one request.
    SendBundle = op::SEND;
    new(fd: impl UseFixed, buf_group: u16) |s| {
        set_file(s, fd);
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
        s.ioprio = BUNDLE;
    }
    /// `MSG_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// Most bytes; 0 for all there are.
    len(len: u32) |s| { s.len = len; }
}
