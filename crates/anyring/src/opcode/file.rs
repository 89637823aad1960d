//! Operations on an open file, and on the tables of registered files.

use super::define::{set_file, NO_FILE};
use crate::types::sealed::{Target, UseFixed};
use crate::types::{Fixed, FsyncFlags};
use anyring_uapi::{op, sqe};
use std::os::fd::RawFd;

opcode! {
    /// Writes a file's data to its device, as `fsync(2)`; a part of the file if
    /// [`offset`](Self::offset) and [`len`](Self::len) name one.
    ///
    /// It is not ordered after writes that are in flight: link it to them, or wait for them.
    Fsync = op::FSYNC;
    new(fd: impl UseFixed) |s| { set_file(s, fd); }
    /// Where the part starts.
    offset(offset: u64) |s| { s.off = offset; }
    /// The part's length in bytes; 0 is everything from the offset on.
    len(len: u32) |s| { s.len = len; }
    /// Whether metadata that reading does not need may stay behind.
    flags(flags: FsyncFlags) |s| { s.op_flags = flags.bits(); }
}

opcode! {
    /// Writes a part of a file to its device, as `sync_file_range(2)`.
    SyncFileRange = op::SYNC_FILE_RANGE;
    new(fd: impl UseFixed, len: u32) |s| {
        set_file(s, fd);
        s.len = len;
    }
    /// Where the part starts.
    offset(offset: u64) |s| { s.off = offset; }
    /// `SYNC_FILE_RANGE_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Allocates or frees space of a file, as `fallocate(2)`.
    Fallocate = op::FALLOCATE;
    new(fd: impl UseFixed, len: u64) |s| {
        set_file(s, fd);
        s.addr = len;
    }
    /// Where the space starts.
    offset(offset: u64) |s| { s.off = offset; }
    /// `FALLOC_FL_*` bits.
    mode(mode: i32) |s| { s.len = mode as u32; }
}

opcode! {
    /// Announces how a file will be read, as `posix_fadvise(2)`.
    Fadvise = op::FADVISE;
    new(fd: impl UseFixed, len: libc::off_t, advice: i32) |s| {
        set_file(s, fd);
        s.len = len as u32;
        s.op_flags = advice as u32;
    }
    /// Where the announced part starts.
    offset(offset: u64) |s| { s.off = offset; }
}

opcode! {
    /// Announces how memory will be used, as `madvise(2)`.
    Madvise = op::MADVISE;
    new(addr: *const libc::c_void, len: libc::off_t, advice: i32) |s| {
        s.fd = NO_FILE;
        s.addr = addr as u64;
        s.len = len as u32;
        s.op_flags = advice as u32;
    }
}

opcode! {
    /// Sets a file's length, as `ftruncate(2)`.
    Ftruncate = op::FTRUNCATE;
    new(fd: impl UseFixed, len: u64) |s| {
        set_file(s, fd);
        s.off = len;
    }
}

opcode! {
    /// Closes a descriptor, as `close(2)`, or empties a slot of the file table
    /// ([`Fixed`](crate::types::Fixed)).
    Close = op::CLOSE;
    new(fd: impl UseFixed) |s| {
        match fd.into() {
            Target::Fd(fd) => s.fd = fd,
            Target::Fixed(slot) => s.file_index = slot.wrapping_add(1),
        }
    }
}

opcode! {
    /// Changes slots of the file table, as
    /// [`Submitter::register_files_update`](crate::Submitter::register_files_update) does at once.
    FilesUpdate = op::FILES_UPDATE;
    new(fds: *const RawFd, len: u32) |s| {
        s.fd = NO_FILE;
        s.addr = fds as u64;
        s.len = len;
    }
    /// The first slot.
    offset(offset: i32) |s| { s.off = offset as u64; }
}

opcode! {
    /// Makes a descriptor of the process from a slot of the file table.
    FixedFdInstall = op::FIXED_FD_INSTALL;
    new(fd: Fixed, file_flags: u32) |s| {
        s.fd = fd.0 as i32;
        s.flags = sqe::FIXED_FILE;
        s.op_flags = file_flags;
    }
}
