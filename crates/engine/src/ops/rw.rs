//! READ, WRITE, their vectored and fixed-buffer forms.
//!
//! The inline attempt uses RWF_NOWAIT. What it answers tells the kind of file only where it matters: a
//! stream refuses offsets (ESPIPE), a file that has no such form refuses the flag (EOPNOTSUPP).

use super::{Ctx, FileUse, Issue, Op, OpDef};
use crate::host::rw::Iovec;
use crate::host::{self, fd, nr, poll, user};
use crate::inline::buffered;
use crate::limits::{INLINE_BYTES_MAX, IOV_MAX, RW_BYTES_MAX};
use crate::policy::Inline as Mode;
use crate::registered::buffers::FixedBuffer;
use crate::registered::groups::Take;
use crate::req::Req;
use crate::Errno;
use anyring_uapi::setup::IOPOLL;
use anyring_uapi::{op, sqe, Sqe};
use std::sync::Arc;

mod direct;

pub use direct::{after_aio, is_direct, prepare, suits_aio, Landed};

const RWF_HIPRI: u32 = 0x1;
const RWF_NOWAIT: u32 = 0x8;
/// Drop the pages afterwards.
const RWF_DONTCACHE: u32 = 0x80;
/// No SIGPIPE; any file takes it.
const RWF_NOSIGNAL: u32 = 0x100;
/// Flags that every filesystem takes: HIPRI, DSYNC, SYNC, NOWAIT, APPEND, NOAPPEND.
const RWF_KNOWN: u32 = 0x3f;

/// Where the bytes are.
#[derive(Debug)]
enum Memory {
    /// One range.
    One(Iovec),
    /// Vectors, copied at prep.
    Many(Vec<Iovec>),
    /// One range inside a registered buffer.
    Fixed(Iovec),
    /// Vectors inside one registered buffer.
    ManyFixed(Vec<Iovec>),
}

/// A transfer.
#[derive(Debug)]
pub struct Rw {
    write: bool,
    memory: Memory,
    offset: i64,
    flags: u32,
    ioprio: u16,
    /// Bytes already transferred.
    done: usize,
    /// The registered buffer, kept as long as the request lives.
    buffer: Option<Arc<FixedBuffer>>,
    /// Protection information was asked for, which no file here has.
    attributes: bool,
    /// Posts CQEs until it ends.
    pub multishot: bool,
    /// A multishot has posted since it last waited.
    pub posted: bool,
}

impl Rw {
    /// Bytes to transfer.
    pub fn bytes(&self) -> usize {
        self.memory.total()
    }
    /// Posts CQEs until it ends.
    pub fn multishot(&self) -> bool {
        self.multishot
    }
}

/// The priority classes that Linux knows; a level (the low three bits) needs a class, hints do not.
fn check_ioprio(ioprio: u16) -> Result<(), Errno> {
    match (ioprio >> 13, ioprio & 7) {
        (0, 0) | (1..=3, _) => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// Read and write attributes: only the mask for protection information exists.
fn check_attributes(sqe: &Sqe) -> Result<bool, Errno> {
    match sqe.pad2 {
        0 => Ok(false),
        1 => user::read::<[u64; 4]>(sqe.addr3 as usize).map(|_| true),
        _ => Err(Errno::INVAL),
    }
}

fn prep(sqe: &Sqe, write: bool, memory: Memory) -> Result<Op, Errno> {
    check_ioprio(sqe.ioprio)?;
    let attributes = check_attributes(sqe)?;
    let (offset, flags) = (sqe.off as i64, sqe.op_flags);
    Ok(Op::Rw(Rw {
        write,
        memory,
        offset,
        flags,
        ioprio: sqe.ioprio,
        done: 0,
        buffer: None,
        attributes,
        multishot: false,
        posted: false,
    }))
}

fn one(sqe: &Sqe) -> Memory {
    Memory::One(Iovec { base: sqe.addr as usize, len: (sqe.len as usize).min(RW_BYTES_MAX) })
}

/// The end of what a 64-bit program can name.
pub const ADDRESS_END: usize = 1 << 47;

/// Copies and checks vectors.
pub fn read_iovecs(addr: u64, count: u32) -> Result<Vec<Iovec>, Errno> {
    if count > IOV_MAX {
        return Err(Errno::INVAL);
    }
    let vecs: Vec<Iovec> = user::read_vec(addr as usize, count as usize)?;
    if vecs.iter().any(|v| v.len > isize::MAX as usize) {
        return Err(Errno::INVAL);
    }
    if vecs.iter().any(|v| v.base.checked_add(v.len).is_none_or(|end| end > ADDRESS_END)) {
        return Err(Errno::FAULT);
    }
    Ok(vecs)
}

fn many(sqe: &Sqe) -> Result<Memory, Errno> {
    let vecs = read_iovecs(sqe.addr, sqe.len)?;
    if sqe.flags & sqe::BUFFER_SELECT != 0 && vecs.len() != 1 {
        return Err(Errno::INVAL);
    }
    Ok(Memory::Many(vecs))
}

/// READ.
pub fn prep_read(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, false, one(sqe))
}
fn prep_write(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, true, one(sqe))
}
fn prep_readv(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, false, many(sqe)?)
}
fn prep_writev(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, true, many(sqe)?)
}
fn fixed(sqe: &Sqe) -> Memory {
    Memory::Fixed(Iovec { base: sqe.addr as usize, len: (sqe.len as usize).min(RW_BYTES_MAX) })
}
fn prep_read_fixed(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, false, fixed(sqe))
}
fn prep_write_fixed(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, true, fixed(sqe))
}

