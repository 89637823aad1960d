//! A worker thread: takes items, issues them, hands the results over.

use super::account::Take;
use super::batch::Held;
use super::crew::Activated;
use super::manner::{self, Manner};
use super::slot::Slot;
use super::{reads, Pool, WorkItem};
use crate::host::thread;
use crate::host::time::{now_ns, Clock};
use crate::ops::{Ctx, Issue};
use crate::req::{FileRef, Req};
use crate::ring::Ring;
use crate::Errno;
use core::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// One worker, on its own thread.
pub(super) struct Worker {
    pub(super) pool: Arc<Pool>,
    pub(super) bound: bool,
    pub(super) slot: Arc<Slot>,
    /// Its last item was a cold read.
    reading: bool,
    /// The ring of its last item, which goes to the ring's owner and is not the worker's to look into any more. Not
    /// kept while the worker rests.
    ring: Option<Arc<Ring>>,
}

/// A worker's life.
pub fn run(pool: Arc<Pool>, bound: bool) {
    let tid = thread::gettid();
    thread::set_name(&format!("iou-wrk-{}", pool.tid));
    if let Some(mask) = &*pool.affinity.lock() {
        let _ = thread::set_affinity(0, mask);
    }
    let slot = pool.account(bound).enlist(|generation| Slot::new(tid, generation, pool.batch()));
    let engine = pool.engine.clone();
    let mut worker = Worker { pool, bound, slot, reading: false, ring: None };
    let mut ended = None;
    while let Some(item) = worker.next(ended) {
        ended = item.hash;
        let mut following = worker.serve(item);
        while let Some(item) = following {
            if let Some(hash) = ended.take() {
                worker.pool.account(bound).end_hash(hash);
            }
            following = worker.serve(item);
        }
    }
    worker.pool.account(bound).dismiss(&worker.slot);
    drop(worker);
    if let Some(engine) = engine.upgrade() {
        engine.count_worker(-1);
    }
}

impl Worker {
    /// Waits for the next item; `None`: it is to leave, and is counted out. `ended` is the hash of the item before.
    fn next(&mut self, mut ended: Option<u64>) -> Option<Arc<WorkItem>> {
        let account = self.pool.account(self.bound);
        loop {
            match account.take(&self.slot, ended.take(), self.reading) {
                Take::Item(item) => return Some(item),
                Take::Stale => {
                    self.return_held();
                    return self.leave();
                }
                Take::Nothing => self.ring = None,
            }
            self.return_held();
            if self.pool.is_exiting() && !account.work_waits() {
                return self.leave();
            }
            if !account.rest(|| self.pool.is_exiting()) {
                return None;
            }
        }
    }

    /// It leaves; if work came meanwhile, another has to do it.
    fn leave(&self) -> Option<Arc<WorkItem>> {
        let account = self.pool.account(self.bound);
        account.crew.leave();
        if account.work_waits() {
            self.see_to_the_rest();
        }
        None
    }

    /// Work waits and this worker does not come for it.
    fn see_to_the_rest(&self) {
        let account = self.pool.account(self.bound);
        if account.activate() != Activated::Start {
            return;
        }
        if !account.is_stale(&self.slot) {
            let _ = self.pool.start_worker(self.bound);
        } else if let Some(engine) = self.pool.engine.upgrade() {
            // What it started would have its old credentials.
            account.owed.fetch_add(1, SeqCst);
            engine.watch.look_now(&engine);
        }
    }

    /// Does one item. What follows it in its chain and is to be done here.
    fn serve(&mut self, item: Arc<WorkItem>) -> Option<Arc<WorkItem>> {
        let Some(mut req) = item.take_request() else {
            self.slot.finish();
            return None;
        };
        let watch = req.pace.map(|cell| (cell, item.ring.inline.watch()));
        let outcome = self.execute(&item, &mut req);
        if let Some((cell, watch)) = watch {
            item.ring.inline.ended_in_worker(cell, watch);
        }
        if matches!(outcome, Issue::Done(..)) {
            self.let_go(&item, &mut req);
        }
        let stopped = self.slot.finish();
        match outcome {
            Issue::Done(res, flags) => self.done(item, req, res, flags),
            Issue::Poll(events) if !stopped => {
                // Its place is free only after the new registration took over the link timeout.
                let ring = &item.ring;
                let mut st = ring.state.lock();
                ring.arm_retry(&mut st, &item.task, req, events);
                st.pending.take(item.key);
                ring.finish_turn(&mut st);
                drop(st);
                ring.attend();
                None
            }
            _ => self.done(item, req, Errno::CANCELED.res(), 0),
        }
    }

    /// To close the duplicate of a remote file asks its server, so it is done here and under no lock.
    fn let_go(&self, item: &Arc<WorkItem>, req: &mut Req) {
        if item.ring.inline.closing_waits(&req.file) {
            self.block();
            req.file = FileRef::None;
            self.back_from_call();
        }
    }

