//! Lazy wake: whom pushed work wakes, and when.
//!
//! One thread, the owner, takes work that others push, and sleeps until so much has come that its wait can be over. It
//! publishes how many CQEs it still needs ([`Lazy::want`]); a push says how many CQEs its work will post, and wakes the
//! owner only when what was pushed since the last [`Lazy::take`] adds up to that number. An urgent push wakes it at once.
//!
//! **Lazy is a promise of the pusher's**: its work does nothing but post that many CQEs. Work that starts other work, or
//! whose number of CQEs is not known, must be urgent, or the owner may sleep while what it waits for has not even begun.
//!
//! Memory order. The pusher makes its work visible, adds its weight, then looks at `wanted`; the owner stores `wanted`, then looks
//! at the weight; each with a full fence between the two, so at least one of them sees the other. Of several pushers that
//! reach the number the one that takes `wanted` away does the waking. Weight is added after the work is visible and taken
//! before the work is, so weight that was taken stands for work that is found; the reverse does not hold, and costs the
//! owner a look in vain.

#[cfg(not(loom))]
use core::sync::atomic::{fence, AtomicU32, Ordering::SeqCst};
#[cfg(loom)]
use loom::sync::atomic::{fence, AtomicU32, Ordering::SeqCst};

/// The weight of what must wake the owner whatever it wants.
pub const URGENT: u32 = 1 << 20;
/// Nobody sleeps.
const NOBODY: u32 = u32::MAX;

/// See the module's description.
pub struct Lazy {
    weight: AtomicU32,
    wanted: AtomicU32,
}

/// What a push is to be followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// It is the first since the owner took what was there.
    pub first: bool,
    /// The owner is to be woken.
    pub wake: bool,
}

impl Default for Lazy {
    fn default() -> Lazy {
        Lazy { weight: AtomicU32::new(0), wanted: AtomicU32::new(NOBODY) }
    }
}

impl Lazy {
    /// Work that will post `weight` CQEs, or is [`URGENT`], has been made visible.
    pub fn push(&self, weight: u32) -> Pushed {
        let before = self.weight.fetch_add(weight, SeqCst);
        let now = before.saturating_add(weight);
        fence(SeqCst);
        let wanted = self.wanted.load(SeqCst);
        let met = wanted != NOBODY && now >= wanted;
        let wake = met && self.wanted.compare_exchange(wanted, NOBODY, SeqCst, SeqCst).is_ok();
        Pushed { first: before == 0, wake }
    }

    /// Whether something was pushed and not taken.
    pub fn is_pending(&self) -> bool {
        self.weight.load(SeqCst) != 0
    }

    /// The owner is about to take what is there. Whether it is worth looking.
    pub fn take(&self) -> bool {
        self.is_pending() && self.weight.swap(0, SeqCst) != 0
    }

    /// The owner is about to sleep until `number` (at least 1) CQEs can be posted. False if that is so already.
    pub fn want(&self, number: u32) -> bool {
        self.wanted.store(number.clamp(1, URGENT), SeqCst);
        fence(SeqCst);
        if self.weight.load(SeqCst) < number.clamp(1, URGENT) {
            return true;
        }
        self.awake();
        false
    }

    /// The owner does not sleep any more, whatever woke it.
    pub fn awake(&self) {
        self.wanted.store(NOBODY, SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn woken_once_when_the_number_is_met() {
        let lazy = Lazy::default();
        assert!(lazy.want(3));
        assert_eq!(lazy.push(1), Pushed { first: true, wake: false });
        assert_eq!(lazy.push(1), Pushed { first: false, wake: false });
        assert_eq!(lazy.push(1), Pushed { first: false, wake: true });
        assert_eq!(lazy.push(1), Pushed { first: false, wake: false });
        assert!(lazy.take() && !lazy.take() && !lazy.is_pending());
    }

    #[test]
    fn urgent_wakes_and_what_is_there_keeps_from_sleeping() {
        let lazy = Lazy::default();
        assert!(lazy.want(100));
        assert!(lazy.push(URGENT).wake);
        assert!(!lazy.want(100));
        assert!(lazy.take());
        assert!(!lazy.push(1).wake, "nobody sleeps");
        assert!(!lazy.want(1) && lazy.want(2));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::{Arc, Notify};

    /// Work is a number of CQEs in `there`; `bell` is the owner's sleep, which loom finds out if nobody ends it.
    struct Model {
        lazy: Lazy,
        there: AtomicU32,
        bell: Notify,
    }

    impl Default for Model {
        fn default() -> Model {
            Model { lazy: Lazy::default(), there: AtomicU32::new(0), bell: Notify::new() }
        }
    }

    impl Model {
        fn push(&self, cqes: u32, weight: u32) {
            self.there.fetch_add(cqes, SeqCst);
            if self.lazy.push(weight).wake {
                self.bell.notify();
            }
        }
        /// Waits for `number`.
        fn wait(&self, number: u32) {
            let mut got = 0;
            loop {
                if self.lazy.take() {
                    got += self.there.swap(0, SeqCst);
                }
                if got >= number {
                    return;
                }
                if self.lazy.want(number - got) {
                    self.bell.wait();
                    self.lazy.awake();
                }
            }
        }
    }

    fn pushers(
        model: &Arc<Model>,
        pushes: &'static [(u32, u32)],
    ) -> Vec<loom::thread::JoinHandle<()>> {
        let push = |&(cqes, weight): &'static (u32, u32)| {
            let model = model.clone();
            loom::thread::spawn(move || model.push(cqes, weight))
        };
        pushes.iter().map(push).collect()
    }

    #[test]
    fn loom_lazy_push_against_wait() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let threads = pushers(&model, &[(1, 1)]);
            model.wait(1);
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
    }

    #[test]
    fn loom_lazy_two_pushers() {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let model = Arc::new(Model::default());
            let threads = pushers(&model, &[(1, 1), (1, 1)]);
            model.wait(2);
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
    }

    /// Urgent work brings more CQEs than it says.
    #[test]
    fn loom_lazy_urgent_push_against_wait() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let threads = pushers(&model, &[(3, URGENT)]);
            model.wait(3);
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
    }

    /// The time is up while somebody pushes: what was pushed is found now or is still pending.
    #[test]
    fn loom_lazy_wait_against_timeout() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let threads = pushers(&model, &[(1, 1)]);
            let mut got = 0;
            if model.lazy.want(2) {
                model.lazy.awake();
            }
            if model.lazy.take() {
                got += model.there.swap(0, SeqCst);
            }
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(got == 0, model.lazy.is_pending() || model.there.load(SeqCst) == 1);
            if model.lazy.take() {
                got += model.there.swap(0, SeqCst);
            }
            assert_eq!(got, 1);
        });
    }

    /// The ring is closed while work is pushed, as `ring::deferred` does it: whoever comes second drops the work.
    #[test]
    fn loom_lazy_exit() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let gone = Arc::new(AtomicU32::new(0));
            let pusher = {
                let (model, gone) = (model.clone(), gone.clone());
                loom::thread::spawn(move || {
                    model.push(1, 1);
                    if gone.load(SeqCst) != 0 {
                        model.there.swap(0, SeqCst);
                    }
                })
            };
            gone.store(1, SeqCst);
            model.there.swap(0, SeqCst);
            pusher.join().unwrap();
            assert_eq!(model.there.load(SeqCst), 0);
        });
    }
}