fn many_fixed(sqe: &Sqe) -> Result<Memory, Errno> {
    read_iovecs(sqe.addr, sqe.len).map(Memory::ManyFixed)
}
fn prep_readv_fixed(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, false, many_fixed(sqe)?)
}
fn prep_writev_fixed(sqe: &Sqe) -> Result<Op, Errno> {
    prep(sqe, true, many_fixed(sqe)?)
}

/// The range of its file that a read at an offset is still to bring.
pub fn range_to_read(req: &Req) -> Option<(u64, u64)> {
    let Op::Rw(rw) = &req.op else { return None };
    let left = rw.memory.total().saturating_sub(rw.done);
    let offset = u64::try_from(rw.offset).ok()?;
    (!rw.write && left > 0 && !req.multishot).then_some((offset + rw.done as u64, left as u64))
}

/// The vectors of one attempt, without what is already done.
fn vectors(memory: &Memory, mut skip: usize, chosen: Option<Iovec>) -> Vec<Iovec> {
    let all: &[Iovec] = match (&chosen, memory) {
        (Some(v), _) => core::slice::from_ref(v),
        (None, Memory::One(v) | Memory::Fixed(v)) => core::slice::from_ref(v),
        (None, Memory::Many(v) | Memory::ManyFixed(v)) => v,
    };
    let mut room = RW_BYTES_MAX;
    let mut out = Vec::with_capacity(all.len());
    for v in all {
        let cut = skip.min(v.len);
        skip -= cut;
        let len = (v.len - cut).min(room);
        room -= len;
        if len > 0 {
            out.push(Iovec { base: v.base + cut, len });
        }
    }
    out
}

impl Memory {
    fn total(&self) -> usize {
        match self {
            Memory::One(v) | Memory::Fixed(v) => v.len,
            Memory::Many(v) | Memory::ManyFixed(v) => {
                v.iter().fold(0usize, |sum, v| sum.saturating_add(v.len)).min(RW_BYTES_MAX)
            }
        }
    }
}

/// Takes a provided buffer if the request asks for one and has none yet.
fn choose_buffer(req: &mut Req, ctx: &mut Ctx<'_>, max: usize) -> Result<Option<Iovec>, Errno> {
    if !req.has(sqe::BUFFER_SELECT) {
        return Ok(None);
    }
    let buf = match req.selected {
        Some(buf) => buf,
        None => {
            let group = req.buf;
            // What cannot wait for readiness keeps its buffer from here on.
            let keeps = ctx.may_block() || is_on_disk(req.file.raw());
            let take = if keeps { Take::Hold } else { Take::Peek };
            let buf = ctx.with_state(|st| st.groups.select(group, max, take))?;
            req.selected = Some(buf);
            buf
        }
    };
    Ok(Some(Iovec { base: buf.addr, len: buf.len }))
}

