//! Random reads of one file with many in flight, over any interface that can do that.

use crate::arm::{latencies, Sample, Turn};
use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::usage::Usage;
use anyring_engine::aio::model::Model;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Alignment that O_DIRECT wants at most.
pub const ALIGN: usize = 4096;

/// One read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Which of the reads in flight.
    pub slot: usize,
    /// The file.
    pub fd: i32,
    /// Where the data goes.
    pub buf: *mut u8,
    /// Bytes.
    pub len: usize,
    /// From where.
    pub offset: u64,
}

/// An interface that has many reads in flight.
pub trait Queue {
    /// Takes a read; it need not start before `wait`.
    fn queue(&mut self, read: Read) -> Result<()>;
    /// Starts what was queued, waits until at least `min` have ended, and puts (slot, result) into `done`, which is emptied first.
    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()>;
}

/// A file for O_DIRECT.
pub struct DirectFile {
    fd: OwnedFd,
    len: u64,
}

impl DirectFile {
    /// Makes a file of `len` bytes, all written to the disk, and opens it.
    pub fn make(dir: &Path, len: u64) -> Result<DirectFile> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let path = dir.join("data");
        let failed = |e| Error::io(path.display(), e);
        let mut rng = Rng::new(2);
        let block: Vec<u8> = (0..1 << 20).map(|_| rng.draw() as u8).collect();
        let mut file = std::fs::File::create(&path).map_err(failed)?;
        for _ in 0..len / block.len() as u64 {
            file.write_all(&block).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path)
            .map_err(|e| Error::io(format!("{} with O_DIRECT", path.display()), e))?;
        Ok(DirectFile { fd: file.into(), len })
    }
    /// Its descriptor.
    pub fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

/// Aligned memory for reads in flight.
pub struct Buffers {
    start: *mut u8,
    layout: std::alloc::Layout,
    each: usize,
}

impl Buffers {
    /// `count` buffers of `each` bytes, a multiple of the alignment.
    pub fn new(count: usize, each: usize) -> Buffers {
        let layout = std::alloc::Layout::from_size_align(count * each, ALIGN)
            .unwrap_or_else(|_| unreachable!("sizes are constants"));
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Buffers { start, layout, each }
    }
    /// The start of one.
    pub fn get(&self, slot: usize) -> *mut u8 {
        assert!((slot + 1) * self.each <= self.layout.size());
        // SAFETY: inside the allocation, as just checked.
        unsafe { self.start.add(slot * self.each) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start, self.layout) }
    }
}

/// How the reads come.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Reads in flight.
    pub depth: usize,
    /// At most so many are started together.
    pub submit: usize,
    /// As many are waited for before new ones are started.
    pub complete: u32,
    /// One read in `large_every` (0: none) has 128 KiB, the others 4 KiB. Latencies are of those of 4 KiB.
    pub large_every: u64,
}

/// Bytes of an ordinary read.
pub const SMALL: usize = 4096;
/// Bytes of a large read.
pub const LARGE: usize = 128 * 1024;

/// What tells the time.
pub enum Clock<'a> {
    /// This machine's, from then on.
    Real(Instant),
    /// A model's.
    Virtual(&'a Model),
}

impl Clock<'_> {
    /// Time that has passed.
    pub fn now(&self) -> Duration {
        match self {
            Clock::Real(start) => start.elapsed(),
            Clock::Virtual(model) => Duration::from_nanos(model.now()),
        }
    }
}

/// Reads until the time is up.
pub fn run(queue: &mut dyn Queue, file: &DirectFile, load: &Load, turn: &Turn) -> Result<Sample> {
    run_by(&Clock::Real(Instant::now()), queue, file, load, turn)
}

/// Reads from a model until its time is up. Its sleeps are the context switches.
pub fn run_on_model(
    model: &Model,
    queue: &mut dyn Queue,
    file: &DirectFile,
    load: &Load,
    turn: &Turn,
) -> Result<Sample> {
    let mut sample = run_by(&Clock::Virtual(model), queue, file, load, turn)?;
    let voluntary = model.counts().sleeps;
    sample.usage = Usage { voluntary, cpu_s: 0.0, ..sample.usage };
    Ok(sample)
}

