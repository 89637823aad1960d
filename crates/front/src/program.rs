//! Judges a program file before it is executed: can the preload library go with it?
//!
//! The dynamic linker of the GNU C library loads the library into dynamic x86-64 programs that
//! do not gain privileges by being executed. Everything else runs without it. Reads files with
//! plain system calls into buffers on the stack, since this runs between vfork and exec.

use anyring_engine::Errno;
use core::ffi::{c_int, CStr};

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A dynamic x86-64 program whose linker reads LD_PRELOAD.
    Covered,
    /// A static x86-64 program.
    Static,
    /// An x86-64 program of another C library.
    OtherLibc,
    /// A program of another architecture or word size.
    OtherArch,
    /// Not recognised: the kernel may still know what to do with it.
    Unknown,
}

/// The verdict on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of the program that will run: of the interpreter, for a script.
    pub kind: Kind,
    /// Executing it changes ids or capabilities, so that the dynamic linker ignores LD_PRELOAD.
    pub secure: bool,
}

impl Verdict {
    /// Whether the preload library can go with it.
    pub fn covered(self) -> bool {
        !self.secure && matches!(self.kind, Kind::Covered | Kind::Unknown)
    }
}

/// The kernel follows this many interpreters.
const SCRIPTS_MAX: usize = 5;
/// The kernel reads this much of a file to find its interpreter.
const HEAD: usize = 256;
/// Program headers looked at; more than any linker makes.
const PHDRS_MAX: u16 = 64;

pub(crate) const EHDR: usize = 64;
pub(crate) const PHDR: usize = 56;
pub(crate) const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const EM_X86_64: u16 = 62;

/// A descriptor that is closed at the end.
pub struct Fd(c_int);

