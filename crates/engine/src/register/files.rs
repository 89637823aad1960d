//! Registered files: register, update, unregister, allocation range.

use super::Call;
use crate::host::{fd, user};
use crate::limits::FILES_MAX;
use crate::registered::files::{FixedFile, Tag};
use crate::Errno;
use anyring_uapi::register::{RsrcRegister, RsrcUpdate2, RSRC_SPARSE};
use std::sync::Arc;

/// An empty slot.
const EMPTY: i32 = -1;
/// A slot that an update leaves alone.
const SKIP: i32 = -2;

type Slot = Option<Arc<FixedFile>>;

/// Duplicates the program's descriptor for a slot.
fn hold(call: &Call<'_>, number: i32, tag: u64) -> Result<Slot, Errno> {
    if number == EMPTY {
        return if tag == 0 { Ok(None) } else { Err(Errno::INVAL) };
    }
    if number < 0 || call.engine.ring(number).is_some() {
        return Err(Errno::BADF);
    }
    let held = call.engine.fds.duplicate(number)?;
    Ok(Some(Arc::new(FixedFile::new(held, Tag::new(tag, call.ring)))))
}

fn install(call: &Call<'_>, data: usize, tags: usize, nr: u32, sparse: bool) -> Result<u32, Errno> {
    if call.ring.state.lock().files.exists() {
        return Err(Errno::BUSY);
    }
    if nr == 0 {
        return Err(Errno::INVAL);
    }
    let soft = fd::nofile_limit()?.0;
    let program_soft = call.engine.fds.program_soft().unwrap_or(soft);
    if nr > FILES_MAX || nr as u64 > program_soft {
        return Err(Errno::MFILE);
    }
    let numbers: Vec<i32> =
        if sparse { vec![EMPTY; nr as usize] } else { user::read_vec(data, nr as usize)? };
    let tags: Vec<u64> =
        if tags == 0 { vec![0; nr as usize] } else { user::read_vec(tags, nr as usize)? };
    let mut slots: Vec<Slot> = Vec::with_capacity(nr as usize);
    for (number, tag) in numbers.iter().zip(&tags) {
        match hold(call, *number, *tag) {
            Ok(slot) => slots.push(slot),
            Err(e) => {
                // No tag is reported for a registration that failed.
                slots.into_iter().flatten().for_each(forget_tag);
                return Err(e);
            }
        }
    }
    call.ring.state.lock().files.install(slots);
    Ok(0)
}

fn forget_tag(file: Arc<FixedFile>) {
    if let Ok(mut file) = Arc::try_unwrap(file) {
        file.tag.value = 0;
    }
}

/// IORING_REGISTER_FILES.
pub fn register_plain(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 {
        return Err(Errno::FAULT);
    }
    install(call, call.arg, 0, call.nr, false)
}

/// IORING_REGISTER_FILES2; `nr` is the argument's size.
pub fn register_tagged(call: &Call<'_>) -> Result<u32, Errno> {
    let arg = read_register(call)?;
    let sparse = arg.flags & RSRC_SPARSE != 0;
    if sparse && arg.data != 0 {
        return Err(Errno::INVAL);
    }
    install(call, arg.data as usize, arg.tags as usize, arg.nr, sparse)
}

/// The argument of the second-generation register calls, checked.
pub fn read_register(call: &Call<'_>) -> Result<RsrcRegister, Errno> {
    if call.nr as usize != size_of::<RsrcRegister>() {
        return Err(Errno::INVAL);
    }
    let arg: RsrcRegister = user::read(call.arg)?;
    if arg.nr == 0 || arg.resv2 != 0 || arg.flags & !RSRC_SPARSE != 0 {
        return Err(Errno::INVAL);
    }
    Ok(arg)
}

/// IORING_UNREGISTER_FILES.
pub fn unregister(call: &Call<'_>) -> Result<u32, Errno> {
    call.no_arg()?;
    let gone = call.ring.state.lock().files.remove();
    gone.map(|_| 0).ok_or(Errno::NXIO)
}

/// IORING_REGISTER_FILES_UPDATE.
pub fn update_plain(call: &Call<'_>) -> Result<u32, Errno> {
    if call.nr == 0 {
        return Err(Errno::INVAL);
    }
    let [head, data]: [u64; 2] = user::read(call.arg)?;
    if head >> 32 != 0 {
        return Err(Errno::INVAL);
    }
    update(call, head as u32, data as usize, 0, call.nr)
}

/// IORING_REGISTER_FILES_UPDATE2; `nr` is the argument's size.
pub fn update_tagged(call: &Call<'_>) -> Result<u32, Errno> {
    let arg = read_update(call)?;
    update(call, arg.offset, arg.data as usize, arg.tags as usize, arg.nr)
}

/// The argument of the second-generation update calls, checked.
pub fn read_update(call: &Call<'_>) -> Result<RsrcUpdate2, Errno> {
    if call.nr as usize != size_of::<RsrcUpdate2>() {
        return Err(Errno::INVAL);
    }
    let arg: RsrcUpdate2 = user::read(call.arg)?;
    if arg.nr == 0 || arg.resv != 0 || arg.resv2 != 0 {
        return Err(Errno::INVAL);
    }
    Ok(arg)
}

fn update(call: &Call<'_>, offset: u32, data: usize, tags: usize, nr: u32) -> Result<u32, Errno> {
    let len = {
        let st = call.ring.state.lock();
        st.files.exists().then(|| st.files.len())
    };
    check_range(offset, nr, len)?;
    for i in 0..nr {
        if let Err(e) = update_one(call, offset + i, data + 4 * i as usize, tags, i) {
            return if i > 0 { Ok(i) } else { Err(e) };
        }
    }
    Ok(nr)
}

/// ENXIO without a table; EOVERFLOW or EINVAL for a range beyond it.
pub fn check_range(offset: u32, nr: u32, len: Option<u32>) -> Result<(), Errno> {
    let len = len.ok_or(Errno::NXIO)?;
    let end = offset.checked_add(nr).ok_or(Errno::OVERFLOW)?;
    if end > len {
        return Err(Errno::INVAL);
    }
    Ok(())
}

fn update_one(call: &Call<'_>, slot: u32, data: usize, tags: usize, i: u32) -> Result<(), Errno> {
    let number: i32 = user::read(data)?;
    let tag: u64 = if tags == 0 { 0 } else { user::read(tags + 8 * i as usize)? };
    if number == SKIP {
        return if tag == 0 { Ok(()) } else { Err(Errno::INVAL) };
    }
    if number == EMPTY && tag != 0 {
        return Err(Errno::INVAL);
    }
    // The slot is emptied first; a bad descriptor leaves it empty.
    let old = call.ring.state.lock().files.set(slot, None);
    drop(old);
    let new = hold(call, number, tag)?;
    let raced = call.ring.state.lock().files.set(slot, new);
    drop(raced);
    Ok(())
}

/// IORING_REGISTER_FILE_ALLOC_RANGE.
pub fn alloc_range(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 0 {
        return Err(Errno::INVAL);
    }
    let [off_len, resv]: [u64; 2] = user::read(call.arg)?;
    let (off, len) = (off_len as u32, (off_len >> 32) as u32);
    let end = off.checked_add(len).ok_or(Errno::OVERFLOW)?;
    let mut st = call.ring.state.lock();
    if resv != 0 || end > st.files.len() {
        return Err(Errno::INVAL);
    }
    st.files.set_alloc_range(off..end);
    Ok(0)
}