/// Puts an unused buffer back before the request waits for its file, if it can be put back.
pub fn return_buffer(req: &mut Req, ctx: &mut Ctx<'_>) {
    if let Some(buf) = req.selected.take() {
        if !ctx.with_state(|st| st.groups.put_back(buf)) {
            req.selected = Some(buf);
        }
    }
}

fn is_on_disk(file: i32) -> bool {
    fd::stat(file).is_ok_and(|s| s.is_regular() || s.is_block())
}

/// Holds the registered buffer that a fixed transfer names; EFAULT for none, for a range outside, or an empty vector.
fn hold_buffer(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<(), Errno> {
    let index = req.buf;
    let Op::Rw(Rw { memory, buffer: held @ None, .. }) = &mut req.op else { return Ok(()) };
    let (ranges, empty_allowed) = match memory {
        Memory::One(_) | Memory::Many(_) => return Ok(()),
        Memory::Fixed(range) => (core::slice::from_ref(&*range), true),
        Memory::ManyFixed(ranges) => (&ranges[..], false),
    };
    let buffer = ctx.with_state(|st| st.buffers.get(index)).ok_or(Errno::FAULT)?;
    if ranges.iter().any(|r| !buffer.contains(r.base, r.len) || (r.len == 0 && !empty_allowed)) {
        return Err(Errno::FAULT);
    }
    *held = Some(buffer);
    Ok(())
}

/// One attempt.
pub fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    match try_issue(req, ctx) {
        Ok(issue) => issue,
        Err(e) => Issue::err(e),
    }
}

/// A cached read by offset that has all its bytes, straight from its SQE; `None` for any other.
#[inline]
pub fn read_at_once(sqe: &Sqe) -> Option<i32> {
    let len = sqe.len as usize;
    let plain = sqe.op_flags == 0 && sqe.pad2 == 0 && (sqe.off as i64) >= 0 && sqe.fd >= 0;
    if !plain || len == 0 || len > INLINE_BYTES_MAX || !buffered::is_known(sqe.fd) {
        return None;
    }
    let iov = Iovec { base: sqe.addr as usize, len };
    let (fd, vec) = (sqe.fd as usize, &raw const iov as usize);
    let args = [fd, vec, 1, sqe.off as usize, 0, RWF_NOWAIT as usize];
    // SAFETY: the vector is a local; what it points to is the program's, which the kernel checks.
    match unsafe { host::syscall(nr::__NR_preadv2, args) } {
        Ok(n) if n == len || n == 0 => Some(n as i32),
        Ok(_) => None,
        Err(_) => {
            buffered::forget(sqe.fd);
            None
        }
    }
}

/// The most frequent case in one system call: a cached read that has all its bytes. `None` for any other, and for every
/// error: which one it is depends on what is looked at first.
fn quick(req: &mut Req, ctx: &mut Ctx<'_>) -> Option<Issue> {
    let Op::Rw(rw) = &req.op else { return None };
    let plain = !rw.write && rw.flags == 0 && !rw.attributes && rw.offset >= -1 && rw.done == 0;
    let one = matches!(rw.memory, Memory::One(v) | Memory::Fixed(v) if v.len > 0);
    if !plain || !one || ctx.may_block() || req.has(sqe::BUFFER_SELECT) || ctx.ring.has(IOPOLL) {
        return None;
    }
    let file = req.file.raw();
    if ctx.ring.inline.mode == Mode::Never || !buffered::is_known(file) {
        return None;
    }
    hold_buffer(req, ctx).ok()?;
    match transfer(req, ctx, None, RWF_NOWAIT) {
        Ok(n) => Some(after_partial(req, ctx, None, n)),
        Err(_) => {
            buffered::forget(file);
            None
        }
    }
}

