//! A model of a device in the place of kernel AIO: seeded latencies in virtual time.
//!
//! Nothing is read or written and nobody sleeps. A clock stands still but for what the model is asked to do: each request
//! submitted, each look and each sleep moves it on by a fixed cost, and a sleep moves it to the completion that ends it. So the
//! same seed and the same calls give the same counts on any machine, and a figure for each second of virtual time.

use super::queue::Prepared;
use crate::host::aio::{Event, Limits};
use crate::sync::Lock;
use crate::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long requests take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// All the same.
    Fixed(u64),
    /// Anything between two bounds.
    Uniform(u64, u64),
    /// At least so long; the tail falls with the power of 1.5 (Pareto), cut off at 100 times.
    HeavyTail(u64),
    /// The first, or in one case of so many the second.
    TwoClasses(u64, u64, u64),
}

impl Latency {
    /// The next request's.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            Latency::Fixed(all) => all,
            Latency::Uniform(lo, hi) => lo + rng.below(hi - lo + 1),
            Latency::HeavyTail(least) => {
                (least as f64 * rng.unit().powf(-1.0 / 1.5).min(100.0)) as u64
            }
            Latency::TwoClasses(_, slow, every) if rng.below(every) == 0 => slow,
            Latency::TwoClasses(fast, ..) => fast,
        }
    }
}

/// Random numbers (splitmix64): the same for the same seed.
#[derive(Clone, Copy, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Less than `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }
    /// Above 0, at most 1.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11).wrapping_add(1) as f64 / (1u64 << 53) as f64
    }
}

/// What the device is like.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Of each request.
    pub latency: Latency,
    /// Added for every KiB.
    pub ns_per_kib: u64,
    /// Requests it takes at a time; none if it is to be refused like an `io_setup(2)` that fails.
    pub slots: usize,
    /// One request in so many comes back with EAGAIN; 0 for none.
    pub again_every: u64,
}

impl Device {
    /// A device with room for 4096 requests and no faults.
    pub const fn new(latency: Latency) -> Device {
        Device { latency, ns_per_kib: 0, slots: 4096, again_every: 0 }
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests submitted.
    pub submitted: u64,
    /// Calls that submitted them.
    pub calls: u64,
    /// Sleeps: each is one context switch of the waiting thread.
    pub sleeps: u64,
    /// Looks without a call.
    pub polls: u64,
    /// Completions taken.
    pub taken: u64,
}

/// What a submission costs the submitter, beside [`REQUEST_NS`].
const CALL_NS: u64 = 300;
/// What each request costs it.
const REQUEST_NS: u64 = 500;
/// What a look costs.
const POLL_NS: u64 = 50;
/// What falling asleep and waking costs.
const SLEEP_NS: u64 = 2_000;

struct State {
    device: Device,
    rng: Rng,
    now: u64,
    counts: Counts,
    /// (time, order of submission, token, result).
    due: BinaryHeap<Reverse<(u64, u64, u64, i64)>>,
}

/// See the module's description.
pub struct Model {
    state: Lock<State>,
}

impl Model {
    /// A device that is idle.
    pub fn new(device: Device, seed: u64) -> Model {
        let (counts, due) = (Counts::default(), BinaryHeap::new());
        Model { state: Lock::new(State { device, rng: Rng::new(seed), now: 0, counts, due }) }
    }
    /// Virtual time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.state.lock().now
    }
    /// So far.
    pub fn counts(&self) -> Counts {
        self.state.lock().counts
    }
    /// Takes no requests at all.
    pub fn refuses(&self) -> bool {
        self.state.lock().device.slots == 0
    }

    /// As `io_submit(2)`.
    pub fn submit(&self, batch: &[Prepared]) -> Result<usize, Errno> {
        let mut st = self.state.lock();
        st.counts.calls += 1;
        st.now += CALL_NS;
        let room = st.device.slots.saturating_sub(st.due.len());
        if room == 0 {
            return Err(Errno::AGAIN);
        }
        let taken = batch.len().min(room);
        for one in &batch[..taken] {
            st.accept(one);
        }
        Ok(taken)
    }

    /// One look.
    pub fn poll(&self) -> bool {
        let mut st = self.state.lock();
        st.counts.polls += 1;
        st.now += POLL_NS;
        st.is_ready()
    }

    /// Takes what has completed by now.
    pub fn take(&self, out: &mut [Event]) -> usize {
        self.state.lock().take(out)
    }

