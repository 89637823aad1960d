//! OPENAT, OPENAT2, CLOSE, and putting a fresh descriptor into a direct slot.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Waits};
use crate::host::fd::{self, OwnedFd};
use crate::host::user::UserPath;
use crate::host::{nr, user};
use crate::inline::buffered;
use crate::registered::files::{FixedFile, Tag};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe::FILE_INDEX_ALLOC, Sqe};
use std::sync::Arc;

/// `struct open_how`: flags, mode, resolve.
type How = [u64; 3];

/// Not in the header crate: cache-only path walk.
const RESOLVE_CACHED: u64 = 0x20;
/// No links into /proc/PID: they lead to places that no table of mounts shows.
const RESOLVE_NO_MAGICLINKS: u64 = 0x2;

/// Flags that openat(2) knows; it ignores others.
const VALID_FLAGS: u64 = 0o17777703 | 0o100 | 0o200 | 0o400 | 0o20000000;

/// OPENAT, OPENAT2.
#[derive(Debug)]
pub struct Open {
    path: UserPath,
    how: How,
    slot: u32,
}

impl Open {
    /// Where it walks.
    pub fn path(&self) -> &UserPath {
        &self.path
    }
    /// See [`Op::creates`].
    pub fn creates(&self) -> bool {
        creates(self.how)
    }
    /// See [`Op::capture`].
    pub fn capture(&mut self) -> Result<(), Errno> {
        self.path.capture(false)
    }
}

/// CLOSE.
#[derive(Debug)]
pub struct Close {
    slot: u32,
}

impl Close {
    /// Of the file table.
    pub fn is_slot(&self) -> bool {
        self.slot != 0
    }
}

fn check_slot(slot: u32, flags: u64) -> Result<(), Errno> {
    if slot != 0 && flags & nr::O_CLOEXEC as u64 != 0 {
        return Err(Errno::INVAL);
    }
    Ok(())
}

fn prep_openat(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64])?;
    let flags = sqe.op_flags as u64 & VALID_FLAGS;
    let creates = flags & (nr::O_CREAT as u64 | O_TMPFILE_BIT) != 0;
    let mode = if creates { sqe.len as u64 & 0o7777 } else { 0 };
    check_slot(sqe.file_index, flags)?;
    let flags = if flags & nr::O_PATH as u64 != 0 { flags & O_PATH_FLAGS } else { flags };
    let how = [flags, mode, 0];
    Ok(Op::Open(Open { path: UserPath::Borrowed(sqe.addr as usize), how, slot: sqe.file_index }))
}

/// What O_PATH leaves of the flags.
const O_PATH_FLAGS: u64 = (nr::O_DIRECTORY | nr::O_NOFOLLOW | nr::O_PATH | nr::O_CLOEXEC) as u64;

fn prep_openat2(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64])?;
    let size = sqe.len as usize;
    if size < size_of::<How>() {
        return Err(Errno::INVAL);
    }
    let how: How = user::read(sqe.off as usize)?;
    if size > size_of::<How>() {
        check_trailing_zeros(sqe.off as usize + size_of::<How>(), size - size_of::<How>())?;
    }
    check_slot(sqe.file_index, how[0])?;
    Ok(Op::Open(Open { path: UserPath::Borrowed(sqe.addr as usize), how, slot: sqe.file_index }))
}

/// A larger structure than ours is fine as long as what we do not know is zero; E2BIG if not.
fn check_trailing_zeros(addr: usize, len: usize) -> Result<(), Errno> {
    const PAGE: usize = 4096;
    if len > PAGE {
        return Err(Errno::TOOBIG);
    }
    let rest: Vec<u8> = user::read_vec(addr, len)?;
    if rest.iter().any(|b| *b != 0) {
        return Err(Errno::TOOBIG);
    }
    Ok(())
}

/// The directory: the request's own hold on it, or the number as given (AT_FDCWD).
pub fn dirfd(req: &Req) -> i32 {
    match req.file.raw() {
        -1 => req.fd,
        held => held,
    }
}

fn open(req: &Req, ctx: &Ctx<'_>, how: How) -> Result<OwnedFd, Errno> {
    let Op::Open(open) = &req.op else { return Err(Errno::INVAL) };
    let args = [
        dirfd(req) as usize,
        open.path.as_ptr() as usize,
        how.as_ptr() as usize,
        size_of::<How>(),
        0,
        0,
    ];
    // SAFETY: the path is a NUL-terminated copy or the program's, the structure a local.
    match unsafe { ctx.call(nr::__NR_openat2, args) } {
        Err(Errno::NOSYS) if how[2] == 0 => {
            let args = [args[0], args[1], how[0] as usize, how[1] as usize, 0, 0];
            // SAFETY: as above.
            unsafe { ctx.call(nr::__NR_openat, args) }
        }
        other => other,
    }
    .map(|fd| OwnedFd::from_raw(fd as i32))
}

fn issue_open(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Open(Open { how, slot, .. }) = &req.op else { return Issue::err(Errno::INVAL) };
    let (how, slot) = (*how, *slot);
    let opened = if ctx.bold {
        if creates(how) && how[0] & nr::O_ACCMODE as u64 == nr::O_RDONLY as u64 {
            // From a worker, where such a request belongs, a FIFO opens when its other end does.
            return Issue::Worker;
        }
        open_unwaiting(req, ctx, how, RESOLVE_NO_MAGICLINKS)
    } else if ctx.may_block() {
        open(req, ctx, how)
    } else {
        if creates(how) || how[2] & RESOLVE_CACHED != 0 {
            return Issue::Worker;
        }
        open_unwaiting(req, ctx, how, RESOLVE_CACHED)
    };
    let opened = match opened {
        Err(e) if !ctx.is_worker() && is_for_worker(e, how) => return Issue::Worker,
        other => other,
    };
    match opened.and_then(|fd| install(ctx, fd, slot)) {
        Ok(fd) if slot == 0 && how[0] & UNBUFFERED == 0 => {
            buffered::learn(fd);
            Issue::Done(fd, 0)
        }
        Ok(res) => Issue::Done(res, 0),
        Err(e) => Issue::err(e),
    }
}

