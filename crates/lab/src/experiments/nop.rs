//! NOPs: what a request costs beside its work.

use super::Experiment;
use crate::arm::{Arm, Kind, Plan, RatioDef, Sample, Setting, Turn};
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
             the request may be handed to a worker, as the kernel and inline=never do. The limit is a plain system call (getppid).",
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

/// The work as a Rust program does it, with either backend of the crate.
fn through_crate(backend: anyring::Backend, turn: &Turn, batch: u32) -> Result<Sample> {
    let mut builder = anyring::IoUring::<anyring::squeue::Entry>::builder();
    builder.backend(backend).setup_single_issuer().setup_defer_taskrun().setup_submit_all();
    let mut ring = builder.build(batch.max(8)).map_err(|e| Error::io("a ring of the crate", e))?;
    let nop = anyring::opcode::Nop::new().build();
    let (start, before) = (Instant::now(), Usage::process());
    let mut ops = 0;
    while start.elapsed() < turn.slice {
        for _ in 0..64 {
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
            ops += u64::from(batch);
        }
    }
    Ok(Sample::rate(ops, start.elapsed(), Usage::process().since(before)))
}

fn nops(backend: &Arc<dyn Backend>, turn: &Turn, batch: u32, flags: u8) -> Result<Sample> {
    let mut ring = Ring::new(backend, batch.max(8), MODERN)?;
    let mut cqes = Vec::with_capacity(batch as usize);
    let (start, before) = (Instant::now(), Usage::process());
    let mut ops = 0;
    while start.elapsed() < turn.slice {
        for _ in 0..64 {
            for _ in 0..batch {
                ring.push(Sqe { opcode: op::NOP, flags, fd: -1, ..Sqe::default() });
            }
            let mut left = batch;
            while left > 0 {
                ring.submit_and_wait(left)?;
                ring.reap(&mut cqes);
                left -= cqes.len() as u32;
            }
            ops += u64::from(batch);
        }
    }
    Ok(Sample::rate(ops, start.elapsed(), Usage::process().since(before)))
}

fn plain_calls(turn: &Turn) -> Result<Sample> {
    let (start, before) = (Instant::now(), Usage::process());
    let mut ops = 0;
    while start.elapsed() < turn.slice {
        for _ in 0..1000 {
            // SAFETY: no argument. Not through libc's function, so that it is never cached.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        ops += 1000;
    }
    Ok(Sample::rate(ops, start.elapsed(), Usage::process().since(before)))
}
