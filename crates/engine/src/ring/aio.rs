//! A ring's direct transfers in kernel AIO: gathered while SQEs are taken, submitted together, and landed when whoever may post
//! for the ring looks. See [`crate::aio`]; how a thread waits for them is in [`super::nap`].

use super::state::State;
use super::{Ring, TOKEN_AIO};
use crate::aio::queue::{Prepared, Queue};
use crate::aio::Flying;
use crate::host::aio::Event;
use crate::host::{fd, poll};
use crate::limits::{AIO_RETRY, AIO_SLOTS_MAX, AIO_SLOTS_MIN};
use crate::ops::rw::{self, Landed};
use crate::ops::Op;
use crate::req::{FileRef, Req, Via};
use crate::task::Task;
use crate::Errno;
use anyring_uapi::op;
use anyring_uapi::setup::{IOPOLL, SQPOLL};
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// Whether a number still means the file that a request was submitted with.
fn is_still(file: &FileRef, inode: Option<(u64, u64)>) -> bool {
    match (file, inode) {
        (FileRef::Plain(number), Some(then)) => {
            fd::stat(*number).is_ok_and(|stat| (stat.dev, stat.ino) == then)
        }
        _ => true,
    }
}

impl Ring {
    /// Whether requests are in the queue, or in the batch for it.
    #[inline]
    pub fn has_flying(&self) -> bool {
        self.flying.load(Ordering::Relaxed) != 0
    }

