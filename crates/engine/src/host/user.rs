//! Fault-safe copies between the engine and memory named by the program.
//!
//! A bad address gives EFAULT, never a crash: `process_vm_readv(2)` on ourselves, or, where that is
//! refused, a pipe whose ends the kernel fills and drains.

use super::rw::Iovec;
use super::{nr, syscall};
use crate::Errno;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// Types that are valid for every bit pattern and have no padding that matters.
///
/// # Safety
/// Only plain integers, arrays and `repr(C)` structures of them.
pub unsafe trait Pod: Copy {}
macro_rules! pod { ($($t:ty),* $(,)?) => { $(
    // SAFETY: integers, or repr(C) structures of integers.
    unsafe impl Pod for $t {}
)* } }
pod!(super::futex::Waitv, u8, u16, u32, u64, i32, i64, usize, Iovec, super::rw::Msghdr);
pod!(
    anyring_uapi::Sqe,
    anyring_uapi::Params,
    anyring_uapi::GeteventsArg,
    anyring_uapi::enter::Timespec
);
pod!(anyring_uapi::register::CloneBuffers, anyring_uapi::register::MemRegionReg);
pod!(anyring_uapi::register::RegionDesc, anyring_uapi::enter::RegWait);
pod!(anyring_uapi::register::RsrcRegister, anyring_uapi::register::RsrcUpdate2);
pod!(anyring_uapi::register::Restriction, anyring_uapi::register::SyncCancel);
pod!(anyring_uapi::register::BufReg, anyring_uapi::register::BufStatus);
pod!(anyring_uapi::register::Probe, anyring_uapi::register::ProbeOp);
// SAFETY: an array of such values is such a value.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// Set once process_vm_readv was refused (old container profiles do).
static REFUSED: AtomicBool = AtomicBool::new(false);

fn vm_call(call: u32, local: usize, remote: usize, len: usize) -> Result<usize, Errno> {
    let pid = super::thread::getpid() as usize;
    let local = Iovec { base: local, len };
    let remote = Iovec { base: remote, len };
    // SAFETY: the local side is the engine's buffer of `len` bytes; the remote side may be any address.
    unsafe { syscall(call, [pid, &raw const local as usize, 1, &raw const remote as usize, 1, 0]) }
}

/// Copies `len` bytes through a pipe; both addresses are checked by the kernel.
fn pipe_copy(from: usize, to: usize, len: usize) -> Result<(), Errno> {
    let mut ends = [0i32; 2];
    // SAFETY: the kernel fills two integers.
    unsafe {
        syscall(nr::__NR_pipe2, [ends.as_mut_ptr() as usize, nr::O_CLOEXEC as usize, 0, 0, 0, 0])
    }?;
    let [rd, wr] = ends.map(super::fd::OwnedFd::from_raw);
    let mut done = 0;
    while done < len {
        let chunk = (len - done).min(4096);
        // SAFETY: the kernel checks both addresses; a pipe takes a page without waiting.
        let n =
            unsafe { syscall(nr::__NR_write, [wr.raw() as usize, from + done, chunk, 0, 0, 0]) }?;
        // SAFETY: as above; the pipe holds `n` bytes.
        let m = unsafe { syscall(nr::__NR_read, [rd.raw() as usize, to + done, n, 0, 0, 0]) }?;
        if m != chunk {
            return Err(Errno::FAULT);
        }
        done += m;
    }
    Ok(())
}

fn copy(call: u32, local: usize, remote: usize, len: usize, reading: bool) -> Result<(), Errno> {
    if len == 0 {
        return Ok(());
    }
    if !REFUSED.load(Ordering::Relaxed) {
        match vm_call(call, local, remote, len) {
            Ok(n) if n == len => return Ok(()),
            Ok(_) | Err(Errno::FAULT) => return Err(Errno::FAULT),
            Err(_) => REFUSED.store(true, Ordering::Relaxed),
        }
    }
    if reading {
        pipe_copy(remote, local, len)
    } else {
        pipe_copy(local, remote, len)
    }
}

