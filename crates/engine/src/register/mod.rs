//! `io_uring_register(2)`: who may, and which operation.

pub mod buffers;
pub mod clone;
pub mod files;
pub mod misc;
pub mod pbuf;
pub mod region;
pub mod resize;
pub mod ring_fds;

use crate::engine::Inner;
use crate::ring::Ring;
use crate::{Caller, Errno};
use anyring_uapi::register::*;
use anyring_uapi::setup::SINGLE_ISSUER;
use std::sync::Arc;

/// A register call on one ring.
pub struct Call<'a> {
    /// The ring.
    pub ring: &'a Arc<Ring>,
    /// The engine.
    pub engine: &'a Arc<Inner>,
    /// The calling thread.
    pub caller: &'a Caller,
    /// Argument.
    pub arg: usize,
    /// Count.
    pub nr: u32,
}

/// See [`crate::Engine::register`].
pub fn register(
    engine: &Arc<Inner>,
    caller: &Caller,
    fd: u32,
    opcode: u32,
    arg: usize,
    nr: u32,
) -> Result<u32, Errno> {
    let by_index = opcode & USE_REGISTERED_RING != 0;
    let opcode = opcode & !USE_REGISTERED_RING;
    if opcode >= COUNT {
        return Err(Errno::INVAL);
    }
    if fd == u32::MAX {
        return match opcode {
            QUERY => misc::query(arg, nr),
            SEND_MSG_RING => misc::send_msg_ring(engine, arg, nr),
            _ => Err(Errno::INVAL),
        };
    }
    let ring = if by_index {
        ring_fds::find(engine, caller, fd)?
    } else {
        engine.ring_or_error(fd as i32)?
    };
    {
        let st = ring.state.lock();
        if ring.has(SINGLE_ISSUER) && st.owner.is_some_and(|owner| owner != caller.tid) {
            return Err(Errno::EXIST);
        }
        st.restrictions.check_register(opcode)?;
    }
    let result = dispatch(&Call { ring: &ring, engine, caller, arg, nr }, opcode);
    let mut st = ring.state.lock();
    ring.finish_turn(&mut st);
    result
}

/// Operations that are not listed answer EINVAL, as a kernel without them does.
fn dispatch(call: &Call<'_>, opcode: u32) -> Result<u32, Errno> {
    match opcode {
        BUFFERS => buffers::register_plain(call),
        BUFFERS2 => buffers::register_tagged(call),
        UNREGISTER_BUFFERS => buffers::unregister(call),
        BUFFERS_UPDATE => buffers::update(call),
        FILES => files::register_plain(call),
        FILES2 => files::register_tagged(call),
        UNREGISTER_FILES => files::unregister(call),
        FILES_UPDATE => files::update_plain(call),
        FILES_UPDATE2 => files::update_tagged(call),
        FILE_ALLOC_RANGE => files::alloc_range(call),
        EVENTFD => misc::eventfd(call, false),
        EVENTFD_ASYNC => misc::eventfd(call, true),
        UNREGISTER_EVENTFD => misc::unregister_eventfd(call),
        PROBE => misc::probe(call),
        PERSONALITY => misc::personality(call),
        UNREGISTER_PERSONALITY => misc::unregister_personality(call),
        RESTRICTIONS => misc::restrictions(call),
        ENABLE_RINGS => misc::enable(call),
        IOWQ_AFF => misc::iowq_affinity(call),
        UNREGISTER_IOWQ_AFF => misc::unregister_iowq_affinity(call),
        IOWQ_MAX_WORKERS => misc::iowq_max_workers(call),
        RING_FDS => ring_fds::register(call),
        UNREGISTER_RING_FDS => ring_fds::unregister(call),
        SYNC_CANCEL => misc::sync_cancel(call),
        PBUF_RING => pbuf::register(call),
        UNREGISTER_PBUF_RING => pbuf::unregister(call),
        PBUF_STATUS => pbuf::status(call),
        NAPI | UNREGISTER_NAPI => misc::napi(call, opcode),
        RESIZE_RINGS => resize::resize(call),
        CLOCK => misc::clock(call),
        CLONE_BUFFERS => clone::clone_buffers(call),
        MEM_REGION => region::register(call),
        QUERY => misc::query(call.arg, call.nr),
        _ => Err(Errno::INVAL),
    }
}

impl Call<'_> {
    /// EINVAL unless there is no argument.
    fn no_arg(&self) -> Result<(), Errno> {
        if self.arg != 0 || self.nr != 0 {
            return Err(Errno::INVAL);
        }
        Ok(())
    }
}