fn try_issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Result<Issue, Errno> {
    if let Some(issue) = quick(req, ctx) {
        return Ok(issue);
    }
    if direct::is_known(req, ctx) && hold_buffer(req, ctx).is_ok() {
        return direct::to_aio(req, ctx);
    }
    let status = fd::status_flags(req.file.raw())?;
    hold_buffer(req, ctx)?;
    let Op::Rw(rw) = &req.op else { return Err(Errno::INVAL) };
    const WRONG_MODE: [u32; 2] = [nr::O_WRONLY, nr::O_RDONLY];
    if status & nr::O_ACCMODE == WRONG_MODE[usize::from(rw.write)] {
        return Err(Errno::BADF);
    }
    if rw.attributes {
        return Err(Errno::INVAL);
    }
    let before_start = rw.offset < -1;
    let max = rw.memory.total();
    let empty = max == 0 && req.flags & sqe::BUFFER_SELECT == 0;
    if empty && rw.flags & !(RWF_KNOWN | RWF_DONTCACHE | RWF_NOSIGNAL) != 0 {
        // The system call does not look at the flags of an empty transfer; the ring does.
        return Err(Errno::OPNOTSUPP);
    }
    let user_nowait = rw.flags & RWF_NOWAIT != 0;
    let hipri = rw.flags & RWF_HIPRI != 0 && !ctx.ring.has(IOPOLL);
    let has_direct = status & nr::O_DIRECT != 0;
    if ctx.ring.has(IOPOLL) && !has_direct {
        // Only direct transfers can be polled for.
        return Err(Errno::OPNOTSUPP);
    }
    if has_direct && direct::is_found(req, ctx) {
        return direct::to_aio(req, ctx);
    }
    if has_direct && !ctx.may_block() && !user_nowait {
        // A direct transfer waits for the device even with RWF_NOWAIT.
        return Ok(Issue::Worker);
    }
    let chosen = choose_buffer(req, ctx, max)?;
    if hipri || before_start {
        return Err(Errno::INVAL);
    }
    let outcome = if ctx.may_block() {
        blocking(req, ctx, chosen, status)
    } else {
        inline(req, ctx, chosen, status)
    };
    if matches!(outcome, Issue::Poll(_) | Issue::Worker) && done(req) == 0 {
        return_buffer(req, ctx);
    }
    Ok(outcome)
}

fn done(req: &Req) -> usize {
    match &req.op {
        Op::Rw(rw) => rw.done,
        _ => 0,
    }
}

/// One call with the given extra flags.
fn transfer(req: &Req, ctx: &Ctx<'_>, chosen: Option<Iovec>, extra: u32) -> Result<usize, Errno> {
    let Op::Rw(rw) = &req.op else { return Err(Errno::INVAL) };
    let offset = if rw.offset < 0 {
        -1
    } else {
        rw.offset.checked_add(rw.done as i64).ok_or(Errno::INVAL)?
    };
    let number = if rw.write { nr::__NR_pwritev2 } else { nr::__NR_preadv2 };
    let one = match (&chosen, &rw.memory) {
        (None, Memory::One(v) | Memory::Fixed(v)) if rw.done == 0 => Some(*v),
        (Some(v), _) if rw.done == 0 => Some(*v),
        _ => None,
    };
    let many = if one.is_none() { vectors(&rw.memory, rw.done, chosen) } else { Vec::new() };
    let (vecs, count) = match &one {
        Some(v) => (v as *const Iovec as usize, 1),
        None => (many.as_ptr() as usize, many.len()),
    };
    let args =
        [req.file.raw() as usize, vecs, count, offset as usize, 0, (rw.flags | extra) as usize];
    // SAFETY: the vectors are the engine's own; what they point to is the program's, which the kernel checks.
    unsafe { ctx.call(number, args) }
}

/// A read that is not to wait, of a file without a non-blocking form that reported readiness.
pub fn bounded(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let chosen = match choose_buffer(req, ctx, 0) {
        Ok(chosen) => chosen.unwrap_or_default(),
        Err(e) => return Issue::err(e),
    };
    let args = [req.file.raw() as usize, &raw const chosen as usize, 1, usize::MAX, 0, 0];
    // SAFETY: the vector is a local; what it points to is the program's, which the kernel checks.
    match unsafe { ctx.bounded_call(nr::__NR_preadv2, args) } {
        Ok(0) => Issue::Done(0, 0),
        Ok(n) => Issue::More(n as i32, 0),
        Err(Errno::INTR | Errno::AGAIN) => {
            return_buffer(req, ctx);
            Issue::Poll(readiness(req))
        }
        Err(e) => Issue::err(e),
    }
}

