//! Transfers of files with O_DIRECT, as kernel AIO takes them and gives them back.

use super::{choose_buffer, wanted, Memory, RWF_HIPRI, RWF_NOWAIT};
use crate::aio::queue::Prepared;
use crate::host::aio::{self, Iocb};
use crate::host::rw::Iovec;
use crate::host::{fd, nr};
use crate::ops::{Ctx, Issue, Op};
use crate::req::{FileRef, Req};
use crate::Errno;
use anyring_uapi::setup::IOPOLL;
use anyring_uapi::sqe;

/// Whether kernel AIO can do this transfer, if its file is direct. It knows no file position.
pub fn suits_aio(req: &Req, polled: bool) -> bool {
    let Op::Rw(rw) = &req.op else { return false };
    let plain = !rw.attributes && !rw.multishot && rw.done == 0 && req.creds.is_none();
    let empty = rw.memory.total() == 0 && !req.has(sqe::BUFFER_SELECT);
    plain && !empty && rw.offset >= 0 && (rw.flags & RWF_HIPRI == 0 || polled)
}

/// Its file was direct the last time, and kernel AIO is to be had.
pub fn is_known(req: &Req, ctx: &mut Ctx<'_>) -> bool {
    let Some(st) = &mut ctx.st else { return false };
    st.aio.hints.is_direct(&req.file)
        && suits_aio(req, ctx.ring.has(IOPOLL))
        && ctx.ring.open_aio(st)
}

/// Its file has O_DIRECT: remembered, if kernel AIO is to be had.
pub fn is_found(req: &Req, ctx: &mut Ctx<'_>) -> bool {
    let Some(st) = &mut ctx.st else { return false };
    if !suits_aio(req, ctx.ring.has(IOPOLL)) {
        return false;
    }
    let Ok(stat) = fd::stat(req.file.raw()) else { return false };
    let fits = (stat.is_regular() || stat.is_block()) && ctx.ring.open_aio(st);
    if fits {
        st.aio.hints.learn(&req.file, &stat);
    }
    fits
}

/// Takes a provided buffer, if the request asks for one.
pub fn to_aio(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<Issue, Errno> {
    let max = wanted(req);
    choose_buffer(req, ctx, max)?;
    Ok(Issue::Aio)
}

/// The transfer as kernel AIO takes it. Vectors stay where they are, in the request.
pub fn prepare(req: &Req, token: u64) -> Prepared {
    let Op::Rw(rw) = &req.op else { return Prepared::default() };
    let chosen = req.selected.map(|buf| Iovec { base: buf.addr, len: buf.len });
    let (opcodes, buf, nbytes) = match (&chosen, &rw.memory) {
        (Some(v), _) | (None, Memory::One(v) | Memory::Fixed(v)) => {
            ([aio::PREAD, aio::PWRITE], v.base, v.len)
        }
        (None, Memory::Many(v) | Memory::ManyFixed(v)) => {
            ([aio::PREADV, aio::PWRITEV], v.as_ptr() as usize, v.len())
        }
    };
    let iocb = Iocb {
        data: token,
        rw_flags: rw.flags | RWF_NOWAIT,
        opcode: opcodes[usize::from(rw.write)],
        priority: rw.ioprio,
        fd: req.file.raw() as u32,
        buf: buf as u64,
        nbytes: nbytes as u64,
        offset: rw.offset,
        flags: if rw.ioprio != 0 { aio::FLAG_IOPRIO } else { 0 },
        ..Iocb::default()
    };
    Prepared { iocb, bytes: wanted(req) as u64 }
}

/// What becomes of a transfer that kernel AIO has ended with `res`.
pub fn after_aio(req: &mut Req, res: i32) -> Landed {
    let total = wanted(req);
    let Op::Rw(rw) = &mut req.op else { return Landed::Ended };
    let user_nowait = rw.flags & RWF_NOWAIT != 0;
    if (res == Errno::AGAIN.res() && !user_nowait) || res == Errno::OPNOTSUPP.res() {
        return Landed::HasToWait;
    }
    if res > 0 && (res as usize) < total && !user_nowait && !is_direct(&req.file) {
        // A buffered file after all, of which only the beginning was in memory.
        rw.done = res as usize;
        return Landed::HasToWait;
    }
    req.failed |= res as usize != total;
    Landed::Ended
}

/// Whether the file has O_DIRECT now.
pub fn is_direct(file: &FileRef) -> bool {
    fd::status_flags(file.raw()).is_ok_and(|flags| flags & nr::O_DIRECT != 0)
}

/// See [`after_aio`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// It has its result.
    Ended,
    /// Not without waiting: a worker's.
    HasToWait,
}
