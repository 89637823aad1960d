//! Operations that name files by path. Directories are descriptors, or `types::Fd(libc::AT_FDCWD)`.

use super::define::set_slot;
use crate::types::sealed::UseFd;
use crate::types::{statx, DestinationSlot, OpenHow};
use anyring_uapi::op;
use libc::c_char;

opcode! {
    /// Opens a file, as `openat(2)`.
    ///
    /// ```
    /// use anyring::{opcode, types};
    ///
    /// let open = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), c"/dev/null".as_ptr())
    ///     .flags(libc::O_RDONLY | libc::O_CLOEXEC)
    ///     .build();
    /// ```
    OpenAt = op::OPENAT;
    new(dirfd: impl UseFd, pathname: *const c_char) |s| {
        s.fd = dirfd.into();
        s.addr = pathname as u64;
    }
    /// Into this slot of the file table instead of a new descriptor.
    file_index(file_index: Option<DestinationSlot>) |s| { set_slot(s, file_index); }
    /// `O_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// Permission bits of a file that is created.
    mode(mode: libc::mode_t) |s| { s.len = mode; }
}

opcode! {
    /// Opens a file, as `openat2(2)`.
    OpenAt2 = op::OPENAT2;
    new(dirfd: impl UseFd, pathname: *const c_char, how: *const OpenHow) |s| {
        s.fd = dirfd.into();
        s.addr = pathname as u64;
        s.len = size_of::<OpenHow>() as u32;
        s.off = how as u64;
    }
    /// Into this slot of the file table instead of a new descriptor.
    file_index(file_index: Option<DestinationSlot>) |s| { set_slot(s, file_index); }
}

opcode! {
    /// Reads a file's attributes, as `statx(2)`.
    Statx = op::STATX;
    new(dirfd: impl UseFd, pathname: *const c_char, statxbuf: *mut statx) |s| {
        s.fd = dirfd.into();
        s.addr = pathname as u64;
        s.off = statxbuf as u64;
    }
    /// `AT_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
    /// `STATX_*` bits: what is wanted.
    mask(mask: u32) |s| { s.len = mask; }
}

opcode! {
    /// Renames a file, as `renameat2(2)`.
    RenameAt = op::RENAMEAT;
    new(
        olddirfd: impl UseFd,
        oldpath: *const c_char,
        newdirfd: impl UseFd,
        newpath: *const c_char,
    ) |s| {
        s.fd = olddirfd.into();
        s.addr = oldpath as u64;
        s.len = newdirfd.into() as u32;
        s.off = newpath as u64;
    }
    /// `RENAME_*` bits.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Removes a file or, with `AT_REMOVEDIR`, a directory, as `unlinkat(2)`.
    UnlinkAt = op::UNLINKAT;
    new(dirfd: impl UseFd, pathname: *const c_char) |s| {
        s.fd = dirfd.into();
        s.addr = pathname as u64;
    }
    /// `AT_REMOVEDIR` or 0.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}

opcode! {
    /// Makes a directory, as `mkdirat(2)`.
    MkDirAt = op::MKDIRAT;
    new(dirfd: impl UseFd, pathname: *const c_char) |s| {
        s.fd = dirfd.into();
        s.addr = pathname as u64;
    }
    /// Permission bits.
    mode(mode: libc::mode_t) |s| { s.len = mode; }
}

opcode! {
    /// Makes a symbolic link, as `symlinkat(2)`.
    SymlinkAt = op::SYMLINKAT;
    new(newdirfd: impl UseFd, target: *const c_char, linkpath: *const c_char) |s| {
        s.fd = newdirfd.into();
        s.addr = target as u64;
        s.off = linkpath as u64;
    }
}

opcode! {
    /// Makes a hard link, as `linkat(2)`.
    LinkAt = op::LINKAT;
    new(
        olddirfd: impl UseFd,
        oldpath: *const c_char,
        newdirfd: impl UseFd,
        newpath: *const c_char,
    ) |s| {
        s.fd = olddirfd.into();
        s.addr = oldpath as u64;
        s.len = newdirfd.into() as u32;
        s.off = newpath as u64;
    }
    /// `AT_*` bits.
    flags(flags: i32) |s| { s.op_flags = flags as u32; }
}
