//! Completion: the CQE, the link timeout, the chain, and requests held back behind a drain.

use super::cq::Kind;
use super::pending::Pending;
use super::state::{State, TaskWork};
use super::Ring;
use crate::host::poll as epoll;
use crate::inline::Turn;
use crate::limits::{EVENTS_BATCH, YIELD_ROUNDS};
use crate::ops::Op;
use crate::req::{Req, Via};
use crate::task::Task;
use crate::Errno;
use anyring_uapi::sqe::{CQE_SKIP_SUCCESS, IO_DRAIN};
use anyring_uapi::{cqe, op, setup, Cqe};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// What a turn left in the completion queue.
#[derive(Clone, Copy, Debug)]
pub struct TurnEnd {
    /// The tail.
    pub tail: u32,
    /// CQEs wait in the backlog.
    pub backlog: bool,
}

/// A read that finds the end has used its buffer; a receive, or a multishot, gives it back.
fn keeps_buffer_at_end(op: &Op) -> bool {
    matches!(op, Op::Rw(rw) if !rw.multishot)
}

impl Ring {
    /// Ends a request that the caller owns.
    pub fn complete(self: &Arc<Ring>, st: &mut State, mut req: Box<Req>, res: i32, flags: u32) {
        self.end(st, &mut req, res, flags);
    }

    /// Ends a request that lies where its owner put it; only to be dropped afterwards.
    pub fn end(&self, st: &mut State, req: &mut Req, res: i32, mut flags: u32) {
        if req.early.is_some() || req.def.is_failure(res) {
            req.failed = true;
        }
        flags |= self.put_buffer_away(st, req, res);
        if req.failed || !req.has(CQE_SKIP_SUCCESS) {
            self.post_for(st, req, res, flags);
        }
        self.end_link_timeout(st, req);
        self.follow_chain(st, req);
        self.retire(st, req);
        if self.tagged.load(Ordering::Relaxed) {
            self.empty_stage(st);
        }
    }

    /// Posts a CQE that is not the request's last, if the ring has room for it.
    pub fn post_shot(&self, st: &mut State, req: &Req, res: i32, flags: u32) -> bool {
        let cqe = Cqe { user_data: req.user_data, res, flags: flags | cqe::F_MORE };
        let posted = self.post_if_room(st, cqe, Kind::Normal);
        st.counts[req.def.code as usize].posted += u64::from(posted);
        posted
    }

    /// A provided buffer is named in the CQE if it was used, and goes back if not.
    pub fn put_buffer_away(&self, st: &mut State, req: &mut Req, res: i32) -> u32 {
        match req.selected.take() {
            Some(buf) if res > 0 || (res == 0 && keeps_buffer_at_end(&req.op)) => {
                st.groups.used(buf, res as usize)
            }
            Some(buf) => {
                st.groups.put_back(buf);
                0
            }
            None => 0,
        }
    }

    /// Posts a request's CQE.
    pub fn post_for(&self, st: &mut State, req: &Req, res: i32, flags: u32) {
        st.counts[req.def.code as usize].posted += 1;
        let kind = match (req.def.code, res) {
            (op::TIMEOUT, r) if r == Errno::TIME.res() => Kind::Fired,
            (op::TIMEOUT, _) => Kind::Timeout,
            _ => Kind::Normal,
        };
        let from_worker = req.is_from_worker();
        if let Some(usage) = req.notification {
            // The cancelled rest of a chain does not announce what follows.
            let more = if req.started { cqe::F_MORE } else { 0 };
            let result = Cqe { user_data: req.user_data, res, flags: flags | more };
            self.post(st, result.into(), kind, from_worker);
            st.counts[req.def.code as usize].posted += 1;
            let notification = Cqe { user_data: req.user_data, res: usage, flags: cqe::F_NOTIF };
            return self.post(st, notification.into(), kind, from_worker);
        }
        let cqe = Cqe { user_data: req.user_data, res, flags };
        if let Op::Nop(nop) = &req.op {
            if let Some(extra) = nop.extra {
                let large = self.has(setup::CQE_MIXED);
                let entry = super::cq::Entry { cqe, extra, large };
                return self.post(st, entry, kind, from_worker);
            }
        }
        if from_worker && req.via == Via::Inline && self.has(setup::DEFER_TASKRUN) {
            return self.post_as_worker(st, cqe);
        }
        self.post(st, cqe.into(), kind, from_worker);
    }

