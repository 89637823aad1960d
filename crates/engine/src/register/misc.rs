//! The register operations that are neither about files nor about buffers.

use super::Call;
use crate::host::time::{self, Clock};
use crate::host::{thread, user};
use crate::ops::cancel::check_flags;
use crate::ops::{msg_ring, table, Op};
use crate::registered::creds::Creds;
use crate::ring::cancel::{Criteria, FD, FD_FIXED};
use crate::ring::cq::EventFd;
use crate::ring::setup::FEATURES;
use crate::{Errno, Inner};
use anyring_uapi::register::{self, Probe, ProbeOp, Restriction, SyncCancel, PROBE_SUPPORTED};
use anyring_uapi::setup::SINGLE_ISSUER;
use anyring_uapi::{enter, op, setup, sqe, Sqe};

/// IORING_REGISTER_EVENTFD and its async form. EBUSY the second time, EINVAL for another kind of file.
pub fn eventfd(call: &Call<'_>, async_only: bool) -> Result<u32, Errno> {
    if call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let number: i32 = user::read(call.arg)?;
    if call.ring.cq.lock().eventfd.is_some() {
        return Err(Errno::BUSY);
    }
    if !crate::host::fd::is_eventfd(number)? {
        return Err(Errno::INVAL);
    }
    let fd = call.engine.fds.duplicate(number)?;
    call.ring.cq.lock().eventfd = Some(EventFd { fd, async_only });
    call.ring.attend();
    Ok(0)
}

/// IORING_UNREGISTER_EVENTFD.
pub fn unregister_eventfd(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    let gone = call.ring.cq.lock().eventfd.take();
    gone.map(|_| 0).ok_or(Errno::NXIO)
}

/// IORING_REGISTER_PROBE. The program's buffer must be zero.
pub fn probe(call: &Call<'_>) -> Result<u32, Errno> {
    let most = (u8::MAX as u32 + 1).min(call.nr) as usize;
    if call.arg == 0 || call.nr > 256 {
        return Err(Errno::INVAL);
    }
    let len = size_of::<Probe>() + most * size_of::<ProbeOp>();
    let given: Vec<u8> = user::read_vec(call.arg, len)?;
    if given.iter().any(|b| *b != 0) {
        return Err(Errno::INVAL);
    }
    let nr = most.min(op::COUNT);
    let head = Probe { last_op: op::COUNT as u8 - 1, ops_len: nr as u8, ..Probe::default() };
    let ops: Vec<ProbeOp> = (0..nr as u8)
        .map(|code| {
            let flags = if table::supported(code).is_some() { PROBE_SUPPORTED } else { 0 };
            ProbeOp { op: code, flags, ..ProbeOp::default() }
        })
        .collect();
    user::write(call.arg, &head)?;
    user::write_slice(call.arg + size_of::<Probe>(), &ops)?;
    Ok(0)
}

/// IORING_REGISTER_PERSONALITY: returns the id.
pub fn personality(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    let creds = Creds::snapshot()?;
    call.ring.state.lock().personalities.add(creds).map(u32::from)
}

/// IORING_UNREGISTER_PERSONALITY.
pub fn unregister_personality(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg != 0 {
        return Err(Errno::INVAL);
    }
    call.ring.state.lock().personalities.remove(call.nr).map(|()| 0)
}

/// IORING_REGISTER_RESTRICTIONS.
pub fn restrictions(call: &Call<'_>) -> Result<u32, Errno> {
    if call.ring.state.lock().enabled {
        return Err(Errno::BADFD);
    }
    const MOST: u32 = 128;
    if call.nr > MOST || call.arg == 0 {
        return Err(Errno::INVAL);
    }
    let mut list = Vec::new();
    for i in 0..call.nr as usize {
        list.push(user::read::<Restriction>(call.arg + i * size_of::<Restriction>())?);
    }
    call.ring.state.lock().restrictions.register(&list).map(|()| 0)
}

