//! Messages between rings.

use crate::types::sealed::UseFd;
use crate::types::{DestinationSlot, Fixed};
use anyring_uapi::op;

/// `IORING_MSG_SEND_FD`
const SEND_FD: u64 = 1;
/// `IORING_MSG_RING_FLAGS_PASS`
const FLAGS_PASS: u32 = 1 << 1;

opcode! {
    /// Posts a completion on another ring.
    MsgRingData = op::MSG_RING;
    new(ring_fd: impl UseFd, result: i32, user_data: u64, user_flags: Option<u32>) |s| {
        s.fd = ring_fd.into();
        s.len = result as u32;
        s.off = user_data;
        if let Some(flags) = user_flags {
            s.file_index = flags;
            s.op_flags = FLAGS_PASS;
        }
    }
    /// `IORING_MSG_RING_*` bits.
    opcode_flags(opcode_flags: u32) |s| { s.op_flags = opcode_flags | (s.op_flags & FLAGS_PASS); }
}

opcode! {
    /// Puts a file of this ring's table into the table of another ring.
    MsgRingSendFd = op::MSG_RING;
    new(
        ring_fd: impl UseFd,
        fixed_slot_src: Fixed,
        dest_slot_index: DestinationSlot,
        user_data: u64,
    ) |s| {
        s.fd = ring_fd.into();
        s.addr = SEND_FD;
        s.off = user_data;
        s.addr3 = fixed_slot_src.0 as u64;
        s.file_index = dest_slot_index.file_index();
    }
    /// `IORING_MSG_RING_*` bits.
    opcode_flags(opcode_flags: u32) |s| { s.op_flags = opcode_flags; }
}
