//! A ring of provided buffers, as IORING_REGISTER_PBUF_RING describes it.

use crate::error::Result;
use crate::ring::Ring;
use anyring_uapi::register;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::sync::atomic::{AtomicU16, Ordering};

/// `struct io_uring_buf`: an entry. The tail of the ring lies in the last field of the first.
#[repr(C)]
struct Entry {
    addr: u64,
    len: u32,
    id: u16,
    tail: u16,
}

/// `struct io_uring_buf_reg`.
#[repr(C)]
struct Registration {
    ring_addr: u64,
    entries: u32,
    group: u16,
    flags: u16,
    reserved: [u64; 3],
}

/// See the module's description.
pub struct BufferRing {
    entries: *mut Entry,
    layout: Layout,
    mask: u16,
    tail: u16,
    memory: Vec<u8>,
    each: usize,
}

impl BufferRing {
    /// Registers `count` (a power of two) buffers of `each` bytes as a group.
    pub fn new(ring: &Ring, group: u16, count: usize, each: usize) -> Result<BufferRing> {
        let layout = Layout::from_size_align(count * size_of::<Entry>(), 4096)
            .unwrap_or_else(|_| unreachable!("small"));
        // SAFETY: the size is not 0.
        let entries = unsafe { alloc_zeroed(layout) }.cast::<Entry>();
        if entries.is_null() {
            handle_alloc_error(layout);
        }
        let (mask, memory) = (count as u16 - 1, vec![0; count * each]);
        let mut made = BufferRing { entries, layout, mask, tail: 0, memory, each };
        let registration = Registration {
            ring_addr: entries as u64,
            entries: count as u32,
            group,
            flags: 0,
            reserved: [0; 3],
        };
        ring.register(register::PBUF_RING, &raw const registration as usize, 1)?;
        (0..count).for_each(|id| made.give_back(id as u16));
        Ok(made)
    }

    /// Where a buffer is.
    pub fn address(&self, id: u16) -> u64 {
        self.memory[usize::from(id) * self.each..].as_ptr() as u64
    }

    /// Offers a buffer.
    pub fn give_back(&mut self, id: u16) {
        let addr = self.address(id);
        // SAFETY: the masked index is inside the ring; the entry is ours until the tail passes it. The first entry's
        // last field is the tail, which is only stored to atomically.
        unsafe {
            let entry = self.entries.add(usize::from(self.tail & self.mask));
            (&raw mut (*entry).addr).write(addr);
            (&raw mut (*entry).len).write(self.each as u32);
            (&raw mut (*entry).id).write(id);
            self.tail = self.tail.wrapping_add(1);
            AtomicU16::from_ptr(&raw mut (*self.entries).tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. Rings are declared before their buffers, so nothing that is
        // in flight uses them: servers end when all requests have.
        unsafe { dealloc(self.entries.cast(), self.layout) }
    }
}
