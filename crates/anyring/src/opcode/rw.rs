//! Reads and writes.

use super::define::set_file;
use crate::types::sealed::UseFixed;
use anyring_uapi::{op, sqe};

opcode! {
    /// Vectored read, as `preadv2(2)`.
    Readv = op::READV;
    new(fd: impl UseFixed, iovec: *const libc::iovec, len: u32) |s| {
        set_file(s, fd);
        s.addr = iovec as u64;
        s.len = len;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `preadv2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The group to take a buffer from, with [`Flags::BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT).
    buf_group(buf_group: u16) |s| { s.buf_index = buf_group; }
}

opcode! {
    /// Vectored write, as `pwritev2(2)`.
    Writev = op::WRITEV;
    new(fd: impl UseFixed, iovec: *const libc::iovec, len: u32) |s| {
        set_file(s, fd);
        s.addr = iovec as u64;
        s.len = len;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `pwritev2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The write stream of the device; 0 for none.
    write_stream(write_stream: u8) |s| { s.file_index = write_stream as u32; }
}

opcode! {
    /// Reads into a part of a registered buffer.
    ///
    /// See [`Submitter::register_buffers`](crate::Submitter::register_buffers).
    ReadFixed = op::READ_FIXED;
    new(fd: impl UseFixed, buf: *mut u8, len: u32, buf_index: u16) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
        s.buf_index = buf_index;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `preadv2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
}

opcode! {
    /// Writes from a part of a registered buffer.
    ///
    /// See [`Submitter::register_buffers`](crate::Submitter::register_buffers).
    WriteFixed = op::WRITE_FIXED;
    new(fd: impl UseFixed, buf: *const u8, len: u32, buf_index: u16) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
        s.buf_index = buf_index;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `pwritev2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The write stream of the device; 0 for none.
    write_stream(write_stream: u8) |s| { s.file_index = write_stream as u32; }
}

opcode! {
    /// Vectored read into parts of a registered buffer, as `preadv2(2)`.
    ReadvFixed = op::READV_FIXED;
    new(fd: impl UseFixed, iovec: *const libc::iovec, len: u32, buf_index: u16) |s| {
        set_file(s, fd);
        s.addr = iovec as u64;
        s.len = len;
        s.buf_index = buf_index;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `preadv2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
}

opcode! {
    /// Vectored write from parts of a registered buffer, as `pwritev2(2)`.
    WritevFixed = op::WRITEV_FIXED;
    new(fd: impl UseFixed, iovec: *const libc::iovec, len: u32, buf_index: u16) |s| {
        set_file(s, fd);
        s.addr = iovec as u64;
        s.len = len;
        s.buf_index = buf_index;
    }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// Where in the file; `u64::MAX` uses and moves the file position.
    offset(offset: u64) |s| { s.off = offset; }
    /// `RWF_*` bits of `pwritev2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The write stream of the device; 0 for none.
    write_stream(write_stream: u8) |s| { s.file_index = write_stream as u32; }
}

opcode! {
    /// Reads into one buffer, as `pread(2)`.
    Read = op::READ;
    new(fd: impl UseFixed, buf: *mut u8, len: u32) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
    }
    /// Where in the file; `u64::MAX` uses and moves the file position. 0 for what cannot seek.
    offset(offset: u64) |s| { s.off = offset; }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `RWF_*` bits of `preadv2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The group to take a buffer from, with [`Flags::BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT).
    buf_group(buf_group: u16) |s| { s.buf_index = buf_group; }
}

opcode! {
    /// Writes one buffer, as `pwrite(2)`.
    Write = op::WRITE;
    new(fd: impl UseFixed, buf: *const u8, len: u32) |s| {
        set_file(s, fd);
        s.addr = buf as u64;
        s.len = len;
    }
    /// Where in the file; `u64::MAX` uses and moves the file position. 0 for what cannot seek.
    offset(offset: u64) |s| { s.off = offset; }
    /// I/O priority, as `ioprio_set(2)` takes it.
    ioprio(ioprio: u16) |s| { s.ioprio = ioprio; }
    /// `RWF_*` bits of `pwritev2(2)`.
    rw_flags(rw_flags: i32) |s| { s.op_flags = rw_flags as u32; }
    /// The write stream of the device; 0 for none.
    write_stream(write_stream: u8) |s| { s.file_index = write_stream as u32; }
}

opcode! {
    /// Reads again and again, each time into a buffer of a group, as long as buffers last.
    ///
    /// Every completion but the last has [`more`](crate::cqueue::more) set.
    ReadMulti = op::READ_MULTISHOT;
    new(fd: impl UseFixed, len: u32, buf_group: u16) |s| {
        set_file(s, fd);
        s.len = len;
        s.buf_index = buf_group;
        s.flags |= sqe::BUFFER_SELECT;
    }
    /// Where in the file.
    offset(offset: u64) |s| { s.off = offset; }
}
