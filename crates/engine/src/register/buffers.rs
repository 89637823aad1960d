//! Registered buffers: register, update, unregister. Nothing is locked, so RLIMIT_MEMLOCK does not matter.

use super::files::{check_range, read_register, read_update};
use super::Call;
use crate::host::rw::Iovec;
use crate::host::{mem, user};
use crate::limits::{BUFFERS_MAX, BUFFER_BYTES_MAX};
use crate::registered::buffers::FixedBuffer;
use crate::registered::files::Tag;
use crate::Errno;
use anyring_uapi::register::RSRC_SPARSE;
use std::sync::Arc;

type Slot = Option<Arc<FixedBuffer>>;

/// Checks one vector as the kernel does: an empty one is an empty slot; EFAULT for one without memory behind it.
fn hold(call: &Call<'_>, iov: Iovec, tag: u64) -> Result<Slot, Errno> {
    if iov.base == 0 && iov.len == 0 {
        return if tag == 0 { Ok(None) } else { Err(Errno::INVAL) };
    }
    if iov.base == 0 || iov.len == 0 || iov.len > BUFFER_BYTES_MAX {
        return Err(Errno::FAULT);
    }
    iov.base.checked_add(iov.len).ok_or(Errno::OVERFLOW)?;
    if !mem::is_mapped(iov.base, iov.len) {
        return Err(Errno::FAULT);
    }
    let tag = Tag::new(tag, call.ring);
    Ok(Some(Arc::new(FixedBuffer { addr: iov.base, len: iov.len, tag })))
}

fn install(call: &Call<'_>, data: usize, tags: usize, nr: u32) -> Result<u32, Errno> {
    if call.ring.state.lock().buffers.exists() {
        return Err(Errno::BUSY);
    }
    if nr == 0 || nr > BUFFERS_MAX {
        return Err(Errno::INVAL);
    }
    let mut slots: Vec<Slot> = Vec::with_capacity(nr as usize);
    for i in 0..nr as usize {
        let iov = if data == 0 {
            Ok(Iovec::default())
        } else {
            user::read(data + i * size_of::<Iovec>())
        };
        let tag = if tags == 0 { Ok(0) } else { user::read(tags + 8 * i) };
        match iov.and_then(|iov| hold(call, iov, tag?)) {
            Ok(slot) => slots.push(slot),
            Err(e) => {
                slots.into_iter().flatten().for_each(forget_tag);
                return Err(e);
            }
        }
    }
    call.ring.state.lock().buffers.install(slots);
    Ok(0)
}

fn forget_tag(buffer: Arc<FixedBuffer>) {
    if let Ok(mut buffer) = Arc::try_unwrap(buffer) {
        buffer.tag.value = 0;
    }
}

/// IORING_REGISTER_BUFFERS.
pub fn register_plain(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 {
        return Err(Errno::FAULT);
    }
    install(call, call.arg, 0, call.nr)
}

/// IORING_REGISTER_BUFFERS2; `nr` is the argument's size.
pub fn register_tagged(call: &Call<'_>) -> Result<u32, Errno> {
    let arg = read_register(call)?;
    if arg.flags & RSRC_SPARSE != 0 && arg.data != 0 {
        return Err(Errno::INVAL);
    }
    install(call, arg.data as usize, arg.tags as usize, arg.nr)
}

/// IORING_UNREGISTER_BUFFERS.
pub fn unregister(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    let gone = call.ring.state.lock().buffers.remove();
    gone.map(|_| 0).ok_or(Errno::NXIO)
}

/// IORING_REGISTER_BUFFERS_UPDATE; `nr` is the argument's size.
pub fn update(call: &Call<'_>) -> Result<u32, Errno> {
    let arg = read_update(call)?;
    let len = {
        let st = call.ring.state.lock();
        st.buffers.exists().then(|| st.buffers.len())
    };
    check_range(arg.offset, arg.nr, len)?;
    for i in 0..arg.nr as usize {
        let one = || {
            let iov: Iovec = user::read(arg.data as usize + i * size_of::<Iovec>())?;
            let tag: u64 = if arg.tags == 0 { 0 } else { user::read(arg.tags as usize + 8 * i)? };
            hold(call, iov, tag)
        };
        match one() {
            Ok(new) => drop(call.ring.state.lock().buffers.set(arg.offset + i as u32, new)),
            Err(_) if i > 0 => return Ok(i as u32),
            Err(e) => return Err(e),
        }
    }
    Ok(arg.nr)
}