/// Reads one value at a program address.
pub fn read<T: Pod>(addr: usize) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::uninit();
    copy(nr::__NR_process_vm_readv, value.as_mut_ptr() as usize, addr, size_of::<T>(), true)?;
    // SAFETY: all bytes were written, and every bit pattern of a Pod is valid.
    Ok(unsafe { value.assume_init() })
}

/// Writes one value at a program address.
pub fn write<T: Pod>(addr: usize, value: &T) -> Result<(), Errno> {
    copy(nr::__NR_process_vm_writev, value as *const T as usize, addr, size_of::<T>(), false)
}

/// Reads `count` values.
pub fn read_vec<T: Pod + Default>(addr: usize, count: usize) -> Result<Vec<T>, Errno> {
    let mut out = vec![T::default(); count];
    copy(nr::__NR_process_vm_readv, out.as_mut_ptr() as usize, addr, size_of_val(&out[..]), true)?;
    Ok(out)
}

/// Writes a slice of values.
pub fn write_slice<T: Pod>(addr: usize, values: &[T]) -> Result<(), Errno> {
    copy(nr::__NR_process_vm_writev, values.as_ptr() as usize, addr, size_of_val(values), false)
}

/// Reads a value where the kernel has just written one for the program.
///
/// # Safety
/// A system call of this thread has succeeded in writing all of it.
pub unsafe fn read_written<T: Pod>(addr: usize) -> T {
    // SAFETY: the memory was writable a moment ago, which on every architecture makes it readable; a program that unmaps
    // the result of a request while it is made has asked for the same fault in its own next look at it.
    unsafe { (addr as *const T).read_unaligned() }
}

/// A path that the program named: still its own memory, or copied.
#[derive(Debug)]
pub enum UserPath {
    /// Its address; good for system calls of the submitting call, which check it.
    Borrowed(usize),
    /// A NUL-terminated copy.
    Copied(Vec<u8>),
}

impl UserPath {
    /// What a system call takes.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            UserPath::Borrowed(addr) => *addr as *const u8,
            UserPath::Copied(path) => path.as_ptr(),
        }
    }
    /// Its address in the program, if there is no copy.
    pub fn borrowed(&self) -> Option<usize> {
        match self {
            UserPath::Borrowed(addr) => Some(*addr),
            UserPath::Copied(_) => None,
        }
    }
    /// The copy, if there is one.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            UserPath::Borrowed(_) => None,
            UserPath::Copied(path) => Some(path),
        }
    }
    /// Copies it now; `empty_allowed` as for [`read_path`].
    pub fn capture(&mut self, empty_allowed: bool) -> Result<(), Errno> {
        if let UserPath::Borrowed(addr) = *self {
            let read = if empty_allowed { read_cstr } else { read_path };
            *self = UserPath::Copied(read(addr)?);
        }
        Ok(())
    }
}

/// Longest path, with its NUL.
const PATH_MAX: usize = 4096;

/// Reads a path: ENOENT for an empty one.
pub fn read_path(addr: usize) -> Result<Vec<u8>, Errno> {
    let path = read_cstr(addr)?;
    if path.len() == 1 {
        return Err(Errno::NOENT);
    }
    Ok(path)
}

/// Reads a NUL-terminated string of at most PATH_MAX bytes; ENAMETOOLONG beyond.
pub fn read_cstr(addr: usize) -> Result<Vec<u8>, Errno> {
    let mut out = Vec::new();
    let mut at = addr;
    while out.len() < PATH_MAX {
        // Never across a page in one copy: the string may end just before an unmapped page.
        let chunk = (4096 - at % 4096).min(256).min(PATH_MAX - out.len());
        let part: Vec<u8> = read_vec(at, chunk)?;
        match part.iter().position(|&b| b == 0) {
            Some(end) => {
                out.extend_from_slice(&part[..=end]);
                return Ok(out);
            }
            None => out.extend_from_slice(&part),
        }
        at = at.checked_add(chunk).ok_or(Errno::FAULT)?;
    }
    Err(Errno::NAMETOOLONG)
}
