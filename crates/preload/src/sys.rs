//! System calls without libc: they touch neither errno nor any other thread-local storage, so
//! they may be made in a signal handler, on an engine thread and between fork and exec.

use anyring_engine::PASS_MAGIC;
use core::arch::asm;

/// Makes a system call; a negative error number is returned as it is.
///
/// # Safety
/// As the call demands of its arguments.
pub unsafe fn call6(nr: i64, a: [usize; 6]) -> isize {
    let ret;
    // SAFETY: the kernel changes rax, rcx and r11 only; memory as the caller vouches for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr as isize => ret,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    ret
}

/// As [`call6`], with a sixth argument that makes the filter let a call on a ring descriptor pass.
///
/// # Safety
/// As [`call6`].
pub unsafe fn pass(nr: i64, a: [usize; 5]) -> isize {
    // SAFETY: the caller's.
    unsafe { call6(nr, [a[0], a[1], a[2], a[3], a[4], PASS_MAGIC as usize]) }
}

/// `getpid(2)`
pub fn getpid() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { call6(libc::SYS_getpid, [0; 6]) as i32 }
}

/// `gettid(2)`
pub fn gettid() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { call6(libc::SYS_gettid, [0; 6]) as i32 }
}

/// The bit of a signal in a kernel signal set.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// SIGSYS must never be in a mask: a trap kills a thread that blocks it.
pub const SIGSYS_BIT: u64 = bit(libc::SIGSYS);

/// Replaces the thread's signal mask and returns the old one.
pub fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    let how = libc::SIG_SETMASK as usize;
    let (new, old_at) = (&raw const mask as usize, &raw mut old as usize);
    // SAFETY: both sets live across the call and are 8 bytes.
    unsafe { call6(libc::SYS_rt_sigprocmask, [how, new, old_at, 8, 0, 0]) };
    old
}

/// Keeps the program's signal handlers out of the engine while it lives. SIGSYS stays
/// deliverable, see [`crate::trap`].
pub struct SignalsOff {
    /// The program's mask.
    pub mask: u64,
}

impl SignalsOff {
    /// Blocks all signals but SIGSYS.
    pub fn new() -> SignalsOff {
        SignalsOff { mask: set_mask(!SIGSYS_BIT) & !SIGSYS_BIT }
    }
}

impl Drop for SignalsOff {
    fn drop(&mut self) {
        set_mask(self.mask);
    }
}

/// Anonymous private memory; 0 if there is none.
pub fn map(len: usize) -> usize {
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let args = [0, len, prot as usize, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping, of which the kernel chooses the place.
    let at = unsafe { call6(libc::SYS_mmap, args) };
    if at < 0 {
        0
    } else {
        at as usize
    }
}

/// Undoes [`map`].
///
/// # Safety
/// `at..at + len` was mapped by [`map`] and is not used any more.
pub unsafe fn unmap(at: usize, len: usize) {
    // SAFETY: the caller's.
    unsafe { call6(libc::SYS_munmap, [at, len, 0, 0, 0, 0]) };
}

/// A page that is full of zeroes in a forked child; null if there is no memory.
pub fn map_wiped_on_fork(len: usize) -> *mut u8 {
    let at = map(len);
    if at != 0 {
        // SAFETY: our own new mapping. Kernels before 4.14 refuse; the fork handler wipes as well.
        unsafe { call6(libc::SYS_madvise, [at, len, libc::MADV_WIPEONFORK as usize, 0, 0, 0]) };
    }
    at as *mut u8
}

/// Sets the C library's errno.
pub fn set_errno(errno: i32) {
    // SAFETY: always a valid pointer.
    unsafe { *libc::__errno_location() = errno };
}

/// Turns a raw result into the C library's convention.
pub fn to_libc(ret: isize) -> isize {
    if (-4095..0).contains(&ret) {
        set_errno(-ret as i32);
        -1
    } else {
        ret
    }
}

/// Writes all of `bytes` with one call.
pub fn write(fd: i32, bytes: &[u8]) -> isize {
    // SAFETY: `bytes` is readable for its length.
    unsafe { call6(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) }
}

/// One line on standard error, in one write: `anyring: ` and the parts.
pub fn complain(parts: &[&[u8]]) {
    let mut line = [0u8; 1024];
    let mut used = 0;
    let parts = core::iter::once(&b"anyring: "[..]).chain(parts.iter().copied());
    for byte in parts.flatten() {
        if used < line.len() - 1 {
            line[used] = *byte;
            used += 1;
        }
    }
    line[used] = b'\n';
    write(2, &line[..=used]);
}

/// One `process_vm_readv` or `process_vm_writev` on ourselves: a bad address of the program is an
/// error, not a fault.
fn copy(nr: i64, local: usize, remote: usize, len: usize) -> Result<(), isize> {
    let (local, remote) = ([local, len], [remote, len]);
    let args = [getpid() as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // SAFETY: the local side is a value of ours, of `len` bytes.
    match unsafe { call6(nr, args) } {
        n if n == len as isize => Ok(()),
        _ => Err(-(libc::EFAULT as isize)),
    }
}

/// Reads a plain value at an address of the program's.
pub fn fetch<T: Copy>(at: usize, value: &mut T) -> Result<(), isize> {
    copy(libc::SYS_process_vm_readv, &raw mut *value as usize, at, size_of::<T>())
}

/// Writes a plain value to an address of the program's.
pub fn store<T: Copy>(at: usize, value: &T) -> Result<(), isize> {
    copy(libc::SYS_process_vm_writev, &raw const *value as usize, at, size_of::<T>())
}
