//! FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAITV.
//!
//! A wait whose values hold when it is issued goes to a lane ([`crate::futex`]). One with a mask or a NUMA node needs a
//! call of its own, in a worker. A wake ends waits of rings first, the oldest first, then wakes threads.

use super::{must_be_zero, Ctx, FileUse, Issue, Op, OpDef, Support};
use crate::futex::Word;
use crate::host::futex::{self as host, Waitv};
use crate::host::{nr, user};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

const VALID_FLAGS: u32 = host::SIZE_MASK | host::NUMA | host::MPOL | host::PRIVATE;
/// Most words of one FUTEX_WAITV, as in Linux.
const WORDS_MAX: u32 = 128;

/// FUTEX_WAIT, FUTEX_WAITV.
#[derive(Debug)]
pub struct Wait {
    /// All words; FUTEX_WAIT has one.
    pub words: Vec<Word>,
    /// FUTEX_WAIT's; all bits for FUTEX_WAITV.
    mask: u32,
    /// FUTEX_WAITV.
    many: bool,
}

/// FUTEX_WAKE.
#[derive(Debug)]
pub struct Wake {
    word: Word,
    mask: u32,
}

/// Only 32-bit futexes exist.
fn check_flags(flags: u32) -> Result<u32, Errno> {
    if flags & !VALID_FLAGS != 0 || flags & host::SIZE_MASK != host::SIZE_U32 {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}

fn check_value(value: u64) -> Result<u32, Errno> {
    u32::try_from(value).map_err(|_| Errno::INVAL)
}

fn one(sqe: &Sqe) -> Result<(Word, u32), Errno> {
    must_be_zero(&[
        sqe.len as u64,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
    ])?;
    let flags = check_flags(sqe.fd as u32)?;
    let (value, mask) = (check_value(sqe.off)?, check_value(sqe.addr3)?);
    Ok((Word { addr: sqe.addr as usize, value, flags, unmapped: false }, mask))
}

fn prep_wait(sqe: &Sqe) -> Result<Op, Errno> {
    let (word, mask) = one(sqe)?;
    Ok(Op::FutexWait(Wait { words: vec![word], mask, many: false }))
}

fn prep_wake(sqe: &Sqe) -> Result<Op, Errno> {
    let (word, mask) = one(sqe)?;
    Ok(Op::FutexWake(Wake { word, mask }))
}

fn prep_waitv(sqe: &Sqe) -> Result<Op, Errno> {
    let fields = [
        sqe.fd as u32 as u64,
        sqe.off,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
        sqe.addr3,
    ];
    must_be_zero(&fields)?;
    if sqe.len == 0 || sqe.len > WORDS_MAX {
        return Err(Errno::INVAL);
    }
    let given: Vec<Waitv> = user::read_vec(sqe.addr as usize, sqe.len as usize)?;
    let word = |w: &Waitv| {
        if w.reserved != 0 {
            return Err(Errno::INVAL);
        }
        Ok(Word {
            addr: w.addr as usize,
            value: check_value(w.value)?,
            flags: check_flags(w.flags)?,
            unmapped: false,
        })
    };
    let words = given.iter().map(word).collect::<Result<_, Errno>>()?;
    Ok(Op::FutexWait(Wait { words, mask: host::MATCH_ANY, many: true }))
}

fn check_address(word: &Word) -> Result<(), Errno> {
    if word.addr % 4 != 0 {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// EAGAIN if a value is not what it should be.
fn check_values(wait: &Wait) -> Result<(), Errno> {
    if wait.mask == 0 {
        return Err(Errno::INVAL);
    }
    wait.words.iter().try_for_each(check_address)?;
    for word in &wait.words {
        if user::read::<u32>(word.addr)? != word.value {
            return Err(Errno::AGAIN);
        }
    }
    Ok(())
}

fn issue_wait(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::FutexWait(wait) = &req.op else { return Issue::err(Errno::INVAL) };
    if ctx.may_block() {
        return in_worker(wait, ctx);
    }
    if let Err(e) = check_values(wait) {
        return Issue::err(e);
    }
    let special = wait.words.iter().any(|w| w.flags & (host::NUMA | host::MPOL) != 0);
    if special || wait.mask != host::MATCH_ANY {
        return Issue::Worker;
    }
    Issue::ArmFutex
}

/// The values held when the request was issued: one that has changed since is as good as a wake.
fn in_worker(wait: &Wait, ctx: &Ctx<'_>) -> Issue {
    let result = if wait.many { many_in_worker(wait, ctx) } else { one_in_worker(wait, ctx) };
    match result {
        Err(Errno::AGAIN) => {
            let changed = wait.words.iter().position(|w| user::read::<u32>(w.addr) != Ok(w.value));
            Issue::Done(changed.unwrap_or(0) as i32, 0)
        }
        other => Issue::from_result(other),
    }
}

fn one_in_worker(wait: &Wait, ctx: &Ctx<'_>) -> Result<usize, Errno> {
    let word = wait.words[0];
    let [new, old] = host::wait_args(word.addr, word.value, wait.mask, word.flags);
    // SAFETY: the word is the program's, which the kernel checks.
    match unsafe { ctx.call(new.0, new.1) } {
        // SAFETY: as above.
        Err(Errno::NOSYS | Errno::PERM) => unsafe { ctx.call(old.0, old.1) },
        other => other,
    }
}

fn many_in_worker(wait: &Wait, ctx: &Ctx<'_>) -> Result<usize, Errno> {
    let entries: Vec<Waitv> = wait
        .words
        .iter()
        .map(|w| Waitv { value: w.value as u64, addr: w.addr as u64, flags: w.flags, reserved: 0 })
        .collect();
    // SAFETY: the array is ours; the words are the program's, which the kernel checks.
    match unsafe { ctx.call(nr::__NR_futex_waitv, host::waitv_args(&entries)) } {
        Err(Errno::NOSYS | Errno::PERM) if wait.words.len() == 1 => one_in_worker(wait, ctx),
        // As a kernel without it.
        Err(Errno::NOSYS | Errno::PERM) => Err(Errno::INVAL),
        other => other,
    }
}

fn issue_wake(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let Op::FutexWake(wake) = &req.op else { return Issue::err(Errno::INVAL) };
    let (word, mask) = (wake.word, wake.mask);
    Issue::from_result(wake_all(ctx, &word, mask))
}

fn wake_all(ctx: &mut Ctx<'_>, word: &Word, mask: u32) -> Result<usize, Errno> {
    let asked = word.value as i32;
    let host_wake = |count: i32| host::wake(word.addr, count, mask, word.flags);
    let Some(engine) = ctx.ring.engine.upgrade().filter(|_| mask != 0 && asked != 0) else {
        return host_wake(asked);
    };
    // A negative count wakes one, as in Linux.
    let most = asked.max(1);
    let ring = ctx.ring.clone();
    let served = engine.futexes.serve(ring.id, word.place(), most as u32);
    let done = served.count as i32;
    if done == 0 && served.stale == 0 {
        return host_wake(asked);
    }
    ctx.with_state(|st| served.own.iter().for_each(|ended| ring.finish_own_futex(st, ended)));
    let stale = served.stale as i32;
    // What has ended is still queued in the host and counted there.
    let woken = if done < most {
        host_wake((most - done).saturating_add(stale))
    } else {
        Ok(served.stale as usize)
    };
    engine.futexes.ring_bells(&served.lanes);
    Ok((done + (woken? as i32 - stale).max(0)) as usize)
}

const fn row(name: &'static str, code: u8, prep: fn(&Sqe) -> Result<Op, Errno>) -> OpDef {
    OpDef {
        file: FileUse::Ignored,
        on_ring: true,
        unbound: true,
        ..OpDef::new(name, code, prep, issue_wait)
    }
}

/// What a wait in a lane cannot tell.
const LANE: Support =
    Support::Partial("may end without a wake when its word changes; a thread's wake that changes nothing may be missed");

/// FUTEX_WAIT.
pub const FUTEX_WAIT: OpDef =
    OpDef { support: LANE, ..row("FUTEX_WAIT", op::FUTEX_WAIT, prep_wait) };
/// FUTEX_WAKE.
pub const FUTEX_WAKE: OpDef =
    OpDef { issue: issue_wake, ..row("FUTEX_WAKE", op::FUTEX_WAKE, prep_wake) };
/// FUTEX_WAITV.
pub const FUTEX_WAITV: OpDef =
    OpDef { support: LANE, ..row("FUTEX_WAITV", op::FUTEX_WAITV, prep_waitv) };
