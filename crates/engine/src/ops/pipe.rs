//! PIPE: two descriptors, or two slots of the file table. Either both ends exist afterwards and the program knows their
//! numbers, or neither does.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::fd::OwnedFd;
use crate::host::{nr, user};
use crate::registered::files::{Files, FixedFile, Tag};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe::FILE_INDEX_ALLOC, Sqe};
use std::sync::Arc;

/// Not in the header crate under this name.
const O_NOTIFICATION_PIPE: u32 = nr::O_EXCL;

/// PIPE.
#[derive(Debug)]
pub struct Pipe {
    /// Where the two numbers go.
    addr: usize,
    flags: u32,
    slot: u32,
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.fd as u32 as u64, sqe.off, sqe.addr3])?;
    if sqe.op_flags & !(nr::O_CLOEXEC | nr::O_NONBLOCK | nr::O_DIRECT | O_NOTIFICATION_PIPE) != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Pipe(Pipe { addr: sqe.addr as usize, flags: sqe.op_flags, slot: sqe.file_index }))
}

fn make(ctx: &Ctx<'_>, flags: u32) -> Result<[OwnedFd; 2], Errno> {
    let mut ends = [-1i32; 2];
    // SAFETY: the kernel fills two integers of ours.
    unsafe { ctx.call(nr::__NR_pipe2, [ends.as_mut_ptr() as usize, flags as usize, 0, 0, 0, 0]) }?;
    Ok(ends.map(OwnedFd::from_raw))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Pipe(Pipe { addr, flags, slot }) = req.op else { return Issue::err(Errno::INVAL) };
    let result = make(ctx, flags).and_then(|ends| match slot {
        0 => to_program(ends, addr),
        // A slot has no close-on-exec.
        _ if flags & nr::O_CLOEXEC != 0 => Err(Errno::INVAL),
        _ => to_slots(ctx, ends, slot, addr),
    });
    Issue::from_result(result.map(|()| 0))
}

fn to_program(ends: [OwnedFd; 2], addr: usize) -> Result<(), Errno> {
    user::write(addr, &[ends[0].raw(), ends[1].raw()])?;
    let _ = ends.map(OwnedFd::into_raw);
    Ok(())
}

/// `slot` + 1 and the slot behind it, or any two that are free.
fn to_slots(ctx: &mut Ctx<'_>, ends: [OwnedFd; 2], slot: u32, addr: usize) -> Result<(), Errno> {
    let mut filled: Vec<u32> = Vec::with_capacity(2);
    let mut numbers = [0i32; 2];
    let mut replaced = Vec::with_capacity(2);
    let mut result = Ok(());
    for (i, end) in ends.iter().enumerate() {
        let placed = ctx.ring.duplicate(end.raw()).and_then(|fd| {
            let file = Arc::new(FixedFile::new(fd, Tag::default()));
            ctx.with_state(|st| place(&mut st.files, slot, i as u32, file))
        });
        match placed {
            Ok((at, old)) => {
                filled.push(at);
                replaced.push(old);
                numbers[i] = at as i32;
            }
            Err(e) => {
                result = Err(e);
                break;
            }
        }
    }
    let result = result.and_then(|()| user::write(addr, &numbers));
    if result.is_err() {
        replaced.extend(
            ctx.with_state(|st| {
                filled.iter().map(|at| st.files.set(*at, None)).collect::<Vec<_>>()
            }),
        );
    }
    // Released without the ring's lock where that is possible: a worker's.
    drop(replaced);
    result
}

type Old = Option<Arc<FixedFile>>;

fn place(
    files: &mut Files,
    slot: u32,
    index: u32,
    file: Arc<FixedFile>,
) -> Result<(u32, Old), Errno> {
    if !files.exists() {
        return Err(if slot == FILE_INDEX_ALLOC { Errno::NFILE } else { Errno::NXIO });
    }
    let at = match slot {
        FILE_INDEX_ALLOC => files.free_slot().ok_or(Errno::NFILE)?,
        first => first - 1 + index,
    };
    if at >= files.len() {
        return Err(Errno::INVAL);
    }
    Ok((at, files.set(at, Some(file))))
}

/// PIPE.
pub const PIPE: OpDef =
    OpDef { file: FileUse::Ignored, ..OpDef::new("PIPE", op::PIPE, prep, issue) };
