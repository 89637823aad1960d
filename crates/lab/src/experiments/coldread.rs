//! Random buffered reads of a file of which nothing is cached, 32 in flight.

use super::randread::RingQueue;
use super::Experiment;
use crate::arm::{latencies, Arm, Kind, Measure, Plan, RatioDef, Sample, Setting, Turn};
use crate::error::{Error, Result};
use crate::reads::{Buffers, Queue, Read, SMALL};
use crate::ring::{Backend, MODERN};
use crate::rng::Rng;
use crate::usage::Usage;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "coldread",
    about: "4 KiB random buffered reads of a file that is not cached, 32 in flight",
    method: "A file of 512 MiB (128 with --quick) on the disk of --dir, dropped from the page cache before each run; each \
             of its blocks is read at most once, in random order, until all were or the time is up. Our engine takes the reads that \
             wait together, starts readahead for all and reads each (wq_readahead=on), or gives each a worker (off). The \
             limit is 32 threads with pread.",
    unit: "reads/s",
    ratios: &[
        RatioDef::value("coldread.readahead_vs_threads", "user", "user-no-readahead"),
        RatioDef::value("coldread.readahead_switches", "user", "user-no-readahead")
            .measuring(Measure::Switches),
        RatioDef::value("coldread.user_vs_kernel", "user", "kernel"),
    ],
    prepare,
};

const DEPTH: usize = 32;

fn prepare(setting: &Setting) -> Result<Plan> {
    let len = if setting.quick { 128 << 20 } else { 512 << 20 };
    let file = Arc::new(ColdFile::make(&setting.scratch, len)?);
    let mut plan = Plan::default();
    let ring_file = file.clone();
    let through_ring = move |backend: &Arc<dyn Backend>, turn: &Turn| {
        run(&mut RingQueue::new(backend, DEPTH as u32, MODERN)?, &ring_file, turn)
    };
    plan.both("", through_ring.clone());
    plan.user("user-no-readahead", "wq_readahead=off", through_ring);
    plan.add(Arm::new("pread-32-threads", Kind::Limit, move |turn| on_threads(&file, turn)));
    Ok(plan)
}

/// A file whose pages can be dropped.
struct ColdFile {
    file: File,
    blocks: u64,
}

impl ColdFile {
    fn make(dir: &Path, len: u64) -> Result<ColdFile> {
        use std::io::Write;
        let path = dir.join("cold");
        let failed = |e| Error::io(path.display(), e);
        let block = vec![7; 1 << 20];
        let mut file = File::create(&path).map_err(failed)?;
        for _ in 0..len / block.len() as u64 {
            file.write_all(&block).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        let file = File::open(&path).map_err(failed)?;
        Ok(ColdFile { file, blocks: len / SMALL as u64 })
    }

    /// Drops its pages; its neighbours are not to be read along with a block. The blocks in a random order.
    fn cool(&self, seed: u64) -> Result<Vec<u64>> {
        for advice in [libc::POSIX_FADV_DONTNEED, libc::POSIX_FADV_RANDOM] {
            // SAFETY: integers only.
            match unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, advice) } {
                0 => {}
                errno => return Err(Error::errno("posix_fadvise", errno)),
            }
        }
        let (mut rng, mut order) = (Rng::new(seed), (0..self.blocks).collect::<Vec<_>>());
        for n in (1..order.len()).rev() {
            order.swap(n, rng.below(n as u64 + 1) as usize);
        }
        Ok(order)
    }
}

fn run(queue: &mut dyn Queue, file: &ColdFile, turn: &Turn) -> Result<Sample> {
    let order = file.cool(turn.seed)?;
    let buffers = Buffers::new(DEPTH, SMALL);
    let result = run_into(&buffers, queue, file, order, turn);
    if result.is_err() {
        // Reads that are still in flight write there.
        std::mem::forget(buffers);
    }
    result
}

fn run_into(
    buffers: &Buffers,
    queue: &mut dyn Queue,
    file: &ColdFile,
    order: Vec<u64>,
    turn: &Turn,
) -> Result<Sample> {
    let mut order = order.into_iter();
    let (mut free, mut done, mut ops) = ((0..DEPTH).collect::<Vec<_>>(), Vec::new(), 0);
    let (mut began, mut latency) = ([Instant::now(); DEPTH], latencies());
    let (start, before) = (Instant::now(), Usage::process());
    loop {
        let now = Instant::now();
        let more = now - start < turn.slice;
        let starting = if more { free.len().min(order.len()) } else { 0 };
        for (slot, block) in free.split_off(free.len() - starting).into_iter().zip(&mut order) {
            began[slot] = now;
            let (fd, offset) = (file.file.as_raw_fd(), block * SMALL as u64);
            queue.queue(Read { slot, fd, buf: buffers.get(slot), len: SMALL, offset })?;
        }
        if free.len() == DEPTH {
            break;
        }
        queue.wait(1, &mut done)?;
        let now = Instant::now();
        for &(slot, result) in &done {
            if result != SMALL as i64 {
                return Err(Error::new(format!("a read of {SMALL} bytes gave {result}")));
            }
            let _ = latency.record((now - began[slot]).as_nanos() as u64);
            free.push(slot);
        }
        ops += done.len() as u64;
    }
    let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
    Ok(Sample::rate(ops, elapsed, usage).with_latency(latency))
}

/// Each thread takes the next block.
fn on_threads(file: &ColdFile, turn: &Turn) -> Result<Sample> {
    let (order, next) = (file.cool(turn.seed)?, AtomicUsize::new(0));
    let (start, before) = (Instant::now(), Usage::process());
    let one = || {
        let buffer = Buffers::new(1, SMALL);
        let mut ops = 0;
        while start.elapsed() < turn.slice {
            let Some(block) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let (fd, offset) = (file.file.as_raw_fd(), (block * SMALL as u64) as i64);
            // SAFETY: the buffer holds that many bytes.
            if unsafe { libc::pread(fd, buffer.get(0).cast(), SMALL, offset) } != SMALL as isize {
                return Err(Error::os("pread"));
            }
            ops += 1;
        }
        Ok(ops)
    };
    let results: Vec<Result<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..DEPTH).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::new("panic")))).collect()
    });
    let ops = results.into_iter().sum::<Result<u64>>()?;
    Ok(Sample::rate(ops, start.elapsed(), Usage::process().since(before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use crate::scratch::Scratch;
    use std::time::Duration;

    #[test]
    fn each_block_is_read_once() {
        let scratch = Scratch::new(Path::new("/var/tmp")).unwrap();
        let file = ColdFile::make(scratch.path(), 2 << 20).unwrap();
        let turn = Turn { slice: Duration::from_secs(20), seed: 1 };
        for policy in ["", "wq_readahead=off"] {
            let user: Arc<dyn Backend> = Arc::new(User::new(policy).unwrap());
            let mut queue = RingQueue::new(&user, DEPTH as u32, MODERN).unwrap();
            let sample = run(&mut queue, &file, &turn).unwrap();
            assert_eq!((sample.ops, sample.latency.unwrap().len()), (512, 512));
        }
        assert_eq!(on_threads(&file, &turn).unwrap().ops, 512);
    }
}
