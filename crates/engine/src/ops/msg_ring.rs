//! MSG_RING: a CQE, or a registered file, for another ring.
//!
//! The other ring's state lock is never waited for while this one's is held: data goes through its completion queue
//! alone, or through its inbox where only its owner may post; a file is handed over under its lock if that is free,
//! and by a worker, which holds nothing, if not.

use super::{Ctx, FileUse, Issue, Op, OpDef};
use crate::registered::files::{FixedFile, Tag};
use crate::req::Req;
use crate::ring::state::State;
use crate::ring::Ring;
use crate::{Errno, Inner};
use anyring_uapi::sqe::FILE_INDEX_ALLOC;
use anyring_uapi::{op, Cqe, Sqe};
use std::sync::Arc;

const DATA: u64 = 0;
const SEND_FD: u64 = 1;
/// No CQE in the target.
const CQE_SKIP: u32 = 1 << 0;
/// `file_index` holds the CQE's flags.
const FLAGS_PASS: u32 = 1 << 1;

/// MSG_RING.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    command: u64,
    user_data: u64,
    res: u32,
    flags: u32,
    source_slot: u64,
    /// Target slot + 1, or the CQE's flags.
    index: u32,
}

/// Captures a message; what it may hold is checked when it is sent.
pub fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    if sqe.buf_index != 0 || sqe.personality != 0 {
        return Err(Errno::INVAL);
    }
    let flags = sqe.op_flags;
    if flags & !(CQE_SKIP | FLAGS_PASS) != 0 {
        return Err(Errno::INVAL);
    }
    let (command, user_data, res) = (sqe.addr, sqe.off, sqe.len);
    Ok(Op::MsgRing(Message {
        command,
        user_data,
        res,
        flags,
        source_slot: sqe.addr3,
        index: sqe.file_index,
    }))
}

impl Message {
    /// Whether it carries data only.
    pub fn is_data(&self) -> bool {
        self.command == DATA
    }

    fn cqe(&self, res: i32) -> Cqe {
        let flags = if self.flags & FLAGS_PASS != 0 { self.index } else { 0 };
        Cqe { user_data: self.user_data, res, flags }
    }

    /// Posts a data message.
    pub fn send_data(&self, target: &Arc<Ring>) -> Result<(), Errno> {
        if self.source_slot != 0 || self.flags & CQE_SKIP != 0 {
            return Err(Errno::INVAL);
        }
        if self.flags & FLAGS_PASS == 0 && self.index != 0 {
            return Err(Errno::INVAL);
        }
        check_target(target)?;
        target.receive(self.cqe(self.res as i32))
    }
}

/// The ring behind a descriptor. EBADF for none, EBADFD for another kind of file.
pub fn target(engine: &Inner, fd: i32) -> Result<Arc<Ring>, Errno> {
    match engine.ring_or_error(fd) {
        Err(Errno::BADF) => Err(Errno::BADF),
        Err(_) => Err(Errno::BADFD),
        Ok(ring) => Ok(ring),
    }
}

fn check_target(target: &Ring) -> Result<(), Errno> {
    if target.is_disabled() {
        return Err(Errno::BADFD);
    }
    Ok(())
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::MsgRing(message) = req.op else { return Issue::err(Errno::INVAL) };
    let Some(engine) = ctx.ring.engine.upgrade() else { return Issue::err(Errno::BADFD) };
    let target = match target(&engine, req.file.raw()) {
        Ok(target) => target,
        Err(e) => return Issue::err(e),
    };
    match message.command {
        DATA => Issue::from_result(message.send_data(&target).map(|()| 0)),
        SEND_FD => send_fd(&message, &target, ctx),
        _ => Issue::err(Errno::INVAL),
    }
}

fn send_fd(message: &Message, target: &Arc<Ring>, ctx: &mut Ctx<'_>) -> Issue {
    if message.res != 0 || target.id == ctx.ring.id {
        return Issue::err(Errno::INVAL);
    }
    if let Err(e) = check_target(target) {
        return Issue::err(e);
    }
    let slot = u32::try_from(message.source_slot).ok();
    let Some(file) = ctx.with_state(|st| st.files.get(slot?)) else {
        return Issue::err(Errno::BADF);
    };
    let copy = match ctx.ring.duplicate(file.fd.raw()) {
        Ok(fd) => Arc::new(FixedFile::new(fd, Tag::default())),
        Err(e) => return Issue::err(e),
    };
    // With a lock of its own held, the submitter does not wait for another one.
    let held = if ctx.may_block() { Some(target.state.lock()) } else { target.state.try_lock() };
    let Some(mut st) = held else { return Issue::Worker };
    let installed = install(&mut st, message.index, copy);
    drop(st);
    let res = match installed {
        Ok((res, replaced)) => {
            drop(replaced);
            res
        }
        Err(e) => return Issue::err(e),
    };
    if message.flags & CQE_SKIP == 0 {
        let cqe = Cqe { user_data: message.user_data, res, flags: 0 };
        if let Err(e) = target.receive(cqe) {
            return Issue::err(e);
        }
    }
    Issue::Done(res, 0)
}

type Installed = (i32, Option<Arc<FixedFile>>);

/// Puts a file into a slot: 0, or the number of the one that was free.
fn install(st: &mut State, slot: u32, file: Arc<FixedFile>) -> Result<Installed, Errno> {
    if !st.files.exists() {
        return Err(if slot == FILE_INDEX_ALLOC { Errno::NFILE } else { Errno::NXIO });
    }
    if slot == FILE_INDEX_ALLOC {
        let free = st.files.free_slot().ok_or(Errno::NFILE)?;
        return Ok((free as i32, st.files.set(free, Some(file))));
    }
    let slot = slot.checked_sub(1).filter(|s| *s < st.files.len()).ok_or(Errno::INVAL)?;
    Ok((0, st.files.set(slot, Some(file))))
}

/// MSG_RING.
pub const MSG_RING: OpDef = OpDef {
    file: FileUse::Needed,
    iopoll: true,
    ..OpDef::new("MSG_RING", op::MSG_RING, prep, issue)
};
