//! IORING_REGISTER_RESIZE_RINGS: other sizes for a living ring.

use super::Call;
use crate::host::user;
use crate::ring::setup;
use crate::ring::shared::Mapping;
use crate::Errno;
use anyring_uapi::setup::{
    CLAMP, CQE32, CQE_MIXED, CQSIZE, DEFER_TASKRUN, NO_MMAP, NO_SQARRAY, SQE128,
};
use anyring_uapi::Params;

/// What the program may say.
const ALLOWED: u32 = CQSIZE | CLAMP;
/// What stays as it was at setup.
const KEPT: u32 = NO_SQARRAY | SQE128 | CQE32 | NO_MMAP | CQE_MIXED;

/// Replaces the shared memory; entries that wait are copied. Only where nobody but the owner submits and reaps (EINVAL):
/// the program has to map the new memory before it goes on. EOVERFLOW if what waits does not fit.
pub fn resize(call: &Call<'_>) -> Result<u32, Errno> {
    if !call.ring.has(DEFER_TASKRUN) || call.arg == 0 || call.nr != 1 {
        return Err(Errno::INVAL);
    }
    let mut p: Params = user::read(call.arg)?;
    if p.flags & !ALLOWED != 0 {
        return Err(Errno::INVAL);
    }
    p.flags |= call.ring.flags & KEPT;
    let geo = setup::geometry(p.sq_entries, &mut p)?;
    let new = if p.flags & NO_MMAP != 0 {
        let (rings, sqes) = (p.cq_off.user_addr as usize, p.sq_off.user_addr as usize);
        Mapping::in_program_memory(geo, rings, sqes)?
    } else {
        Mapping::new(geo)?
    };
    user::write(call.arg, &p)?;
    let st = call.ring.state.lock();
    let mut cq = call.ring.cq.lock();
    new.take_over(&call.ring.mem, st.sq_head, cq.tail())?;
    cq.resize(geo.cq_entries);
    // SAFETY: both locks are held, and register(2) was refused to all but the owner.
    unsafe { call.ring.mem.replace(new) };
    Ok(0)
}
