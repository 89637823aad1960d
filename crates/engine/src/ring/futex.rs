//! Futex waits of one ring: from the request to a lane, and back.

use super::pending::Pending;
use super::state::{State, TaskWork};
use super::Ring;
use crate::futex::Ended;
use crate::ops::Op;
use crate::req::{Key, Req, Via};
use crate::task::Task;
use std::sync::Arc;

impl Ring {
    /// Lets a futex request wait; in a worker where the host has no way to wait for many words at once.
    pub fn arm_futex(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Box<Req>) {
        let words = match &req.op {
            Op::FutexWait(wait) => wait.words.clone(),
            _ => Vec::new(),
        };
        let Some(engine) = self.engine.upgrade() else { return self.send_to_worker(st, task, req) };
        let key = st.pending.reserve();
        req.task.get_or_insert_with(|| task.clone());
        self.arm_link_timeout(st, &mut req, key);
        st.pending.fill(key, Pending::Futex(req));
        if engine.futexes.add(&engine, self, key, words) {
            return;
        }
        if let Some(req) = self.take_futex(st, key) {
            // Its place is free only after the worker's took over the link timeout.
            self.send_to_worker(st, task, req);
            st.pending.take(key);
        }
    }

    /// Lifts a futex request out of its place, which stays reserved.
    fn take_futex(&self, st: &mut State, key: Key) -> Option<Box<Req>> {
        if !matches!(st.pending.get(key), Some(Pending::Futex(_))) {
            return None;
        }
        match st.pending.lift(key) {
            Some(Pending::Futex(req)) => Some(req),
            _ => None,
        }
    }

    /// Takes a wait that nobody has ended yet, to cancel it.
    pub fn cancel_futex(&self, st: &mut State, key: Key) -> Option<Box<Req>> {
        let engine = self.engine.upgrade()?;
        if !engine.futexes.remove(self, key) {
            return None;
        }
        let req = self.take_futex(st, key);
        st.pending.take(key);
        req
    }

    /// A lane's wait has ended.
    pub fn finish_futex(self: &Arc<Ring>, key: Key, res: i32) {
        let mut st = self.state.lock();
        let Some(mut req) = self.take_futex(&mut st, key) else { return };
        st.pending.take(key);
        if st.closed {
            return;
        }
        req.via = Via::Polled;
        let first = st.tw.is_empty();
        self.push_task_work(&mut st, TaskWork::Complete(req, res, 0));
        if self.defers() {
            self.tell_task_work(first);
        }
        self.finish_turn(&mut st);
        drop(st);
        self.attend();
    }

    /// A wait that a request on this very ring has ended: it completes after that request.
    pub fn finish_own_futex(&self, st: &mut State, ended: &Ended) {
        let Some(mut req) = self.take_futex(st, ended.key) else { return };
        st.pending.take(ended.key);
        req.via = Via::Polled;
        self.push_task_work(st, TaskWork::Complete(req, ended.res, 0));
    }

    /// The host cannot wait for many words at once: a worker waits for this one.
    pub fn futex_to_worker(self: &Arc<Ring>, key: Key) {
        let mut st = self.state.lock();
        let Some(req) = self.take_futex(&mut st, key) else { return };
        if !st.closed {
            let task = self.task_of(&req);
            self.send_to_worker(&mut st, &task, req);
        }
        st.pending.take(key);
        self.finish_turn(&mut st);
    }
}
