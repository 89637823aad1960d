//! IORING_REGISTER_MEM_REGION: memory that the ring and the program share, which may hold arguments of waits.

use super::Call;
use crate::host::{mem, user};
use crate::registered::region::{Memory, Region};
use crate::Errno;
use anyring_uapi::register::{MemRegionReg, RegionDesc, MEM_REGION_TYPE_USER, MEM_REGION_WAIT_ARG};
use anyring_uapi::setup::OFF_PARAM_REGION;
use std::sync::Arc;

/// See the module's description. EBUSY the second time; wait arguments only while the ring is disabled.
pub fn register(call: &Call<'_>) -> Result<u32, Errno> {
    if call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    if call.ring.state.lock().region.is_some() {
        return Err(Errno::BUSY);
    }
    let arg: MemRegionReg = user::read(call.arg)?;
    let mut desc: RegionDesc = user::read(arg.region as usize)?;
    let waits = arg.flags & MEM_REGION_WAIT_ARG != 0;
    let enabled = call.ring.state.lock().enabled;
    if arg.resv != [0; 2] || arg.flags & !MEM_REGION_WAIT_ARG != 0 || (waits && enabled) {
        return Err(Errno::INVAL);
    }
    check(&desc)?;
    let size = desc.size as usize;
    let memory = if desc.flags & MEM_REGION_TYPE_USER != 0 {
        if !mem::is_writable(desc.user_addr as usize, size) {
            return Err(Errno::FAULT);
        }
        Memory::Program(desc.user_addr as usize)
    } else {
        desc.mmap_offset = OFF_PARAM_REGION;
        Memory::Own(mem::Shared::new(size)?)
    };
    user::write(arg.region as usize, &desc)?;
    let mut st = call.ring.state.lock();
    if st.region.is_some() {
        return Err(Errno::BUSY);
    }
    st.region = Some(Arc::new(Region { memory, size, waits }));
    Ok(0)
}

fn check(desc: &RegionDesc) -> Result<(), Errno> {
    if desc.resv != [0; 4] || desc.flags & !MEM_REGION_TYPE_USER != 0 {
        return Err(Errno::INVAL);
    }
    // An address is given if and only if the memory is the program's.
    if (desc.flags & MEM_REGION_TYPE_USER != 0) != (desc.user_addr != 0) {
        return Err(Errno::FAULT);
    }
    if desc.size == 0 || desc.mmap_offset != 0 || desc.id != 0 {
        return Err(Errno::INVAL);
    }
    let page = mem::PAGE as u64;
    if desc.size / page > i32::MAX as u64 {
        return Err(Errno::TOOBIG);
    }
    if (desc.user_addr | desc.size) % page != 0 {
        return Err(Errno::INVAL);
    }
    desc.user_addr.checked_add(desc.size).map(drop).ok_or(Errno::OVERFLOW)
}
