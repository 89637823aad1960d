//! The messages of a multishot RECVMSG: each lies in its buffer behind a header of 16 bytes and the room
//! reserved for its address and control data.

use super::transfer::MSG_WAITALL;
use crate::host::rw::{Iovec, Msghdr};
use crate::host::{nr, user};
use crate::Errno;

/// `struct io_uring_recvmsg_out`: address bytes, control bytes, payload bytes, flags.
const HEADER: usize = 16;

/// A message that was received.
pub struct Shot {
    /// The CQE's result: all bytes used of the buffer.
    pub res: usize,
    /// The message's own bytes.
    pub payload: usize,
}

/// Receives one message into `room`. EFAULT if not even the reserved parts fit.
pub fn receive(socket: i32, wanted: &Msghdr, flags: u32, room: Iovec) -> Result<Shot, Errno> {
    let (names, controls) = (wanted.namelen as usize, wanted.controllen);
    let reserved =
        HEADER.checked_add(names).and_then(|n| n.checked_add(controls)).ok_or(Errno::OVERFLOW)?;
    if reserved > room.len {
        return Err(Errno::FAULT);
    }
    let payload = Iovec { base: room.base + reserved, len: room.len - reserved };
    let mut header = Msghdr {
        name: if names == 0 { 0 } else { room.base + HEADER },
        namelen: wanted.namelen,
        control: if controls == 0 { 0 } else { room.base + HEADER + names },
        controllen: controls,
        iov: &raw const payload as usize,
        iovlen: 1,
        ..Msghdr::default()
    };
    let args =
        [socket as usize, &raw mut header as usize, (flags & !MSG_WAITALL) as usize, 0, 0, 0];
    // SAFETY: header and vector are locals; name, control and data are the program's, which the kernel checks.
    let n = unsafe { crate::host::syscall(nr::__NR_recvmsg, args) }?;
    let out = [
        if names == 0 { 0 } else { header.namelen },
        header.controllen as u32,
        n as u32,
        header.flags,
    ];
    user::write(room.base, &out)?;
    Ok(Shot { res: reserved + n.min(payload.len), payload: n })
}
