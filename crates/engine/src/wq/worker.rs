//! A worker thread: takes items, issues them in their blocking form, hands the results over.

use super::account::Next;
use super::{Pool, WorkItem};
use crate::host::thread;
use crate::ops::{Ctx, Issue};
use crate::req::Req;
use crate::Errno;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// A worker's life.
pub fn run(pool: &Arc<Pool>, bound: bool, generation: u32) {
    let tid = thread::gettid();
    thread::set_name(&format!("iou-wrk-{}", pool.tid));
    if let Some(mask) = &*pool.affinity.lock() {
        let _ = thread::set_affinity(0, mask);
    }
    let account = pool.account(bound);
    loop {
        let exiting = || pool.exiting.load(Ordering::Acquire);
        let Next::Run(item) = account.next(tid, generation, exiting) else { break };
        let finished = execute(&item);
        account.done(tid, &item);
        if let Some((req, outcome)) = finished {
            hand_over(&item, req, outcome);
        }
    }
    if let Some(engine) = pool.engine.upgrade() {
        engine.count_worker(-1);
    }
}

/// Issues the item's request; `None` if somebody else took it.
fn execute(item: &Arc<WorkItem>) -> Option<(Box<Req>, Issue)> {
    let mut req = item.take_request()?;
    if item.is_cancelled() {
        return Some((req, Issue::err(Errno::CANCELED)));
    }
    let _identity = req.creds.clone().map(|creds| creds.assume());
    let watch = req.pace.map(|cell| (cell, item.ring.inline.watch()));
    let outcome = issue(item, &mut req);
    if let Some((cell, watch)) = watch {
        item.ring.inline.ended_in_worker(cell, watch);
    }
    Some((req, outcome))
}

/// The blocking form, again if a signal came that was not meant for this item.
fn issue(item: &Arc<WorkItem>, req: &mut Req) -> Issue {
    loop {
        let mut ctx = Ctx {
            ring: &item.ring,
            st: None,
            blocking: Some(&item.cancel),
            bold: false,
            task: &item.task,
        };
        match (req.def.issue)(req, &mut ctx) {
            // Interrupted for an item that was finished before the signal came.
            Issue::Done(res, _) if res == Errno::INTR.res() && !item.is_cancelled() => continue,
            Issue::Done(res, _) if res == Errno::INTR.res() => return Issue::err(Errno::CANCELED),
            outcome => return outcome,
        }
    }
}

/// Gives the outcome to the ring.
fn hand_over(item: &Arc<WorkItem>, req: Box<Req>, outcome: Issue) {
    let ring = &item.ring;
    let mut st = ring.state.lock();
    match outcome {
        Issue::Poll(events) if !item.is_cancelled() => {
            // Its place is free only after the new registration took over the link timeout.
            ring.arm_retry(&mut st, &item.task, req, events);
            st.pending.take(item.key);
        }
        outcome => {
            st.pending.take(item.key);
            let (res, flags) = match outcome {
                Issue::Done(res, flags) => (res, flags),
                _ => (Errno::CANCELED.res(), 0),
            };
            ring.complete_async(&mut st, req, res, flags);
        }
    }
    ring.finish_turn(&mut st);
    drop(st);
    ring.attend();
}

/// Completes an item that never ran.
pub fn finish(item: &Arc<WorkItem>, res: i32) {
    if let Some(req) = item.take_request() {
        hand_over(item, req, Issue::Done(res, 0));
    }
}
