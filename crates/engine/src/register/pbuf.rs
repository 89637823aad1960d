//! Buffer rings: register, unregister, status, and their memory for `mmap(2)`.

use super::Call;
use crate::host::mem::{is_mapped, Shared, PAGE};
use crate::host::user;
use crate::registered::buf_ring::{BufRing, Memory};
use crate::Errno;
use anyring_uapi::register::{BufReg, BufStatus, PBUF_RING_INC, PBUF_RING_MMAP};
use std::sync::Arc;

const ENTRIES_MAX: u32 = 1 << 15;

fn read_arg(call: &Call<'_>) -> Result<BufReg, Errno> {
    if call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let reg: BufReg = user::read(call.arg)?;
    if reg.resv != [0; 3] {
        return Err(Errno::INVAL);
    }
    Ok(reg)
}

/// IORING_REGISTER_PBUF_RING.
pub fn register(call: &Call<'_>) -> Result<u32, Errno> {
    let reg = read_arg(call)?;
    if reg.flags & !(PBUF_RING_MMAP | PBUF_RING_INC) != 0 {
        return Err(Errno::INVAL);
    }
    if !reg.entries.is_power_of_two() || reg.entries > ENTRIES_MAX {
        return Err(Errno::INVAL);
    }
    call.ring.state.lock().groups.check_free(reg.group)?;
    let len = BufRing::bytes(reg.entries);
    let memory = if reg.flags & PBUF_RING_MMAP != 0 {
        Memory::Own(Arc::new(Shared::new(len)?))
    } else {
        Memory::Program(check_memory(reg.addr as usize, len)?)
    };
    let ring = BufRing::new(memory, reg.entries as u16, reg.flags & PBUF_RING_INC != 0);
    call.ring.state.lock().groups.add_ring(reg.group, ring).map(|()| 0)
}

/// The program's memory must be page-aligned (EINVAL), mapped and writable (EFAULT).
fn check_memory(addr: usize, len: usize) -> Result<usize, Errno> {
    if addr == 0 {
        return Err(Errno::FAULT);
    }
    if addr % PAGE != 0 {
        return Err(Errno::INVAL);
    }
    if !is_mapped(addr, len) {
        return Err(Errno::FAULT);
    }
    for page in (addr..addr + len).step_by(PAGE) {
        let word: u64 = user::read(page)?;
        user::write(page, &word)?;
    }
    Ok(addr)
}

/// IORING_UNREGISTER_PBUF_RING.
pub fn unregister(call: &Call<'_>) -> Result<u32, Errno> {
    let reg = read_arg(call)?;
    if reg.flags != 0 {
        return Err(Errno::INVAL);
    }
    call.ring.state.lock().groups.remove_ring(reg.group).map(|()| 0)
}

/// IORING_REGISTER_PBUF_STATUS: tells the head.
pub fn status(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let mut status: BufStatus = user::read(call.arg)?;
    if status.resv != [0; 8] {
        return Err(Errno::INVAL);
    }
    let group = u16::try_from(status.group).map_err(|_| Errno::NOENT)?;
    status.head = call.ring.state.lock().groups.ring(group)?.head() as u32;
    user::write(call.arg, &status).map(|()| 0)
}