/// IORING_REGISTER_ENABLE_RINGS: the caller becomes the owner of a SINGLE_ISSUER ring.
pub fn enable(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    let mut st = call.ring.state.lock();
    if st.enabled {
        return Err(Errno::BADFD);
    }
    call.ring.enable(&mut st);
    st.restrictions.activate();
    if call.ring.has(SINGLE_ISSUER) {
        st.owner = Some(call.caller.tid);
    }
    drop(st);
    if let Some(sqpoll) = &*call.ring.sqpoll.lock() {
        sqpoll.wake();
    }
    Ok(0)
}

/// The pool that serves the caller: the poll thread's on an SQPOLL ring.
fn pool(call: &Call<'_>) -> std::sync::Arc<crate::task::Task> {
    match &*call.ring.sqpoll.lock() {
        Some(sqpoll) => sqpoll.task.clone(),
        None => call.engine.task(call.caller.tid, call.ring.mem.geometry().sq_entries),
    }
}

/// IORING_REGISTER_IOWQ_AFF: `nr` bytes of CPU mask.
pub fn iowq_affinity(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr == 0 {
        return Err(Errno::INVAL);
    }
    let mask: Vec<u8> = user::read_vec(call.arg, (call.nr as usize).min(1024))?;
    let allowed = thread::affinity();
    if !mask.iter().zip(&allowed).any(|(m, a)| m & a != 0) {
        return Err(Errno::INVAL);
    }
    if let Some(sqpoll) = &*call.ring.sqpoll.lock() {
        thread::set_affinity(sqpoll.tid.load(core::sync::atomic::Ordering::Acquire) as i32, &mask)?;
    }
    pool(call).pool.set_affinity(Some(mask));
    Ok(0)
}

/// IORING_UNREGISTER_IOWQ_AFF.
pub fn unregister_iowq_affinity(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    pool(call).pool.set_affinity(None);
    Ok(0)
}

/// IORING_REGISTER_IOWQ_MAX_WORKERS: {bounded, unbounded}, replaced by the old values.
pub fn iowq_max_workers(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 2 {
        return Err(Errno::INVAL);
    }
    let new: [u32; 2] = user::read(call.arg)?;
    if new.iter().any(|n| *n > i32::MAX as u32) {
        return Err(Errno::INVAL);
    }
    let old = pool(call).pool.set_max(new[0], new[1]);
    user::write(call.arg, &old).map(|()| 0)
}

/// IORING_REGISTER_NAPI and its removal: busy polling needs the network driver's queues, which only the kernel can
/// reach. EOPNOTSUPP, as a kernel that was built without CONFIG_NET_RX_BUSY_POLL answers.
pub fn napi(call: &Call<'_>, opcode: u32) -> Result<u32, Errno> {
    if call.nr != 1 || (call.arg == 0 && opcode == register::NAPI) {
        return Err(Errno::INVAL);
    }
    Err(Errno::OPNOTSUPP)
}

/// IORING_REGISTER_CLOCK: the clock of ABS_TIMER waits.
pub fn clock(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 0 {
        return Err(Errno::INVAL);
    }
    let [id, a, b, c]: [u32; 4] = user::read(call.arg)?;
    if a | b | c != 0 {
        return Err(Errno::INVAL);
    }
    call.ring.state.lock().boottime = match id as i32 {
        id if id == Clock::Monotonic as i32 => false,
        id if id == Clock::Boottime as i32 => true,
        _ => return Err(Errno::INVAL),
    };
    Ok(0)
}

