//! Shared memory for the rings.

use super::{nr, syscall};
use crate::Errno;

/// A shared anonymous mapping that is unmapped when dropped. The program gets its own second
/// mapping of the same pages ([`Shared::map_again`]), which lives on by itself.
#[derive(Debug)]
pub struct Shared {
    addr: usize,
    len: usize,
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

impl Shared {
    /// Maps `len` bytes, rounded up to pages, zeroed.
    pub fn new(len: usize) -> Result<Shared, Errno> {
        let len = len.next_multiple_of(PAGE);
        let prot = (nr::PROT_READ | nr::PROT_WRITE) as usize;
        let flags = (nr::MAP_SHARED | nr::MAP_ANONYMOUS) as usize;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let addr = unsafe { syscall(nr::__NR_mmap, [0, len, prot, flags, usize::MAX, 0]) }?;
        Ok(Shared { addr, len })
    }
    /// Start address.
    pub fn addr(&self) -> usize {
        self.addr
    }
    /// Bytes, a whole number of pages.
    pub fn bytes(&self) -> usize {
        self.len
    }
    /// A second mapping of the same pages for the program, as `mmap(2)` of the descriptor would give: `addr` is
    /// a hint, or the place itself with MAP_FIXED.
    pub fn map_again(
        &self,
        addr: usize,
        len: usize,
        prot: u32,
        flags: u32,
    ) -> Result<usize, Errno> {
        let len = len.next_multiple_of(PAGE);
        if len == 0 {
            return Err(Errno::INVAL);
        }
        let fixed = flags & nr::MAP_FIXED != 0;
        if fixed && addr % PAGE != 0 {
            return Err(Errno::INVAL);
        }
        let mut how = nr::MREMAP_MAYMOVE;
        if fixed {
            how |= nr::MREMAP_FIXED;
        }
        let to = if fixed { addr } else { 0 };
        // SAFETY: an old length of zero leaves the engine's own mapping alone and maps its pages once more; with
        // MAP_FIXED the program named the place itself.
        let at = unsafe { syscall(nr::__NR_mremap, [self.addr, 0, len, how as usize, to, 0]) }?;
        if prot != nr::PROT_READ | nr::PROT_WRITE {
            // SAFETY: the program's own new mapping.
            unsafe { syscall(nr::__NR_mprotect, [at, len, prot as usize, 0, 0, 0]) }?;
        }
        Ok(at)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this mapping belongs to `self`; nobody else uses it.
        let _ = unsafe { syscall(nr::__NR_munmap, [self.addr, self.len, 0, 0, 0, 0]) };
    }
}

/// Whether every page of a range is mapped.
pub fn is_mapped(addr: usize, len: usize) -> bool {
    let start = addr & !(PAGE - 1);
    let Some(end) = addr.checked_add(len).map(|e| e.next_multiple_of(PAGE)) else { return false };
    const ASYNC: usize = 1;
    // SAFETY: msync(MS_ASYNC) changes nothing; it answers ENOMEM if a page is not mapped.
    unsafe { syscall(nr::__NR_msync, [start, end - start, ASYNC, 0, 0, 0]) }.is_ok()
}

/// Whether every page of a range can be written to. Hosts before Linux 5.14 only tell whether it is mapped.
pub fn is_writable(addr: usize, len: usize) -> bool {
    match populate(addr, len) {
        Ok(()) => true,
        Err(Errno::INVAL) if !can_populate() => is_mapped(addr, len),
        Err(_) => false,
    }
}

/// Makes the pages of a range present for writing; changes no content.
fn populate(addr: usize, len: usize) -> Result<(), Errno> {
    const POPULATE_WRITE: usize = 23;
    // SAFETY: the program's own mapping keeps its content.
    unsafe { syscall(nr::__NR_madvise, [addr, len, POPULATE_WRITE, 0, 0, 0]) }.map(drop)
}

fn can_populate() -> bool {
    Shared::new(PAGE).is_ok_and(|page| populate(page.addr, page.len).is_ok())
}
