//! SEND_ZC and SENDMSG_ZC: sends whose buffer stays in use until a second CQE, the notification.
//!
//! The bytes are copied by the send itself, so the buffer is free as soon as it returns, and the notification follows
//! the result at once, marked as copied where REPORT_USAGE asks for it. docs/ARCHITECTURE.md says why MSG_ZEROCOPY is not
//! used. Once the notification exists, every end of the request has both CQEs.

use super::socket;
use super::transfer;
use super::{msg, Ctx, Issue, Op, OpDef};
use super::{RECVSEND_FIXED_BUF, RECVSEND_POLL_FIRST, SEND_VECTORIZED, SEND_ZC_REPORT_USAGE};
use crate::host::rw::Iovec;
use crate::registered::buffers::FixedBuffer;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};
use std::sync::Arc;

/// What a zero-copy send has beyond a plain one.
#[derive(Debug, Default)]
pub struct Zerocopy {
    /// Index of the registered buffer that the memory must lie in.
    fixed: Option<u16>,
    /// Kept as long as the request lives.
    buffer: Option<Arc<FixedBuffer>>,
}

/// The notification's result with REPORT_USAGE: the bytes were copied.
const USAGE_COPIED: u32 = 1 << 31;

/// The result of the notification that an SQE will have; `None` if it has none (yet).
pub fn notification(sqe: &Sqe) -> Option<i32> {
    let zerocopy = matches!(sqe.opcode, op::SEND_ZC | op::SENDMSG_ZC);
    if !zerocopy || sqe.addr3 != 0 || sqe.pad2 != 0 || sqe.flags & sqe::CQE_SKIP_SUCCESS != 0 {
        return None;
    }
    let reports = sqe.ioprio & SEND_ZC_REPORT_USAGE != 0 && sqe.ioprio & !KNOWN == 0;
    Some(if reports { USAGE_COPIED as i32 } else { 0 })
}

const KNOWN: u16 =
    RECVSEND_POLL_FIRST | RECVSEND_FIXED_BUF | SEND_ZC_REPORT_USAGE | SEND_VECTORIZED;

fn check(sqe: &Sqe) -> Result<Zerocopy, Errno> {
    if notification(sqe).is_none() || sqe.ioprio & !KNOWN != 0 {
        return Err(Errno::INVAL);
    }
    let fixed = (sqe.ioprio & RECVSEND_FIXED_BUF != 0).then_some(sqe.buf_index);
    Ok(Zerocopy { fixed, buffer: None })
}

/// A send that met bad memory has begun, and copied nothing.
pub fn failed(req: &mut Req, e: Errno) {
    if e == Errno::FAULT && req.notification.is_some() {
        req.notification = Some(0);
    }
}

fn prep_send(sqe: &Sqe) -> Result<Op, Errno> {
    let zerocopy = Some(check(sqe)?);
    // Vectors inside a registered buffer are for messages only.
    const BOTH: u16 = RECVSEND_FIXED_BUF | SEND_VECTORIZED;
    if sqe.ioprio & BOTH == BOTH {
        return Err(Errno::INVAL);
    }
    let mut transfer = transfer::send(sqe)?;
    transfer.zerocopy = zerocopy;
    Ok(Op::Transfer(transfer))
}

fn prep_sendmsg(sqe: &Sqe) -> Result<Op, Errno> {
    let zerocopy = check(sqe)?;
    msg::send_zerocopy(sqe, zerocopy)
}

/// The memory of a fixed send lies inside its registered buffer, else EFAULT.
fn hold_buffer(
    zerocopy: &Zerocopy,
    ranges: &[Iovec],
    ctx: &mut Ctx<'_>,
) -> Result<Option<Arc<FixedBuffer>>, Errno> {
    let (Some(index), None) = (zerocopy.fixed, &zerocopy.buffer) else { return Ok(None) };
    let buffer = ctx.with_state(|st| st.buffers.get(index)).ok_or(Errno::FAULT)?;
    if ranges.iter().any(|r| !buffer.contains(r.base, r.len)) {
        return Err(Errno::FAULT);
    }
    Ok(Some(buffer))
}

/// EOPNOTSUPP for sockets that know no zero copy.
fn check_family(socket: i32) -> Result<(), Errno> {
    if socket::is_inet(socket)? {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP)
    }
}

fn prepare(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<(), Errno> {
    match &mut req.op {
        Op::Transfer(t) => {
            let Some(zerocopy) = &t.zerocopy else { return Err(Errno::INVAL) };
            let buffer = hold_buffer(zerocopy, t.ranges(), ctx)?;
            if let (Some(zerocopy), Some(buffer)) = (&mut t.zerocopy, buffer) {
                zerocopy.buffer = Some(buffer);
            }
        }
        Op::Msg(m) => {
            let Some(zerocopy) = &m.zerocopy else { return Err(Errno::INVAL) };
            let buffer = hold_buffer(zerocopy, m.ranges(), ctx)?;
            if let (Some(zerocopy), Some(buffer)) = (&mut m.zerocopy, buffer) {
                zerocopy.buffer = Some(buffer);
            }
        }
        _ => return Err(Errno::INVAL),
    }
    check_family(req.file.raw())
}

fn issue_send(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    match prepare(req, ctx) {
        Ok(()) => transfer::issue(req, ctx),
        Err(e) => Issue::err(e),
    }
}

fn issue_sendmsg(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    match prepare(req, ctx) {
        Ok(()) => msg::issue(req, ctx),
        Err(e) => Issue::err(e),
    }
}

/// SEND_ZC.
pub const SEND_ZC: OpDef = OpDef {
    ioprio: true,
    unbound: true,
    ..OpDef::new("SEND_ZC", op::SEND_ZC, prep_send, issue_send)
};
/// SENDMSG_ZC.
pub const SENDMSG_ZC: OpDef = OpDef {
    ioprio: true,
    unbound: true,
    ..OpDef::new("SENDMSG_ZC", op::SENDMSG_ZC, prep_sendmsg, issue_sendmsg)
};
