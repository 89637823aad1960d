//! `io_uring_setup(2)`: flags and sizes, checked in the kernel's order.

use super::shared::Geometry;
use crate::limits::{CQ_ENTRIES_MAX, SQ_ENTRIES_MAX};
use crate::Errno;
use anyring_uapi::setup::*;
use anyring_uapi::Params;

/// Feature bits of what works here.
pub const FEATURES: u32 = FEAT_SINGLE_MMAP
    | FEAT_NODROP
    | FEAT_SUBMIT_STABLE
    | FEAT_RW_CUR_POS
    | FEAT_CUR_PERSONALITY
    | FEAT_FAST_POLL
    | FEAT_POLL_32BITS
    | FEAT_SQPOLL_NONFIXED
    | FEAT_EXT_ARG
    | FEAT_NATIVE_WORKERS
    | FEAT_RSRC_TAGS
    | FEAT_CQE_SKIP
    | FEAT_LINKED_FILE
    | FEAT_REG_REG_RING
    | FEAT_RECVSEND_BUNDLE
    | FEAT_MIN_TIMEOUT
    | FEAT_RW_ATTR
    | FEAT_NO_IOWAIT;

/// Checks flags alone.
pub fn check_flags(flags: u32) -> Result<(), Errno> {
    let has = |f: u32| flags & f != 0;
    let bad = flags & !ALL_FLAGS != 0
        || (has(SQPOLL) && has(COOP_TASKRUN | TASKRUN_FLAG | DEFER_TASKRUN))
        || (has(SQ_AFF) && !has(SQPOLL))
        || (has(TASKRUN_FLAG) && !has(COOP_TASKRUN | DEFER_TASKRUN))
        || (has(DEFER_TASKRUN) && !has(SINGLE_ISSUER))
        || (has(HYBRID_IOPOLL) && !has(IOPOLL))
        || (has(REGISTERED_FD_ONLY) && !has(NO_MMAP))
        || (has(CQE32) && has(CQE_MIXED));
    if bad {
        return Err(Errno::INVAL);
    }
    Ok(())
}

fn round(entries: u32, max: u32, clamp: bool) -> Result<u32, Errno> {
    match entries {
        0 => Err(Errno::INVAL),
        n if n > max && !clamp => Err(Errno::INVAL),
        n => Ok(n.min(max).next_power_of_two()),
    }
}

/// Decides the sizes and fills the parameters that go back to the program.
pub fn geometry(entries: u32, p: &mut Params) -> Result<Geometry, Errno> {
    if p.resv != [0; 3] {
        return Err(Errno::INVAL);
    }
    check_flags(p.flags)?;
    let clamp = p.flags & CLAMP != 0;
    let sq = round(entries, SQ_ENTRIES_MAX, clamp)?;
    let cq =
        if p.flags & CQSIZE != 0 { round(p.cq_entries, CQ_ENTRIES_MAX, clamp)? } else { 2 * sq };
    if cq < sq {
        return Err(Errno::INVAL);
    }
    if p.flags & CQE_MIXED != 0 && cq < 2 {
        return Err(Errno::OVERFLOW);
    }
    let geo = Geometry::new(sq, cq, p.flags);
    p.sq_entries = sq;
    p.cq_entries = cq;
    p.features = FEATURES;
    geo.describe(p);
    Ok(geo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let with = |flags, cq| Params { flags, cq_entries: cq, ..Params::default() };
        let get = |n, mut p: Params| geometry(n, &mut p).map(|g| (g.sq_entries, g.cq_entries));
        assert_eq!(get(5, with(0, 0)), Ok((8, 16)));
        assert_eq!(get(0, with(0, 0)), Err(Errno::INVAL));
        assert_eq!(get(32769, with(0, 0)), Err(Errno::INVAL));
        assert_eq!(get(32769, with(CLAMP, 0)), Ok((32768, 65536)));
        assert_eq!(get(4, with(CQSIZE, 3)), Ok((4, 4)));
        assert_eq!(get(4, with(CQSIZE, 0)), Err(Errno::INVAL));
        assert_eq!(get(4, with(CQSIZE | CLAMP, 65537)), Ok((4, 65536)));
    }
}
