//! Small reads of a file in the page cache: what a request costs beside a short system call.

use super::Experiment;
use crate::arm::{Arm, Kind, Plan, RatioDef, Sample, Setting, Turn};
use crate::error::{Error, Result};
use crate::ring::{Backend, Ring, MODERN};
use crate::usage::Usage;
use anyring_uapi::{op, sqe, Sqe};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cached",
    about: "512-byte reads of a cached file, 32 a call, plain and with IOSQE_ASYNC",
    method: "A ring with SINGLE_ISSUER and DEFER_TASKRUN submits 32 reads of 512 bytes at different offsets of one \
             file of 16 KiB in the page cache and waits for all of them, again and again. 'async' sets IOSQE_ASYNC: the \
             request may be handed to a worker. The limit is plain pread calls.",
    unit: "reads/s",
    ratios: &[
        RatioDef::value("cached.user_vs_kernel", "user-b32", "kernel-b32"),
        RatioDef::value("cached.async_user_vs_kernel", "user-async-b32", "kernel-async-b32"),
    ],
    prepare,
};

const BATCH: usize = 32;
const BYTES: usize = 512;

fn prepare(setting: &Setting) -> Result<Plan> {
    let file = Arc::new(file(setting)?);
    let mut plan = Plan::default();
    let on_ring = |flags| {
        let file = file.clone();
        move |backend: &Arc<dyn Backend>, turn: &Turn| reads(backend, turn, &file, flags)
    };
    plan.both("-b32", on_ring(0));
    plan.both("-async-b32", on_ring(sqe::ASYNC));
    plan.user("user-async-b32-inline-never", "inline=never", on_ring(sqe::ASYNC));
    plan.add(Arm::new("pread", Kind::Limit, move |turn| plain(turn, &file)));
    Ok(plan)
}

/// A file whose every block of [`BYTES`] begins with its number.
fn file(setting: &Setting) -> Result<File> {
    let path = setting.scratch.join("cached");
    let mut content = vec![0u8; BATCH * BYTES];
    for (i, block) in content.chunks_mut(BYTES).enumerate() {
        block.fill(i as u8 + 1);
    }
    std::fs::write(&path, content).map_err(|e| Error::io(path.display(), e))?;
    File::open(&path).map_err(|e| Error::io(path.display(), e))
}

fn check(buf: &[u8]) -> Result<()> {
    let right = |(i, block): (usize, &[u8])| block.iter().all(|b| *b == i as u8 + 1);
    if buf.chunks(BYTES).enumerate().all(right) {
        Ok(())
    } else {
        Err(Error::new("a read brought the wrong bytes"))
    }
}

fn reads(backend: &Arc<dyn Backend>, turn: &Turn, file: &File, flags: u8) -> Result<Sample> {
    let mut ring = Ring::new(backend, BATCH as u32, MODERN)?;
    let (mut cqes, mut buf) = (Vec::with_capacity(BATCH), vec![0u8; BATCH * BYTES]);
    let (start, before) = (Instant::now(), Usage::process());
    let mut ops = 0;
    while start.elapsed() < turn.slice {
        for _ in 0..64 {
            for (i, block) in buf.chunks_mut(BYTES).enumerate() {
                let (fd, off) = (file.as_raw_fd(), (i * BYTES) as u64);
                let (addr, len) = (block.as_mut_ptr() as u64, BYTES as u32);
                ring.push(Sqe { opcode: op::READ, flags, fd, off, addr, len, ..Sqe::default() });
            }
            let mut left = BATCH;
            while left > 0 {
                ring.submit_and_wait(left as u32)?;
                ring.reap(&mut cqes);
                left -= cqes.len();
                if let Some(cqe) = cqes.iter().find(|cqe| cqe.res != BYTES as i32) {
                    return Err(Error::new(format!("a read ended with {}", cqe.res)));
                }
            }
            ops += BATCH as u64;
        }
    }
    let sample = Sample::rate(ops, start.elapsed(), Usage::process().since(before));
    check(&buf).map(|()| sample)
}

fn plain(turn: &Turn, file: &File) -> Result<Sample> {
    let mut buf = vec![0u8; BATCH * BYTES];
    let (start, before) = (Instant::now(), Usage::process());
    let mut ops = 0;
    while start.elapsed() < turn.slice {
        for _ in 0..64 {
            for (i, block) in buf.chunks_mut(BYTES).enumerate() {
                let read = file.read_exact_at(block, (i * BYTES) as u64);
                read.map_err(|e| Error::io("the cached file", e))?;
            }
            ops += BATCH as u64;
        }
    }
    let sample = Sample::rate(ops, start.elapsed(), Usage::process().since(before));
    check(&buf).map(|()| sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use crate::scratch::Scratch;
    use std::time::Duration;

    #[test]
    fn what_is_read_is_checked() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let setting = Setting { quick: true, runs: 1, scratch: scratch.path().to_owned() };
        let (file, turn) =
            (file(&setting).unwrap(), Turn { slice: Duration::from_millis(2), seed: 1 });
        for policy in ["", "inline=never"] {
            let user: Arc<dyn Backend> = Arc::new(User::new(policy).unwrap());
            for flags in [0, sqe::ASYNC] {
                assert!(reads(&user, &turn, &file, flags).unwrap().ops >= BATCH as u64);
            }
        }
        let other = scratch.path().join("other");
        std::fs::write(&other, [0u8; BATCH * BYTES]).unwrap();
        assert!(plain(&turn, &File::open(other).unwrap()).is_err());
    }
}
