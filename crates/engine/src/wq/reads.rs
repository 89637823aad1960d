//! Cold buffered reads. A reader of data that is not cached would need a thread for each read to have many under way. Instead
//! a worker whose read will wait takes the reads that wait behind it, starts readahead for all, and then reads
//! each: the disk has them all, and one thread is enough.

use super::worker::Worker;
use super::WorkItem;
use crate::host::rw::will_need;
use crate::host::{fd, nr};
use crate::limits::COLD_READS_MAX;
use crate::ops::rw;
use crate::req::Req;
use std::sync::Arc;

/// The worker is about to wait in a read of a regular file: takes others like it, and starts readahead for all.
pub(super) fn begin_run(worker: &mut Worker, item: &Arc<WorkItem>, req: &Req) {
    if !worker.pool.policy.wq_readahead || !item.regular || !worker.run.is_empty() {
        return;
    }
    if rw::range_to_read(req).is_none() {
        return;
    }
    let is_read = |other: &WorkItem| {
        let wanted = |req: &Req| req.creds.is_none() && rw::range_to_read(req).is_some();
        other.regular && other.with_request(wanted) == Some(true)
    };
    let run = worker.pool.account(worker.bound).take_while(COLD_READS_MAX, is_read);
    if run.is_empty() {
        return;
    }
    let place = |req: &Req| rw::range_to_read(req).map(|range| (req.file.raw(), range));
    // One that is cancelled meanwhile may have lost its file: then the hint goes nowhere.
    let others = run.iter().filter_map(|other| other.with_request(place).flatten());
    for (file, (offset, len)) in place(req).into_iter().chain(others) {
        // A direct transfer needs none.
        if fd::status_flags(file).is_ok_and(|flags| flags & nr::O_DIRECT == 0) {
            will_need(file, offset, len);
        }
    }
    worker.run.extend(run);
}
