//! A device model: requests end after seeded latencies, in any order, whatever this machine's disk can do.
//!
//! A request is a pipe from which one byte is awaited; the device's thread writes it when the latency is over. A blocking
//! read of such a pipe blocks its reader as a slow drive would, for the kernel's io_uring and for the engine alike.

use crate::error::{Error, Result};
use crate::rng::Rng;
use std::collections::BinaryHeap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long requests take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// All the same.
    Fixed(Duration),
    /// Anything between two bounds.
    Uniform(Duration, Duration),
    /// At least so long; the tail falls with the power of 1.5 (Pareto), cut off at 100 times.
    HeavyTail(Duration),
    /// The first, or in one case of `every` the second.
    TwoClasses(Duration, Duration, u64),
}

impl Latency {
    /// The next request's.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Latency::Fixed(all) => all,
            Latency::Uniform(lo, hi) => lo + (hi - lo).mul_f64(rng.unit()),
            Latency::HeavyTail(least) => least.mul_f64(rng.unit().powf(-1.0 / 1.5).min(100.0)),
            Latency::TwoClasses(_, slow, every) if rng.below(every) == 0 => slow,
            Latency::TwoClasses(fast, ..) => fast,
        }
    }
}

/// A device with so many places for requests.
pub struct Device {
    readers: Vec<OwnedFd>,
    requests: Option<mpsc::Sender<(Instant, usize)>>,
    thread: Option<JoinHandle<()>>,
}

impl Device {
    /// A device that is idle.
    pub fn new(places: usize, latency: Latency, seed: u64) -> Result<Device> {
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        for _ in 0..places {
            let (reader, writer) = pipe()?;
            readers.push(reader);
            writers.push(writer);
        }
        let (requests, incoming) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("device".into())
            .spawn(move || serve(&incoming, &writers, latency, Rng::new(seed)))
            .map_err(|e| Error::io("thread", e))?;
        Ok(Device { readers, requests: Some(requests), thread: Some(thread) })
    }
    /// Starts the request of this place; its pipe will hold a byte when it has ended.
    pub fn start(&self, place: usize) {
        if let Some(requests) = &self.requests {
            let _ = requests.send((Instant::now(), place));
        }
    }
    /// The pipe of a place.
    pub fn fd(&self, place: usize) -> i32 {
        self.readers[place].as_raw_fd()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(Error::os("pipe2"));
    }
    // SAFETY: both were just opened, and nobody else has them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Latest first would be on top of a plain heap.
type Due = std::cmp::Reverse<(Instant, usize)>;

/// The device's thread. Requests are given their latencies in the order they come, so the same seed gives each the same.
fn serve(
    incoming: &mpsc::Receiver<(Instant, usize)>,
    writers: &[OwnedFd],
    latency: Latency,
    mut rng: Rng,
) {
    // SAFETY: sets how exact this thread's sleeps are, in nanoseconds.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    let mut due: BinaryHeap<Due> = BinaryHeap::new();
    loop {
        let next = match due.peek() {
            Some(first) => {
                incoming.recv_timeout(first.0 .0.saturating_duration_since(Instant::now()))
            }
            None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok((at, place)) => due.push(std::cmp::Reverse((at + latency.draw(&mut rng), place))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while due.peek().is_some_and(|first| first.0 .0 <= Instant::now()) {
            if let Some(std::cmp::Reverse((_, place))) = due.pop() {
                // SAFETY: one readable byte.
                unsafe { libc::write(writers[place].as_raw_fd(), [1u8].as_ptr().cast(), 1) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_same_seed_gives_the_same_latencies() {
        let kinds = [
            Latency::Fixed(MS),
            Latency::Uniform(MS, 10 * MS),
            Latency::HeavyTail(MS),
            Latency::TwoClasses(MS, 10 * MS, 4),
        ];
        for kind in kinds {
            let draw = |seed| {
                let mut rng = Rng::new(seed);
                (0..1000).map(|_| kind.draw(&mut rng)).collect::<Vec<_>>()
            };
            let all = draw(1);
            assert_eq!(all, draw(1));
            assert!(all.iter().all(|l| (MS..=100 * MS).contains(l)), "{kind:?}");
            assert_eq!(all != draw(2), kind != Latency::Fixed(MS), "{kind:?}");
        }
        let mut rng = Rng::new(1);
        let slow = (0..4000).filter(|_| kinds[3].draw(&mut rng) > MS).count();
        assert!((900..1100).contains(&slow), "{slow}");
    }

    #[test]
    fn requests_end_when_their_time_has_come() {
        let device = Device::new(2, Latency::Fixed(5 * MS), 1).unwrap();
        let start = Instant::now();
        device.start(1);
        let mut byte = [0u8];
        // SAFETY: one writable byte.
        assert_eq!(unsafe { libc::read(device.fd(1), byte.as_mut_ptr().cast(), 1) }, 1);
        assert!(start.elapsed() >= 5 * MS);
    }
}
