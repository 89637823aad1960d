//! A thousand armed receives, and nothing happens.

use super::Experiment;
use crate::arm::{Arm, Kind, Plan, Sample, Setting, Turn};
use crate::error::{check, Error, Result};
use crate::net::Epoll;
use crate::ring::{Backend, Ring, MODERN};
use crate::usage::{threads, Usage};
use anyring_uapi::{op, Sqe};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "idle",
    about: "what 1,000 receives cost that wait for data which does not come",
    method: "1,000 receives on socket pairs are armed and a thread waits for one completion; then one byte is sent. CPU time is what \
             all threads of the process used while nothing happened; less is better. The limits are an epoll loop, and a thread for each \
             receive.",
    unit: "µs of CPU per idle second",
    ratios: &[],
    prepare,
};

const RECEIVES: usize = 1000;

fn prepare(_: &Setting) -> Result<Plan> {
    raise_limit(2 * RECEIVES as u64 + 200)?;
    let mut plan = Plan::default();
    plan.both("", on_ring);
    plan.add(Arm::new("epoll", Kind::Limit, on_epoll));
    plan.add(Arm::new("thread-each", Kind::Peer, on_threads));
    Ok(plan)
}

/// Two descriptors for each receive.
fn raise_limit(needed: u64) -> Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if limit.rlim_max < needed {
        let text = format!("needs {needed} descriptors, RLIMIT_NOFILE allows {}", limit.rlim_max);
        return Err(Error::new(text));
    }
    limit.rlim_cur = limit.rlim_cur.max(needed);
    // SAFETY: the limit is readable.
    check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }.into()).map(drop)
}

type Pairs = Vec<(UnixStream, UnixStream)>;

fn pairs() -> Result<Pairs> {
    let one = |_| UnixStream::pair().map_err(|e| Error::io("socketpair", e));
    (0..RECEIVES).map(one).collect()
}

/// Measures what is used while nothing happens, in a thread of its own, then pokes.
fn observe(turn: &Turn, pairs: &Pairs, wait: impl FnOnce() -> Result<()>) -> Result<Sample> {
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let settle = turn.slice / 4;
            std::thread::sleep(settle);
            let (start, before) = (Instant::now(), Usage::process());
            std::thread::sleep(turn.slice - settle);
            let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
            let extra = vec![("threads", threads() as f64)];
            poke(&pairs[0].1);
            let value = usage.cpu_s * 1e6 / elapsed.as_secs_f64();
            Sample { value, ops: 1, usage, latency: None, extra }
        });
        wait()?;
        observer.join().map_err(|_| Error::new("the observer panicked"))
    })
}

fn poke(stream: &UnixStream) {
    // SAFETY: one readable byte.
    unsafe { libc::send(stream.as_raw_fd(), [1u8].as_ptr().cast(), 1, 0) };
}

fn on_ring(backend: &Arc<dyn Backend>, turn: &Turn) -> Result<Sample> {
    let pairs = pairs()?;
    let mut ring = Ring::new(backend, RECEIVES as u32, MODERN)?;
    let mut bufs = vec![0u8; RECEIVES];
    for (i, (end, _)) in pairs.iter().enumerate() {
        ring.push(Sqe {
            opcode: op::RECV,
            fd: end.as_raw_fd(),
            addr: &raw mut bufs[i] as u64,
            len: 1,
            user_data: i as u64,
            ..Sqe::default()
        });
    }
    ring.submit_and_wait(0)?;
    let sample = observe(turn, &pairs, || ring.submit_and_wait(1))?;
    let mut cqes = Vec::new();
    ring.reap(&mut cqes);
    match cqes.first() {
        Some(cqe) if cqe.res == 1 && cqe.user_data == 0 => Ok(sample),
        other => Err(Error::new(format!("the receive that got a byte gave {other:?}"))),
    }
}

fn on_epoll(turn: &Turn) -> Result<Sample> {
    let (pairs, mut epoll, mut ready) = (pairs()?, Epoll::new()?, Vec::new());
    for (i, (end, _)) in pairs.iter().enumerate() {
        epoll.add(end.as_raw_fd(), i)?;
    }
    observe(turn, &pairs, || {
        while ready.is_empty() {
            epoll.wait(&mut ready)?;
        }
        Ok(())
    })
}

fn on_threads(turn: &Turn) -> Result<Sample> {
    let pairs = pairs()?;
    std::thread::scope(|scope| {
        for (end, _) in &pairs {
            let receive = move || {
                let mut byte = 0u8;
                // SAFETY: one writable byte.
                unsafe { libc::recv(end.as_raw_fd(), (&raw mut byte).cast(), 1, 0) };
            };
            let small = std::thread::Builder::new().stack_size(64 * 1024);
            small.spawn_scoped(scope, receive).map_err(|e| Error::io("thread", e))?;
        }
        let sample = observe(turn, &pairs, || Ok(()));
        pairs.iter().for_each(|(_, other)| poke(other));
        sample
    })
}
