//! A registered memory region.

use crate::host::{mem::Shared, user};
use crate::Errno;
use anyring_uapi::enter::RegWait;

/// Whose memory it is.
#[derive(Debug)]
pub enum Memory {
    /// At this address of the program's. Not pinned: once it is unmapped, reading it gives EFAULT.
    Program(usize),
    /// The ring's, for the program to map.
    Own(Shared),
}

/// See the module's description.
#[derive(Debug)]
pub struct Region {
    /// The memory.
    pub memory: Memory,
    /// Bytes.
    pub size: usize,
    /// It holds arguments of waits.
    pub waits: bool,
}

impl Region {
    /// The argument of a wait at a byte offset. EFAULT outside of the region, or misaligned.
    pub fn wait_argument(&self, offset: usize) -> Result<RegWait, Errno> {
        let end = offset.checked_add(size_of::<RegWait>()).ok_or(Errno::FAULT)?;
        if !self.waits || offset % size_of::<u64>() != 0 || end > self.size {
            return Err(Errno::FAULT);
        }
        let base = match &self.memory {
            Memory::Program(addr) => *addr,
            Memory::Own(shared) => shared.addr(),
        };
        user::read(base + offset)
    }
}
