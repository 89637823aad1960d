//! CQEs that another ring sent.
//!
//! On most rings the sender posts them itself. Where completions are the owner's to post they wait in the inbox, a lock
//! of its own that is taken last and held for a moment, so that any thread may fill it whatever it holds.

use super::cq::Kind;
use super::state::State;
use super::Ring;
use crate::Errno;
use anyring_uapi::Cqe;
use core::sync::atomic::Ordering;
use std::sync::Arc;

impl Ring {
    /// Takes a CQE from another ring. EOWNERDEAD if nobody is left to post it.
    pub fn receive(self: &Arc<Ring>, cqe: Cqe) -> Result<(), Errno> {
        if !self.defers() {
            self.cq.lock().post(&self.mem, cqe.into(), Kind::Normal, false);
            self.end_foreign_post();
            return Ok(());
        }
        if self.task.is_dead() {
            return Err(Errno::OWNERDEAD);
        }
        let first = {
            let mut inbox = self.inbox.lock();
            inbox.push(cqe);
            inbox.len() == 1
        };
        self.tw_pending.store(true, Ordering::Release);
        self.tell_task_work(first);
        Ok(())
    }

    /// Ends a turn in which somebody else posted. Counted timeouts are looked at if the ring's lock is free;
    /// whoever holds it does so himself.
    fn end_foreign_post(self: &Arc<Ring>) {
        if let Some(mut st) = self.state.try_lock() {
            self.finish_turn(&mut st);
            return;
        }
        let commit = self.cq.lock().commit(&self.mem);
        self.tell(commit.wake);
    }

    /// The owner posts what came in.
    pub fn empty_inbox(&self, st: &mut State) {
        let arrived = core::mem::take(&mut *self.inbox.lock());
        arrived.into_iter().for_each(|cqe| self.stage(st, cqe, false));
    }
}