    /// Sees that there is a queue. Where none is to be had, the request counts as refused.
    pub fn open_aio(&self, st: &mut State) -> bool {
        if st.aio.queue.is_some() {
            return true;
        }
        let Some(engine) = self.engine.upgrade().filter(|e| e.config.policy.aio) else {
            return false;
        };
        if st.aio.refused == 0 {
            let entries = self.mem.geometry().cq_entries;
            match engine.aio_queue(entries.clamp(AIO_SLOTS_MIN, AIO_SLOTS_MAX)) {
                Ok(queue) => {
                    st.aio.queue = Some(queue);
                    return true;
                }
                // The limit of the system: others may give some back.
                Err(Errno::AGAIN) => st.aio.refused = AIO_RETRY,
                Err(_) => st.aio.refused = u32::MAX,
            }
        }
        st.aio.refused = st.aio.refused.saturating_sub(1);
        engine.aio_refused.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Whether a request that asks for a worker is better off in the queue.
    pub fn is_for_aio(&self, st: &State, req: &Req) -> bool {
        st.aio.hints.is_direct(&req.file)
            && rw::suits_aio(req, self.has(IOPOLL))
            && st.aio.queue.is_some()
    }

    /// What is not a transfer may close or replace a descriptor that the batch names by its number.
    #[inline]
    pub fn submit_before(self: &Arc<Ring>, st: &mut State, req: &Req) {
        if !st.aio.batch.is_empty() && !matches!(req.op, Op::Rw(_)) {
            self.submit_aio(st);
        }
    }

    /// Puts a transfer into the batch.
    pub fn send_to_aio(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Box<Req>) {
        if !Arc::ptr_eq(task, &self.task) {
            req.task = Some(task.clone());
        }
        let mut place = None;
        let linked = req.next.is_some();
        st.aio.linked += u32::from(linked);
        if req.next.as_ref().is_some_and(|next| next.def.code == op::LINK_TIMEOUT) {
            let key = st.pending.reserve();
            self.arm_link_timeout(st, &mut req, key);
            place = Some(key);
        }
        let mut prepared = rw::prepare(&req, 0);
        let inode = st.aio.hints.inode(&req.file);
        prepared.iocb.data =
            st.aio.flight.insert(Flying { req, place, linked, inode, call: st.aio.call });
        st.aio.batch.push(prepared);
        self.count_flying(st);
    }

    fn count_flying(&self, st: &State) {
        self.flying.store(st.aio.flight.len() as u32, Ordering::Relaxed);
    }

    /// Submits the batch. What has ended by then is landed, except on a polled ring.
    pub fn submit_aio(self: &Arc<Ring>, st: &mut State) {
        let Some(queue) = st.aio.queue.clone().filter(|_| !st.aio.batch.is_empty()) else { return };
        self.show_bell(st, &queue);
        let mut batch = core::mem::take(&mut st.aio.batch);
        let mut done = 0;
        while done < batch.len() {
            match queue.submit(&mut batch[done..]) {
                Ok(n) if n > 0 => done += n,
                Ok(_) | Err(Errno::AGAIN) => {
                    // No free slot; those of completions that nobody has taken yet count.
                    if self.has(IOPOLL) || self.reap_aio(st, usize::MAX) == 0 {
                        batch[done..].iter().for_each(|one| self.overflow_aio(st, one.iocb.data));
                        break;
                    }
                }
                Err(e) => {
                    self.refuse(st, &queue, &batch[done], e);
                    done += 1;
                }
            }
        }
        batch.clear();
        st.aio.batch = batch;
        if !self.has(IOPOLL) && st.aio.sleepers == 0 && queue.poll() {
            st.aio.in_call = true;
            self.reap_aio(st, usize::MAX);
            st.aio.in_call = false;
        }
        st.aio.call += 1;
    }

    /// The queue is full: a worker waits instead.
    fn overflow_aio(self: &Arc<Ring>, st: &mut State, token: u64) {
        if let Some(engine) = self.engine.upgrade() {
            engine.aio_refused.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(flying) = st.aio.flight.remove(token) {
            let req = self.alight(st, flying);
            self.to_worker_after_aio(st, req);
        }
    }

    /// A transfer was not taken.
    fn refuse(self: &Arc<Ring>, st: &mut State, queue: &Queue, one: &Prepared, e: Errno) {
        let Some(flying) = st.aio.flight.remove(one.iocb.data) else { return };
        let req = self.alight(st, flying);
        let bell_is_gone = e == Errno::BADF && queue.bell().is_some_and(|bell| !fd::is_open(bell));
        // A priority may be refused too, and that is the program's to know.
        let call_is_refused = e == Errno::NOSYS || (e == Errno::PERM && !one.has_priority());
        if bell_is_gone || call_is_refused {
            self.give_up_aio(st);
        }
        if bell_is_gone || call_is_refused || e == Errno::OPNOTSUPP {
            self.to_worker_after_aio(st, req);
        } else {
            st.aio.hints.forget(&req.file);
            self.complete(st, req, e.res(), 0);
        }
    }

    /// The queue takes nothing: from now on workers do it.
    fn give_up_aio(&self, st: &mut State) {
        st.aio.refused = u32::MAX;
        if st.aio.flight.is_empty() {
            (st.aio.queue, st.aio.in_epoll) = (None, false);
        }
        if let Some(engine) = self.engine.upgrade() {
            engine.aio_refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request has left the queue.
    fn alight(&self, st: &mut State, flying: Flying) -> Box<Req> {
        if let Some(key) = flying.place {
            st.pending.take(key);
        }
        st.aio.linked -= u32::from(flying.linked);
        self.count_flying(st);
        flying.req
    }

    /// A transfer that would have to wait, or of a file that is none of AIO's.
    fn to_worker_after_aio(self: &Arc<Ring>, st: &mut State, mut req: Box<Req>) {
        let task = self.task_of(&req);
        let on_disk = fd::stat(req.file.raw()).is_ok_and(|s| s.is_regular() || s.is_block());
        if !on_disk || !rw::is_direct(&req.file) {
            st.aio.hints.forget(&req.file);
            return self.start(st, &task, req);
        }
        req.via = Via::Worker;
        self.send_to_worker(st, &task, req);
    }

    /// Lands what has completed, at most about `limit`; how many requests those were.
    pub fn reap_aio(self: &Arc<Ring>, st: &mut State, limit: usize) -> usize {
        let Some(queue) = st.aio.queue.clone() else { return 0 };
        let mut landed = 0;
        while landed < limit {
            let mut events = core::mem::take(&mut st.aio.events);
            let room = events.len().min(limit - landed);
            let n = if st.aio.sleepers == 0 {
                queue.take(&mut events[..room])
            } else {
                queue.take_by_call(&mut events[..room])
            };
            landed += self.land(st, &events[..n]);
            st.aio.events = events;
            if n < room {
                break;
            }
        }
        landed
    }

    /// Completes the requests of these events; how many.
    pub fn land(self: &Arc<Ring>, st: &mut State, events: &[Event]) -> usize {
        let mut landed = 0;
        for event in events {
            let mut ready = core::mem::take(&mut st.aio.ready);
            let mut hand_over = |flying: Flying, res: i64| ready.push((flying, res));
            landed += st.aio.flight.finish(event.data, event.res, &mut hand_over);
            for (flying, res) in ready.drain(..) {
                self.land_one(st, flying, res as i32);
            }
            st.aio.ready = ready;
        }
        landed
    }

    fn land_one(self: &Arc<Ring>, st: &mut State, flying: Flying, res: i32) {
        let same_call = st.aio.in_call && flying.call == st.aio.call;
        let inode = flying.inode.filter(|_| !same_call);
        let mut req = self.alight(st, flying);
        match rw::after_aio(&mut req, res) {
            Landed::Ended => {
                req.via = Via::Aio;
                self.complete(st, req, res, 0);
            }
            Landed::HasToWait if is_still(&req.file, inode) => self.to_worker_after_aio(st, req),
            // The program has closed the file since: there is nothing left to ask again.
            Landed::HasToWait => self.complete(st, req, Errno::AGAIN.res(), 0),
        }
    }

    /// Registers the queue's bell in the ring's epoll, where somebody may be sleeping who did not know of the queue.
    fn show_bell(&self, st: &mut State, queue: &Queue) {
        let unseen = !st.aio.in_epoll && queue.bell().is_some();
        if unseen && (self.has(SQPOLL) || self.cq.lock().has_sleepers()) {
            let _ = self.put_bell_into_epoll(st);
        }
    }

    /// The ring's epoll, with the queue's bell in it if requests are there.
    pub fn epfd_with_aio(&self) -> Result<i32, Errno> {
        if self.has_flying() {
            self.put_bell_into_epoll(&mut self.state.lock())?;
        }
        self.epfd()
    }

    fn put_bell_into_epoll(&self, st: &mut State) -> Result<(), Errno> {
        let Some(bell) = st.aio.queue.as_ref().and_then(|queue| queue.bell()) else {
            return Ok(());
        };
        if !st.aio.in_epoll {
            poll::add_or_modify(self.epfd()?, bell, poll::IN | poll::ET, TOKEN_AIO)?;
            st.aio.in_epoll = true;
        }
        Ok(())
    }

    /// The ring is closed. What the queue has cannot be called back; its results go nowhere.
    pub fn abandon_aio(&self, st: &mut State) -> Vec<Flying> {
        let outstanding = st.aio.flight.unfinished();
        let flying = st.aio.flight.drain();
        self.count_flying(st);
        if let (Some(queue), Some(engine)) = (st.aio.queue.take(), self.engine.upgrade()) {
            if let (Some(ep), Some(bell)) = (self.existing_epfd(), queue.bell()) {
                let _ = poll::remove(ep, bell);
            }
            engine.aio_contexts.put(queue, outstanding);
        }
        flying
    }
}