    /// Issues the request, in the manner that fits it.
    fn execute(&mut self, item: &Arc<WorkItem>, req: &mut Req) -> Issue {
        if self.slot.is_stopped() {
            return Issue::err(Errno::CANCELED);
        }
        self.reading = false;
        let mut manner = manner::of(item, req);
        if let Some(creds) = req.creds.clone() {
            // A thread started while they are in force would have them too: somebody else has to be active.
            self.block();
            let identity = creds.assume();
            let outcome = self.issue(item, req);
            drop(identity);
            self.back_from_call();
            return outcome;
        }
        if manner == Manner::TryFirst {
            req.tried = true;
            let mut ctx =
                Ctx { ring: &item.ring, st: None, blocking: None, bold: false, task: &item.task };
            match (req.def.issue)(req, &mut ctx) {
                Issue::Worker => manner = manner::of(item, req),
                outcome => return outcome,
            }
        }
        match manner {
            Manner::Quick | Manner::TryFirst => self.issue(item, req),
            Manner::Watched => {
                self.watch();
                let outcome = self.issue(item, req);
                self.pool.account(self.bound).unwatch();
                self.back_from_call();
                outcome
            }
            Manner::Waits => {
                self.reading = reads::start_others(&self.pool, self.bound, item, req);
                if self.reading && self.pool.account(self.bound).enter_reading() {
                    self.pool.tick();
                }
                self.block();
                let outcome = self.issue(item, req);
                self.back_from_call();
                if self.reading {
                    self.pool.account(self.bound).leave_reading();
                }
                outcome
            }
        }
    }

    /// The blocking form.
    fn issue(&self, item: &Arc<WorkItem>, req: &mut Req) -> Issue {
        let stop = &self.slot.stop;
        loop {
            let mut ctx = Ctx {
                ring: &item.ring,
                st: None,
                blocking: Some(stop),
                bold: false,
                task: &item.task,
            };
            match (req.def.issue)(req, &mut ctx) {
                // Interrupted for an item that was finished before the signal came.
                Issue::Done(res, _) if res == Errno::INTR.res() && !self.slot.is_stopped() => {}
                Issue::Done(res, _) if res == Errno::INTR.res() => {
                    return Issue::err(Errno::CANCELED)
                }
                outcome => return outcome,
            }
        }
    }

    /// The next call will wait: nothing is held over it, and if work waits somebody else sees to it.
    fn block(&self) {
        self.return_held();
        let account = self.pool.account(self.bound);
        self.slot.enter_blocked();
        if account.crew.block() && account.work_waits() {
            self.see_to_the_rest();
        }
    }

    /// The next call may wait: the watcher looks after what is held and what waits.
    fn watch(&self) {
        let waits = self.pool.account(self.bound).watch(&self.slot);
        if waits || !self.slot.batch.lock().is_empty() {
            self.pool.tick();
        }
    }

    /// Out of the call; counted as active again if it was not.
    fn back_from_call(&self) {
        if self.slot.leave_call() {
            self.pool.account(self.bound).crew.unblock();
        }
    }

    /// Returns the finished requests that it holds.
    fn return_held(&self) {
        let held = self.slot.batch.lock().take();
        held.into_iter().for_each(Held::give_back);
    }

    /// A request has ended: posts its CQE at once and keeps the rest for later, if both can be; else completes it.
    fn done(
        &mut self,
        item: Arc<WorkItem>,
        req: Box<Req>,
        res: i32,
        flags: u32,
    ) -> Option<Arc<WorkItem>> {
        if self.pool.policy.wq_free_batch > 1 && item.ring.post_at_once(&req, res, flags) {
            let instant = manner::of(&item, &req) == Manner::Quick;
            let now = || now_ns(Clock::Monotonic);
            let due = self.slot.batch.lock().add(&item.ring, (item.key, req), instant, now);
            due.into_iter().flatten().for_each(Held::give_back);
            return None;
        }
        if item.ring.defers() {
            let ring = self.ring.take().filter(|ring| Arc::ptr_eq(ring, &item.ring));
            let ring = ring.unwrap_or_else(|| item.ring.clone());
            ring.hand_over(item, req, res, flags);
            self.ring = Some(ring);
            return None;
        }
        let next = complete(&item, req, res, flags, Some((&self.pool, self.bound)));
        if let Some(next) = &next {
            self.slot.begin(next.id());
        }
        next
    }
}

/// Completes a request under its ring's lock. What follows it and is to be done by the worker `at` hand.
fn complete(
    item: &Arc<WorkItem>,
    req: Box<Req>,
    res: i32,
    flags: u32,
    at: Option<(&Arc<Pool>, bool)>,
) -> Option<Arc<WorkItem>> {
    let ring = &item.ring;
    let mut st = ring.state.lock();
    st.hand = at.map(|(pool, bound)| super::Hand::new(pool.clone(), bound));
    st.pending.take(item.key);
    ring.complete_async(&mut st, req, res, flags);
    ring.finish_turn(&mut st);
    let next = st.hand.take().and_then(super::Hand::into_item);
    drop(st);
    ring.attend();
    next
}

/// Completes an item that never ran.
pub fn finish(item: &Arc<WorkItem>, res: i32) {
    if let Some(req) = item.take_request() {
        complete(item, req, res, 0, None);
    }
}
