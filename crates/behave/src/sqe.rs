//! Submission queue entries as scenarios write them: an operation, then only the fields
//! that matter.

use anyring_uapi::{op, Sqe};

/// An SQE under construction.
#[derive(Clone, Copy, Debug)]
pub struct Q(pub Sqe);

/// Starts an SQE of operation `opcode` with `fd` −1 and everything else zero.
pub fn q(opcode: u8) -> Q {
    Q(Sqe { opcode, fd: -1, ..Sqe::default() })
}

macro_rules! field {
    ($($(#[$doc:meta])* $name:ident: $field:ident $t:ty;)*) => { impl Q { $(
        $(#[$doc])*
        pub fn $name(mut self, v: $t) -> Q { self.0.$field = v as _; self }
    )* } };
}

field! {
    /// user_data.
    ud: user_data u64;
    /// SQE flags (`IOSQE_*`).
    flags: flags u8;
    /// I/O priority or per-operation flags.
    prio: ioprio u16;
    /// Descriptor or slot.
    fd: fd i32;
    /// Offset or second address.
    off: off u64;
    /// Address.
    addr: addr usize;
    /// Length or count.
    len: len u32;
    /// Per-operation flags.
    opf: op_flags u32;
    /// Buffer index or group.
    buf: buf_index u16;
    /// Personality.
    pers: personality u16;
    /// file_index, splice_fd_in and others.
    fi: file_index u32;
    /// addr3.
    addr3: addr3 u64;
    /// The last eight bytes.
    pad2: pad2 u64;
}

/// NOP.
pub fn nop(ud: u64) -> Q {
    q(op::NOP).ud(ud)
}
/// READ at offset 0.
pub fn read(fd: i32, addr: usize, len: u32, ud: u64) -> Q {
    q(op::READ).fd(fd).addr(addr).len(len).ud(ud)
}
/// WRITE at offset 0.
pub fn write(fd: i32, addr: usize, len: u32, ud: u64) -> Q {
    q(op::WRITE).fd(fd).addr(addr).len(len).ud(ud)
}
/// READ of a descriptor that is not open: the cheapest failure at issue.
pub fn bad_read(ud: u64) -> Q {
    q(op::READ).fd(999).ud(ud)
}
/// POLL_ADD for `events`.
pub fn poll(fd: i32, events: u32, ud: u64) -> Q {
    q(op::POLL_ADD).fd(fd).opf(events).ud(ud)
}
/// TIMEOUT; `ts` is a timespec's address, `count` completions end it too.
pub fn timeout(ts: usize, count: u64, ud: u64) -> Q {
    q(op::TIMEOUT).addr(ts).len(1).off(count).ud(ud)
}
/// LINK_TIMEOUT.
pub fn link_timeout(ts: usize, ud: u64) -> Q {
    q(op::LINK_TIMEOUT).addr(ts).len(1).ud(ud)
}
/// ASYNC_CANCEL by user_data.
pub fn cancel(target: u64, ud: u64) -> Q {
    q(op::ASYNC_CANCEL).addr(target as usize).ud(ud)
}
/// RECV.
pub fn recv(fd: i32, addr: usize, len: u32, ud: u64) -> Q {
    q(op::RECV).fd(fd).addr(addr).len(len).ud(ud)
}
/// SEND.
pub fn send(fd: i32, addr: usize, len: u32, ud: u64) -> Q {
    q(op::SEND).fd(fd).addr(addr).len(len).ud(ud)
}
