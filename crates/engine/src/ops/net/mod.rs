//! Sockets: SOCKET, BIND, LISTEN, ACCEPT, CONNECT, SHUTDOWN, and the transfers in [`transfer`] and [`msg`].

pub mod bind;
pub mod command;
pub mod connect;
pub mod leftover;
pub mod msg;
pub mod shots;
pub mod socket;
pub mod transfer;
pub mod zerocopy;

use super::open::install;
use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Support};
use crate::host::fd::{self, OwnedFd};
use crate::host::{nr, poll};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::sqe::FILE_INDEX_ALLOC;
use anyring_uapi::{cqe, op, Sqe};

pub use bind::{Bind, BIND, LISTEN};
pub use connect::{Connect, CONNECT};
pub use msg::Msg;
pub use transfer::{Transfer, RECV, SEND};
pub use zerocopy::{SENDMSG_ZC, SEND_ZC};

/// `ioprio` bits of transfers.
pub const RECVSEND_POLL_FIRST: u16 = 1 << 0;
/// See above.
pub const RECV_MULTISHOT: u16 = 1 << 1;
/// The memory lies in a registered buffer.
pub const RECVSEND_FIXED_BUF: u16 = 1 << 2;
/// The notification tells whether the bytes were copied.
pub const SEND_ZC_REPORT_USAGE: u16 = 1 << 3;
/// Result is one buffer after another.
pub const RECVSEND_BUNDLE: u16 = 1 << 4;
/// `addr` is an array of vectors.
pub const SEND_VECTORIZED: u16 = 1 << 5;

const ACCEPT_MULTISHOT: u16 = 1 << 0;
const ACCEPT_DONTWAIT: u16 = 1 << 1;
const ACCEPT_POLL_FIRST: u16 = 1 << 2;

const CLOEXEC: u32 = nr::O_CLOEXEC;
const NONBLOCK: u32 = nr::O_NONBLOCK;

/// ACCEPT.
#[derive(Debug)]
pub struct Accept {
    addr: u64,
    addrlen: u64,
    flags: u32,
    slot: u32,
    dontwait: bool,
    poll_first: bool,
    /// One CQE a connection.
    pub multishot: bool,
}

/// SOCKET.
#[derive(Debug)]
pub struct Socket {
    domain: i32,
    kind: u64,
    protocol: u32,
    slot: u32,
}

fn prep_accept(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.len as u64, sqe.buf_index as u64])?;
    if sqe.ioprio & !(ACCEPT_MULTISHOT | ACCEPT_DONTWAIT | ACCEPT_POLL_FIRST) != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = sqe.ioprio & ACCEPT_MULTISHOT != 0;
    if multishot && sqe.file_index != 0 && sqe.file_index != FILE_INDEX_ALLOC {
        return Err(Errno::INVAL);
    }
    if sqe.op_flags & !(CLOEXEC | NONBLOCK) != 0
        || (sqe.file_index != 0 && sqe.op_flags & CLOEXEC != 0)
    {
        return Err(Errno::INVAL);
    }
    Ok(Op::Accept(Accept {
        addr: sqe.addr,
        addrlen: sqe.off,
        flags: sqe.op_flags,
        slot: sqe.file_index,
        dontwait: sqe.ioprio & ACCEPT_DONTWAIT != 0,
        poll_first: sqe.ioprio & ACCEPT_POLL_FIRST != 0,
        multishot,
    }))
}

fn issue_accept(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let listener = req.file.raw();
    let Op::Accept(accept) = &mut req.op else { return Issue::err(Errno::INVAL) };
    if core::mem::take(&mut accept.poll_first) {
        return Issue::Poll(poll::IN);
    }
    let (slot, multishot, dontwait) = (accept.slot, accept.multishot, accept.dontwait);
    match accept_one(accept, listener, ctx) {
        Err(Errno::AGAIN) if !dontwait => Issue::Poll(poll::IN),
        Err(e) => Issue::err(e),
        Ok(new) => {
            let more_wait = poll::ready(listener, poll::IN).is_ok_and(|r| r & poll::IN != 0);
            let pending = if more_wait { cqe::F_SOCK_NONEMPTY } else { 0 };
            match install(ctx, OwnedFd::from_raw(new as i32), slot) {
                Ok(res) if multishot => Issue::More(res, pending),
                Ok(res) => Issue::Done(res, pending),
                Err(e) => Issue::Done(e.res(), pending),
            }
        }
    }
}

