//! Cold buffered reads. A reader of data that is not cached would need a thread for each read to have many under way. Instead
//! a worker whose read will wait starts readahead for all the reads that wait behind it, and then reads each: the disk has
//! them all, and one thread is enough. Cold reads that come meanwhile are left to it ([`super::account`]); other work gets another
//! worker, and the watcher sends one to help a reader that is stuck.

use super::{Pool, WorkItem};
use crate::host::rw::will_need;
use crate::host::{fd, nr};
use crate::limits::COLD_READS_MAX;
use crate::ops::rw;
use crate::req::Req;

/// A read at an offset with the task's own credentials.
pub fn is_candidate(req: &Req) -> bool {
    req.creds.is_none() && rw::range_to_read(req).is_some()
}

/// Before a read that will wait: starts readahead for those that wait behind it. False if it is no such read.
pub fn start_others(pool: &Pool, bound: bool, item: &WorkItem, req: &Req) -> bool {
    if !pool.policy.wq_readahead || !item.regular || !is_candidate(req) {
        return false;
    }
    let is_read = |i: &WorkItem| i.regular && i.with_request(is_candidate) == Some(true);
    let run = pool.account(bound).start_while(COLD_READS_MAX, is_read);
    if run.is_empty() {
        return true;
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
    true
}
