//! What others may know and do about one worker: which item it runs, whether it is in a call, how to interrupt
//! it, and the finished requests it still holds.

use super::batch::Batch;
use super::running::Running;
use crate::host::thread;
use crate::sync::Lock;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Runs, or is about to.
const ACTIVE: u32 = 0;
/// In a call that may wait; counted as active until the watcher finds it waiting.
const WATCHED: u32 = 1;
/// In a call that waits, and not counted as active.
const BLOCKED: u32 = 2;

/// See the module's description.
pub struct Slot {
    /// Thread id.
    pub tid: i32,
    /// Workers of an older generation than their account's have credentials that the process gave up.
    pub generation: u32,
    running: Running,
    /// Non-zero: the running item is to end.
    pub stop: AtomicU32,
    phase: AtomicU32,
    /// Items begun.
    turn: AtomicU32,
    /// Finished requests that are not returned yet.
    pub batch: Lock<Batch>,
}

impl Slot {
    /// A worker's that runs nothing.
    pub fn new(tid: i32, generation: u32, batch: Batch) -> Slot {
        Slot {
            tid,
            generation,
            running: Running::nothing(),
            stop: AtomicU32::new(0),
            phase: AtomicU32::new(ACTIVE),
            turn: AtomicU32::new(0),
            batch: Lock::new(batch),
        }
    }

    /// The worker turns to an item.
    pub fn begin(&self, item: usize) {
        self.turn.store(self.turn.load(SeqCst).wrapping_add(1), SeqCst);
        self.running.begin(item);
    }

    /// It is told to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst) != 0
    }

    /// The worker is done with its item. Whether it was told to stop it.
    pub fn finish(&self) -> bool {
        self.running.finish() && self.stop.swap(0, SeqCst) != 0
    }

    /// Interrupts the worker if it runs this item, or whatever it runs. Whether it did.
    pub fn interrupt(&self, item: Option<usize>, signal: i32) -> bool {
        self.running.interrupt(item, || {
            self.stop.store(1, SeqCst);
            let _ = thread::tgkill(self.tid, signal);
        })
    }

    /// Into a call that may wait.
    pub fn enter_watched(&self) {
        self.phase.store(WATCHED, SeqCst);
    }
    /// Into a call that will wait.
    pub fn enter_blocked(&self) {
        self.phase.store(BLOCKED, SeqCst);
    }
    /// Out of it. Whether it was not counted as active.
    pub fn leave_call(&self) -> bool {
        self.phase.swap(ACTIVE, SeqCst) == BLOCKED
    }
    /// In a call that may wait, and counted as active.
    pub fn is_watched(&self) -> bool {
        self.phase.load(SeqCst) == WATCHED
    }
    /// In any call that may wait.
    pub fn is_in_call(&self) -> bool {
        self.phase.load(SeqCst) != ACTIVE
    }
    /// The watcher found it waiting: true if it is not to be counted as active any more.
    pub fn found_waiting(&self) -> bool {
        self.phase.compare_exchange(WATCHED, BLOCKED, SeqCst, SeqCst).is_ok()
    }
    /// Changes with each item.
    pub fn turn(&self) -> u32 {
        self.turn.load(SeqCst)
    }
}