/// IORING_REGISTER_SYNC_CANCEL: cancels and waits until the target is gone. ENOENT, ETIME.
pub fn sync_cancel(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let arg: SyncCancel = user::read(call.arg)?;
    if arg.pad != [0; 7] || arg.pad2 != [0; 3] {
        return Err(Errno::INVAL);
    }
    check_flags(arg.flags)?;
    let mut what =
        Criteria { flags: arg.flags, user_data: arg.addr, fd: arg.fd, opcode: arg.opcode };
    let deadline = deadline(&arg);
    let mut slot = None;
    if arg.flags & (FD | FD_FIXED) == FD | FD_FIXED {
        slot = call.ring.state.lock().files.get(arg.fd as u32);
        what.fd = slot.as_ref().ok_or(Errno::BADF)?.fd.raw();
    } else if arg.flags & FD != 0 && !crate::host::fd::is_open(arg.fd) {
        return Err(Errno::BADF);
    }
    let mut found = false;
    loop {
        let mut st = call.ring.state.lock();
        let outcome = call.ring.cancel(&mut st, &what);
        call.ring.finish_turn(&mut st);
        drop(st);
        match outcome {
            Ok(_) if found => break,
            Ok(n) => return Ok(n),
            Err(Errno::ALREADY) => found = true,
            Err(Errno::NOENT) if found => break,
            Err(e) => return Err(e),
        }
        if deadline.is_some_and(|at| time::now_ns(Clock::Monotonic) >= at) {
            return Err(Errno::TIME);
        }
        // A worker is on its way out of a call; there is nothing to sleep on.
        thread::yield_now();
    }
    drop(slot);
    Ok(0)
}

/// IORING_REGISTER_SEND_MSG_RING: a data message from a program without a ring of its own. `arg` is a MSG_RING SQE.
pub fn send_msg_ring(engine: &Inner, arg: usize, nr: u32) -> Result<u32, Errno> {
    if arg == 0 || nr != 1 {
        return Err(Errno::INVAL);
    }
    let request: Sqe = user::read(arg)?;
    if request.flags != 0 || request.opcode != op::MSG_RING {
        return Err(Errno::INVAL);
    }
    let Op::MsgRing(message) = msg_ring::prep(&request)? else { return Err(Errno::INVAL) };
    if !message.is_data() {
        return Err(Errno::INVAL);
    }
    message.send_data(&msg_ring::target(engine, request.fd)?).map(|()| 0)
}

fn deadline(arg: &SyncCancel) -> Option<u64> {
    if arg.timeout.sec == -1 && arg.timeout.nsec == -1 {
        return None;
    }
    let ns = arg.timeout.sec.saturating_mul(1_000_000_000).saturating_add(arg.timeout.nsec).max(0);
    Some(time::now_ns(Clock::Monotonic).saturating_add(ns as u64))
}

/// IORING_REGISTER_QUERY: a linked list of 40-byte headers `{next, data, op, size, result, zero[3]}`.
pub fn query(arg: usize, nr: u32) -> Result<u32, Errno> {
    if nr != 0 {
        return Err(Errno::INVAL);
    }
    const MOST: usize = 1000;
    let mut at = arg;
    for _ in 0..MOST {
        if at == 0 {
            return Ok(0);
        }
        let mut header: [u64; 5] = user::read(at)?;
        let (op_size, result_resv, resv) = (header[2], header[3], header[4]);
        let (kind, size) = (op_size as u32, (op_size >> 32) as u32);
        let reserved = (result_resv >> 32) | resv;
        let (result, size) = answer_query(header[1] as usize, kind, size, reserved)?;
        header[2] = kind as u64 | (size as u64) << 32;
        header[3] = result as u32 as u64;
        user::write(at, &header)?;
        at = header[0] as usize;
    }
    Err(Errno::RANGE)
}

/// Query 0: what opcodes and flags exist. Others are unknown.
fn answer_query(data: usize, kind: u32, size: u32, reserved: u64) -> Result<(i32, u32), Errno> {
    if reserved != 0 || size == 0 {
        return Ok((Errno::INVAL.res(), 0));
    }
    if kind != 0 {
        user::write_slice(data, &vec![0u8; (size as usize).min(4096)])?;
        return Ok((Errno::OPNOTSUPP.res(), 0));
    }
    let info: [u64; 6] = [
        op::COUNT as u64 | (register::COUNT as u64) << 32,
        FEATURES as u64,
        setup::ALL_FLAGS as u64,
        enter::ALL_FLAGS as u64,
        sqe::VALID_FLAGS as u64,
        1,
    ];
    let bytes: Vec<u8> = info.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut out = bytes.clone();
    out.resize((size as usize).min(4096), 0);
    user::write_slice(data, &out)?;
    Ok((0, (bytes.len() as u32).min(size)))
}
