//! SENDMSG and RECVMSG, and what SENDMSG_ZC shares with them.

use super::leftover;
use super::socket::{has_more, is_stream};
use super::transfer::{
    check_multishot, dontwait, without_buffer, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_WAITALL,
};
use super::zerocopy::{self, Zerocopy};
use super::{shots, Ctx, Issue, Op, OpDef};
use super::{RECVSEND_POLL_FIRST, RECV_MULTISHOT, SEND_VECTORIZED};
use crate::host::rw::{Iovec, Msghdr};
use crate::host::{nr, poll, user};
use crate::limits::CONTROL_BYTES_MAX;
use crate::ops::must_be_zero;
use crate::ops::net::connect::SOCKADDR_MAX;
use crate::ops::rw::{read_iovecs, return_buffer};
use crate::registered::groups::Take;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{cqe, op, sqe, Sqe};

const MSG_ERRQUEUE: u32 = 0x2000;

/// A message; header, vectors and, for sends, name and control data are copies.
#[derive(Debug)]
pub struct Msg {
    send: bool,
    /// The program's header, to be updated by a receive.
    user: usize,
    header: Msghdr,
    vectors: Vec<Iovec>,
    name: Vec<u8>,
    control: Vec<u8>,
    flags: u32,
    poll_first: bool,
    multishot: bool,
    /// A multishot has posted since it last waited.
    posted: bool,
    done: usize,
    /// Of a SENDMSG_ZC.
    pub zerocopy: Option<Zerocopy>,
}

impl Msg {
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
        &self.vectors
    }
}

/// Vectors without the first `skip` bytes.
pub fn skip(vectors: &[Iovec], mut skip: usize) -> Vec<Iovec> {
    let mut out = Vec::with_capacity(vectors.len());
    for v in vectors {
        let cut = skip.min(v.len);
        skip -= cut;
        out.push(Iovec { base: v.base + cut, len: v.len - cut });
    }
    out
}

fn read_header(sqe: &Sqe) -> Result<(Msghdr, Vec<Iovec>), Errno> {
    let mut header: Msghdr = user::read(sqe.addr as usize)?;
    const MSGSIZE: Errno = Errno(90);
    if header.iovlen > 1024 {
        return Err(MSGSIZE);
    }
    if (header.namelen as i32) < 0 {
        return Err(Errno::INVAL);
    }
    header.namelen = header.namelen.min(SOCKADDR_MAX as u32);
    let selects = sqe.flags & sqe::BUFFER_SELECT != 0;
    if selects && header.iovlen > 1 {
        return Err(Errno::INVAL);
    }
    Ok((header, read_iovecs(header.iov as u64, header.iovlen as u32)?))
}

fn prep_send(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.file_index as u64])?;
    if sqe.ioprio & !(RECVSEND_POLL_FIRST | SEND_VECTORIZED) != 0 {
        return Err(Errno::INVAL);
    }
    send(sqe).map(|m| message(sqe, m))
}

/// SENDMSG_ZC: its `ioprio` is checked already.
pub fn send_zerocopy(sqe: &Sqe, zerocopy: Zerocopy) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.file_index as u64])?;
    send(sqe).map(|m| message(sqe, Msg { zerocopy: Some(zerocopy), ..m }))
}

fn send(sqe: &Sqe) -> Result<Msg, Errno> {
    let (header, vectors) = read_header(sqe)?;
    let name = if header.name == 0 {
        Vec::new()
    } else {
        user::read_vec(header.name, header.namelen as usize)?
    };
    if header.controllen > CONTROL_BYTES_MAX {
        return Err(Errno::NOBUFS);
    }
    let control = if header.control == 0 {
        Vec::new()
    } else {
        user::read_vec(header.control, header.controllen)?
    };
    let flags = sqe.op_flags | MSG_NOSIGNAL;
    Ok(Msg { name, control, flags, ..blank(sqe, true, header, vectors) })
}

fn prep_recv(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.file_index as u64])?;
    if sqe.ioprio & !(RECVSEND_POLL_FIRST | RECV_MULTISHOT) != 0 {
        return Err(Errno::INVAL);
    }
    let multishot = check_multishot(sqe)?;
    let (header, vectors) = read_header(sqe)?;
    Ok(message(sqe, Msg { multishot, ..blank(sqe, false, header, vectors) }))
}

fn blank(sqe: &Sqe, send: bool, header: Msghdr, vectors: Vec<Iovec>) -> Msg {
    Msg {
        send,
        user: sqe.addr as usize,
        header,
        vectors,
        name: Vec::new(),
        control: Vec::new(),
        flags: sqe.op_flags,
        poll_first: false,
        multishot: false,
        posted: false,
        done: 0,
        zerocopy: None,
    }
}

fn message(sqe: &Sqe, msg: Msg) -> Op {
    Op::Msg(Box::new(Msg { poll_first: sqe.ioprio & RECVSEND_POLL_FIRST != 0, ..msg }))
}