/// Not for reading through the page cache.
const UNBUFFERED: u64 = (nr::O_DIRECT | nr::O_PATH) as u64;

const O_TMPFILE_BIT: u64 = 0o20000000;

fn creates(how: How) -> bool {
    how[0] & (nr::O_CREAT | nr::O_TRUNC) as u64 != 0 || how[0] & O_TMPFILE_BIT != 0
}

/// What an inline attempt may answer only because it was one.
fn is_for_worker(e: Errno, how: How) -> bool {
    match e {
        Errno::AGAIN | Errno::NOSYS | Errno::INVAL => true,
        // A link into /proc/PID.
        Errno::LOOP => how[2] & RESOLVE_NO_MAGICLINKS == 0,
        // A FIFO that nobody reads.
        Errno::NXIO => how[0] & nr::O_NONBLOCK as u64 == 0,
        _ => false,
    }
}

/// The status flags that F_SETFL sets or clears.
const SETTABLE: u64 =
    (nr::O_APPEND | nr::O_NONBLOCK | nr::O_DIRECT | nr::O_NOATIME | nr::FASYNC) as u64;

/// The inline attempt: by a restricted walk, and without waiting for the other end of a FIFO.
fn open_unwaiting(req: &Req, ctx: &Ctx<'_>, how: How, resolve: u64) -> Result<OwnedFd, Errno> {
    let nonblock = nr::O_NONBLOCK as u64;
    let path_only = how[0] & nr::O_PATH as u64 != 0;
    let flags = if path_only { how[0] } else { how[0] | nonblock };
    let opened = open(req, ctx, [flags, how[1], how[2] | resolve])?;
    if !path_only && how[0] & nonblock == 0 {
        fd::set_status_flags(opened.raw(), (how[0] & SETTABLE) as u32)?;
    }
    Ok(opened)
}

/// Gives a fresh descriptor to the program, or puts it into a slot of the file table: slot + 1, or
/// FILE_INDEX_ALLOC. The number, 0, or the slot that was found.
pub fn install(ctx: &mut Ctx<'_>, fresh: OwnedFd, slot: u32) -> Result<i32, Errno> {
    if slot == 0 {
        return Ok(fresh.into_raw());
    }
    let held = ctx.ring.duplicate(fresh.raw())?;
    drop(fresh);
    let file = Arc::new(FixedFile::new(held, Tag::default()));
    let (result, old) = ctx.with_state(|st| {
        if !st.files.exists() {
            return (Err(if slot == FILE_INDEX_ALLOC { Errno::NFILE } else { Errno::NXIO }), None);
        }
        if slot == FILE_INDEX_ALLOC {
            let Some(free) = st.files.free_slot() else { return (Err(Errno::NFILE), None) };
            return (Ok(free as i32), st.files.set(free, Some(file)));
        }
        if slot > st.files.len() {
            return (Err(Errno::INVAL), None);
        }
        (Ok(0), st.files.set(slot - 1, Some(file)))
    });
    drop(old);
    result
}

fn prep_close(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.addr, sqe.len as u64, sqe.op_flags as u64, sqe.buf_index as u64])?;
    if sqe.fd != 0 && sqe.file_index != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Close(Close { slot: sqe.file_index }))
}

fn issue_close(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Close(Close { slot }) = req.op else { return Issue::err(Errno::INVAL) };
    if slot != 0 {
        return close_slot(ctx, slot);
    }
    let Some(engine) = ctx.ring.engine.upgrade() else { return Issue::err(Errno::BADF) };
    let l = engine.config.fds;
    let may_be_ring = (l.ring_base..l.ring_end).contains(&req.fd);
    if req.fd < 0 || (may_be_ring && engine.ring(req.fd).is_some()) {
        return Issue::err(Errno::BADF);
    }
    buffered::forget(req.fd);
    Issue::from_result(fd::close(req.fd).map(|()| 0))
}

fn close_slot(ctx: &mut Ctx<'_>, slot: u32) -> Issue {
    let result = ctx.with_state(|st| {
        if !st.files.exists() {
            return Err(Errno::NXIO);
        }
        if slot > st.files.len() {
            return Err(Errno::INVAL);
        }
        st.files.set(slot - 1, None).ok_or(Errno::BADF)
    });
    match result {
        Ok(file) => {
            drop(file);
            Issue::Done(0, 0)
        }
        Err(e) => Issue::err(e),
    }
}

/// OPENAT.
pub const OPENAT: OpDef = OpDef {
    waits: Waits::Path,
    file: FileUse::Directory(Errno::BADF),
    ..OpDef::new("OPENAT", op::OPENAT, prep_openat, issue_open)
};
/// OPENAT2.
pub const OPENAT2: OpDef = OpDef {
    waits: Waits::Path,
    file: FileUse::Directory(Errno::BADF),
    ..OpDef::new("OPENAT2", op::OPENAT2, prep_openat2, issue_open)
};
/// CLOSE.
pub const CLOSE: OpDef = OpDef {
    file: FileUse::Refused(Errno::BADF),
    waits: Waits::Close,
    ..OpDef::new("CLOSE", op::CLOSE, prep_close, issue_close)
};
