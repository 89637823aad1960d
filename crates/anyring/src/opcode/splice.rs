//! Moving data between descriptors, and making pipes.

use super::define::{set_file, set_slot};
use crate::types::sealed::{Target, UseFixed};
use crate::types::DestinationSlot;
use anyring_uapi::{op, Sqe};
use std::os::fd::RawFd;

/// `SPLICE_F_FD_IN_FIXED`
const FD_IN_FIXED: u32 = 1 << 31;

fn set_input(s: &mut Sqe, fd: impl UseFixed) {
    match fd.into() {
        Target::Fd(fd) => s.file_index = fd as u32,
        Target::Fixed(slot) => {
            s.file_index = slot;
            s.op_flags |= FD_IN_FIXED;
        }
    }
}

opcode! {
    /// Moves data to or from a pipe, as `splice(2)`. The offset of a pipe is −1.
    Splice = op::SPLICE;
    new(
        fd_in: impl UseFixed,
        off_in: i64,
        fd_out: impl UseFixed,
        off_out: i64,
        len: u32,
    ) |s| {
        set_file(s, fd_out);
        s.off = off_out as u64;
        s.addr = off_in as u64;
        s.len = len;
        set_input(s, fd_in);
    }
    /// `SPLICE_F_*` bits.
    flags(flags: u32) |s| { s.op_flags = (s.op_flags & FD_IN_FIXED) | flags; }
}

opcode! {
    /// Copies data from pipe to pipe without consuming it, as `tee(2)`.
    Tee = op::TEE;
    new(fd_in: impl UseFixed, fd_out: impl UseFixed, len: u32) |s| {
        set_file(s, fd_out);
        s.len = len;
        set_input(s, fd_in);
    }
    /// `SPLICE_F_*` bits.
    flags(flags: u32) |s| { s.op_flags = (s.op_flags & FD_IN_FIXED) | flags; }
}

opcode! {
    /// Makes a pipe, as `pipe2(2)`: `fds` has room for its two descriptors.
    Pipe = op::PIPE;
    new(fds: *mut RawFd) |s| { s.addr = fds as u64; }
    /// `O_*` bits of `pipe2(2)`.
    flags(flags: u32) |s| { s.op_flags = flags; }
    /// Into this slot of the file table and the one after it, instead of new descriptors.
    file_index(file_index: Option<DestinationSlot>) |s| { set_slot(s, file_index); }
}
