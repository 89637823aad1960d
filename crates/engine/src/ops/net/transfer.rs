//! SEND and RECV, and what SEND_ZC shares with them.
//!
//! A multishot RECV answers with [`Issue::More`] until its socket would block, its buffers run out, it
//! fails, the stream ends or its total is reached. A bundle fills or empties several buffers of a ring with one call
//! and one CQE, whose flags name the first of them.
//!
//! A multishot that was woken by an edge and then got less than it asked for, or was told that nothing is left, has
//! emptied its TCP socket: what comes later, data or the end, is another edge. So it need not ask again only to be told EAGAIN. It asks where the edge
//! already told of the end, of an error or of urgent data, at which a receive stops short.

use super::connect::read_address;
use super::zerocopy::{self, Zerocopy};
use super::{leftover, socket, Ctx, Issue, Op, OpDef};
use super::{RECVSEND_BUNDLE, RECVSEND_POLL_FIRST, RECV_MULTISHOT, SEND_VECTORIZED};
use crate::host::rw::{Iovec, Msghdr};
use crate::host::{nr, poll};
use crate::limits::RW_BYTES_MAX;
use crate::ops::rw::{read_iovecs, return_buffer};
use crate::registered::groups::Take;
use crate::req::{Req, Via};
use crate::Errno;
use anyring_uapi::{cqe, op, sqe, Sqe};

/// Wait until the whole length is there.
pub const MSG_WAITALL: u32 = 0x100;
/// Do not wait.
pub const MSG_DONTWAIT: u32 = 0x40;
/// No SIGPIPE.
pub const MSG_NOSIGNAL: u32 = 0x4000;

/// A transfer of one range, or of vectors.
#[derive(Debug)]
pub struct Transfer {
    send: bool,
    memory: Iovec,
    /// Vectors of a vectorized send, or of the bundle at hand.
    vectors: Option<Vec<Iovec>>,
    /// Destination of a datagram.
    addr: Vec<u8>,
    flags: u32,
    poll_first: bool,
    bundle: bool,
    multishot: bool,
    /// What is left of a multishot's total, if it has one.
    total: Option<u32>,
    /// A multishot has posted since it last waited.
    posted: bool,
    /// Whether the socket is TCP's, once it mattered.
    tcp: Option<bool>,
    done: usize,
    /// Of a SEND_ZC.
    pub zerocopy: Option<Zerocopy>,
}

impl Transfer {
    /// Posts CQEs until it ends.
    pub fn multishot(&self) -> bool {
        self.multishot
    }
    /// Waits for room.
    pub fn sends(&self) -> bool {
        self.send
    }
    /// All memory it names.
    pub fn ranges(&self) -> &[Iovec] {
        self.vectors.as_deref().unwrap_or(core::slice::from_ref(&self.memory))
    }
}

fn prep_send(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.ioprio & !(RECVSEND_POLL_FIRST | RECVSEND_BUNDLE | SEND_VECTORIZED) != 0 {
        return Err(Errno::INVAL);
    }
    send(sqe).map(Op::Transfer)
}

/// What SEND and SEND_ZC capture alike.
pub fn send(sqe: &Sqe) -> Result<Transfer, Errno> {
    if sqe.addr_len_pad() != 0 {
        return Err(Errno::INVAL);
    }
    let selects = sqe.flags & sqe::BUFFER_SELECT != 0;
    let addr =
        if sqe.off != 0 { read_address(sqe.off, sqe.addr_len() as u64)? } else { Vec::new() };
    let vectorized = sqe.ioprio & SEND_VECTORIZED != 0 && !selects;
    let vectors = if vectorized { Some(read_iovecs(sqe.addr, sqe.len)?) } else { None };
    let mut t = Transfer { vectors, addr, ..transfer(sqe, true) };
    if t.bundle {
        t.flags |= MSG_WAITALL;
    }
    Ok(t)
}

fn transfer(sqe: &Sqe, send: bool) -> Transfer {
    Transfer {
        send,
        memory: Iovec { base: sqe.addr as usize, len: (sqe.len as usize).min(RW_BYTES_MAX) },
        vectors: None,
        addr: Vec::new(),
        flags: sqe.op_flags | if send { MSG_NOSIGNAL } else { 0 },
        poll_first: sqe.ioprio & RECVSEND_POLL_FIRST != 0,
        bundle: sqe.ioprio & RECVSEND_BUNDLE != 0,
        multishot: false,
        total: None,
        posted: false,
        tcp: None,
        done: 0,
        zerocopy: None,
    }
}

