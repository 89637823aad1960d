//! The kernel's io_uring, through the C library's `syscall`: where the preload library is active it
//! answers these calls.

use anyring_uapi::{Params, NR_ENTER, NR_REGISTER, NR_SETUP};
use std::io;
use std::os::fd::RawFd;

fn result(ret: i64) -> io::Result<u32> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret as u32)
    }
}

pub(super) fn setup(entries: u32, params: &mut Params) -> io::Result<RawFd> {
    // SAFETY: the kernel reads and writes `params`.
    let fd = unsafe { libc::syscall(NR_SETUP, entries, std::ptr::from_mut(params)) };
    result(fd).map(|fd| fd as RawFd)
}

/// # Safety
/// As the system call's.
#[inline]
pub(super) unsafe fn enter(call: [u32; 4], arg: (usize, usize)) -> io::Result<usize> {
    let [fd, to_submit, min_complete, flags] = call;
    // SAFETY: the caller's.
    let ret = unsafe { libc::syscall(NR_ENTER, fd, to_submit, min_complete, flags, arg.0, arg.1) };
    result(ret).map(|n| n as usize)
}

/// # Safety
/// As the system call's.
pub(super) unsafe fn register(fd: u32, op: u32, arg: usize, nr: u32) -> io::Result<u32> {
    // SAFETY: the caller's.
    result(unsafe { libc::syscall(NR_REGISTER, fd, op, arg, nr) })
}

pub(super) fn map(fd: RawFd, len: usize, prot: i32, flags: i32, offset: u64) -> io::Result<usize> {
    // SAFETY: a new mapping.
    let addr =
        unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd, offset as libc::off_t) };
    if addr == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(addr as usize)
}

pub(super) fn close(fd: RawFd) {
    // SAFETY: ours.
    unsafe { libc::close(fd) };
}

/// Whether a ring can be made.
pub(super) fn works() -> bool {
    if is_filtered() {
        return works_in_child();
    }
    let mut params = Params::default();
    match setup(1, &mut params) {
        Ok(fd) => {
            close(fd);
            true
        }
        Err(_) => false,
    }
}

/// A seccomp filter may end whoever makes the call; without /proc, take it that there is one.
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_none_or(|mode| mode.trim() != "0")
}

/// Tries it in a child that the program does not notice: it sends no signal when it ends, and makes
/// system calls only, since other threads may hold locks.
fn works_in_child() -> bool {
    let mut params = Params::default();
    let mut status = 0;
    // SAFETY: without flags, `clone(2)` is a fork; the child leaves at once.
    unsafe {
        let pid = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if pid == 0 {
            libc::syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            let ret = libc::syscall(NR_SETUP, 1, &raw mut params);
            libc::syscall(libc::SYS_exit_group, i32::from(ret < 0));
        }
        if pid < 0 {
            return false;
        }
        loop {
            let ended = libc::syscall(
                libc::SYS_wait4,
                pid,
                &raw mut status,
                libc::__WALL,
                std::ptr::null_mut::<libc::rusage>(),
            );
            if ended == pid {
                break;
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return false;
            }
        }
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ways_to_find_out_agree() {
        assert_eq!(super::works_in_child(), super::works());
    }
}
