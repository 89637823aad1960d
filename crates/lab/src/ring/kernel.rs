//! The kernel's io_uring, by plain system calls.

use super::Backend;
use anyring_uapi::{Params, NR_ENTER, NR_REGISTER, NR_SETUP};

/// See the module's description.
pub struct Kernel;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn result(ret: libc::c_long) -> Result<u32, i32> {
    if ret < 0 {
        Err(errno())
    } else {
        Ok(ret as u32)
    }
}

impl Backend for Kernel {
    fn setup(&self, entries: u32, params: &mut Params) -> Result<u32, i32> {
        // SAFETY: the parameters are writable.
        result(unsafe { libc::syscall(NR_SETUP, entries, params as *mut Params) })
    }
    #[inline]
    fn enter(&self, fd: i32, submit: u32, min: u32, flags: u32) -> Result<u32, i32> {
        // SAFETY: no argument is a pointer.
        result(unsafe { libc::syscall(NR_ENTER, fd, submit, min, flags, 0usize, 0usize) })
    }
    fn register(&self, fd: i32, op: u32, arg: usize, nr: u32) -> Result<u32, i32> {
        // SAFETY: the caller's argument fits the operation.
        result(unsafe { libc::syscall(NR_REGISTER, fd, op, arg, nr) })
    }
    fn mmap(&self, fd: i32, len: usize, offset: u64) -> Result<usize, i32> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd, offset as i64) };
        if at == libc::MAP_FAILED {
            Err(errno())
        } else {
            Ok(at as usize)
        }
    }
    fn close(&self, fd: i32) {
        // SAFETY: the ring's own descriptor.
        unsafe { libc::close(fd) };
    }
}