    /// Disarms the link timeout of a request that has ended.
    fn end_link_timeout(&self, st: &mut State, req: &mut Req) {
        let armed = req.link_timeout.take().and_then(|key| self.take_timer(st, key));
        let waiting = || {
            req.next.as_ref().is_some_and(|n| n.def.code == op::LINK_TIMEOUT && n.early.is_none())
        };
        let timeout = match armed {
            Some(timer) => Some(timer.req),
            None if waiting() => {
                let mut timeout = req.next.take();
                req.next = timeout.as_mut().and_then(|t| t.next.take());
                timeout
            }
            None => None,
        };
        if let Some(timeout) = timeout {
            // A time that was already past fires as soon as it is set, and finds its request gone.
            let expired = matches!(&timeout.op, Op::Timeout(t) if t.absolute && t.is_past());
            let end = if expired { Errno::NOENT } else { Errno::CANCELED };
            self.push_task_work(st, TaskWork::Complete(timeout, end.res(), 0));
        }
    }

    /// The last step of every request's life: counters, drain.
    pub fn retire(&self, st: &mut State, req: &mut Req) {
        let count = &mut st.counts[req.def.code as usize];
        match req.via {
            Via::Inline => count.inline += 1,
            Via::Polled => count.polled += 1,
            Via::Worker => count.worker += 1,
            Via::Aio => count.aio += 1,
        }
        st.outstanding = st.outstanding.saturating_sub(1);
        if !st.drain.is_empty() {
            self.release_drained(st);
        }
    }

    /// Lets requests go that waited for earlier ones.
    pub(super) fn release_drained(&self, st: &mut State) {
        while let Some(head) = st.drain.front() {
            if head.has(IO_DRAIN) && st.outstanding > 0 {
                return;
            }
            let Some(head) = st.drain.pop_front() else { return };
            st.outstanding += head.chain_len();
            self.push_task_work(st, TaskWork::Start(head));
        }
    }

    /// Queues work for the thread that may run it.
    pub fn push_task_work(&self, st: &mut State, work: TaskWork) {
        st.tw.push_back(work);
        self.tw_pending.store(true, Ordering::Release);
    }

    /// Runs queued work, at most `limit` items if given.
    pub fn run_task_work(self: &Arc<Ring>, st: &mut State, limit: Option<usize>) {
        if !self.has_task_work() {
            return;
        }
        // First: who adds work from now on sets it again.
        self.mem.clear_sq_flags(setup::SQ_TASKRUN);
        self.take_deferred(st);
        self.empty_inbox(st);
        let mut left = limit.unwrap_or(usize::MAX);
        while left > 0 {
            let Some(work) = st.tw.pop_front() else { break };
            left -= 1;
            match work {
                TaskWork::Start(req) => {
                    let task = self.task_of(&req);
                    self.start(st, &task, req);
                }
                TaskWork::Post(cqe) => self.post_deferred(st, cqe),
                TaskWork::FailChain(req, silent) => self.fail_chain(st, req, silent),
                TaskWork::Complete(mut req, res, flags) => {
                    if req.def.code == op::LINK_TIMEOUT {
                        // Its end says nothing about the chain it stood in.
                        req.failed = res != Errno::CANCELED.res() && res != Errno::TIME.res();
                        self.end_of_link_timeout(st, req, res);
                    } else {
                        self.complete(st, req, res, flags);
                    }
                }
            }
        }
        if st.tw.is_empty() {
            self.tw_pending.store(false, Ordering::Release);
            // What came in since is not overlooked: its sender sets the hint after filling the inbox.
            if !self.inbox.lock().is_empty() {
                self.tw_pending.store(true, Ordering::Release);
            }
        } else if self.has(setup::TASKRUN_FLAG) {
            self.mem.set_sq_flags(setup::SQ_TASKRUN);
        }
    }

