//! STATX, UNLINKAT, RENAMEAT, MKDIRAT, SYMLINKAT, LINKAT: one system call with copied paths.

use super::open::dirfd;
use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef};
use crate::host::{nr, user};
use crate::req::{FileRef, Req};
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// A call with one or two paths.
#[derive(Debug)]
pub struct PathOp {
    call: Call,
    path: Vec<u8>,
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
    fn new(call: Call, path: Vec<u8>) -> PathOp {
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
    fn second_dirfd(&self) -> i32 {
        match self.second_file.raw() {
            -1 => self.second_dir,
            held => held,
        }
    }
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
    let path = path_with(sqe.op_flags, sqe.addr)?;
    let (a, b, c) = (sqe.op_flags as usize, sqe.len as usize, sqe.off as usize);
    Ok(Op::Path(PathOp { a, b, c, ..PathOp::new(Call::Statx, path) }))
}

fn prep_unlink(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[sqe.off, sqe.len as u64, sqe.buf_index as u64, sqe.file_index as u64])?;
    const AT_REMOVEDIR: u32 = 0x200;
    if sqe.op_flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::INVAL);
    }
    Ok(Op::Path(PathOp { a: sqe.op_flags as usize, ..PathOp::new(Call::Unlink, path(sqe.addr)?) }))
}

fn prep_two(sqe: &Sqe, call: Call) -> Result<Op, Errno> {
    must_be_zero(&[sqe.buf_index as u64, sqe.file_index as u64])?;
    let first =
        if call == Call::Link { path_with(sqe.op_flags, sqe.addr)? } else { path(sqe.addr)? };
    let mut op = PathOp::new(call, first);
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
    Ok(Op::Path(PathOp { a: sqe.len as usize, ..PathOp::new(Call::Mkdir, path(sqe.addr)?) }))
}

fn prep_symlink(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[
        sqe.len as u64,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
    ])?;
    let mut op = PathOp::new(Call::Symlink, path(sqe.addr)?);
    op.second = path(sqe.off)?;
    Ok(Op::Path(op))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Path(p) = &req.op else { return Issue::err(Errno::INVAL) };
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
