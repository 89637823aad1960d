//! Registered ring descriptors: 16 places of a task.

use super::Call;
use crate::engine::Inner;
use crate::host::user;
use crate::limits::RING_FDS;
use crate::ring::Ring;
use crate::{Caller, Errno};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// The ring at an index of the calling task. EINVAL for an index out of range or a task without rings, EBADF for an empty place.
pub fn find(engine: &Arc<Inner>, caller: &Caller, index: u32) -> Result<Arc<Ring>, Errno> {
    let task = engine.existing_task(caller.tid).ok_or(Errno::INVAL)?;
    if index as usize >= RING_FDS {
        return Err(Errno::INVAL);
    }
    let ring = task.ring_fds.lock()[index as usize].clone();
    ring.ok_or(Errno::BADF)
}

/// `struct io_uring_rsrc_update`: offset, zero, data.
fn read_entry(addr: usize) -> Result<(u32, u64), Errno> {
    let [head, data]: [u64; 2] = user::read(addr)?;
    if head >> 32 != 0 {
        return Err(Errno::INVAL);
    }
    Ok((head as u32, data))
}

/// IORING_REGISTER_RING_FDS: returns how many were registered, and their indices in the entries.
pub fn register(call: &Call<'_>) -> Result<u32, Errno> {
    if call.nr == 0 || call.nr as usize > RING_FDS {
        return Err(Errno::INVAL);
    }
    let task = call.engine.task(call.caller.tid, call.ring.mem.geometry().sq_entries);
    for i in 0..call.nr {
        if let Err(e) = register_one(call, &task, call.arg + 16 * i as usize) {
            return if i > 0 { Ok(i) } else { Err(e) };
        }
    }
    Ok(call.nr)
}

fn register_one(call: &Call<'_>, task: &crate::task::Task, addr: usize) -> Result<(), Errno> {
    let (offset, data) = read_entry(addr)?;
    let ring = call.engine.ring_or_error(data as i32)?;
    let mut places = task.ring_fds.lock();
    let index = if offset == u32::MAX {
        places.iter().position(Option::is_none).ok_or(Errno::BUSY)?
    } else if offset as usize >= RING_FDS {
        return Err(Errno::INVAL);
    } else if places[offset as usize].is_some() {
        return Err(Errno::BUSY);
    } else {
        offset as usize
    };
    user::write(addr, &(index as u32))?;
    ring.refs.fetch_add(1, Ordering::AcqRel);
    places[index] = Some(ring);
    Ok(())
}

/// IORING_UNREGISTER_RING_FDS.
pub fn unregister(call: &Call<'_>) -> Result<u32, Errno> {
    if call.nr == 0 || call.nr as usize > RING_FDS {
        return Err(Errno::INVAL);
    }
    let task = call.engine.existing_task(call.caller.tid).ok_or(Errno::INVAL)?;
    for i in 0..call.nr {
        let one = || {
            let (offset, data) = read_entry(call.arg + 16 * i as usize)?;
            if data != 0 || offset as usize >= RING_FDS {
                return Err(Errno::INVAL);
            }
            Ok(task.ring_fds.lock()[offset as usize].take())
        };
        match one() {
            Ok(gone) => gone.iter().for_each(|ring| call.engine.release(ring)),
            Err(_) if i > 0 => return Ok(i),
            Err(e) => return Err(e),
        }
    }
    Ok(call.nr)
}
