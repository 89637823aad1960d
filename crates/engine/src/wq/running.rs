//! Which item a worker runs, as far as cancelling goes: a signal reaches the item it is meant for, or none.
//!
//! One word names the running item by its address. The worker writes it; a canceller that finds its item there marks it, sends
//! the signal, and marks that it was sent. The worker does not leave an item while a signal for it is being sent. It names an item before
//! it takes the request out of it, so who finds the request taken finds the name, or the item has ended.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A signal is being sent to the worker of this item. Addresses of items leave these bits free.
const SENDING: usize = 1;
/// It was sent.
const SENT: usize = 2;

/// See the module's description.
pub struct Running(AtomicUsize);

#[cfg(not(loom))]
fn pause() {
    crate::host::thread::yield_now();
}
#[cfg(loom)]
fn pause() {
    loom::thread::yield_now();
}

impl Running {
    /// Nothing runs.
    pub fn nothing() -> Running {
        Running(AtomicUsize::new(0))
    }

    /// The worker turns to an item.
    pub fn begin(&self, item: usize) {
        self.0.store(item, SeqCst);
    }

    /// The worker is done with its item. Whether a signal was sent for it.
    pub fn finish(&self) -> bool {
        loop {
            let now = self.0.load(SeqCst);
            if now & SENDING != 0 {
                pause();
            } else if self.0.compare_exchange(now, 0, SeqCst, SeqCst).is_ok() {
                return now & SENT != 0;
            }
        }
    }

    /// Calls `send` while the worker runs this item, or whatever it runs. Whether it did.
    pub fn interrupt(&self, item: Option<usize>, send: impl FnOnce()) -> bool {
        loop {
            let now = self.0.load(SeqCst);
            let running = now & !(SENDING | SENT);
            if running == 0 || item.is_some_and(|i| i != running) {
                return false;
            }
            if now & SENDING != 0 {
                pause();
            } else if self.0.compare_exchange(now, running | SENDING, SeqCst, SeqCst).is_ok() {
                send();
                self.0.store(running | SENT, SeqCst);
                return true;
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// A cancel of one item while its worker goes on to the next, which must not be hit; and the end of the pool, which hits
    /// whatever runs.
    #[test]
    fn loom_a_signal_reaches_its_item() {
        loom::model(|| {
            let shared = Arc::new((Running::nothing(), AtomicUsize::new(0)));
            shared.0.begin(64);
            let canceller = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let left = || assert_eq!(shared.1.load(SeqCst), 0, "the worker has gone on");
                    shared.0.interrupt(Some(64), left)
                })
            };
            let first = shared.0.finish();
            shared.1.store(1, SeqCst);
            shared.0.begin(128);
            let second = shared.0.finish();
            let sent = canceller.join().unwrap();
            assert_eq!((first, second), (sent, false));
        });
    }
}
