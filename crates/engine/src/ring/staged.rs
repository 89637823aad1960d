//! CQEs of the running turn that wait for its end, so that the completion queue is locked once for all of them.
//!
//! A turn is what happens while a thread holds the ring's state lock; [`Ring::finish_turn`] ends it and leaves nothing
//! staged. Whatever posts past the stage, or looks at how much was posted, empties it first, so that CQEs stay in
//! order. Only plain 16-byte CQEs that count as [`Kind::Normal`] are staged.

use super::cq::Kind;
use super::state::State;
use super::Ring;
use anyring_uapi::Cqe;

/// CQEs that one lock of the completion queue covers.
const CAPACITY: usize = 32;

/// See the module's description.
pub struct Staged {
    len: usize,
    from_worker: bool,
    cqes: [Cqe; CAPACITY],
}

impl Default for Staged {
    fn default() -> Staged {
        Staged { len: 0, from_worker: false, cqes: [Cqe::default(); CAPACITY] }
    }
}

impl Staged {
    /// Takes what waits, and whether some of it came from a worker.
    pub fn take(&mut self) -> (&[Cqe], bool) {
        let len = core::mem::take(&mut self.len);
        (&self.cqes[..len], core::mem::take(&mut self.from_worker))
    }
}

impl Ring {
    /// Posts a CQE by the end of this turn.
    #[inline]
    pub fn stage(&self, st: &mut State, cqe: Cqe, from_worker: bool) {
        if st.staged.len == CAPACITY {
            self.empty_stage(st);
        }
        let staged = &mut st.staged;
        staged.cqes[staged.len] = cqe;
        staged.len += 1;
        staged.from_worker |= from_worker;
    }

    /// Posts what is staged.
    pub fn empty_stage(&self, st: &mut State) {
        if st.staged.len > 0 {
            let (cqes, from_worker) = st.staged.take();
            self.cq.lock_as(st.holder).post_all(&self.mem, cqes, from_worker);
        }
    }

    /// Posts a CQE now, behind what is staged, unless the ring has no room for it.
    pub fn post_if_room(&self, st: &mut State, cqe: Cqe, kind: Kind) -> bool {
        self.empty_stage(st);
        self.cq.lock_as(st.holder).try_post(&self.mem, cqe.into(), kind)
    }
}
