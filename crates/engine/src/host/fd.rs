//! Descriptors: an owned one, and the calls that make, copy and close them.
//!
//! Calls that may name a ring descriptor carry [`crate::PASS_MAGIC`] as a sixth argument, which
//! Linux ignores and a front door's filter looks for.

use super::{nr, syscall};
use crate::{Errno, PASS_MAGIC};
use core::sync::atomic::{AtomicU64, Ordering};

const MAGIC: usize = PASS_MAGIC as usize;

/// A descriptor that is closed when dropped.
#[derive(Debug)]
pub struct OwnedFd(i32);

impl OwnedFd {
    /// Takes over a number just made.
    pub fn from_raw(fd: i32) -> OwnedFd {
        OwnedFd(fd)
    }
    /// The number.
    pub fn raw(&self) -> i32 {
        self.0
    }
    /// Gives the number away unclosed.
    pub fn into_raw(self) -> i32 {
        let fd = self.0;
        core::mem::forget(self);
        fd
    }
}

/// Numbers below this are tracked in [`PRIVATE`].
const TRACKED: usize = 65536;

/// Which numbers are the engine's own: a program that closes all it does not know is kept from them.
static PRIVATE: [AtomicU64; TRACKED / 64] = [const { AtomicU64::new(0) }; TRACKED / 64];

fn private_bit(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let word = PRIVATE.get(usize::try_from(fd).ok()? / 64)?;
    Some((word, 1 << (fd % 64)))
}

/// Whether a number is one of the engine's own.
pub fn is_private(fd: i32) -> bool {
    private_bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// All of the engine's own numbers are forgotten, after a fork: `f` is called with each.
pub fn take_private(mut f: impl FnMut(i32)) {
    for (i, word) in PRIVATE.iter().enumerate() {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            f((i * 64) as i32 + bits.trailing_zeros() as i32);
            bits &= bits - 1;
        }
    }
}

impl OwnedFd {
    /// Marks the number as one of the engine's own, for as long as it is owned.
    pub fn mark_private(&self) {
        if let Some((word, bit)) = private_bit(self.0) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

impl Drop for OwnedFd {
    fn drop(&mut self) {
        crate::inline::buffered::forget(self.0);
        if let Some((word, bit)) = private_bit(self.0) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
        let _ = close(self.0);
    }
}

/// `close(2)`.
pub fn close(fd: i32) -> Result<(), Errno> {
    // SAFETY: integers only; the number belongs to the caller.
    unsafe { syscall(nr::__NR_close, [fd as usize, 0, 0, 0, 0, MAGIC]) }.map(drop)
}

fn fcntl(fd: i32, cmd: u32, arg: usize) -> Result<usize, Errno> {
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_fcntl, [fd as usize, cmd as usize, arg, 0, 0, MAGIC]) }
}

/// A close-on-exec duplicate numbered `min` or above.
pub fn dup_above(fd: i32, min: i32) -> Result<OwnedFd, Errno> {
    fcntl(fd, nr::F_DUPFD_CLOEXEC, min as usize).map(|fd| OwnedFd(fd as i32))
}

/// A duplicate at the lowest free number, as a program's own would be.
pub fn dup_lowest(fd: i32, cloexec: bool) -> Result<OwnedFd, Errno> {
    let cmd = if cloexec { nr::F_DUPFD_CLOEXEC } else { nr::F_DUPFD };
    fcntl(fd, cmd, 0).map(|fd| OwnedFd(fd as i32))
}

/// `dup3(2)`.
pub fn dup3(fd: i32, to: i32, cloexec: bool) -> Result<(), Errno> {
    let flags = if cloexec { nr::O_CLOEXEC as usize } else { 0 };
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_dup3, [fd as usize, to as usize, flags, 0, 0, MAGIC]) }.map(drop)
}

/// The open file's status flags (`O_*`).
pub fn status_flags(fd: i32) -> Result<u32, Errno> {
    fcntl(fd, nr::F_GETFL, 0).map(|f| f as u32)
}

/// Sets the open file's status flags.
pub fn set_status_flags(fd: i32, flags: u32) -> Result<(), Errno> {
    fcntl(fd, nr::F_SETFL, flags as usize).map(drop)
}

/// Whether the number is open.
pub fn is_open(fd: i32) -> bool {
    fcntl(fd, nr::F_GETFD, 0).is_ok()
}

/// Sets or clears close-on-exec.
pub fn set_cloexec(fd: i32, on: bool) -> Result<(), Errno> {
    fcntl(fd, nr::F_SETFD, usize::from(on)).map(drop)
}

/// `eventfd2(2)` with a zero counter, non-blocking and close-on-exec.
pub fn eventfd() -> Result<OwnedFd, Errno> {
    let flags = nr::EFD_NONBLOCK | nr::EFD_CLOEXEC;
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_eventfd2, [0, flags as usize, 0, 0, 0, 0]) }
        .map(|fd| OwnedFd(fd as i32))
}

