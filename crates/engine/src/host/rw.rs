//! The transfer structures that the engine builds for the host.

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
