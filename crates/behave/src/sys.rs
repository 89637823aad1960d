//! The three io_uring system calls without a wrapper in between, and the few host calls
//! that scenarios make. Results are the kernel's own: a negative number is -errno.
//!
//! Two doors: the `syscall` instruction (as liburing inlines it), or libc's `syscall()`
//! when `BEHAVE_SYSCALL=libc`, since an interposed libc is another way into an engine.

use std::sync::OnceLock;

/// Result of a system call: negative values are -errno.
pub type Ret = i64;

/// Whether the libc door was asked for.
fn by_libc() -> bool {
    static DOOR: OnceLock<bool> = OnceLock::new();
    *DOOR.get_or_init(|| std::env::var_os("BEHAVE_SYSCALL").is_some_and(|v| v == "libc"))
}

/// A raw system call with six arguments.
///
/// # Safety
/// The arguments must be what the call `nr` allows; pointers that the host will write
/// through must be owned by the caller.
pub unsafe fn syscall(nr: i64, a: [usize; 6]) -> Ret {
    if by_libc() || cfg!(not(target_arch = "x86_64")) {
        // SAFETY: forwarded, see the function's contract.
        let r = unsafe { libc::syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]) };
        return if r == -1 { -i64::from(errno()) } else { r };
    }
    // SAFETY: forwarded, see the function's contract.
    unsafe { inline_syscall(nr, a) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn inline_syscall(nr: i64, a: [usize; 6]) -> Ret {
    let ret: i64;
    // SAFETY: the instruction clobbers rcx and r11 only; memory is assumed clobbered.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") nr => ret,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    ret
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn inline_syscall(_nr: i64, _a: [usize; 6]) -> Ret {
    unreachable!("the libc door is the only one here")
}

/// The thread's errno.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Turns libc's -1 into -errno.
pub fn ret(r: impl Into<i64>) -> Ret {
    let r = r.into();
    if r == -1 {
        -i64::from(errno())
    } else {
        r
    }
}

/// `io_uring_setup(2)`; `params` is any address.
pub fn setup(entries: u32, params: usize) -> Ret {
    // SAFETY: the kernel checks the address; scenarios pass leaked memory or bad addresses.
    unsafe { syscall(anyring_uapi::NR_SETUP, [entries as usize, params, 0, 0, 0, 0]) }
}

/// `io_uring_enter(2)`.
pub fn enter(
    fd: i32,
    to_submit: u32,
    min_complete: u32,
    flags: u32,
    arg: usize,
    size: usize,
) -> Ret {
    let a = [
        fd as isize as usize,
        to_submit as usize,
        min_complete as usize,
        flags as usize,
        arg,
        size,
    ];
    // SAFETY: the kernel checks the addresses; scenarios pass leaked memory or bad addresses.
    unsafe { syscall(anyring_uapi::NR_ENTER, a) }
}

/// `io_uring_register(2)`.
pub fn register(fd: i32, op: u32, arg: usize, nr: u32) -> Ret {
    let a = [fd as isize as usize, op as usize, arg, nr as usize, 0, 0];
    // SAFETY: the kernel checks the addresses; scenarios pass leaked memory or bad addresses.
    unsafe { syscall(anyring_uapi::NR_REGISTER, a) }
}

/// A fresh anonymous or file mapping; -errno on failure.
pub fn mmap(fd: i32, len: usize, prot: i32, flags: i32, off: u64) -> Result<*mut u8, i32> {
    // SAFETY: no fixed address, so no existing mapping is touched.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd, off as i64) };
    if p == libc::MAP_FAILED {
        Err(-errno())
    } else {
        Ok(p.cast())
    }
}

/// Fresh zeroed pages, never freed.
pub fn pages(len: usize) -> *mut u8 {
    mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
        .expect("memory")
}

/// Unmaps what [`mmap`] gave.
pub fn munmap(p: *mut u8, len: usize) {
    // SAFETY: callers pass a mapping of their own that nothing uses any more.
    unsafe { libc::munmap(p.cast(), len) };
}

/// `close(2)`.
pub fn close(fd: i32) -> Ret {
    // SAFETY: scenarios close descriptors they opened themselves (or numbers never open).
    ret(unsafe { libc::close(fd) })
}

/// `dup(2)`.
pub fn dup(fd: i32) -> i32 {
    // SAFETY: no memory involved.
    unsafe { libc::dup(fd) }
}

/// `write(2)`.
pub fn write(fd: i32, data: &[u8]) -> Ret {
    // SAFETY: the slice is readable for its length.
    ret(unsafe { libc::write(fd, data.as_ptr().cast(), data.len()) } as i64)
}

/// `read(2)` of at most `n` bytes.
pub fn read(fd: i32, n: usize) -> Result<Vec<u8>, i32> {
    let mut b = vec![0u8; n];
    // SAFETY: the vector is writable for its length.
    let r = ret(unsafe { libc::read(fd, b.as_mut_ptr().cast(), n) } as i64);
    if r < 0 {
        return Err(r as i32);
    }
    b.truncate(r as usize);
    Ok(b)
}

/// `poll(2)` of one descriptor without waiting: its events (0 if none).
pub fn poll_now(fd: i32, events: i16) -> i16 {
    poll_for(fd, events, 0)
}

/// `poll(2)` of one descriptor for `ms` milliseconds.
pub fn poll_for(fd: i32, events: i16, ms: i32) -> i16 {
    let mut p = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut p, 1, ms) };
    p.revents
}

/// Sleeps for `ms` milliseconds.
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}

/// Kills this process after `seconds`, so that a hang is an answer too.
pub fn alarm(seconds: u32) {
    // SAFETY: no memory involved.
    unsafe { libc::alarm(seconds) };
}