/// Bytes asked for in all.
fn wanted(req: &Req) -> usize {
    match (&req.selected, &req.op) {
        (Some(buf), _) => buf.len,
        (None, Op::Rw(rw)) => rw.memory.total(),
        _ => 0,
    }
}

/// Ends with so many bytes in all; fewer than asked for break a chain.
fn finish(req: &mut Req, bytes: usize) -> Issue {
    req.failed |= bytes != wanted(req);
    Issue::Done(bytes as i32, 0)
}

fn readiness(req: &Req) -> u32 {
    match &req.op {
        Op::Rw(rw) if rw.write => poll::OUT,
        _ => poll::IN,
    }
}

fn make_stream(req: &mut Req) {
    if let Op::Rw(rw) = &mut req.op {
        rw.offset = -1;
    }
}

fn inline(req: &mut Req, ctx: &mut Ctx<'_>, chosen: Option<Iovec>, status: u32) -> Issue {
    let user_nowait = matches!(&req.op, Op::Rw(rw) if rw.flags & RWF_NOWAIT != 0);
    let at_offset = matches!(&req.op, Op::Rw(rw) if rw.offset >= 0);
    match transfer(req, ctx, chosen, RWF_NOWAIT) {
        Ok(n) => {
            if at_offset && status & nr::O_DIRECT == 0 {
                buffered::learn(req.file.raw());
            }
            after_partial(req, ctx, chosen, n)
        }
        Err(Errno::SPIPE) if at_offset && !is_offset_on_socket(req) => {
            make_stream(req);
            inline(req, ctx, chosen, status)
        }
        Err(Errno::AGAIN) if user_nowait => Issue::err(Errno::AGAIN),
        Err(Errno::AGAIN) => would_block(req),
        Err(Errno::OPNOTSUPP) if user_nowait => refused_nowait(req),
        Err(Errno::OPNOTSUPP) => no_such_form(req, ctx, chosen, status),
        Err(Errno::INVAL) if !user_nowait && on_disk(req) => Issue::Worker,
        Err(e) => Issue::err(e),
    }
}

fn on_disk(req: &Req) -> bool {
    fd::stat(req.file.raw()).is_ok_and(|s| s.is_regular() || s.is_block())
}

/// A socket takes no offset but 0; pipes and other streams take any.
fn is_offset_on_socket(req: &Req) -> bool {
    matches!(&req.op, Op::Rw(rw) if rw.offset > 0)
        && fd::stat(req.file.raw()).is_ok_and(|s| s.is_socket())
}

/// RWF_NOWAIT asked for by the program where the filesystem has no such write: it would have to
/// wait.
fn refused_nowait(req: &Req) -> Issue {
    let known = matches!(&req.op, Op::Rw(rw) if rw.flags & !RWF_KNOWN == 0);
    Issue::err(if known && on_disk(req) { Errno::AGAIN } else { Errno::OPNOTSUPP })
}

/// Regular files go on until all is done; others end with the first result.
fn after_partial(req: &mut Req, ctx: &mut Ctx<'_>, chosen: Option<Iovec>, n: usize) -> Issue {
    let total = done(req) + n;
    if wanted(req) == 0 && readiness(req) == poll::IN && fd::is_eventfd(req.file.raw()) == Ok(true)
    {
        // The system call answers a read of nothing by itself; the ring asks the file.
        return Issue::err(Errno::INVAL);
    }
    if n == 0 || total >= wanted(req) {
        return finish(req, total);
    }
    if fd::stat(req.file.raw()).is_ok_and(|s| s.is_regular() || s.is_block()) {
        if let Op::Rw(rw) = &mut req.op {
            rw.done = total;
        }
        return rest(req, ctx, chosen);
    }
    finish(req, total)
}

/// What follows a part of a regular file: its end, most often.
fn rest(req: &mut Req, ctx: &mut Ctx<'_>, chosen: Option<Iovec>) -> Issue {
    if matches!(&req.op, Op::Rw(rw) if rw.flags & RWF_NOWAIT != 0) {
        return Issue::Worker;
    }
    match transfer(req, ctx, chosen, RWF_NOWAIT) {
        Ok(n) => after_partial(req, ctx, chosen, n),
        Err(_) => Issue::Worker,
    }
}

