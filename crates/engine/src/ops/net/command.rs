//! URING_CMD: commands to sockets. Other files have none here, as most have none in Linux.

use super::{Ctx, Issue, Op, OpDef};
use crate::host::{fd, nr};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

const SIOCINQ: u32 = 0;
const SIOCOUTQ: u32 = 1;
const GETSOCKOPT: u32 = 2;
const SETSOCKOPT: u32 = 3;
const TX_TIMESTAMP: u32 = 4;

const FLAG_FIXED: u32 = 1 << 0;
const FLAG_MULTISHOT: u32 = 1 << 1;

/// URING_CMD.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    number: u32,
    level: u32,
    option: u32,
    value: u64,
    len: u32,
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.off >> 32 != 0 {
        return Err(Errno::INVAL);
    }
    let flags = sqe.op_flags;
    if flags & !(FLAG_FIXED | FLAG_MULTISHOT) != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = flags & FLAG_MULTISHOT != 0;
    if multishot != (sqe.flags & sqe::BUFFER_SELECT != 0) || flags == FLAG_FIXED | FLAG_MULTISHOT {
        return Err(Errno::INVAL);
    }
    let (level, option) = (sqe.addr as u32, (sqe.addr >> 32) as u32);
    let (value, len) = (sqe.addr3, sqe.file_index);
    Ok(Op::Command(Command { number: sqe.cmd_op(), level, option, value, len }))
}

fn issue(req: &mut Req, _: &mut Ctx<'_>) -> Issue {
    let Op::Command(command) = req.op else { return Issue::err(Errno::INVAL) };
    let file = req.file.raw();
    match fd::stat(file) {
        Ok(stat) if stat.is_socket() => Issue::from_result(run(&command, file)),
        Ok(_) => Issue::err(Errno::OPNOTSUPP),
        Err(e) => Issue::err(e),
    }
}

fn run(command: &Command, socket: i32) -> Result<usize, Errno> {
    match command.number {
        SIOCINQ => queued(socket, 0x541b),
        SIOCOUTQ => queued(socket, 0x5411),
        GETSOCKOPT => get_option(command, socket),
        SETSOCKOPT => set_option(command, socket),
        // Needs 32-byte CQEs and multishot, which sockets do not offer here.
        TX_TIMESTAMP => Err(Errno::INVAL),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// Bytes that wait in a socket's queue. Families without a protocol of their own have no such command.
fn queued(socket: i32, request: usize) -> Result<usize, Errno> {
    const SO_DOMAIN: u32 = 39;
    const UNIX: i32 = 1;
    if super::socket::option(socket, SO_DOMAIN)? == UNIX {
        return Err(Errno::OPNOTSUPP);
    }
    let mut bytes = 0i32;
    // SAFETY: the kernel writes one integer.
    unsafe {
        crate::host::syscall(
            nr::__NR_ioctl,
            [socket as usize, request, &raw mut bytes as usize, 0, 0, 0],
        )
    }?;
    Ok(bytes as usize)
}

/// Only options at SOL_SOCKET; the result is the option's length.
fn get_option(c: &Command, socket: i32) -> Result<usize, Errno> {
    const SOL_SOCKET: u32 = 1;
    if c.level != SOL_SOCKET {
        return Err(Errno::OPNOTSUPP);
    }
    let mut len = c.len;
    let args = [
        socket as usize,
        c.level as usize,
        c.option as usize,
        c.value as usize,
        &raw mut len as usize,
        0,
    ];
    // SAFETY: the length is a local; the value is the program's, which the kernel checks.
    unsafe { crate::host::syscall(nr::__NR_getsockopt, args) }?;
    Ok(len as usize)
}

fn set_option(c: &Command, socket: i32) -> Result<usize, Errno> {
    let args =
        [socket as usize, c.level as usize, c.option as usize, c.value as usize, c.len as usize, 0];
    // SAFETY: the value is the program's, which the kernel checks.
    unsafe { crate::host::syscall(nr::__NR_setsockopt, args) }
}

/// URING_CMD.
pub const URING_CMD: OpDef = OpDef {
    support: super::Support::Partial("sockets only, without transmit timestamps"),
    buffer_select: true,
    iopoll: true,
    ..OpDef::new("URING_CMD", op::URING_CMD, prep, issue)
};
