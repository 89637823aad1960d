//! What others may know and do about one worker: which item it runs, whether it is in a call, how to interrupt
//! it, and the finished requests it still holds.
//!
//! `current` names the running item by its address and is written by the worker; a canceller that finds the item there
//! marks it while it sends the signal, and the worker does not go on to another item meanwhile. So
//! a signal and the stop flag reach the item they are meant for. The worker names the item before it takes the
//! request out of it: who finds the request taken finds the name, or the item has ended.

use super::batch::Batch;
use crate::host::thread;
use crate::sync::Lock;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

/// Runs, or is about to.
const ACTIVE: u32 = 0;
/// In a call that may wait; counted as active until the watcher finds it waiting.
const WATCHED: u32 = 1;
/// In a call that waits, and not counted as active.
const BLOCKED: u32 = 2;

/// A signal is being sent to the worker of this item.
const SENDING: usize = 1;
/// It was sent.
const SENT: usize = 2;

/// See the module's description.
pub struct Slot {
    /// Thread id.
    pub tid: i32,
    /// Workers of an older generation than their account's have credentials that the process gave up.
    pub generation: u32,
    /// Address of the item, with SENDING or SENT; 0 between items.
    current: AtomicUsize,
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
            current: AtomicUsize::new(0),
            stop: AtomicU32::new(0),
            phase: AtomicU32::new(ACTIVE),
            turn: AtomicU32::new(0),
            batch: Lock::new(batch),
        }
    }

    /// The worker turns to an item.
    pub fn begin(&self, item: usize) {
        self.turn.store(self.turn.load(SeqCst).wrapping_add(1), SeqCst);
        self.current.store(item, SeqCst);
    }

    /// It is told to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst) != 0
    }

    /// The worker is done with its item. Whether it was told to stop it.
    pub fn finish(&self) -> bool {
        loop {
            let now = self.current.load(SeqCst);
            if now & SENDING != 0 {
                thread::yield_now();
                continue;
            }
            if self.current.compare_exchange(now, 0, SeqCst, SeqCst).is_ok() {
                return now & SENT != 0 && self.stop.swap(0, SeqCst) != 0;
            }
        }
    }

    /// Interrupts the worker if it runs this item, or whatever it runs. Whether it did.
    pub fn interrupt(&self, item: Option<usize>, signal: i32) -> bool {
        loop {
            let now = self.current.load(SeqCst);
            let running = now & !(SENDING | SENT);
            if running == 0 || item.is_some_and(|i| i != running) {
                return false;
            }
            if now & SENDING != 0 {
                thread::yield_now();
                continue;
            }
            if self.current.compare_exchange(now, running | SENDING, SeqCst, SeqCst).is_ok() {
                self.stop.store(1, SeqCst);
                let _ = thread::tgkill(self.tid, signal);
                self.current.store(running | SENT, SeqCst);
                return true;
            }
        }
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
