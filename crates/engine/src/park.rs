//! A bell on which one thread sleeps and which others ring: no ring is lost.
//!
//! The sleeper reads the bell, announces that it sleeps, fences, looks once more for work, and only then
//! sleeps, on the value it read first. A ringer makes its work visible, moves the bell, fences, and wakes
//! only if it sees the announcement. The two fences order the pairs (announce, look) and (publish, see), so at least one of the two
//! sees the other; the futex closes the gap between the look and the sleep.

#[cfg(not(loom))]
use core::sync::atomic::{fence, AtomicBool, AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{fence, AtomicBool, AtomicU32, Ordering};

/// See the module's description.
pub struct Bell {
    word: AtomicU32,
    sleeping: AtomicBool,
}

impl Default for Bell {
    fn default() -> Bell {
        Bell { word: AtomicU32::new(0), sleeping: AtomicBool::new(false) }
    }
}

#[cfg(not(loom))]
fn futex_wait(word: &AtomicU32, seen: u32) {
    let _ = crate::host::time::futex_wait(word, seen, None);
}
#[cfg(not(loom))]
fn futex_wake(word: &AtomicU32) {
    crate::host::time::futex_wake(word, 1);
}
/// The model's futex: sleeping is waiting for the word to move.
#[cfg(loom)]
fn futex_wait(word: &AtomicU32, seen: u32) {
    while word.load(Ordering::SeqCst) == seen {
        loom::thread::yield_now();
    }
}
#[cfg(loom)]
fn futex_wake(_: &AtomicU32) {}

impl Bell {
    /// Announces a sleep, then sleeps unless `look` finds something to do.
    pub fn sleep_unless(&self, look: impl FnOnce() -> bool) {
        let seen = self.word.load(Ordering::SeqCst);
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !look() {
            futex_wait(&self.word, seen);
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }

    /// To be called after the work was made visible.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) {
            self.word.fetch_add(1, Ordering::SeqCst);
            futex_wake(&self.word);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// The program publishes its SQ tail and enters with SQ_WAKEUP while the poll thread goes to sleep: if the wake-up were
    /// lost, the sleeper would wait for ever and the model would not end.
    #[test]
    fn loom_no_ring_is_lost() {
        loom::model(|| {
            let shared = Arc::new((Bell::default(), AtomicU32::new(0)));
            let ringer = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    shared.1.store(1, Ordering::Release);
                    shared.0.ring();
                })
            };
            while shared.1.load(Ordering::Acquire) == 0 {
                shared.0.sleep_unless(|| shared.1.load(Ordering::Relaxed) != 0);
            }
            ringer.join().unwrap();
        });
    }

    /// NEED_WAKEUP as the ABI has it: the program looks at the flag after a full barrier and enters only if it is set.
    #[test]
    fn loom_need_wakeup_handshake() {
        loom::model(|| {
            let shared = Arc::new((Bell::default(), AtomicU32::new(0), AtomicU32::new(0)));
            let program = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    shared.1.store(1, Ordering::Release);
                    fence(Ordering::SeqCst);
                    if shared.2.load(Ordering::Relaxed) != 0 {
                        shared.0.ring();
                    }
                })
            };
            while shared.1.load(Ordering::Acquire) == 0 {
                shared.0.sleep_unless(|| {
                    shared.2.fetch_or(1, Ordering::SeqCst);
                    fence(Ordering::SeqCst);
                    shared.1.load(Ordering::Relaxed) != 0
                });
                shared.2.fetch_and(0, Ordering::SeqCst);
            }
            program.join().unwrap();
        });
    }
}