/// What a multishot receive asks of its SQE.
pub fn check_multishot(sqe: &Sqe) -> Result<bool, Errno> {
    if sqe.ioprio & RECV_MULTISHOT == 0 {
        return Ok(false);
    }
    if sqe.flags & sqe::BUFFER_SELECT == 0 || sqe.op_flags & MSG_WAITALL != 0 {
        return Err(Errno::INVAL);
    }
    Ok(true)
}

fn prep_recv(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.ioprio & !(RECVSEND_POLL_FIRST | RECV_MULTISHOT | RECVSEND_BUNDLE) != 0 || sqe.off != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = check_multishot(sqe)?;
    if sqe.file_index != 0 && !multishot {
        return Err(Errno::INVAL);
    }
    let total = (sqe.file_index != 0).then_some(sqe.file_index);
    Ok(Op::Transfer(Transfer { multishot, total, ..transfer(sqe, false) }))
}

/// Takes provided buffers, if they are asked for and not there yet. A send with an unknown group is told so.
fn choose(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<(), Errno> {
    let Op::Transfer(t) = &mut req.op else { return Err(Errno::INVAL) };
    if req.flags & sqe::BUFFER_SELECT == 0 || req.selected.is_some() {
        return Ok(());
    }
    let (group, max, send, bundle) = (req.buf, t.memory.len, t.send, t.bundle);
    let take = if ctx.may_block() { Take::Hold } else { Take::Peek };
    let (selected, vectors) = ctx.with_state(|st| {
        if send && !st.groups.exists(group) {
            return Err(Errno::NOENT);
        }
        if bundle {
            st.groups.select_many(group, max, take).map(|(sel, vectors)| (sel, Some(vectors)))
        } else {
            st.groups.select(group, max, take).map(|sel| (sel, None))
        }
    })?;
    t.vectors = vectors;
    req.selected = Some(selected);
    Ok(())
}

/// Without a buffer a multishot ends, unless it is only about to wait for a stream's next bytes.
pub fn without_buffer(e: Errno, socket: i32, posted: bool) -> Issue {
    let waits = e == Errno::NOBUFS
        && posted
        && socket::is_byte_stream(socket)
        && matches!(poll::ready(socket, poll::IN), Ok(0));
    if waits {
        Issue::Poll(poll::IN)
    } else {
        Issue::err(e)
    }
}

/// Only a worker may wait in the call itself.
pub fn dontwait(ctx: &Ctx<'_>) -> u32 {
    if ctx.may_block() {
        0
    } else {
        MSG_DONTWAIT
    }
}

/// One attempt, also of a SEND_ZC.
pub fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Transfer(t) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let events = if t.send { poll::OUT } else { poll::IN };
    if core::mem::take(&mut t.poll_first) {
        return Issue::Poll(events);
    }
    let (had_posted, socket) = (core::mem::take(&mut t.posted), req.file.raw());
    if let Err(e) = choose(req, ctx) {
        return without_buffer(e, socket, had_posted);
    }
    loop {
        let own = req.selected.filter(|b| !b.many).map(|b| Iovec { base: b.addr, len: b.len });
        let Op::Transfer(t) = &mut req.op else { return Issue::err(Errno::INVAL) };
        let memory = own.unwrap_or(t.memory);
        let wanted = match &t.vectors {
            Some(vectors) => vectors.iter().fold(0usize, |sum, v| sum.saturating_add(v.len)),
            None => memory.len,
        };
        match call(t, ctx, socket, memory) {
            Ok(n) => {
                t.done += n;
                let whole = t.flags & MSG_WAITALL != 0;
                if n > 0 && t.done < wanted && whole && socket::is_stream(socket) {
                    continue;
                }
                req.failed |= whole && t.done < wanted;
                return transferred(req, ctx, wanted);
            }
            Err(Errno::AGAIN) if t.flags & MSG_DONTWAIT == 0 && !req.stubborn => {
                wait_with_buffer(req, ctx);
                return Issue::Poll(events);
            }
            Err(_) if t.done > 0 => {
                let done = t.done;
                req.failed = true;
                return Issue::Done(done as i32, 0);
            }
            Err(e) => {
                zerocopy::failed(req, e);
                return Issue::err(e);
            }
        }
    }
}

