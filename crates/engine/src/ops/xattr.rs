//! FSETXATTR, SETXATTR, FGETXATTR, GETXATTR. Names, paths and the value to set are copied at prep; a value
//! that is asked for is written to the program's buffer at completion.

use super::{Ctx, FileUse, Issue, Op, OpDef, Waits};
use crate::host::{nr, user};
use crate::limits::{XATTR_NAME_MAX, XATTR_VALUE_MAX};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, sqe, Sqe};

const XATTR_CREATE: u32 = 1;
const XATTR_REPLACE: u32 = 2;

/// One extended attribute of a file.
#[derive(Debug)]
pub struct Xattr {
    name: Vec<u8>,
    /// Of the file; `None` if the request names it by descriptor.
    path: Option<Vec<u8>>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    /// To be stored, with `XATTR_*` flags.
    Set(Vec<u8>, u32),
    /// Where it goes, and the room there.
    Get(usize, usize),
}

/// ERANGE for an empty or too long name.
fn read_name(addr: u64) -> Result<Vec<u8>, Errno> {
    let name =
        user::read_cstr(addr as usize)
            .map_err(|e| if e == Errno::FAULT { e } else { Errno::RANGE })?;
    if name.len() == 1 || name.len() > XATTR_NAME_MAX + 1 {
        return Err(Errno::RANGE);
    }
    Ok(name)
}

fn set(sqe: &Sqe) -> Result<Xattr, Errno> {
    if sqe.op_flags & !(XATTR_CREATE | XATTR_REPLACE) != 0 {
        return Err(Errno::INVAL);
    }
    let name = read_name(sqe.addr)?;
    let len = sqe.len as usize;
    if len > XATTR_VALUE_MAX {
        return Err(Errno::TOOBIG);
    }
    let value = user::read_vec(sqe.off as usize, len)?;
    Ok(Xattr { name, path: None, value: Value::Set(value, sqe.op_flags) })
}

fn get(sqe: &Sqe) -> Result<Xattr, Errno> {
    if sqe.op_flags != 0 {
        return Err(Errno::INVAL);
    }
    let value = Value::Get(sqe.off as usize, (sqe.len as usize).min(XATTR_VALUE_MAX));
    Ok(Xattr { name: read_name(sqe.addr)?, path: None, value })
}

/// The path forms take no registered file.
fn with_path(sqe: &Sqe, prep: fn(&Sqe) -> Result<Xattr, Errno>) -> Result<Op, Errno> {
    if sqe.flags & sqe::FIXED_FILE != 0 {
        return Err(Errno::BADF);
    }
    let attribute = prep(sqe)?;
    Ok(Op::Xattr(Xattr { path: Some(user::read_cstr(sqe.addr3 as usize)?), ..attribute }))
}

impl Xattr {
    /// Its path, in the forms that take one.
    pub fn path(&self) -> Option<&[u8]> {
        self.path.as_deref()
    }
}

fn prep_fset(sqe: &Sqe) -> Result<Op, Errno> {
    set(sqe).map(Op::Xattr)
}
fn prep_set(sqe: &Sqe) -> Result<Op, Errno> {
    with_path(sqe, set)
}
fn prep_fget(sqe: &Sqe) -> Result<Op, Errno> {
    get(sqe).map(Op::Xattr)
}
fn prep_get(sqe: &Sqe) -> Result<Op, Errno> {
    with_path(sqe, get)
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::Xattr(x) = &req.op else { return Issue::err(Errno::INVAL) };
    let (name, file) = (x.name.as_ptr() as usize, req.file.raw() as usize);
    let path = x.path.as_ref().map(|p| p.as_ptr() as usize);
    let (number, args) = match (&x.value, path) {
        (Value::Set(v, flags), None) => {
            (nr::__NR_fsetxattr, [file, name, v.as_ptr() as usize, v.len(), *flags as usize, 0])
        }
        (Value::Set(v, flags), Some(path)) => {
            (nr::__NR_setxattr, [path, name, v.as_ptr() as usize, v.len(), *flags as usize, 0])
        }
        (Value::Get(to, room), None) => (nr::__NR_fgetxattr, [file, name, *to, *room, 0, 0]),
        (Value::Get(to, room), Some(path)) => (nr::__NR_getxattr, [path, name, *to, *room, 0, 0]),
    };
    // SAFETY: name, path and value are copies; the buffer of a get is the program's, which the kernel checks.
    Issue::from_result(unsafe { ctx.call(number, args) })
}

const fn by_file(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef { always_async: true, waits: Waits::File, ..OpDef::new(name, code, prep, issue) }
}

const fn by_path(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef { file: FileUse::Ignored, waits: Waits::Path, ..by_file(name, code, prep) }
}

/// FSETXATTR.
pub const FSETXATTR: OpDef = by_file("FSETXATTR", op::FSETXATTR, prep_fset);
/// SETXATTR.
pub const SETXATTR: OpDef = by_path("SETXATTR", op::SETXATTR, prep_set);
/// FGETXATTR.
pub const FGETXATTR: OpDef = by_file("FGETXATTR", op::FGETXATTR, prep_fget);
/// GETXATTR.
pub const GETXATTR: OpDef = by_path("GETXATTR", op::GETXATTR, prep_get);
