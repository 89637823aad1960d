//! While a thread submits, its items only go to the inbox; that a worker is active is seen to once, at the end. Else a
//! worker that is faster than the submitter would go to sleep and be woken again for each item.

use super::Pool;
use crate::policy::WqLocking;
use crate::task::Task;
use std::sync::Arc;

/// SQEs after which an item makes sure of a worker again, so that none waits for the end of a long submission.
const SQES_MAX: u32 = 32;

/// One submission's, under the ring's state lock.
#[derive(Default)]
pub struct Quiet {
    open: bool,
    pool: Option<Arc<Pool>>,
    /// For each account: the SQE of the first item since a worker was made sure of.
    since: [Option<u32>; 2],
}

impl Quiet {
    /// A submission begins.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// An item of an SQE comes: whether to insert it without a look at the workers.
    pub fn covers(&mut self, task: &Task, bound: bool, sqe: u32) -> bool {
        if !self.open || task.pool.policy.wq_locking == WqLocking::Coarse {
            return false;
        }
        if !self.pool.get_or_insert_with(|| task.pool.clone()).is(&task.pool) {
            return false;
        }
        let since = &mut self.since[usize::from(bound)];
        if sqe.wrapping_sub(*since.get_or_insert(sqe)) < SQES_MAX {
            return true;
        }
        *since = None;
        false
    }

    /// The submission ends.
    #[inline]
    pub fn close(&mut self) {
        self.open = false;
        if self.pool.is_some() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        for bound in [true, false] {
            if self.since[usize::from(bound)].take().is_some() {
                pool.see_to(bound);
            }
        }
    }
}
