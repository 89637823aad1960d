//! The transfer structures that the engine builds for the host.

use super::{nr, syscall};

/// Starts reading a range of a file into the page cache, without waiting for it.
pub fn will_need(fd: i32, offset: u64, len: u64) {
    const WILLNEED: usize = 3;
    let args = [fd as usize, offset as usize, len as usize, WILLNEED, 0, 0];
    // SAFETY: integer arguments only.
    let _ = unsafe { syscall(nr::__NR_fadvise64, args) };
}

/// `struct iovec`; `base` is an address of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iovec {
    /// Address.
    pub base: usize,
    /// Bytes.
    pub len: usize,
}

/// `struct msghdr` of the 64-bit ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Msghdr {
    /// Address of a socket address.
    pub name: usize,
    /// Its bytes.
    pub namelen: u32,
    /// Padding.
    pub pad1: u32,
    /// Address of the vectors.
    pub iov: usize,
    /// Their count.
    pub iovlen: usize,
    /// Address of control data.
    pub control: usize,
    /// Its bytes.
    pub controllen: usize,
    /// Out: MSG_* flags.
    pub flags: u32,
    /// Padding.
    pub pad2: u32,
}
const _: () = assert!(size_of::<Msghdr>() == 56);
