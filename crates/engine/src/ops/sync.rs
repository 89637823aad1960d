//! FSYNC, SYNC_FILE_RANGE, FALLOCATE, FTRUNCATE, FADVISE, MADVISE: one system call each.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Waits};
use crate::host::{fd, nr};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// A range with flags: FSYNC, SYNC_FILE_RANGE, FALLOCATE.
#[derive(Debug)]
pub struct Range {
    offset: u64,
    len: u64,
    flags: u32,
}

/// FADVISE, MADVISE.
#[derive(Debug)]
pub struct Advise {
    /// Offset, or address.
    at: u64,
    len: u64,
    advice: u32,
}

impl Advise {
    /// Of memory: neither reads a file nor changes one.
    pub fn is_quick(&self) -> bool {
        const NORMAL_TO_SEQUENTIAL: core::ops::RangeInclusive<u32> = 0..=2;
        const DONTNEED: u32 = 4;
        const FREE: u32 = 8;
        const MERGEABLE_TO_DODUMP: core::ops::RangeInclusive<u32> = 12..=17;
        let a = self.advice;
        NORMAL_TO_SEQUENTIAL.contains(&a)
            || MERGEABLE_TO_DODUMP.contains(&a)
            || a == DONTNEED
            || a == FREE
    }
}

const FSYNC_DATASYNC: u32 = 1;

fn prep_fsync(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.addr, sqe.buf_index as u64, sqe.file_index as u64])?;
    if sqe.op_flags & !FSYNC_DATASYNC != 0 || (sqe.off as i64) < 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Sync(Range { offset: sqe.off, len: sqe.len as u64, flags: sqe.op_flags }))
}

fn issue_fsync(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Sync(range) = &req.op else { return Issue::err(Errno::INVAL) };
    let number =
        if range.flags & FSYNC_DATASYNC != 0 { nr::__NR_fdatasync } else { nr::__NR_fsync };
    // SAFETY: an integer argument only.
    Issue::from_result(unsafe { ctx.call(number, [req.file.raw() as usize, 0, 0, 0, 0, 0]) })
}

fn prep_sync_range(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.addr, sqe.buf_index as u64, sqe.file_index as u64])?;
    Ok(Op::Sync(Range { offset: sqe.off, len: sqe.len as u64, flags: sqe.op_flags }))
}

fn issue_sync_range(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Sync(r) = &req.op else { return Issue::err(Errno::INVAL) };
    let args = [req.file.raw() as usize, r.offset as usize, r.len as usize, r.flags as usize, 0, 0];
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe { ctx.call(nr::__NR_sync_file_range, args) })
}

fn prep_fallocate(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.op_flags as u64, sqe.file_index as u64])?;
    Ok(Op::Sync(Range { offset: sqe.off, len: sqe.addr, flags: sqe.len }))
}

fn issue_fallocate(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Sync(r) = &req.op else { return Issue::err(Errno::INVAL) };
    if ctx.bold && fd::size_is_limited() {
        // From a worker no SIGXFSZ reaches the program.
        return Issue::Worker;
    }
    let args = [req.file.raw() as usize, r.flags as usize, r.offset as usize, r.len as usize, 0, 0];
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe { ctx.call(nr::__NR_fallocate, args) })
}

fn prep_ftruncate(sqe: &Sqe) -> Result<Op, Errno> {
    let zero = [
        sqe.addr,
        sqe.len as u64,
        sqe.buf_index as u64,
        sqe.op_flags as u64,
        sqe.file_index as u64,
        sqe.addr3,
    ];
    must_be_zero(&zero)?;
    Ok(Op::Truncate(sqe.off))
}

fn issue_ftruncate(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Truncate(len) = req.op else { return Issue::err(Errno::INVAL) };
    if ctx.bold && fd::size_is_limited() {
        // From a worker no SIGXFSZ reaches the program.
        return Issue::Worker;
    }
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe {
        ctx.call(nr::__NR_ftruncate, [req.file.raw() as usize, len as usize, 0, 0, 0, 0])
    })
}

fn prep_fadvise(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let len = if sqe.addr != 0 { sqe.addr } else { sqe.len as u64 };
    Ok(Op::Advise(Advise { at: sqe.off, len, advice: sqe.op_flags }))
}

/// The kinds of advice that only set a mode; the others may read or drop pages.
fn advice_is_quick(advice: u32) -> bool {
    const NORMAL: u32 = 0;
    const RANDOM: u32 = 1;
    const SEQUENTIAL: u32 = 2;
    matches!(advice, NORMAL | RANDOM | SEQUENTIAL)
}

fn issue_fadvise(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Advise(a) = &req.op else { return Issue::err(Errno::INVAL) };
    if !ctx.may_block() && !advice_is_quick(a.advice) {
        return Issue::Worker;
    }
    let args = [req.file.raw() as usize, a.at as usize, a.len as usize, a.advice as usize, 0, 0];
    // SAFETY: integer arguments only.
    Issue::from_result(unsafe { ctx.call(nr::__NR_fadvise64, args) })
}

fn prep_madvise(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let len = if sqe.off != 0 { sqe.off } else { sqe.len as u64 };
    Ok(Op::Advise(Advise { at: sqe.addr, len, advice: sqe.op_flags }))
}

fn issue_madvise(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Advise(a) = &req.op else { return Issue::err(Errno::INVAL) };
    let args = [a.at as usize, a.len as usize, a.advice as usize, 0, 0, 0];
    // SAFETY: the program asks for this change of its own memory; naming the engine's would harm itself, as munmap(2) would.
    Issue::from_result(unsafe { ctx.call(nr::__NR_madvise, args) })
}

/// FSYNC.
pub const FSYNC: OpDef = OpDef {
    always_async: true,
    waits: Waits::File,
    starts_slow: true,
    lenient: true,
    ..OpDef::new("FSYNC", op::FSYNC, prep_fsync, issue_fsync)
};
/// SYNC_FILE_RANGE.
pub const SYNC_FILE_RANGE: OpDef = OpDef {
    always_async: true,
    waits: Waits::File,
    starts_slow: true,
    lenient: true,
    ..OpDef::new("SYNC_FILE_RANGE", op::SYNC_FILE_RANGE, prep_sync_range, issue_sync_range)
};
/// FALLOCATE.
pub const FALLOCATE: OpDef = OpDef {
    always_async: true,
    waits: Waits::File,
    lenient: true,
    hashed: true,
    ..OpDef::new("FALLOCATE", op::FALLOCATE, prep_fallocate, issue_fallocate)
};
/// FTRUNCATE.
pub const FTRUNCATE: OpDef = OpDef {
    always_async: true,
    waits: Waits::File,
    lenient: true,
    hashed: true,
    ..OpDef::new("FTRUNCATE", op::FTRUNCATE, prep_ftruncate, issue_ftruncate)
};
/// FADVISE.
pub const FADVISE: OpDef =
    OpDef { waits: Waits::File, ..OpDef::new("FADVISE", op::FADVISE, prep_fadvise, issue_fadvise) };
/// MADVISE.
pub const MADVISE: OpDef = OpDef {
    file: FileUse::Ignored,
    always_async: true,
    waits: Waits::Memory,
    lenient: true,
    ..OpDef::new("MADVISE", op::MADVISE, prep_madvise, issue_madvise)
};
