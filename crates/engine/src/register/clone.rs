//! IORING_REGISTER_CLONE_BUFFERS: a ring gets buffers of another, or more of its own.

use super::{ring_fds, Call};
use crate::host::user;
use crate::limits::BUFFERS_MAX;
use crate::registered::buffers::{Buffers, FixedBuffer};
use crate::registered::files::Tag;
use crate::ring::Ring;
use crate::Errno;
use anyring_uapi::register::{CloneBuffers, CLONE_DST_REPLACE, CLONE_SRC_REGISTERED};
use std::sync::Arc;

type Slot = Option<Arc<FixedBuffer>>;

/// See the module's description. EBUSY if the ring has buffers and none are to be replaced; ENXIO without any to clone.
pub fn clone_buffers(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let arg: CloneBuffers = user::read(call.arg)?;
    if arg.flags & !(CLONE_SRC_REGISTERED | CLONE_DST_REPLACE) != 0 {
        return Err(Errno::INVAL);
    }
    let replace = arg.flags & CLONE_DST_REPLACE != 0;
    if !replace && call.ring.state.lock().buffers.exists() {
        return Err(Errno::BUSY);
    }
    if arg.pad != [0; 3] {
        return Err(Errno::INVAL);
    }
    let source = find(call, &arg)?;
    let (dst_off, cloned) = take_clones(&source, &arg)?;
    let mut st = call.ring.state.lock();
    let old = put(&mut st.buffers, dst_off as usize, cloned);
    drop(st);
    drop(old);
    Ok(0)
}

fn find(call: &Call<'_>, arg: &CloneBuffers) -> Result<Arc<Ring>, Errno> {
    let source = if arg.flags & CLONE_SRC_REGISTERED != 0 {
        // A task without registered rings has none at this index.
        ring_fds::find(call.engine, call.caller, arg.src_fd).map_err(|_| Errno::BADF)?
    } else {
        call.engine.ring_or_error(arg.src_fd as i32)?
    };
    if source.id != call.ring.id
        && source.state.lock().owner.is_some_and(|owner| owner != call.caller.tid)
    {
        return Err(Errno::EXIST);
    }
    Ok(source)
}

/// Copies of the source's slots, without their tags, and where they go.
fn take_clones(source: &Ring, arg: &CloneBuffers) -> Result<(u32, Vec<Slot>), Errno> {
    if arg.nr == 0 && (arg.src_off != 0 || arg.dst_off != 0) {
        return Err(Errno::INVAL);
    }
    let st = source.state.lock();
    let have = st.buffers.len();
    if have == 0 {
        return Err(Errno::NXIO);
    }
    let nr = if arg.nr == 0 { have } else { arg.nr };
    if nr > have {
        return Err(Errno::INVAL);
    }
    if arg.src_off.checked_add(nr).is_none_or(|end| end > have) {
        return Err(Errno::OVERFLOW);
    }
    if arg.dst_off.checked_add(nr).ok_or(Errno::OVERFLOW)? > BUFFERS_MAX {
        return Err(Errno::INVAL);
    }
    let copy = |b: Arc<FixedBuffer>| {
        Arc::new(FixedBuffer { addr: b.addr, len: b.len, tag: Tag::default() })
    };
    let slots = (arg.src_off..arg.src_off + nr).map(|i| st.buffers.get(i as u16).map(copy));
    Ok((arg.dst_off, slots.collect()))
}

/// Puts clones into a table, which grows where they do not fit; returns what they replace.
fn put(buffers: &mut Buffers, at: usize, cloned: Vec<Slot>) -> Vec<Slot> {
    let mut table = buffers.remove().unwrap_or_default();
    table.resize(table.len().max(at + cloned.len()), None);
    let old = cloned
        .into_iter()
        .zip(&mut table[at..])
        .map(|(new, slot)| core::mem::replace(slot, new))
        .collect();
    buffers.install(table);
    old
}