impl Fd {
    /// Opens `path` below `dir` for reading.
    pub fn open_at(dir: c_int, path: &CStr) -> Result<Fd, Errno> {
        // SAFETY: `path` is a C string.
        let fd = unsafe { libc::openat(dir, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(last_errno());
        }
        Ok(Fd(fd))
    }
    /// The number.
    pub fn number(&self) -> c_int {
        self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}

fn last_errno() -> Errno {
    // SAFETY: always a valid pointer.
    Errno(unsafe { *libc::__errno_location() })
}

/// Reads at `offset`; fewer bytes than asked for only at the end of the file.
pub(crate) fn read_at(fd: c_int, buf: &mut [u8], offset: u64) -> usize {
    let mut done = 0;
    while done < buf.len() {
        let rest = &mut buf[done..];
        let at = (offset + done as u64) as libc::off_t;
        // SAFETY: `rest` is writable for its length.
        let n = unsafe { libc::pread(fd, rest.as_mut_ptr().cast(), rest.len(), at) };
        match n {
            1.. => done += n as usize,
            -1 if last_errno() == Errno::INTR => {}
            _ => break,
        }
    }
    done
}

/// The little-endian number of `N` bytes at `at`.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut n = 0;
    for i in (0..N).rev() {
        n = n << 8 | u64::from(bytes.get(at + i).copied().unwrap_or(0));
    }
    n
}

/// Judges the file `path` below `dir` as execveat(2) would find it.
pub fn judge_at(dir: c_int, path: &CStr) -> Result<Verdict, Errno> {
    Fd::open_at(dir, path).map(|fd| judge(fd.number()))
}

/// Judges an open file.
pub fn judge(fd: c_int) -> Verdict {
    let mut head = [0; HEAD];
    let mut interpreter: Option<Fd> = None;
    for _ in 0..SCRIPTS_MAX {
        let file = interpreter.as_ref().map_or(fd, Fd::number);
        let len = read_at(file, &mut head, 0);
        let Some(path) = interpreter_of(&mut head[..len]) else {
            let kind = elf_kind(file, &head[..len]);
            return Verdict { kind, secure: gains_privileges(file) };
        };
        match Fd::open_at(libc::AT_FDCWD, path) {
            Ok(next) => interpreter = Some(next),
            Err(_) => break,
        }
    }
    Verdict { kind: Kind::Unknown, secure: false }
}

/// The interpreter a script names in its first line.
fn interpreter_of(head: &mut [u8]) -> Option<&CStr> {
    if !head.starts_with(b"#!") {
        return None;
    }
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let start = 2 + head[2..].iter().position(|b| !blank(b))?;
    let stop = |b: &u8| blank(b) || matches!(b, b'\n' | b'\r' | 0);
    let end = start + head[start..].iter().position(stop)?;
    head[end] = 0;
    if start == end {
        return None;
    }
    CStr::from_bytes_with_nul(&head[start..=end]).ok()
}

fn elf_kind(fd: c_int, head: &[u8]) -> Kind {
    const CLASS_64_LITTLE: [u8; 2] = [2, 1];
    if head.len() < EHDR || !head.starts_with(b"\x7fELF") {
        return Kind::Unknown;
    }
    if head[4..6] != CLASS_64_LITTLE || number::<2>(head, 18) != u64::from(EM_X86_64) {
        return Kind::OtherArch;
    }
    let mut kind = Kind::Static;
    program_headers(fd, head, |phdr| {
        if number::<4>(phdr, 0) == u64::from(PT_INTERP) {
            kind = linker_kind(fd, number::<8>(phdr, 8), number::<8>(phdr, 32));
        }
    });
    kind
}

/// Calls `each` with every program header of the file whose start is `head`.
pub(crate) fn program_headers(fd: c_int, head: &[u8], mut each: impl FnMut(&[u8; PHDR])) {
    let table = number::<8>(head, 32);
    let (size, count) = (number::<2>(head, 54), number::<2>(head, 56) as u16);
    let mut phdr = [0; PHDR];
    for i in 0..count.min(PHDRS_MAX) {
        let at = table.wrapping_add(u64::from(i) * size);
        if read_at(fd, &mut phdr, at) == PHDR {
            each(&phdr);
        }
    }
}

/// Whether the dynamic linker is the GNU C library's: only that one can load our library.
fn linker_kind(fd: c_int, offset: u64, len: u64) -> Kind {
    let mut path = [0; HEAD];
    let len = read_at(fd, &mut path[..HEAD.min(len as usize)], offset);
    let path = path[..len].split(|&b| b == 0).next().unwrap_or(&[]);
    if path.ends_with(b"/ld-linux-x86-64.so.2") {
        Kind::Covered
    } else {
        Kind::OtherLibc
    }
}

/// Whether executing this file makes the process "secure-exec" (AT_SECURE).
fn gains_privileges(fd: c_int) -> bool {
    // SAFETY: these calls take no pointers.
    let (uid, euid, gid, egid) =
        unsafe { (libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()) };
    if uid != euid || gid != egid {
        return true;
    }
    if privileges_are_off(fd) {
        return false;
    }
    // SAFETY: all zeroes is a valid `stat`.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `stat` is writable.
    if unsafe { libc::fstat(fd, &mut stat) } != 0 {
        return false;
    }
    let set_uid = stat.st_mode & libc::S_ISUID != 0 && stat.st_uid != euid;
    let set_gid_bits = libc::S_ISGID | libc::S_IXGRP;
    let set_gid = stat.st_mode & set_gid_bits == set_gid_bits && stat.st_gid != egid;
    // SAFETY: the name is a C string, and no buffer is given.
    let capabilities = euid != 0
        && unsafe {
            libc::fgetxattr(fd, c"security.capability".as_ptr(), core::ptr::null_mut(), 0) > 0
        };
    set_uid || set_gid || capabilities
}

/// With no_new_privs, or from a nosuid file system, the bits have no effect.
fn privileges_are_off(fd: c_int) -> bool {
    // SAFETY: this prctl takes no pointer.
    if unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 1 {
        return true;
    }
    // SAFETY: all zeroes is a valid `statvfs`.
    let mut fs: libc::statvfs = unsafe { core::mem::zeroed() };
    // SAFETY: `fs` is writable.
    let known = unsafe { libc::fstatvfs(fd, &mut fs) } == 0;
    known && fs.f_flag & libc::ST_NOSUID != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    struct Temp(std::path::PathBuf);
    impl Temp {
        fn new(name: &str, bytes: &[u8]) -> Temp {
            let path = std::env::temp_dir().join(format!("anyring-{}-{name}", std::process::id()));
            std::fs::write(&path, bytes).unwrap();
            Temp(path)
        }
        fn judge(&self) -> Verdict {
            let path = CString::new(self.0.to_str().unwrap()).unwrap();
            judge_at(libc::AT_FDCWD, &path).unwrap()
        }
    }
    impl Drop for Temp {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    #[test]
    fn the_shell_and_its_scripts_are_covered() {
        let shell = judge_at(libc::AT_FDCWD, c"/bin/sh").unwrap();
        assert_eq!(shell, Verdict { kind: Kind::Covered, secure: false });
        assert_eq!(Temp::new("script", b"#!/bin/sh\nexit 3\n").judge(), shell);
        assert_eq!(Temp::new("script-arg", b"#! \t/bin/sh -e\n").judge(), shell);
    }

    #[test]
    fn a_script_of_a_script_is_followed_and_a_loop_ends() {
        let inner = Temp::new("inner", b"#!/bin/sh\n");
        let line = format!("#!{}\n", inner.0.display());
        assert_eq!(Temp::new("outer", line.as_bytes()).judge().kind, Kind::Covered);
        let path = std::env::temp_dir().join(format!("anyring-{}-loop", std::process::id()));
        let line = format!("#!{}\n", path.display());
        assert_eq!(Temp::new("loop", line.as_bytes()).judge().kind, Kind::Unknown);
    }

    #[test]
    fn other_files() {
        assert_eq!(Temp::new("text", b"hello").judge().kind, Kind::Unknown);
        assert_eq!(Temp::new("empty", b"").judge().kind, Kind::Unknown);
        assert_eq!(Temp::new("no-interp", b"#!\n").judge().kind, Kind::Unknown);
        let mut elf32 = [0u8; 64];
        elf32[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        elf32[18] = 3;
        assert_eq!(Temp::new("elf32", &elf32).judge().kind, Kind::OtherArch);
        let mut arm = elf32;
        arm[4] = 2;
        arm[18] = 183;
        assert_eq!(Temp::new("arm", &arm).judge().kind, Kind::OtherArch);
        let mut bare = arm;
        bare[18] = 62;
        assert_eq!(Temp::new("bare", &bare).judge().kind, Kind::Static);
    }

    #[test]
    fn a_missing_file_says_so() {
        assert_eq!(judge_at(libc::AT_FDCWD, c"/nonexistent"), Err(Errno::NOENT));
    }
}
