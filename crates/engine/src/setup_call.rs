//! The setup call: from parameters to a ring with a descriptor.

use crate::engine::Inner;
use crate::host::{fd, user};
use crate::ops::net::leftover::Leftover;
use crate::ring::shared::SharedRings;
use crate::ring::state::State;
use crate::ring::{setup, Ring};
use crate::sqpoll::SqPoll;
use crate::task::Task;
use crate::{Caller, Errno};
use anyring_uapi::setup::*;
use anyring_uapi::Params;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// See [`crate::Engine::setup`].
pub fn setup(
    engine: &Arc<Inner>,
    caller: &Caller,
    entries: u32,
    params: usize,
) -> Result<u32, Errno> {
    let mut p: Params = user::read(params)?;
    let geo = setup::geometry(entries, &mut p)?;
    let attach = attach_target(engine, &p)?;
    check_cpu(&p)?;
    let mem = if p.flags & NO_MMAP != 0 {
        SharedRings::in_program_memory(
            geo,
            p.cq_off.user_addr as usize,
            p.sq_off.user_addr as usize,
        )?
    } else {
        SharedRings::new(geo)?
    };
    user::write(params, &p)?;
    engine.fds.make_room();
    let task = engine.task(caller.tid, geo.sq_entries);
    let ring = build(engine, caller, &p, mem, task.clone())?;
    if ring.is_looked_after() {
        engine.watched.fetch_add(1, Ordering::Relaxed);
    }
    start_sqpoll(engine, &ring, &p, attach)?;
    publish(engine, &task, ring, p.flags)
}

/// The ring that ATTACH_WQ names. ENXIO for no such descriptor, EINVAL for another kind of file.
fn attach_target(engine: &Inner, p: &Params) -> Result<Option<Arc<Ring>>, Errno> {
    if p.flags & ATTACH_WQ == 0 {
        return Ok(None);
    }
    match engine.ring_or_error(p.wq_fd as i32) {
        Ok(ring) if p.flags & SQPOLL != 0 && ring.flags & SQPOLL == 0 => Err(Errno::INVAL),
        Ok(ring) => Ok(Some(ring)),
        Err(Errno::BADF) => Err(Errno::NXIO),
        Err(_) => Err(Errno::INVAL),
    }
}

fn check_cpu(p: &Params) -> Result<(), Errno> {
    if p.flags & SQ_AFF == 0 {
        return Ok(());
    }
    let cpu = p.sq_thread_cpu as usize;
    let allowed = crate::host::thread::affinity();
    match allowed.get(cpu / 8) {
        Some(byte) if byte & (1 << (cpu % 8)) != 0 => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

fn build(
    engine: &Arc<Inner>,
    caller: &Caller,
    p: &Params,
    mem: SharedRings,
    task: Arc<Task>,
) -> Result<Arc<Ring>, Errno> {
    let enabled = p.flags & R_DISABLED == 0;
    let owner = (enabled && p.flags & SINGLE_ISSUER != 0).then_some(caller.tid);
    let efd = engine.fds.move_high(fd::eventfd()?)?;
    let leftover = Leftover::new(engine.config.policy.sample_inq);
    let state = State::new(enabled, owner, leftover);
    Ok(Arc::new(Ring::new(engine.new_id(), p.flags, mem, task, Arc::downgrade(engine), efd, state)))
}

fn start_sqpoll(
    engine: &Arc<Inner>,
    ring: &Arc<Ring>,
    p: &Params,
    attach: Option<Arc<Ring>>,
) -> Result<(), Errno> {
    if p.flags & SQPOLL == 0 {
        return Ok(());
    }
    let shared = attach.and_then(|other| other.sqpoll.lock().clone()).filter(|s| !s.is_dead());
    let sqpoll = match shared {
        Some(sqpoll) => sqpoll,
        None => {
            let cpu = (p.flags & SQ_AFF != 0).then_some(p.sq_thread_cpu);
            let pool =
                Arc::new(crate::wq::Pool::new(ring.task.tid, p.sq_entries, Arc::downgrade(engine)));
            SqPoll::start(engine, Arc::new(Task::new(ring.task.tid, pool)), cpu)?
        }
    };
    *ring.sqpoll.lock() = Some(sqpoll.clone());
    sqpoll.attach(ring.clone(), p.sq_thread_idle);
    Ok(())
}

/// Gives the ring its descriptor, or its registered index.
fn publish(
    engine: &Arc<Inner>,
    task: &Arc<Task>,
    ring: Arc<Ring>,
    flags: u32,
) -> Result<u32, Errno> {
    if flags & REGISTERED_FD_ONLY != 0 {
        let mut slots = task.ring_fds.lock();
        let index = slots.iter().position(Option::is_none).ok_or(Errno::BUSY)?;
        slots[index] = Some(ring);
        return Ok(index as u32);
    }
    match engine.fds.ring_number(ring.efd()) {
        Ok(number) => {
            let number = number.into_raw();
            engine.insert_ring(number, ring);
            Ok(number as u32)
        }
        Err(e) => {
            ring.refs.store(1, Ordering::Release);
            engine.release(&ring);
            Err(e)
        }
    }
}
