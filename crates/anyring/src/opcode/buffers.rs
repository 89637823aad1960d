//! Provided buffers.

use anyring_uapi::op;

opcode! {
    /// Gives `nbufs` buffers of `len` bytes each, which lie one after the other from `addr` on,
    /// to the group `bgid`, under the numbers from `bid` on.
    ///
    /// Requests with [`BUFFER_SELECT`](crate::squeue::Flags::BUFFER_SELECT) take one.
    ProvideBuffers = op::PROVIDE_BUFFERS;
    new(addr: *mut u8, len: i32, nbufs: u16, bgid: u16, bid: u16) |s| {
        s.fd = nbufs as i32;
        s.addr = addr as u64;
        s.len = len as u32;
        s.off = bid as u64;
        s.buf_index = bgid;
    }
}

opcode! {
    /// Takes up to `nbufs` buffers out of the group `bgid`; the result is how many.
    RemoveBuffers = op::REMOVE_BUFFERS;
    new(nbufs: u16, bgid: u16) |s| {
        s.fd = nbufs as i32;
        s.buf_index = bgid;
    }
}
