//! Requests that finished in a worker on a ring whose CQEs are its owner's to post (DEFER_TASKRUN): the worker hands them
//! over without any lock and wakes the owner only if it has waited for as many, see [`crate::lazy`].

use super::state::{State, TaskWork};
use super::Ring;
use crate::lazy::{Lazy, URGENT};
use crate::req::Req;
use crate::stack::Stack;
use crate::wq::WorkItem;
use anyring_uapi::setup::{DEFER_TASKRUN, SQ_TASKRUN, TASKRUN_FLAG};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// What workers have handed over and the owner has not taken.
#[derive(Default)]
pub struct Deferred {
    finished: Stack<WorkItem>,
    /// Whom that wakes.
    pub lazy: Lazy,
}

/// How many CQEs the end of a request will post; [`URGENT`] if it does more than that.
fn weight(req: &Req) -> u32 {
    if req.next.is_some() || req.link_timeout.is_some() || req.multishot {
        return URGENT;
    }
    1 + u32::from(req.notification.is_some())
}

impl Ring {
    /// A worker has finished a request of this ring, which defers its task work.
    pub fn hand_over(&self, item: Arc<WorkItem>, req: Box<Req>, res: i32, flags: u32) {
        let weight = if self.lazy_wake && self.has(DEFER_TASKRUN) { weight(&req) } else { URGENT };
        item.set_outcome(req, res, flags);
        self.deferred.finished.push(item);
        let pushed = self.deferred.lazy.push(weight);
        if self.is_gone() {
            // Nobody will take them, and they hold the ring.
            return drop(self.deferred.finished.take_all());
        }
        if pushed.first {
            self.show_task_work();
        }
        if pushed.first || pushed.wake {
            self.tell(pushed.wake);
        }
    }

    /// The program and its eventfd learn that there is task work.
    pub fn show_task_work(&self) {
        if self.has(TASKRUN_FLAG) {
            self.mem.set_sq_flags(SQ_TASKRUN);
        }
        self.cq.lock().signal_eventfd(&self.mem, true);
    }

    /// The owner takes what was handed over.
    pub fn take_deferred(&self, st: &mut State) {
        if !self.deferred.lazy.take() {
            return;
        }
        for item in self.deferred.finished.take_all() {
            drop(st.pending.take(item.key));
            if let Some((req, res, flags)) = item.take_outcome() {
                self.push_task_work(st, TaskWork::Complete(req, res, flags));
            }
            st.spare.put(item);
        }
    }

    /// The ring is closed: what was handed over goes.
    pub fn drop_deferred(&self) {
        drop(self.deferred.finished.take_all());
    }

    /// Task work waits, of whatever kind.
    pub fn has_task_work(&self) -> bool {
        self.tw_pending.load(Ordering::Acquire) || self.deferred.lazy.is_pending()
    }
}