    /// Moves on to the time when `min` have completed, or to the limit. Fewer are waited for if there are not so many.
    pub fn wait(&self, min: usize, out: &mut [Event], limits: &Limits) -> usize {
        let mut st = self.state.lock();
        let mut due: Vec<u64> = st.due.iter().map(|d| d.0 .0).collect();
        due.sort_unstable();
        let wanted = min.min(due.len());
        let end = if wanted == 0 { 0 } else { due[wanted - 1] };
        if end > st.now {
            let limit = limits.timeout.map(|(s, n)| st.now + s as u64 * 1_000_000_000 + n as u64);
            st.counts.sleeps += 1;
            st.now = end.min(limit.unwrap_or(u64::MAX)) + SLEEP_NS;
        }
        st.take(out)
    }
}

impl State {
    fn accept(&mut self, one: &Prepared) {
        self.now += REQUEST_NS;
        self.counts.submitted += 1;
        let every = self.device.again_every;
        let again = every > 0 && self.counts.submitted % every == 0;
        let res = if again { i64::from(Errno::AGAIN.res()) } else { one.bytes as i64 };
        let transfer = self.device.ns_per_kib * one.bytes.div_ceil(1024);
        let latency = self.device.latency.draw(&mut self.rng);
        let at = self.now + if again { 0 } else { latency + transfer };
        self.due.push(Reverse((at, self.counts.submitted, one.iocb.data, res)));
    }

    fn is_ready(&self) -> bool {
        self.due.peek().is_some_and(|first| first.0 .0 <= self.now)
    }

    fn take(&mut self, out: &mut [Event]) -> usize {
        let mut n = 0;
        while n < out.len() && self.is_ready() {
            let Some(Reverse((_, _, data, res))) = self.due.pop() else { break };
            out[n] = Event { data, res, ..Event::default() };
            n += 1;
        }
        self.counts.taken += n as u64;
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Latency; 4] = [
        Latency::Fixed(1000),
        Latency::Uniform(1000, 10_000),
        Latency::HeavyTail(1000),
        Latency::TwoClasses(1000, 10_000, 4),
    ];

    fn request(data: u64, bytes: u64) -> Prepared {
        let mut one = Prepared { bytes, ..Prepared::default() };
        one.iocb.data = data;
        one
    }

    /// Submits 32 at a time and waits for 8: tokens in order of completion, the counts, the time.
    fn play(latency: Latency, seed: u64) -> (Vec<u64>, Counts, u64) {
        let model = Model::new(Device::new(latency), seed);
        let (mut order, mut events) = (Vec::new(), [Event::default(); 8]);
        for round in 0..20 {
            let batch: Vec<_> = (0..32).map(|i| request(round * 32 + i, 4096)).collect();
            assert_eq!(model.submit(&batch), Ok(32));
            for _ in 0..4 {
                let n = model.wait(8, &mut events, &Limits::default());
                order.extend(events[..n].iter().map(|e| e.data));
            }
        }
        (order, model.counts(), model.now())
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for kind in KINDS {
            let one = play(kind, 1);
            assert_eq!(one, play(kind, 1), "{kind:?}");
            assert_eq!(one != play(kind, 2), kind != KINDS[0], "{kind:?}");
            let mut all = one.0.clone();
            all.sort_unstable();
            assert_eq!(all, (0..640).collect::<Vec<_>>(), "{kind:?}: each ends once");
        }
    }

    #[test]
    fn latencies_stay_in_their_bounds() {
        for kind in KINDS {
            let mut rng = Rng::new(1);
            let all: Vec<u64> = (0..4000).map(|_| kind.draw(&mut rng)).collect();
            assert!(all.iter().all(|l| (1000..=100_000).contains(l)), "{kind:?}");
        }
        let mut rng = Rng::new(1);
        let slow = (0..4000).filter(|_| KINDS[3].draw(&mut rng) > 1000).count();
        assert!((900..1100).contains(&slow), "{slow}");
    }

    #[test]
    fn a_sleep_ends_with_what_was_waited_for_or_with_the_time() {
        let model = Model::new(Device::new(Latency::TwoClasses(1000, 50_000, 2)), 3);
        model.submit(&(0..16).map(|i| request(i, 0)).collect::<Vec<_>>()).unwrap();
        let mut events = [Event::default(); 16];
        let short = Limits { timeout: Some((0, 10)), mask: None };
        let fast = model.wait(1, &mut events, &Limits::default());
        assert!(fast > 0 && fast < 16 && model.counts().sleeps <= 1);
        let none = model.wait(16, &mut events, &short);
        let rest = model.wait(16, &mut events, &Limits::default());
        assert_eq!(fast + none + rest, 16);
        assert!(model.now() > 50_000);
    }
}
