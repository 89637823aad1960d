//! Rings of provided buffers.

/// A registered buffer ring lies in memory of the ring's and is mapped.
pub const IOU_PBUF_RING_MMAP: libc::c_uint = 1;
/// Buffers of a registered ring are consumed piece by piece.
pub const IOU_PBUF_RING_INC: libc::c_uint = 2;

/// One entry of a buffer ring, see
/// [`register_buf_ring`](crate::Submitter::register_buf_ring).
#[repr(C)]
#[derive(Debug)]
pub struct BufRingEntry {
    addr: u64,
    len: u32,
    bid: u16,
    /// In the first entry of a ring: the ring's tail.
    resv: u16,
}

const _: () = assert!(size_of::<BufRingEntry>() == 16);

#[allow(clippy::len_without_is_empty)]
impl BufRingEntry {
    /// Sets where the buffer is.
    pub fn set_addr(&mut self, addr: u64) {
        self.addr = addr;
    }

    /// Where the buffer is.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// Sets the buffer's length.
    pub fn set_len(&mut self, len: u32) {
        self.len = len;
    }

    /// The buffer's length.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Sets the buffer's number.
    pub fn set_bid(&mut self, bid: u16) {
        self.bid = bid;
    }

    /// The buffer's number.
    pub fn bid(&self) -> u16 {
        self.bid
    }

    /// Where the tail of the ring is whose first entry is at `ring_base`.
    ///
    /// # Safety
    /// `ring_base` points to the first entry of a ring of entries.
    pub unsafe fn tail(ring_base: *const BufRingEntry) -> *const u16 {
        // SAFETY: the caller's.
        unsafe { &raw const (*ring_base).resv }
    }
}
