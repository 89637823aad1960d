//! STATX, UNLINKAT, RENAMEAT, MKDIRAT, SYMLINKAT, LINKAT: one system call with copied paths.

use super::open::dirfd;
use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Waits, Walk};
use crate::host::nr;
use crate::host::user::{self, UserPath};
use crate::req::{FileRef, Req};
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// A call with one or two paths.
#[derive(Debug)]
pub struct PathOp {
    call: Call,
    path: UserPath,
    second: Vec<u8>,
    /// The second directory: as given, then held.
    second_dir: i32,
    /// Hold on the second directory.
    pub second_file: FileRef,
    a: usize,
    b: usize,
    c: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Statx,
    Unlink,
    Rename,
    Mkdir,
    Symlink,
    Link,
}

impl PathOp {
    fn new(call: Call, path: UserPath) -> PathOp {
        PathOp {
            call,
            path,
            second: Vec::new(),
            second_dir: -1,
            second_file: FileRef::None,
            a: 0,
            b: 0,
            c: 0,
        }
    }
    /// The number of the second directory as the program gave it, if it is one.
    pub fn second_dir(&self) -> Option<i32> {
        (self.second_dir >= 0).then_some(self.second_dir)
    }
    /// The paths that it walks. What a symbolic link contains is not walked.
    pub fn walks(&self) -> [Option<Walk<'_>>; 2] {
        let second = |dir| Some(Walk { dir, path: Some(&self.second) });
        let first = Some(Walk { dir: None, path: self.path.bytes() });
        match self.call {
            Call::Statx | Call::Unlink | Call::Mkdir => [first, None],
            Call::Rename | Call::Link => [first, second(Some(self.second_dirfd()))],
            Call::Symlink => [second(None), None],
        }
    }
    /// Examines an open file: no path is walked, or if one is, which only the kernel has seen, the result is looked at.
    pub fn is_of_descriptor(&self) -> bool {
        let may = self.call == Call::Statx && self.empty_allowed();
        may && self.path.bytes().is_none_or(|path| path.first() == Some(&0))
    }
    fn empty_allowed(&self) -> bool {
        matches!(self.call, Call::Statx | Call::Link) && self.a as u32 & AT_EMPTY_PATH != 0
    }
    /// See [`Op::borrowed`].
    pub fn borrowed(&self) -> Option<usize> {
        self.path.borrowed()
    }
    /// See [`Op::capture`].
    pub fn capture(&mut self) -> Result<(), Errno> {
        let empty_allowed = self.empty_allowed();
        self.path.capture(empty_allowed)
    }
    fn second_dirfd(&self) -> i32 {
        match self.second_file.raw() {
            -1 => self.second_dir,
            held => held,
        }
    }
}

fn borrowed(addr: u64) -> UserPath {
    UserPath::Borrowed(addr as usize)
}

fn path(addr: u64) -> Result<Vec<u8>, Errno> {
    user::read_path(addr as usize)
}

const AT_EMPTY_PATH: u32 = 0x1000;

/// A path that may be empty if the flags say so.
fn path_with(flags: u32, addr: u64) -> Result<Vec<u8>, Errno> {
    if flags & AT_EMPTY_PATH != 0 {
        return user::read_cstr(addr as usize);
    }
    path(addr)
}

fn prep_statx(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let path = borrowed(sqe.addr);
    let (a, b, c) = (sqe.op_flags as usize, sqe.len as usize, sqe.off as usize);
    Ok(Op::Path(PathOp { a, b, c, ..PathOp::new(Call::Statx, path) }))
}

fn prep_unlink(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.len as u64, sqe.buf_index as u64, sqe.file_index as u64])?;
    const AT_REMOVEDIR: u32 = 0x200;
    if sqe.op_flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Path(PathOp {
        a: sqe.op_flags as usize,
        ..PathOp::new(Call::Unlink, borrowed(sqe.addr))
    }))
}

fn prep_two(sqe: &Sqe, call: Call) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let first =
        if call == Call::Link { path_with(sqe.op_flags, sqe.addr)? } else { path(sqe.addr)? };
    let mut op = PathOp::new(call, UserPath::Copied(first));
    op.second = path(sqe.off)?;
    op.second_dir = sqe.len as i32;
    op.a = sqe.op_flags as usize;
    Ok(Op::Path(op))
}

fn prep_rename(sqe: &Sqe) -> Result<Op, Errno> {
    prep_two(sqe, Call::Rename)
}

