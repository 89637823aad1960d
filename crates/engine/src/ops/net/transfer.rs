//! SEND and RECV.

use super::connect::read_address;
use super::{sockopt, Ctx, Issue, Op, OpDef, Support, RECVSEND_POLL_FIRST};
use crate::host::rw::{Iovec, Msghdr};
use crate::host::{nr, poll};
use crate::limits::RW_BYTES_MAX;
use crate::ops::rw::{read_iovecs, return_buffer};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{cqe, op, sqe, Sqe};

/// Wait until the whole length is there.
pub const MSG_WAITALL: u32 = 0x100;
/// Do not wait.
pub const MSG_DONTWAIT: u32 = 0x40;
/// No SIGPIPE.
pub const MSG_NOSIGNAL: u32 = 0x4000;

/// A transfer of one range.
#[derive(Debug)]
pub struct Transfer {
    send: bool,
    memory: Iovec,
    /// Vectors of a vectorized send.
    vectors: Option<Vec<Iovec>>,
    /// Destination of a datagram.
    addr: Vec<u8>,
    flags: u32,
    poll_first: bool,
    done: usize,
}

fn prep_send(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.ioprio & !(RECVSEND_POLL_FIRST | super::SEND_VECTORIZED) != 0 || sqe.addr_len_pad() != 0
    {
        return Err(Errno::INVAL);
    }
    let selects = sqe.flags & sqe::BUFFER_SELECT != 0;
    let addr =
        if sqe.off != 0 { read_address(sqe.off, sqe.addr_len() as u64)? } else { Vec::new() };
    let vectorized = sqe.ioprio & super::SEND_VECTORIZED != 0 && !selects;
    let vectors = if vectorized { Some(read_iovecs(sqe.addr, sqe.len)?) } else { None };
    Ok(Op::Transfer(Transfer { vectors, addr, ..transfer(sqe, true) }))
}

fn transfer(sqe: &Sqe, send: bool) -> Transfer {
    Transfer {
        send,
        memory: Iovec { base: sqe.addr as usize, len: (sqe.len as usize).min(RW_BYTES_MAX) },
        vectors: None,
        addr: Vec::new(),
        flags: sqe.op_flags | if send { MSG_NOSIGNAL } else { 0 },
        poll_first: sqe.ioprio & RECVSEND_POLL_FIRST != 0,
        done: 0,
    }
}

fn prep_recv(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.ioprio & !RECVSEND_POLL_FIRST != 0 || sqe.off != 0 || sqe.file_index != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Transfer(transfer(sqe, false)))
}

/// MSG_WAITALL goes on after a short result on sockets that are streams.
pub fn is_stream(socket: i32) -> bool {
    const SO_TYPE: u32 = 3;
    const STREAM: i32 = 1;
    const SEQPACKET: i32 = 5;
    matches!(sockopt(socket, SO_TYPE), Ok(STREAM | SEQPACKET))
}

/// Bytes that wait in a stream socket.
pub fn has_more(socket: i32) -> bool {
    const FIONREAD: usize = 0x541b;
    let mut bytes = 0i32;
    // SAFETY: the kernel writes one integer.
    let asked = unsafe {
        crate::host::syscall(
            nr::__NR_ioctl,
            [socket as usize, FIONREAD, &raw mut bytes as usize, 0, 0, 0],
        )
    };
    asked.is_ok() && bytes > 0
}

/// Takes the provided buffer, if one is asked for. A send with an unknown group is told so.
fn memory(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<Iovec, Errno> {
    let Op::Transfer(t) = &req.op else { return Err(Errno::INVAL) };
    let (own, send) = (t.memory, t.send);
    if !req.has(sqe::BUFFER_SELECT) {
        return Ok(own);
    }
    if req.selected.is_none() {
        let group = req.buf;
        let taken = ctx.with_state(|st| match st.groups.select(group, own.len) {
            Err(_) if send && !st.groups.exists(group) => Err(Errno::NOENT),
            other => other,
        });
        req.selected = Some(taken?);
    }
    Ok(req.selected.map_or(own, |b| Iovec { base: b.addr, len: b.len }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Transfer(t) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let events = if t.send { poll::OUT } else { poll::IN };
    if core::mem::take(&mut t.poll_first) {
        return Issue::Poll(events);
    }
    let memory = match memory(req, ctx) {
        Ok(memory) => memory,
        Err(e) => return Issue::err(e),
    };
    let Op::Transfer(t) = &mut req.op else { return Issue::err(Errno::INVAL) };
    loop {
        let wanted = t.vectors.as_ref().map_or(memory.len, |v| v.iter().map(|v| v.len).sum());
        let result = call(t, req.file.raw(), memory);
        match result {
            Ok(n) => {
                t.done += n;
                let whole = t.flags & MSG_WAITALL != 0;
                if n > 0 && t.done < wanted && whole && is_stream(req.file.raw()) {
                    continue;
                }
                let (done, send) = (t.done, t.send);
                req.failed |= whole && done < wanted;
                let more = !send && done == wanted && done > 0 && has_more(req.file.raw());
                return Issue::Done(done as i32, if more { cqe::F_SOCK_NONEMPTY } else { 0 });
            }
            Err(Errno::AGAIN) if t.flags & MSG_DONTWAIT == 0 => {
                if t.done == 0 {
                    return_buffer(req, ctx);
                }
                return Issue::Poll(events);
            }
            Err(_) if t.done > 0 => {
                let done = t.done;
                req.failed = true;
                return Issue::Done(done as i32, 0);
            }
            Err(e) => return Issue::err(e),
        }
    }
}

/// One non-blocking call for what is left.
fn call(t: &Transfer, socket: i32, memory: Iovec) -> Result<usize, Errno> {
    let flags = (t.flags | MSG_DONTWAIT) as usize;
    let socket = socket as usize;
    if let Some(vectors) = &t.vectors {
        let left = crate::ops::net::msg::skip(vectors, t.done);
        let header = Msghdr {
            name: if t.addr.is_empty() { 0 } else { t.addr.as_ptr() as usize },
            namelen: t.addr.len() as u32,
            iov: left.as_ptr() as usize,
            iovlen: left.len(),
            ..Msghdr::default()
        };
        // SAFETY: header, name and vectors are the engine's; the data is the program's, which the kernel checks.
        return unsafe {
            crate::host::syscall(
                nr::__NR_sendmsg,
                [socket, &raw const header as usize, flags, 0, 0, 0],
            )
        };
    }
    let (base, len) = (memory.base + t.done, memory.len - t.done);
    if t.send {
        let name = if t.addr.is_empty() { 0 } else { t.addr.as_ptr() as usize };
        // SAFETY: the address is a copy; the data is the program's, which the kernel checks.
        unsafe {
            crate::host::syscall(nr::__NR_sendto, [socket, base, len, flags, name, t.addr.len()])
        }
    } else {
        // The engine waits for the rest itself.
        let flags = flags & !(MSG_WAITALL as usize);
        // SAFETY: the data is the program's, which the kernel checks.
        unsafe { crate::host::syscall(nr::__NR_recvfrom, [socket, base, len, flags, 0, 0]) }
    }
}

/// SEND.
pub const SEND: OpDef = OpDef {
    support: Support::Partial("no bundles"),
    ioprio: true,
    buffer_select: true,
    unbound: true,
    ..OpDef::new("SEND", op::SEND, prep_send, issue)
};
/// RECV.
pub const RECV: OpDef = OpDef {
    support: Support::Partial("no multishot, no bundles"),
    ioprio: true,
    buffer_select: true,
    unbound: true,
    ..OpDef::new("RECV", op::RECV, prep_recv, issue)
};
