//! What the engine counts of itself, as figures for each operation or each item of a worker.

/// Totals of one engine so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Wake-ups sent to waiting threads.
    pub wakeups: u64,
    /// Most workers alive at once.
    pub workers_max: u64,
    /// Acquisitions of ring, CQ and worker account locks.
    pub locks: u64,
    /// Of these, of worker accounts.
    pub wq_locks: u64,
    /// Idle workers that were woken.
    pub wq_wakeups: u64,
    /// Requests that workers ran.
    pub wq_items: u64,
    /// Finished requests that workers returned in batches.
    pub wq_returned: u64,
    /// Those batches.
    pub wq_batches: u64,
    /// The longest that a finished request was held before that.
    pub wq_held_max_ns: u64,
}

/// Names of the figures in reports: in JSON, and as headings of tables.
pub const NAMES: [(&str, &str); 7] = [
    ("wakeups_per_op", "wake-ups/op"),
    ("lock_acquisitions_per_op", "locks/op"),
    ("wq_lock_acquisitions_per_item", "wq locks/item"),
    ("wq_wakeups_per_item", "wq wake-ups/item"),
    ("wq_returned_per_batch", "returned/batch"),
    ("wq_held_max_us", "held µs at most"),
    ("workers_max", "most workers"),
];

impl Counters {
    /// What came on top of `before` in a run of `ops` operations. Figures for each item are there
    /// only where workers ran something.
    pub fn figures(&self, before: &Counters, ops: u64) -> Vec<(&'static str, f64)> {
        let per = |now: u64, before: u64, count: u64| (now - before) as f64 / count.max(1) as f64;
        let items = self.wq_items - before.wq_items;
        let batches = self.wq_batches - before.wq_batches;
        let [wakeups, locks, wq_locks, wq_wakeups, returned, held, workers] =
            NAMES.map(|(name, _)| name);
        let mut all = vec![
            (wakeups, per(self.wakeups, before.wakeups, ops)),
            (locks, per(self.locks, before.locks, ops)),
        ];
        if items > 0 {
            all.push((wq_locks, per(self.wq_locks, before.wq_locks, items)));
            all.push((wq_wakeups, per(self.wq_wakeups, before.wq_wakeups, items)));
        }
        if batches > 0 {
            all.push((returned, per(self.wq_returned, before.wq_returned, batches)));
            all.push((held, self.wq_held_max_ns as f64 / 1000.0));
        }
        all.push((workers, self.workers_max as f64));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_run_alone() {
        let before = Counters { wakeups: 5, locks: 100, wq_locks: 10, ..Counters::default() };
        let now = Counters { wakeups: 7, locks: 140, workers_max: 3, ..before };
        let plain =
            vec![("wakeups_per_op", 0.5), ("lock_acquisitions_per_op", 10.0), ("workers_max", 3.0)];
        assert_eq!(now.figures(&before, 4), plain);
        let busy = Counters { wq_items: 2, wq_locks: 16, wq_wakeups: 1, ..now };
        let busy = Counters { wq_returned: 12, wq_batches: 3, wq_held_max_ns: 2500, ..busy };
        let figures = busy.figures(&before, 4);
        assert_eq!(
            figures[2..6],
            [
                ("wq_lock_acquisitions_per_item", 3.0),
                ("wq_wakeups_per_item", 0.5),
                ("wq_returned_per_batch", 4.0),
                ("wq_held_max_us", 2.5)
            ]
        );
    }
}
