//! NOPs: what a request costs beside its work.

use super::Experiment;
use crate::arm::{latencies, Arm, Kind, Plan, RatioDef, Sample, Setting, Turn};
use crate::error::{Error, Result};
use crate::ring::{Backend, Ring, MODERN};
use crate::usage::Usage;
use anyring_uapi::{op, sqe, Sqe};
use std::sync::Arc;
use std::time::Instant;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "nop",
    about: "requests that do nothing, one or many a call, and with IOSQE_ASYNC",
    method: "A ring with SINGLE_ISSUER and DEFER_TASKRUN submits a batch of NOPs and waits for all \
             of them, again and again, through the crate; b1 and b32 are batches of 1 and 32. 'async' sets IOSQE_ASYNC: \
             the request may be handed to a worker, as the kernel and inline=never do. Latencies are those of a batch. \
             The limit is a plain system call (getppid).",
    unit: "NOPs/s",
    ratios: &[
        RatioDef::value("nop.b1_user_vs_kernel", "user-b1", "kernel-b1"),
        RatioDef::value("nop.b32_user_vs_kernel", "user-b32", "kernel-b32"),
        RatioDef::value("nop.async_user_vs_kernel", "user-async-b32", "kernel-async-b32"),
    ],
    prepare,
};

fn prepare(_: &Setting) -> Result<Plan> {
    let mut plan = Plan::default();
    for (suffix, batch) in [("-b1", 1), ("-b32", 32)] {
        let (user, kernel) = (anyring::Backend::User, anyring::Backend::Kernel);
        // The crate has an engine of its own.
        plan.add(Arm::new(&format!("user{suffix}"), Kind::User, move |turn| {
            through_crate(user, turn, batch)
        }));
        plan.kernel(&format!("kernel{suffix}"), move |_, turn| through_crate(kernel, turn, batch));
    }
    plan.both("-async-b32", |backend, turn| nops(backend, turn, 32, sqe::ASYNC));
    plan.user("user-async-b32-inline-never", "inline=never", |backend, turn| {
        nops(backend, turn, 32, sqe::ASYNC)
    });
    plan.add(Arm::new("plain-call", Kind::Limit, plain_calls));
    Ok(plan)
}

/// Batches that are made before the clock is looked at again.
const BATCHES: u32 = 64;

/// Does `one` batch again and again, and times the first of each [`BATCHES`].
fn repeat(turn: &Turn, batch: u32, mut one: impl FnMut() -> Result<()>) -> Result<Sample> {
    let (start, before) = (Instant::now(), Usage::process());
    let (mut ops, mut latency) = (0, latencies());
    let mut began = start;
    while began - start < turn.slice {
        one()?;
        let _ = latency.record(began.elapsed().as_nanos() as u64);
        for _ in 1..BATCHES {
            one()?;
        }
        ops += u64::from(BATCHES * batch);
        began = Instant::now();
    }
    Ok(Sample::rate(ops, began - start, Usage::process().since(before)).with_latency(latency))
}

/// The work as a Rust program does it, with either backend of the crate.
fn through_crate(backend: anyring::Backend, turn: &Turn, batch: u32) -> Result<Sample> {
    let mut builder = anyring::IoUring::<anyring::squeue::Entry>::builder();
    builder.backend(backend).setup_single_issuer().setup_defer_taskrun().setup_submit_all();
    let mut ring = builder.build(batch.max(8)).map_err(|e| Error::io("a ring of the crate", e))?;
    let nop = anyring::opcode::Nop::new().build();
    repeat(turn, batch, || {
        let mut sq = ring.submission();
        for _ in 0..batch {
            // SAFETY: a NOP points to nothing.
            unsafe { sq.push(&nop) }.map_err(|_| Error::new("the queue is full"))?;
        }
        drop(sq);
        let mut left = batch as usize;
        while left > 0 {
            ring.submit_and_wait(left).map_err(|e| Error::io("a ring of the crate", e))?;
            left -= ring.completion().count();
        }
        Ok(())
    })
}

fn nops(backend: &Arc<dyn Backend>, turn: &Turn, batch: u32, flags: u8) -> Result<Sample> {
    let mut ring = Ring::new(backend, batch.max(8), MODERN)?;
    let mut cqes = Vec::with_capacity(batch as usize);
    repeat(turn, batch, || {
        for _ in 0..batch {
            ring.push(Sqe { opcode: op::NOP, flags, fd: -1, ..Sqe::default() });
        }
        let mut left = batch;
        while left > 0 {
            ring.submit_and_wait(left)?;
            ring.reap(&mut cqes);
            left -= cqes.len() as u32;
        }
        Ok(())
    })
}

fn plain_calls(turn: &Turn) -> Result<Sample> {
    repeat(turn, 1, || {
        // SAFETY: no argument. Not through libc's function, so that it is never cached.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_nop_counts() {
        let turn = Turn { slice: Duration::from_millis(1), seed: 0 };
        let mut made = 0;
        let sample = repeat(&turn, 3, || {
            made += 3;
            Ok(())
        });
        let sample = sample.unwrap();
        assert_eq!(sample.ops, made);
        assert_eq!(sample.latency.unwrap().len(), made / u64::from(3 * BATCHES));
        assert!(through_crate(anyring::Backend::User, &turn, 32).unwrap().ops >= 32);
    }
}