/// Puts a provided buffer into the place of the vectors.
fn choose_buffer(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<(), Errno> {
    if !req.has(sqe::BUFFER_SELECT) || req.selected.is_some() {
        return Ok(());
    }
    let Op::Msg(m) = &req.op else { return Err(Errno::INVAL) };
    let (group, max) = (req.buf, m.vectors.first().map_or(0, |v| v.len));
    let take = if ctx.may_block() { Take::Hold } else { Take::Peek };
    let buf = ctx.with_state(|st| st.groups.select(group, max, take))?;
    req.selected = Some(buf);
    Ok(())
}

/// One attempt, also of a SENDMSG_ZC.
pub fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Msg(m) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let events = match (m.send, m.flags & MSG_ERRQUEUE) {
        (true, _) => poll::OUT,
        (false, 0) => poll::IN,
        (false, _) => poll::ERR,
    };
    if core::mem::take(&mut m.poll_first) {
        return Issue::Poll(events);
    }
    let posted = core::mem::take(&mut m.posted);
    if let Err(e) = choose_buffer(req, ctx) {
        return without_buffer(e, req.file.raw(), posted);
    }
    if matches!(&req.op, Op::Msg(m) if m.multishot) {
        return issue_shot(req, ctx);
    }
    loop {
        let chosen = req.selected.map(|b| Iovec { base: b.addr, len: b.len });
        let socket = req.file.raw();
        let Op::Msg(m) = &mut req.op else { return Issue::err(Errno::INVAL) };
        let wanted: usize = chosen.map_or_else(|| m.vectors.iter().map(|v| v.len).sum(), |v| v.len);
        match call(m, ctx, socket, chosen) {
            Ok(n) => {
                m.done += n;
                let whole = m.flags & MSG_WAITALL != 0;
                let may_go_on = m.send || m.header.controllen == 0;
                if n > 0 && m.done < wanted && whole && may_go_on && is_stream(socket) {
                    continue;
                }
                let (done, send) = (m.done, m.send);
                req.failed |= whole && done < wanted;
                let more = !send && done == wanted && done > 0 && leftover::asked(ctx, socket);
                return Issue::Done(done as i32, if more { cqe::F_SOCK_NONEMPTY } else { 0 });
            }
            Err(Errno::AGAIN) if m.flags & MSG_DONTWAIT == 0 && !req.stubborn => {
                if m.done == 0 {
                    return_buffer(req, ctx);
                }
                return Issue::Poll(events);
            }
            Err(_) if m.done > 0 => {
                let done = m.done;
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

/// One message of a multishot receive.
fn issue_shot(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let (socket, selected) = (req.file.raw(), req.selected);
    let (Op::Msg(m), Some(buffer)) = (&mut req.op, selected) else {
        return Issue::err(Errno::INVAL);
    };
    let room = Iovec { base: buffer.addr, len: buffer.len };
    match shots::receive(socket, &m.header, m.flags | MSG_DONTWAIT, room) {
        Ok(shot) if shot.payload == 0 => Issue::Done(shot.res as i32, 0),
        Ok(shot) => {
            m.posted = true;
            let more = if has_more(socket) { cqe::F_SOCK_NONEMPTY } else { 0 };
            Issue::More(shot.res as i32, more)
        }
        Err(Errno::AGAIN) if m.flags & MSG_DONTWAIT == 0 => {
            return_buffer(req, ctx);
            Issue::Poll(poll::IN)
        }
        Err(e) => Issue::err(e),
    }
}

/// One call for what is left.
fn call(m: &mut Msg, ctx: &Ctx<'_>, socket: i32, chosen: Option<Iovec>) -> Result<usize, Errno> {
    let vectors = match &chosen {
        Some(v) => skip(core::slice::from_ref(v), m.done),
        None => skip(&m.vectors, m.done),
    };
    let mut header = Msghdr { iov: vectors.as_ptr() as usize, iovlen: vectors.len(), ..m.header };
    let flags = m.flags | dontwait(ctx);
    if m.send {
        header.name = if m.name.is_empty() { 0 } else { m.name.as_ptr() as usize };
        header.namelen = m.name.len() as u32;
        header.control =
            if m.control.is_empty() || m.done > 0 { 0 } else { m.control.as_ptr() as usize };
        header.controllen = if header.control == 0 { 0 } else { m.control.len() };
        let args = [socket as usize, &raw const header as usize, flags as usize, 0, 0, 0];
        // SAFETY: header, name, control and vectors are the engine's; the data is the program's, which the kernel checks.
        return unsafe { ctx.call(nr::__NR_sendmsg, args) };
    }
    let args =
        [socket as usize, &raw mut header as usize, (flags & !MSG_WAITALL) as usize, 0, 0, 0];
    // SAFETY: header and vectors are the engine's; name, control and data are the program's, which the kernel checks.
    let n = unsafe { ctx.call(nr::__NR_recvmsg, args) }?;
    // The program's own header learns what a recvmsg(2) would have told it.
    user::write(m.user + NAMELEN, &header.namelen)?;
    user::write(m.user + CONTROLLEN, &header.controllen)?;
    user::write(m.user + FLAGS, &header.flags)?;
    Ok(n)
}

const NAMELEN: usize = core::mem::offset_of!(Msghdr, namelen);
const CONTROLLEN: usize = core::mem::offset_of!(Msghdr, controllen);
const FLAGS: usize = core::mem::offset_of!(Msghdr, flags);

const fn row(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef { ioprio: true, unbound: true, ..OpDef::new(name, code, prep, issue) }
}

/// SENDMSG.
pub const SENDMSG: OpDef = row("SENDMSG", op::SENDMSG, prep_send);
/// RECVMSG.
pub const RECVMSG: OpDef = OpDef { buffer_select: true, ..row("RECVMSG", op::RECVMSG, prep_recv) };