fn would_block(req: &Req) -> Issue {
    match fd::stat(req.file.raw()) {
        Ok(s) if s.is_regular() || s.is_block() => Issue::Worker,
        Ok(_) => Issue::Poll(readiness(req)),
        Err(e) => Issue::err(e),
    }
}

/// The file has no RWF_NOWAIT form.
fn no_such_form(req: &mut Req, ctx: &mut Ctx<'_>, chosen: Option<Iovec>, status: u32) -> Issue {
    let stat = match fd::stat(req.file.raw()) {
        Ok(stat) => stat,
        Err(e) => return Issue::err(e),
    };
    if stat.is_regular() || stat.is_block() {
        return Issue::Worker;
    }
    if matches!(&req.op, Op::Rw(rw) if rw.flags & !(RWF_KNOWN | RWF_NOSIGNAL) != 0) {
        // It was one of the program's own flags that the file refused.
        return Issue::err(Errno::OPNOTSUPP);
    }
    if stat.is_memory_device() || status & nr::O_NONBLOCK != 0 {
        return match transfer(req, ctx, chosen, 0) {
            Ok(n) => finish(req, n),
            Err(Errno::AGAIN) => Issue::Poll(readiness(req)),
            Err(e) => Issue::err(e),
        };
    }
    match poll::ready(req.file.raw(), readiness(req)) {
        Ok(0) => Issue::Poll(readiness(req)),
        // Another reader may be faster: only a worker may wait.
        _ => Issue::Worker,
    }
}

fn blocking(req: &mut Req, ctx: &mut Ctx<'_>, chosen: Option<Iovec>, status: u32) -> Issue {
    let stat = match fd::stat(req.file.raw()) {
        Ok(stat) => stat,
        Err(e) => return Issue::err(e),
    };
    let on_disk = stat.is_regular() || stat.is_block();
    if !on_disk {
        make_stream_unless_seekable(req, &stat);
    }
    loop {
        match transfer(req, ctx, chosen, 0) {
            Ok(n) => {
                let total = done(req) + n;
                if n == 0 || total >= wanted(req) || !on_disk {
                    return finish(req, total);
                }
                if let Op::Rw(rw) = &mut req.op {
                    rw.done = total;
                }
            }
            Err(Errno::AGAIN) if !on_disk && status & nr::O_NONBLOCK != 0 && !req.stubborn => {
                return Issue::Poll(readiness(req))
            }
            Err(_) if done(req) > 0 => {
                let total = done(req);
                return finish(req, total);
            }
            Err(e) => return Issue::err(e),
        }
    }
}

/// Streams ignore the offset.
fn make_stream_unless_seekable(req: &mut Req, stat: &fd::Stat) {
    let seekable = stat.is_memory_device();
    if !seekable && (stat.is_fifo() || stat.is_socket() || !host::fd::is_seekable(req.file.raw())) {
        make_stream(req);
    }
}

const fn row(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef {
        file: FileUse::Needed,
        ioprio: true,
        iopoll: true,
        unbound: true,
        ..OpDef::new(name, code, prep, issue)
    }
}

/// READV.
pub const READV: OpDef = OpDef { buffer_select: true, ..row("READV", op::READV, prep_readv) };
/// WRITEV.
pub const WRITEV: OpDef = OpDef { hashed: true, ..row("WRITEV", op::WRITEV, prep_writev) };
/// READ_FIXED.
pub const READ_FIXED: OpDef = row("READ_FIXED", op::READ_FIXED, prep_read_fixed);
/// WRITE_FIXED.
pub const WRITE_FIXED: OpDef =
    OpDef { hashed: true, ..row("WRITE_FIXED", op::WRITE_FIXED, prep_write_fixed) };
/// READV_FIXED.
pub const READV_FIXED: OpDef = row("READV_FIXED", op::READV_FIXED, prep_readv_fixed);
/// WRITEV_FIXED.
pub const WRITEV_FIXED: OpDef =
    OpDef { hashed: true, ..row("WRITEV_FIXED", op::WRITEV_FIXED, prep_writev_fixed) };
/// READ.
pub const READ: OpDef = OpDef { buffer_select: true, ..row("READ", op::READ, prep_read) };
/// WRITE.
pub const WRITE: OpDef = OpDef { hashed: true, ..row("WRITE", op::WRITE, prep_write) };