    /// Ends a turn in which requests completed: counted timeouts, task work (all of it, unless only the owner may run
    /// it), then one round of signals and wake-ups.
    pub fn finish_turn(self: &Arc<Ring>, st: &mut State) -> TurnEnd {
        let mut rounds = 0;
        loop {
            if !self.defers() {
                self.run_task_work(st, None);
            }
            self.submit_aio(st);
            if !st.timers.counted.is_empty() {
                self.complete_counted(st);
            }
            if st.fresh_multishot && self.defers() {
                st.fresh_multishot = false;
            }
            if st.fresh_multishot && rounds < YIELD_ROUNDS {
                st.fresh_multishot = false;
                rounds += 1;
                self.poll_now(st, EVENTS_BATCH);
            }
            if self.defers()
                || (st.tw.is_empty() && (!st.fresh_multishot || rounds >= YIELD_ROUNDS))
            {
                st.fresh_multishot = false;
                break;
            }
        }
        st.turn = Turn::default();
        let (staged, from_worker) = st.staged.take();
        let mut cq = self.cq.lock_as(st.holder);
        cq.post_all(&self.mem, staged, from_worker);
        st.count_base = cq.non_timeouts;
        cq.early_now = 0;
        cq.exact = !st.timers.counted.is_empty() || !st.drain.is_empty();
        let commit = cq.commit(&self.mem);
        let end = TurnEnd { tail: cq.tail(), backlog: cq.has_backlog() };
        drop(cq);
        if commit.posted {
            self.tell(commit.wake);
        }
        end
    }

    /// A LINK_TIMEOUT's own CQE; with CQE_SKIP_SUCCESS it never has one.
    pub fn end_of_link_timeout(&self, st: &mut State, mut req: Box<Req>, res: i32) {
        if !req.has(CQE_SKIP_SUCCESS) {
            self.post_for(st, &req, res, 0);
        }
        self.retire(st, &mut req);
    }

    /// The task whose workers serve a request.
    pub fn task_of(&self, req: &Req) -> Arc<Task> {
        req.task.clone().unwrap_or_else(|| self.task.clone())
    }

    /// A request finished outside the submitting call: in a worker, or after its file became ready.
    pub fn complete_async(self: &Arc<Ring>, st: &mut State, req: Box<Req>, res: i32, flags: u32) {
        if st.closed {
            return;
        }
        if self.defers() && req.via == Via::Worker {
            let first = st.tw.is_empty();
            self.push_task_work(st, TaskWork::Complete(req, res, flags));
            self.tell_task_work(first);
            return;
        }
        self.complete(st, req, res, flags);
    }

    /// Takes a waiting timer out of all tables.
    pub fn take_timer(
        &self,
        st: &mut State,
        key: crate::req::Key,
    ) -> Option<super::pending::TimerArm> {
        if !matches!(st.pending.get(key), Some(Pending::Timer(_))) {
            return None;
        }
        let Some(Pending::Timer(timer)) = st.pending.take(key) else { return None };
        st.timers.remove(timer.deadline, key);
        self.disarm();
        Some(timer)
    }

    /// Takes a poll arm out of the table and out of the epoll.
    pub fn take_poll(
        &self,
        st: &mut State,
        key: crate::req::Key,
    ) -> Option<super::pending::PollArm> {
        if !matches!(st.pending.get(key), Some(Pending::Poll(_))) {
            return None;
        }
        let Some(Pending::Poll(mut arm)) = st.pending.take(key) else { return None };
        match self.existing_epfd() {
            Some(ep) if arm.standing.is_some() => self.leave_standing(st, &mut arm, ep),
            _ if arm.crowd.is_some() => {
                arm.crowd.into_iter().for_each(|id| self.leave_crowd(st, id))
            }
            Some(ep) => drop(epoll::remove(ep, arm.fd())),
            None => {}
        }
        self.disarm();
        Some(arm)
    }
}

impl Ring {
    /// Completes with a negative result that is no failure: an expiry with ETIME_SUCCESS.
    pub fn complete_unbroken(self: &Arc<Ring>, st: &mut State, mut req: Box<Req>, res: i32) {
        self.post_for(st, &req, res, 0);
        self.end_link_timeout(st, &mut req);
        self.follow_chain(st, &mut req);
        self.retire(st, &mut req);
    }
}