/// One accept. EAGAIN if there is no connection; waits only in a worker.
fn accept_one(accept: &Accept, listener: i32, ctx: &Ctx<'_>) -> Result<usize, Errno> {
    let args = [
        listener as usize,
        accept.addr as usize,
        accept.addrlen as usize,
        accept.flags as usize,
        0,
        0,
    ];
    if ctx.may_block() || fd::status_flags(listener)? & NONBLOCK != 0 {
        // SAFETY: the address pointers are the program's, which the kernel checks.
        return unsafe { ctx.call(nr::__NR_accept4, args) };
    }
    // What does not listen fails at once; a listener is asked first, and may still have lost its connection to
    // somebody else by the time of the call.
    if poll::ready(listener, poll::IN)? == 0 && is_listening(listener) {
        return Err(Errno::AGAIN);
    }
    // SAFETY: as above.
    match unsafe { ctx.bounded_call(nr::__NR_accept4, args) } {
        Err(Errno::INTR) => Err(Errno::AGAIN),
        other => other,
    }
}

/// A socket that accepts; anything else fails at once.
fn is_listening(fd: i32) -> bool {
    const SO_ACCEPTCONN: u32 = 30;
    socket::option(fd, SO_ACCEPTCONN).is_ok_and(|v| v != 0)
}

fn prep_socket(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.addr, sqe.op_flags as u64, sqe.buf_index as u64])?;
    if sqe.file_index != 0 && sqe.off & CLOEXEC as u64 != 0 {
        return Err(Errno::INVAL);
    }
    const TYPE_MASK: u32 = 0xf;
    if sqe.off as u32 & !TYPE_MASK & !(CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Socket(Socket {
        domain: sqe.fd,
        kind: sqe.off,
        protocol: sqe.len,
        slot: sqe.file_index,
    }))
}

fn issue_socket(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Socket(s) = &req.op else { return Issue::err(Errno::INVAL) };
    let slot = s.slot;
    // SAFETY: integer arguments only.
    let made = unsafe {
        ctx.call(
            nr::__NR_socket,
            [s.domain as usize, s.kind as usize, s.protocol as usize, 0, 0, 0],
        )
    };
    match made.and_then(|new| install(ctx, OwnedFd::from_raw(new as i32), slot)) {
        Ok(res) => Issue::Done(res, 0),
        Err(e) => Issue::err(e),
    }
}

fn prep_shutdown(sqe: &Sqe) -> Result<Op, Errno> {
    let zero =
        [sqe.off, sqe.addr, sqe.op_flags as u64, sqe.buf_index as u64, sqe.file_index as u64];
    must_be_zero(&zero)?;
    Ok(Op::Shutdown(sqe.len))
}

fn issue_shutdown(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Shutdown(how) = req.op else { return Issue::err(Errno::INVAL) };
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe {
        ctx.call(nr::__NR_shutdown, [req.file.raw() as usize, how as usize, 0, 0, 0, 0])
    })
}

/// ACCEPT.
pub const ACCEPT: OpDef = OpDef {
    ioprio: true,
    unbound: true,
    ..OpDef::new("ACCEPT", op::ACCEPT, prep_accept, issue_accept)
};
/// SOCKET.
pub const SOCKET: OpDef =
    OpDef { file: FileUse::Ignored, ..OpDef::new("SOCKET", op::SOCKET, prep_socket, issue_socket) };
/// SHUTDOWN.
pub const SHUTDOWN: OpDef =
    OpDef { lenient: true, ..OpDef::new("SHUTDOWN", op::SHUTDOWN, prep_shutdown, issue_shutdown) };