/// Before a request waits: its buffer goes back, unless it is partly filled.
fn wait_with_buffer(req: &mut Req, ctx: &mut Ctx<'_>) {
    if matches!(&req.op, Op::Transfer(t) if t.done == 0) {
        return return_buffer(req, ctx);
    }
    if let Some(mut selected) = req.selected.take() {
        ctx.with_state(|st| st.groups.hold(&mut selected));
        req.selected = Some(selected);
    }
}

/// A call brought something, or the end: is it the last result?
fn transferred(req: &mut Req, ctx: &mut Ctx<'_>, wanted: usize) -> Issue {
    let plain_edge = req.woken_by == poll::IN;
    let (socket, inline, buffers_left) =
        (req.file.raw(), req.via == Via::Inline, !req.selected.is_some_and(|b| b.last));
    let Op::Transfer(t) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let done = t.done;
    if t.send {
        // A bundle goes on with what was published meanwhile, unless it had to wait.
        if t.bundle && done > 0 && buffers_left && inline && !ctx.may_block() {
            t.done = 0;
            t.memory.len = 0;
            return Issue::More(done as i32, 0);
        }
        return Issue::Done(done as i32, 0);
    }
    let more = match done == wanted {
        true if t.multishot => socket::has_more(socket),
        true => leftover::asked(ctx, socket),
        false => socket::tells_end(socket, done, wanted),
    };
    let flags = if more { cqe::F_SOCK_NONEMPTY } else { 0 };
    if let Some(total) = &mut t.total {
        // Beyond what a signed integer holds, the first result is the last.
        *total = if *total > i32::MAX as u32 { 0 } else { total.saturating_sub(done as u32) };
    }
    if !t.multishot || done == 0 || t.total == Some(0) {
        return Issue::Done(done as i32, flags);
    }
    t.done = 0;
    t.posted = true;
    let emptied = plain_edge
        && (done < wanted || !more)
        && t.flags == 0
        && *t.tcp.get_or_insert_with(|| socket::is_tcp(socket));
    if emptied {
        return Issue::MoreThenPoll(done as i32, flags, poll::IN);
    }
    Issue::More(done as i32, flags)
}

/// One call for what is left.
fn call(t: &Transfer, ctx: &Ctx<'_>, socket: i32, memory: Iovec) -> Result<usize, Errno> {
    let mut flags = (t.flags | dontwait(ctx)) as usize;
    if !t.send {
        // The engine waits for the rest itself.
        flags &= !(MSG_WAITALL as usize);
    }
    let socket = socket as usize;
    if let Some(vectors) = &t.vectors {
        let left = super::msg::skip(vectors, t.done);
        let mut header = Msghdr {
            name: if t.addr.is_empty() { 0 } else { t.addr.as_ptr() as usize },
            namelen: t.addr.len() as u32,
            iov: left.as_ptr() as usize,
            iovlen: left.len(),
            ..Msghdr::default()
        };
        let number = if t.send { nr::__NR_sendmsg } else { nr::__NR_recvmsg };
        // SAFETY: header, name and vectors are the engine's; the data is the program's, which the kernel checks.
        return unsafe { ctx.call(number, [socket, &raw mut header as usize, flags, 0, 0, 0]) };
    }
    let (base, len) = (memory.base + t.done, memory.len - t.done);
    if t.send {
        let name = if t.addr.is_empty() { 0 } else { t.addr.as_ptr() as usize };
        // SAFETY: the address is a copy; the data is the program's, which the kernel checks.
        unsafe { ctx.call(nr::__NR_sendto, [socket, base, len, flags, name, t.addr.len()]) }
    } else {
        // SAFETY: the data is the program's, which the kernel checks.
        unsafe { ctx.call(nr::__NR_recvfrom, [socket, base, len, flags, 0, 0]) }
    }
}

/// SEND.
pub const SEND: OpDef = OpDef {
    ioprio: true,
    buffer_select: true,
    unbound: true,
    ..OpDef::new("SEND", op::SEND, prep_send, issue)
};
/// RECV.
pub const RECV: OpDef = OpDef {
    ioprio: true,
    buffer_select: true,
    unbound: true,
    ..OpDef::new("RECV", op::RECV, prep_recv, issue)
};