/// Adds one to an eventfd. A full counter is as good as signalled.
pub fn eventfd_signal(fd: i32) {
    let one = 1u64;
    // SAFETY: eight bytes are read from a local.
    let _ = unsafe { syscall(nr::__NR_write, [fd as usize, &raw const one as usize, 8, 0, 0, 0]) };
}

/// Takes an eventfd's counter (`readv`, which no filter traps).
pub fn eventfd_clear(fd: i32) {
    let mut value = 0u64;
    let iov = super::rw::Iovec { base: &raw mut value as usize, len: 8 };
    // SAFETY: eight bytes are written to a local through a local iovec.
    let _ = unsafe { syscall(nr::__NR_readv, [fd as usize, &raw const iov as usize, 1, 0, 0, 0]) };
}

/// What `fstat(2)` says that the engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Type and permissions.
    pub mode: u32,
    /// Device the file lives on.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Device the file is, for device files.
    pub rdev: u64,
}

impl Stat {
    fn is(self, kind: u32) -> bool {
        self.mode & nr::S_IFMT == kind
    }
    /// Regular file.
    pub fn is_regular(self) -> bool {
        self.is(nr::S_IFREG)
    }
    /// Directory.
    pub fn is_directory(self) -> bool {
        self.is(nr::S_IFDIR)
    }
    /// Socket.
    pub fn is_socket(self) -> bool {
        self.is(nr::S_IFSOCK)
    }
    /// Pipe or FIFO.
    pub fn is_fifo(self) -> bool {
        self.is(nr::S_IFIFO)
    }
    /// Block device.
    pub fn is_block(self) -> bool {
        self.is(nr::S_IFBLK)
    }
    /// Memory devices (null, zero, full, random): reads and writes never wait.
    pub fn is_memory_device(self) -> bool {
        self.is(nr::S_IFCHR) && (self.rdev >> 8) & 0xfff == 1
    }
}

/// `fstat(2)`, except that no server is asked for what is known of its file: it may be the caller itself.
pub fn stat(fd: i32) -> Result<Stat, Errno> {
    match statx(fd, c"", nr::AT_EMPTY_PATH) {
        Ok(st) => Ok(Stat {
            mode: st.stx_mode as u32,
            dev: device(st.stx_dev_major, st.stx_dev_minor),
            ino: st.stx_ino,
            rdev: device(st.stx_rdev_major, st.stx_rdev_minor),
        }),
        Err(Errno::BADF) => Err(Errno::BADF),
        // An old kernel, or a filter that does not know the call.
        Err(_) => plain_stat(fd),
    }
}

/// A device number as `struct stat` has it.
fn device(major: u32, minor: u32) -> u64 {
    u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12)
}

fn plain_stat(fd: i32) -> Result<Stat, Errno> {
    let mut st = core::mem::MaybeUninit::<nr::stat>::zeroed();
    // SAFETY: the kernel fills one `struct stat`.
    unsafe { syscall(nr::__NR_fstat, [fd as usize, st.as_mut_ptr() as usize, 0, 0, 0, 0]) }?;
    // SAFETY: filled by the kernel, and zeroed before: valid for integers.
    let st = unsafe { st.assume_init() };
    Ok(Stat { mode: st.st_mode, dev: st.st_dev, ino: st.st_ino, rdev: st.st_rdev })
}

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its mount; not known before Linux 5.8.
    pub id: Option<u64>,
    /// Inode number.
    pub inode: u64,
    /// Regular file, directory, symbolic link or block device.
    pub on_disk: bool,
}

/// The place of a descriptor's file, or of the current directory for AT_FDCWD. Asks no server, and never waits for one.
pub fn mount_of(fd: i32) -> Result<Place, Errno> {
    place(fd, c"", nr::AT_EMPTY_PATH)
}

/// The place of the root directory.
pub fn root() -> Result<Place, Errno> {
    place(nr::AT_FDCWD, c"/", 0)
}

fn place(dir: i32, path: &core::ffi::CStr, flags: u32) -> Result<Place, Errno> {
    let st = statx(dir, path, flags)?;
    let kind = st.stx_mode as u32 & nr::S_IFMT;
    Ok(Place {
        id: (st.stx_mask & STATX_MNT_ID != 0).then_some(st.stx_mnt_id),
        inode: st.stx_ino,
        on_disk: [nr::S_IFREG, nr::S_IFDIR, nr::S_IFLNK, nr::S_IFBLK].contains(&kind),
    })
}

/// statx(2) of what is known without asking a server.
fn statx(dir: i32, path: &core::ffi::CStr, flags: u32) -> Result<nr::statx, Errno> {
    let mut st = core::mem::MaybeUninit::<nr::statx>::zeroed();
    let (flags, mask) =
        (flags | nr::AT_STATX_DONT_SYNC, nr::STATX_TYPE | nr::STATX_INO | STATX_MNT_ID);
    let args = [
        dir as usize,
        path.as_ptr() as usize,
        flags as usize,
        mask as usize,
        st.as_mut_ptr() as usize,
        0,
    ];
    // SAFETY: the path is a C string; the kernel fills one `struct statx`.
    unsafe { syscall(nr::__NR_statx, args) }?;
    // SAFETY: filled by the kernel, and zeroed before: valid for integers.
    Ok(unsafe { st.assume_init() })
}

