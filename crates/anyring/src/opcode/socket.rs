//! Sockets: making, connecting and configuring them.

use super::define::{set_file, set_slot};
use crate::types::sealed::UseFixed;
use crate::types::DestinationSlot;
use anyring_uapi::{op, Sqe};
use libc::{c_void, sockaddr, socklen_t};

/// `IORING_ACCEPT_MULTISHOT`
const ACCEPT_MULTISHOT: u16 = 1;
/// `SOCKET_URING_OP_GETSOCKOPT`
const CMD_GETSOCKOPT: u64 = 2;
/// `SOCKET_URING_OP_SETSOCKOPT`
const CMD_SETSOCKOPT: u64 = 3;

opcode! {
    /// Makes a socket, as `socket(2)`.
    Socket = op::SOCKET;
    new(domain: i32, socket_type: i32, protocol: i32) |s| {
        s.fd = domain;
        s.off = socket_type as u64;
        s.len = protocol as u32;
    }
    /// Into this slot of the file table instead of a new descriptor.
    file_index(file_index: Option<DestinationSlot>) |s| { set_slot(s, file_index); }
    /// None are defined.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Gives a socket its address, as `bind(2)`.
    Bind = op::BIND;
    new(fd: impl UseFixed, addr: *const sockaddr, addrlen: socklen_t) |s| {
        set_file(s, fd);
        s.addr = addr as u64;
        s.off = addrlen as u64;
    }
}

opcode! {
    /// Lets a socket take connections, as `listen(2)`.
    Listen = op::LISTEN;
    new(fd: impl UseFixed, backlog: i32) |s| {
        set_file(s, fd);
        s.len = backlog as u32;
    }
}

opcode! {
    /// Takes one connection, as `accept4(2)`.
    Accept = op::ACCEPT;
    new(fd: impl UseFixed, addr: *mut sockaddr, addrlen: *mut socklen_t) |s| {
        set_file(s, fd);
        s.addr = addr as u64;
        s.off = addrlen as u64;
    }
    /// Into this slot of the file table instead of a new descriptor.
    file_index(file_index: Option<DestinationSlot>) |s| { set_slot(s, file_index); }
    /// `SOCK_NONBLOCK`, `SOCK_CLOEXEC`.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Takes connection after connection, with a completion for each; every completion but the
    /// last has [`more`](crate::cqueue::more) set.
    AcceptMulti = op::ACCEPT;
    new(fd: impl UseFixed) |s| {
        set_file(s, fd);
        s.ioprio = ACCEPT_MULTISHOT;
    }
    /// Into free slots of the file table instead of new descriptors.
    allocate_file_index(allocate_file_index: bool) |s| {
        s.file_index = if allocate_file_index { anyring_uapi::sqe::FILE_INDEX_ALLOC } else { 0 };
    }
    /// `SOCK_NONBLOCK`, `SOCK_CLOEXEC`.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Connects a socket, as `connect(2)`.
    Connect = op::CONNECT;
    new(fd: impl UseFixed, addr: *const sockaddr, addrlen: socklen_t) |s| {
        set_file(s, fd);
        s.addr = addr as u64;
        s.off = addrlen as u64;
    }
}

opcode! {
    /// Ends one or both directions of a connection, as `shutdown(2)`.
    Shutdown = op::SHUTDOWN;
    new(fd: impl UseFixed, how: i32) |s| {
        set_file(s, fd);
        s.len = how as u32;
    }
}

fn set_option(s: &mut Sqe, cmd: u64, level: u32, optname: u32, optval: u64, optlen: u32) {
    s.off = cmd;
    s.addr = u64::from(level) | u64::from(optname) << 32;
    s.file_index = optlen;
    s.addr3 = optval;
}

opcode! {
    /// Sets a socket option, as `setsockopt(2)`.
    SetSockOpt = op::URING_CMD;
    new(
        fd: impl UseFixed,
        level: u32,
        optname: u32,
        optval: *const c_void,
        optlen: u32,
    ) |s| {
        set_file(s, fd);
        set_option(s, CMD_SETSOCKOPT, level, optname, optval as u64, optlen);
    }
    /// Flags of the command.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Reads a socket option of the level `SOL_SOCKET`, as `getsockopt(2)`; the result is the
    /// value's length.
    GetSockOpt = op::URING_CMD;
    new(
        fd: impl UseFixed,
        level: u32,
        optname: u32,
        optval: *mut c_void,
        optlen: u32,
    ) |s| {
        set_file(s, fd);
        set_option(s, CMD_GETSOCKOPT, level, optname, optval as u64, optlen);
    }
    /// Flags of the command.
    flags(flags: u32) |s| { s.op_flags = flags; }
}
