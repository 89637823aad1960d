//! Chains: LINK and HARDLINK are decided while SQEs are collected; a chain starts only when its last member
//! was seen, and a member that failed to prepare takes the whole chain with it.

use super::state::{State, TaskWork};
use super::Ring;
use crate::req::Req;
use crate::task::Task;
use crate::Errno;
use anyring_uapi::sqe::{CQE_SKIP_SUCCESS, IO_DRAIN, IO_HARDLINK, IO_LINK};
use std::sync::Arc;

impl Ring {
    /// Adds a member to the open chain; closes it if it is the last. Returns whether the chain is still open.
    pub fn collect(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Req) -> bool {
        req.task = Some(task.clone());
        let open = req.links();
        if let Some(head) = st.chain.first_mut() {
            if req.failed && !head.failed {
                head.fail(Errno::CANCELED.res());
            }
        }
        st.chain.push(req);
        if !open {
            self.close_chain(st, task);
        }
        open
    }

    /// Ends the open chain and queues it.
    pub fn close_chain(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>) {
        let mut members = core::mem::take(&mut st.chain);
        let drains = members.iter().any(|m| m.has(IO_DRAIN));
        let mut next = None;
        for mut req in members.drain(..).rev() {
            req.next = next;
            next = Some(Box::new(req));
        }
        st.chain = members;
        let Some(mut head) = next else { return };
        if drains {
            head.flags |= IO_DRAIN;
        }
        if head.failed {
            // Nothing of it may go on, so HARDLINK does not hold.
            head.flags = head.flags & !IO_HARDLINK | IO_LINK;
        }
        self.queue(st, task, head);
        st.drain_next |= drains;
    }

    /// What follows a completed member: the next one, or the end of the rest.
    pub fn follow_chain(&self, st: &mut State, req: &mut Req) {
        let Some(next) = req.next.take() else { return };
        let work = if req.failed && !req.has(IO_HARDLINK) {
            TaskWork::FailChain(next, req.has(CQE_SKIP_SUCCESS))
        } else {
            TaskWork::Start(next)
        };
        self.push_task_work(st, work);
    }

    /// Completes all members from `first` on, each with its own error or ECANCELED.
    pub fn fail_chain(self: &Arc<Ring>, st: &mut State, first: Box<Req>, silent: bool) {
        let mut at = Some(first);
        while let Some(mut req) = at {
            at = req.next.take();
            let res = req.early.unwrap_or(Errno::CANCELED.res());
            req.failed = true;
            if silent {
                self.retire(st, &mut req);
            } else {
                self.post_for(st, &req, res, 0);
                self.retire(st, &mut req);
            }
        }
    }
}