/// The bit of statx(2)'s mask for `stx_mnt_id`.
pub const STATX_MNT_ID: u32 = nr::STATX_MNT_ID;

/// Opens a file to read it.
pub fn open_to_read(path: &core::ffi::CStr) -> Result<OwnedFd, Errno> {
    let flags = nr::O_RDONLY | nr::O_CLOEXEC;
    let args = [nr::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: a C string.
    unsafe { syscall(nr::__NR_openat, args) }.map(|fd| OwnedFd(fd as i32))
}

/// All of a file from its start; EFBIG if it has more than `max` bytes.
pub fn read_all(fd: i32, max: usize) -> Result<Vec<u8>, Errno> {
    const CHUNK: usize = 16 * 1024;
    let mut all = Vec::new();
    loop {
        let end = all.len();
        all.resize(end + CHUNK, 0u8);
        let args = [fd as usize, all[end..].as_mut_ptr() as usize, CHUNK, end, 0, 0];
        // SAFETY: as many bytes as the vector has room for.
        let n = unsafe { syscall(nr::__NR_pread64, args) }?;
        all.truncate(end + n);
        match n {
            0 => return Ok(all),
            _ if all.len() > max => return Err(Errno::FBIG),
            _ => {}
        }
    }
}

/// Whether RLIMIT_FSIZE is set: to exceed it raises a signal in the calling thread.
pub fn size_is_limited() -> bool {
    !prlimit(nr::RLIMIT_FSIZE, None).is_ok_and(|[soft, _]| soft == u64::MAX)
}

/// Soft and hard RLIMIT_NOFILE.
pub fn nofile_limit() -> Result<(u64, u64), Errno> {
    prlimit(nr::RLIMIT_NOFILE, None).map(|[soft, hard]| (soft, hard))
}

/// Sets RLIMIT_NOFILE.
pub fn set_nofile_limit(soft: u64, hard: u64) -> Result<(), Errno> {
    prlimit(nr::RLIMIT_NOFILE, Some([soft, hard])).map(drop)
}

fn prlimit(which: u32, new: Option<[u64; 2]>) -> Result<[u64; 2], Errno> {
    let mut old = [0u64; 2];
    let new = new.as_ref().map_or(0, |n| n.as_ptr() as usize);
    // SAFETY: both structures are locals of the right size.
    unsafe {
        syscall(nr::__NR_prlimit64, [0, which as usize, new, old.as_mut_ptr() as usize, 0, 0])
    }?;
    Ok(old)
}

/// Whether two descriptors are the same open file. Asks `fcntl(2)`, which knows since Linux 6.10, else `kcmp(2)`; falls
/// back to the numbers where that is refused.
pub fn same_file(a: i32, b: i32) -> bool {
    if a == b {
        return true;
    }
    const F_DUPFD_QUERY: u32 = 1027;
    if let Ok(answer) = fcntl(a, F_DUPFD_QUERY, b as usize) {
        return answer == 1;
    }
    let pid = super::thread::getpid() as usize;
    const KCMP_FILE: usize = 0;
    // SAFETY: integer arguments only.
    let order = unsafe { syscall(nr::__NR_kcmp, [pid, pid, KCMP_FILE, a as usize, b as usize, 0]) };
    order == Ok(0)
}

/// Whether a descriptor is an eventfd; EBADF if it is not open.
pub fn is_eventfd(fd: i32) -> Result<bool, Errno> {
    if !is_open(fd) {
        return Err(Errno::BADF);
    }
    let path = format!("/proc/self/fd/{fd}\0");
    let mut buf = [0u8; 64];
    let args =
        [nr::AT_FDCWD as usize, path.as_ptr() as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0];
    // SAFETY: a NUL-terminated local path, and a local buffer of the length given.
    match unsafe { syscall(nr::__NR_readlinkat, args) } {
        Ok(n) => Ok(&buf[..n] == b"anon_inode:[eventfd]"),
        // Without /proc the program is believed.
        Err(_) => Ok(true),
    }
}

/// Whether a descriptor has a file position.
pub fn is_seekable(fd: i32) -> bool {
    const CUR: usize = 1;
    // SAFETY: integer arguments only; a relative seek by 0 moves nothing.
    unsafe { syscall(nr::__NR_lseek, [fd as usize, 0, CUR, 0, 0, 0]) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_look_at_a_file_agree() {
        for path in [c"/", c"/dev/null", c"/proc/self/exe"] {
            let file = open_to_read(path).unwrap();
            assert_eq!(stat(file.raw()), plain_stat(file.raw()), "{path:?}");
        }
        assert_eq!(stat(-1), Err(Errno::BADF));
    }
}