fn run_by(
    clock: &Clock<'_>,
    queue: &mut dyn Queue,
    file: &DirectFile,
    load: &Load,
    turn: &Turn,
) -> Result<Sample> {
    let each = if load.large_every > 0 { LARGE } else { SMALL };
    let buffers = Buffers::new(load.depth, each);
    let result = run_into(&buffers, clock, queue, file, load, turn);
    if result.is_err() {
        // Reads that are still in flight write there.
        std::mem::forget(buffers);
    }
    result
}

fn run_into(
    buffers: &Buffers,
    clock: &Clock<'_>,
    queue: &mut dyn Queue,
    file: &DirectFile,
    load: &Load,
    turn: &Turn,
) -> Result<Sample> {
    let mut rng = Rng::new(turn.seed);
    let mut slots = vec![(Duration::ZERO, SMALL); load.depth];
    let mut free: Vec<usize> = (0..load.depth).collect();
    let (mut latency, mut done, mut ops) = (latencies(), Vec::new(), 0);
    let (start, before) = (clock.now(), Usage::process());
    loop {
        let now = clock.now();
        // However slow it is, each place is used once.
        let more = ops == 0 || now - start < turn.slice;
        let starting = if more { free.len().min(load.submit) } else { 0 };
        for slot in free.split_off(free.len() - starting) {
            let large = load.large_every > 0 && rng.below(load.large_every) == 0;
            let len = if large { LARGE } else { SMALL };
            let offset = rng.below(file.len / len as u64) * len as u64;
            slots[slot] = (now, len);
            queue.queue(Read { slot, fd: file.fd(), buf: buffers.get(slot), len, offset })?;
        }
        let in_flight = load.depth - free.len();
        if in_flight == 0 {
            break;
        }
        // While not all have been started there is nothing to wait for.
        let min = if more && !free.is_empty() { 0 } else { load.complete.min(in_flight as u32) };
        queue.wait(min, &mut done)?;
        let now = clock.now();
        for &(slot, result) in &done {
            let (began, len) = slots[slot];
            if result != len as i64 {
                return Err(unexpected(result, len));
            }
            if len == SMALL {
                let _ = latency.record((now - began).as_nanos() as u64);
            }
            free.push(slot);
        }
        ops += done.len() as u64;
    }
    let (elapsed, usage) = (clock.now() - start, Usage::process().since(before));
    Ok(Sample::rate(ops, elapsed, usage).with_latency(latency))
}

fn unexpected(result: i64, len: usize) -> Error {
    match result {
        e if e < 0 => Error::errno("read", -e as i32),
        n => Error::new(format!("a read of {len} bytes gave {n}")),
    }
}

/// `count` threads, each with one read at a time by pread(2).
pub fn on_threads(file: &DirectFile, count: usize, turn: &Turn) -> Result<Sample> {
    let (start, before) = (Instant::now(), Usage::process());
    let results: Vec<_> = std::thread::scope(|scope| {
        let one = |i| scope.spawn(move || plain(file, turn, turn.seed * 1000 + i as u64));
        let threads: Vec<_> = (0..count).map(one).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::new("panic")))).collect()
    });
    let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
    let mut latency = latencies();
    for result in results {
        latency.add(result?).map_err(|e| Error::new(e.to_string()))?;
    }
    Ok(Sample::rate(latency.len(), elapsed, usage).with_latency(latency))
}

fn plain(file: &DirectFile, turn: &Turn, seed: u64) -> Result<hdrhistogram::Histogram<u64>> {
    let (buffers, mut rng, mut latency) = (Buffers::new(1, SMALL), Rng::new(seed), latencies());
    let start = Instant::now();
    while latency.is_empty() || start.elapsed() < turn.slice {
        let began = Instant::now();
        let offset = (rng.below(file.len / SMALL as u64) * SMALL as u64) as i64;
        // SAFETY: the buffer holds that many bytes.
        let n = unsafe { libc::pread(file.fd(), buffers.get(0).cast(), SMALL, offset) };
        if n != SMALL as isize {
            return Err(if n < 0 { Error::os("pread") } else { unexpected(n as i64, SMALL) });
        }
        let _ = latency.record(began.elapsed().as_nanos() as u64);
    }
    Ok(latency)
}
