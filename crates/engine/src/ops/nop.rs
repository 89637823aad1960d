//! NOP.

use super::{Ctx, FileUse, Issue, Op, OpDef};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

const INJECT_RESULT: u32 = 1 << 0;
const FILE: u32 = 1 << 1;
const FIXED_FILE: u32 = 1 << 2;
const FIXED_BUFFER: u32 = 1 << 3;
const TW: u32 = 1 << 4;
const CQE32: u32 = 1 << 5;

/// A NOP with its flags.
#[derive(Debug)]
pub struct Nop {
    flags: u32,
    result: i32,
    /// The further words of a large CQE.
    pub extra: Option<[u64; 2]>,
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    let flags = sqe.op_flags;
    if flags & !(INJECT_RESULT | FILE | FIXED_FILE | FIXED_BUFFER | TW | CQE32) != 0 {
        return Err(Errno::INVAL);
    }
    let result = if flags & INJECT_RESULT != 0 { sqe.len as i32 } else { 0 };
    let extra = (flags & CQE32 != 0).then_some([sqe.off, sqe.addr]);
    Ok(Op::Nop(Nop { flags, result, extra }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Nop(nop) = &req.op else { return Issue::err(Errno::INVAL) };
    let (flags, result, large) = (nop.flags, nop.result, nop.extra.is_some());
    if large && !ctx.ring.has_large_cqes() {
        return Issue::err(Errno::INVAL);
    }
    if flags & FILE != 0 {
        let fixed = flags & FIXED_FILE != 0;
        let fd = req.fd;
        let there = if fixed {
            ctx.with_state(|st| st.files.get(fd as u32).is_some())
        } else {
            crate::host::fd::is_open(fd)
        };
        if !there {
            return Issue::err(Errno::BADF);
        }
    }
    if flags & FIXED_BUFFER != 0 {
        let index = req.buf;
        if ctx.with_state(|st| st.buffers.get(index).is_none()) {
            return Issue::err(Errno::FAULT);
        }
    }
    Issue::Done(result, 0)
}

/// NOP.
pub const NOP: OpDef =
    OpDef { file: FileUse::Ignored, iopoll: true, ..OpDef::new("NOP", op::NOP, prep, issue) };
