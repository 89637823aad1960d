//! FILES_UPDATE.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::user;
use crate::registered::files::{FixedFile, Tag};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};
use std::sync::Arc;

/// FILES_UPDATE: `offset` None allocates slots and writes them back.
#[derive(Debug)]
pub struct Update {
    addr: usize,
    count: u32,
    offset: Option<u32>,
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.op_flags as u64, sqe.file_index as u64])?;
    if sqe.len == 0 {
        return Err(Errno::INVAL);
    }
    let offset = (sqe.off as u32 != u32::MAX).then_some(sqe.off as u32);
    Ok(Op::FilesUpdate(Update { addr: sqe.addr as usize, count: sqe.len, offset }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::FilesUpdate(u) = &req.op else { return Issue::err(Errno::INVAL) };
    let (addr, count, offset) = (u.addr, u.count, u.offset);
    if let Err(e) = check(ctx, count, offset) {
        return Issue::err(e);
    }
    for i in 0..count {
        let at = addr + 4 * i as usize;
        let done = match offset {
            Some(first) => replace(ctx, first + i, at),
            None => allocate(ctx, at),
        };
        if let Err(e) = done {
            return if i > 0 { Issue::Done(i as i32, 0) } else { Issue::err(e) };
        }
    }
    Issue::Done(count as i32, 0)
}

fn check(ctx: &mut Ctx<'_>, count: u32, offset: Option<u32>) -> Result<(), Errno> {
    ctx.with_state(|st| match offset {
        _ if !st.files.exists() => Err(Errno::NXIO),
        Some(first) => crate::register::files::check_range(first, count, Some(st.files.len())),
        None => Ok(()),
    })
}

fn hold(ctx: &Ctx<'_>, number: i32) -> Result<Arc<FixedFile>, Errno> {
    let is_ring = ctx.ring.engine.upgrade().is_some_and(|e| e.ring(number).is_some());
    if number < 0 || is_ring {
        return Err(Errno::BADF);
    }
    Ok(Arc::new(FixedFile::new(ctx.ring.duplicate(number)?, Tag::default())))
}

/// −2 leaves the slot, −1 empties it.
fn replace(ctx: &mut Ctx<'_>, slot: u32, addr: usize) -> Result<(), Errno> {
    let number: i32 = user::read(addr)?;
    if number == -2 {
        return Ok(());
    }
    let old = ctx.with_state(|st| st.files.set(slot, None));
    drop(old);
    if number != -1 {
        let file = hold(ctx, number)?;
        ctx.with_state(|st| st.files.set(slot, Some(file)));
    }
    Ok(())
}

fn allocate(ctx: &mut Ctx<'_>, addr: usize) -> Result<(), Errno> {
    let number: i32 = user::read(addr)?;
    let file = hold(ctx, number)?;
    let slot = ctx.with_state(|st| {
        let slot = st.files.free_slot().ok_or(Errno::NFILE)?;
        st.files.set(slot, Some(file));
        Ok(slot)
    })?;
    user::write(addr, &(slot as i32))
}

/// FILES_UPDATE.
pub const FILES_UPDATE: OpDef = OpDef {
    file: FileUse::Refused(Errno::INVAL),
    iopoll: true,
    on_ring: true,
    ..OpDef::new("FILES_UPDATE", op::FILES_UPDATE, prep, issue)
};
