//! Commands of drivers.

use super::define::set_file;
use crate::squeue::{Entry, Entry128};
use crate::types::sealed::UseFixed;
use anyring_uapi::{op, Sqe};

/// `IORING_URING_CMD_FIXED`
const CMD_FIXED: u32 = 1;

const fn set_buffer(sqe: &mut Sqe, buf_index: Option<u16>) {
    match buf_index {
        Some(index) => {
            sqe.buf_index = index;
            sqe.op_flags |= CMD_FIXED;
        }
        None => {
            sqe.buf_index = 0;
            sqe.op_flags &= !CMD_FIXED;
        }
    }
}

const fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let mut i = 0;
    while i < 8 {
        word[i] = bytes[at + i];
        i += 1;
    }
    u64::from_ne_bytes(word)
}

opcode! {
    /// A command for the driver behind a file, with 16 bytes of its own data.
    UringCmd16 = op::URING_CMD;
    new(fd: impl UseFixed, cmd_op: u32) |s| {
        set_file(s, fd);
        s.off = cmd_op as u64;
    }
    /// The registered buffer the command works on.
    buf_index(buf_index: Option<u16>) |s| { set_buffer(s, buf_index); }
    /// The command's data.
    cmd(cmd: [u8; 16]) |s| {
        s.addr3 = word(&cmd, 0);
        s.pad2 = word(&cmd, 8);
    }
    /// An address, for commands that take one.
    addr(addr: Option<u64>) |s| {
        s.addr = match addr {
            Some(addr) => addr,
            None => 0,
        };
    }
}

/// A command for the driver behind a file, with 80 bytes of its own data.
#[derive(Debug)]
pub struct UringCmd80 {
    head: UringCmd16,
    tail: [u8; 64],
}

impl UringCmd80 {
    /// The number of the operation, for [`Probe::is_supported`](crate::Probe::is_supported).
    pub const CODE: u8 = op::URING_CMD;

    /// A command without data yet.
    #[inline]
    pub fn new(fd: impl UseFixed, cmd_op: u32) -> Self {
        UringCmd80 { head: UringCmd16::new(fd, cmd_op), tail: [0; 64] }
    }

    /// The registered buffer the command works on.
    #[inline]
    pub const fn buf_index(mut self, buf_index: Option<u16>) -> Self {
        set_buffer(&mut self.head.sqe, buf_index);
        self
    }

    /// The command's data.
    #[inline]
    pub const fn cmd(mut self, cmd: [u8; 80]) -> Self {
        self.head.sqe.addr3 = word(&cmd, 0);
        self.head.sqe.pad2 = word(&cmd, 8);
        let mut i = 0;
        while i < self.tail.len() {
            self.tail[i] = cmd[16 + i];
            i += 1;
        }
        self
    }

    /// An address, for commands that take one.
    #[inline]
    pub const fn addr(mut self, addr: Option<u64>) -> Self {
        self.head.sqe.addr = match addr {
            Some(addr) => addr,
            None => 0,
        };
        self
    }

    /// The finished entry.
    #[inline]
    pub fn build(self) -> Entry128 {
        Entry128(Entry(self.head.sqe), self.tail)
    }
}
