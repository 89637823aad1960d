//! Extended attributes.

use super::define::set_file;
use crate::types::sealed::UseFixed;
use anyring_uapi::op;
use libc::{c_char, c_void};

opcode! {
    /// Reads an extended attribute of the file at a path, as `getxattr(2)`.
    GetXattr = op::GETXATTR;
    new(name: *const c_char, value: *mut c_void, path: *const c_char, len: u32) |s| {
        s.addr = name as u64;
        s.off = value as u64;
        s.addr3 = path as u64;
        s.len = len;
    }
}

opcode! {
    /// Sets an extended attribute of the file at a path, as `setxattr(2)`.
    SetXattr = op::SETXATTR;
    new(name: *const c_char, value: *const c_void, path: *const c_char, len: u32) |s| {
        s.addr = name as u64;
        s.off = value as u64;
        s.addr3 = path as u64;
        s.len = len;
    }
    /// `XATTR_CREATE`, `XATTR_REPLACE` or 0.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Reads an extended attribute of an open file, as `fgetxattr(2)`.
    FGetXattr = op::FGETXATTR;
    new(fd: impl UseFixed, name: *const c_char, value: *mut c_void, len: u32) |s| {
        set_file(s, fd);
        s.addr = name as u64;
        s.off = value as u64;
        s.len = len;
    }
}

opcode! {
    /// Sets an extended attribute of an open file, as `fsetxattr(2)`.
    FSetXattr = op::FSETXATTR;
    new(fd: impl UseFixed, name: *const c_char, value: *const c_void, len: u32) |s| {
        set_file(s, fd);
        s.addr = name as u64;
        s.off = value as u64;
        s.len = len;
    }
    /// `XATTR_CREATE`, `XATTR_REPLACE` or 0.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}