fn prep_link(sqe: &Sqe) -> Result<Op, Errno> {
    prep_two(sqe, Call::Link)
}

fn prep_mkdir(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.op_flags as u64, sqe.buf_index as u64, sqe.file_index as u64])?;
    Ok(Op::Path(PathOp { a: sqe.len as usize, ..PathOp::new(Call::Mkdir, borrowed(sqe.addr)) }))
}

fn prep_symlink(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[
        sqe.len as u64,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
    ])?;
    let mut op = PathOp::new(Call::Symlink, UserPath::Copied(path(sqe.addr)?));
    op.second = path(sqe.off)?;
    Ok(Op::Path(op))
}

/// Examines an open file in the submitting call: asks no server, and if the answer is that the file's filesystem has
/// one, it does not count.
fn issue_of_descriptor(req: &Req, p: &PathOp, ctx: &Ctx<'_>) -> Issue {
    if p.a as u32 & AT_STATX_SYNC_TYPE != 0 || p.b as u32 & STATX_MNT_ID_UNIQUE != 0 {
        return Issue::Worker;
    }
    let flags = p.a | nr::AT_STATX_DONT_SYNC as usize;
    let args = [dirfd(req) as usize, p.path.as_ptr() as usize, flags, p.b, p.c, 0];
    // SAFETY: the path is a NUL-terminated copy; the buffer is the program's, which the kernel checks.
    if let Err(e) = unsafe { ctx.call(nr::__NR_statx, args) } {
        return Issue::err(e);
    }
    // SAFETY: the call has just written the structure.
    let (mask, mount): (u32, u64) =
        unsafe { (user::read_written(p.c + STX_MASK), user::read_written(p.c + STX_MNT_ID)) };
    if mask & nr::STATX_MNT_ID != 0 && ctx.ring.inline.is_local(mount) {
        return Issue::Done(0, 0);
    }
    Issue::Worker
}

const AT_STATX_SYNC_TYPE: u32 = 0x6000;
/// Asks for another kind of mount id in the place of the usual one.
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

const STX_MASK: usize = core::mem::offset_of!(nr::statx, stx_mask);
const STX_MNT_ID: usize = core::mem::offset_of!(nr::statx, stx_mnt_id);

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Path(p) = &req.op else { return Issue::err(Errno::INVAL) };
    if ctx.bold && p.is_of_descriptor() {
        return issue_of_descriptor(req, p, ctx);
    }
    let (dir, path, second) =
        (dirfd(req) as usize, p.path.as_ptr() as usize, p.second.as_ptr() as usize);
    let dir2 = p.second_dirfd() as usize;
    let (number, args) = match p.call {
        Call::Statx => (nr::__NR_statx, [dir, path, p.a, p.b, p.c, 0]),
        Call::Unlink => (nr::__NR_unlinkat, [dir, path, p.a, 0, 0, 0]),
        Call::Rename => (nr::__NR_renameat2, [dir, path, dir2, second, p.a, 0]),
        Call::Mkdir => (nr::__NR_mkdirat, [dir, path, p.a, 0, 0, 0]),
        Call::Symlink => (nr::__NR_symlinkat, [path, dir, second, 0, 0, 0]),
        Call::Link => (nr::__NR_linkat, [dir, path, dir2, second, p.a, 0]),
    };
    // SAFETY: paths are NUL-terminated copies; statx's buffer is the program's, which the kernel checks.
    Issue::from_result(unsafe { ctx.call(number, args) })
}

const fn row(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef {
        file: FileUse::Directory(Errno::BADF),
        always_async: true,
        waits: Waits::Path,
        lenient: true,
        ..OpDef::new(name, code, prep, issue)
    }
}

/// STATX.
pub const STATX: OpDef = row("STATX", op::STATX, prep_statx);
/// UNLINKAT.
pub const UNLINKAT: OpDef = row("UNLINKAT", op::UNLINKAT, prep_unlink);
/// RENAMEAT.
pub const RENAMEAT: OpDef = row("RENAMEAT", op::RENAMEAT, prep_rename);
/// MKDIRAT.
pub const MKDIRAT: OpDef = row("MKDIRAT", op::MKDIRAT, prep_mkdir);
/// SYMLINKAT.
pub const SYMLINKAT: OpDef = row("SYMLINKAT", op::SYMLINKAT, prep_symlink);
/// LINKAT.
pub const LINKAT: OpDef = row("LINKAT", op::LINKAT, prep_link);
