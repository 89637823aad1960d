//! `wq_locking=coarse`: the way before, as a baseline. The account's one lock is taken to insert and to choose a worker, which
//! is woken or started for each item; a worker takes it to end its item, to look, and once more to take.

use super::account::{Account, Take};
use super::crew::Activated;
use super::slot::Slot;
use super::WorkItem;
use std::sync::Arc;

impl Account {
    pub(super) fn push_coarse(&self, item: Arc<WorkItem>) -> Activated {
        let mut inner = self.inner.lock();
        inner.queue.push(item);
        self.note_ready(&inner);
        self.crew.activate_each()
    }

    pub(super) fn take_coarse(&self, slot: &Slot, ended: Option<u64>, reading: bool) -> Take {
        self.gather(&mut self.inner.lock(), ended);
        {
            let inner = self.inner.lock();
            if inner.queue.ready() + inner.queue.started() == 0 && !self.is_stale(slot) {
                return Take::Nothing;
            }
        }
        let mut inner = self.inner.lock();
        let taken = self.next(&mut inner, slot, reading);
        self.note_ready(&inner);
        taken
    }
}
