//! A worker's finished request in two steps: its CQE is posted at once, under the CQ's lock alone; the request comes
//! back later, with others, under one taking of the state's lock.
//!
//! Only where nothing but the CQE depends on the request's end: nothing follows in its chain, nothing watches it, no provided
//! buffer has to be settled, and nobody counts completions one by one (counted timeouts, drains), which [`Cq::exact`] says.
//! A ring with deferred task work has its CQEs posted by its owner.
//!
//! [`Cq::exact`]: super::cq::Cq::exact

use super::cq::{Entry, Kind};
use super::pending::Pending;
use super::Ring;
use crate::ops::Op;
use crate::req::{Key, Req};
use anyring_uapi::sqe::CQE_SKIP_SUCCESS;
use anyring_uapi::Cqe;
use std::sync::Arc;

impl Ring {
    /// Posts the CQE of a request that the caller owns and returns later by [`Ring::take_back`]; false if it
    /// must be completed as a whole.
    pub fn post_at_once(&self, req: &Req, res: i32, flags: u32) -> bool {
        if self.defers() || !is_simple(req) {
            return false;
        }
        let mut cq = self.cq.lock();
        if cq.exact {
            return false;
        }
        let cqe = Cqe { user_data: req.user_data, res, flags };
        cq.post(&self.mem, Entry { cqe, ..Entry::default() }, Kind::Normal, true);
        cq.count_early(req.def.code);
        let commit = cq.commit(&self.mem);
        drop(cq);
        self.tell(commit.wake);
        true
    }

    /// Requests whose CQEs were posted come back. What they hold is let go with no lock held.
    pub fn take_back(self: &Arc<Ring>, finished: Vec<(Key, Box<Req>)>) {
        let mut st = self.state.lock();
        for (key, _) in &finished {
            if let Some(Pending::Work(item)) = st.pending.take(*key) {
                if !st.closed {
                    st.spare.put(item);
                }
            }
        }
        st.outstanding = st.outstanding.saturating_sub(finished.len());
        if !st.drain.is_empty() && !st.closed {
            self.release_drained(&mut st);
            self.finish_turn(&mut st);
        }
    }
}

/// Only the CQE depends on its end.
fn is_simple(req: &Req) -> bool {
    let wide = matches!(&req.op, Op::Nop(nop) if nop.extra.is_some());
    req.next.is_none()
        && req.link_timeout.is_none()
        && req.selected.is_none()
        && req.notification.is_none()
        && !req.multishot
        && !req.has(CQE_SKIP_SUCCESS)
        && !wide
}
