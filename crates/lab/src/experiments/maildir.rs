//! A mail folder: many small files, each opened, examined, read and closed.

mod on_tokio;

use super::Experiment;
use crate::arm::{latencies, Arm, Kind, Plan, RatioDef, Sample, Setting, Turn};
use crate::error::{Error, Result};
use crate::ring::{Backend, Ring, MODERN};
use crate::rng::Rng;
use crate::usage::Usage;
use anyring_uapi::{op, Cqe, Sqe};
use hdrhistogram::Histogram;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "maildir",
    about: "open, statx, read and close of 50,000 small files (10,000 with --quick)",
    method: "Files of 10 to 4096 bytes in the page cache. A ring (SINGLE_ISSUER, DEFER_TASKRUN) keeps 32 or \
             128 files in flight, each going through open, statx, read, close, one request at a time. The limits do the \
             same with plain calls in one thread and in two. Peers: 32 tasks of tokio, with its files (tokio-fs), and with the four plain \
             calls of a file in one closure on its pool of blocking threads (tokio-pool). Every arm has to read every byte, and starts again until its time is up.",
    unit: "files/s",
    ratios: &[
        RatioDef::value("maildir.user_vs_kernel", "user-qd32", "kernel-qd32"),
        RatioDef::value("maildir.user_vs_kernel_qd128", "user-qd128", "kernel-qd128"),
        RatioDef::value("maildir.user_vs_threads", "user-qd32", "threads-2"),
        RatioDef::value("maildir.user_vs_tokio_fs", "user-qd32", "tokio-fs-qd32"),
        RatioDef::value("maildir.user_vs_tokio_pool", "user-qd32", "tokio-pool-qd32"),
        RatioDef::value("maildir.split_vs_coarse", "user-wq-split", "user-wq-coarse").reported(165.0 / 95.0),
    ],
    prepare,
};

const SIZE_MIN: u64 = 10;
const SIZE_MAX: u64 = 4096;
const PER_FOLDER: usize = 1000;

/// The files, and how many bytes they hold together.
struct Maildir {
    paths: Vec<CString>,
    bytes: u64,
}

impl Maildir {
    fn make(dir: &Path, count: usize) -> Result<Maildir> {
        let mut rng = Rng::new(1);
        let content: Vec<u8> = (0..SIZE_MAX).map(|_| rng.draw() as u8).collect();
        let mut made = Maildir { paths: Vec::with_capacity(count), bytes: 0 };
        for i in 0..count {
            let folder = dir.join(format!("{:02}", i / PER_FOLDER));
            if i % PER_FOLDER == 0 {
                std::fs::create_dir(&folder).map_err(|e| Error::io(folder.display(), e))?;
            }
            let path = folder.join(format!("{i:05}.eml"));
            let size = SIZE_MIN + rng.below(SIZE_MAX - SIZE_MIN + 1);
            std::fs::write(&path, &content[..size as usize])
                .map_err(|e| Error::io(path.display(), e))?;
            made.bytes += size;
            let path = path.into_os_string().into_encoded_bytes();
            made.paths.push(CString::new(path).map_err(|e| Error::new(e.to_string()))?);
        }
        Ok(made)
    }

    fn check(&self, read: u64) -> Result<()> {
        if read == self.bytes {
            Ok(())
        } else {
            Err(Error::new(format!("{read} bytes were read, the files hold {}", self.bytes)))
        }
    }
}

fn prepare(setting: &Setting) -> Result<Plan> {
    let count = if setting.quick { 10_000 } else { 50_000 };
    let mail = Arc::new(Maildir::make(&setting.scratch, count)?);
    let mut plan = Plan::default();
    let ring = |depth| {
        let mail = mail.clone();
        move |backend: &Arc<dyn Backend>, turn: &Turn| {
            passes(turn, || on_ring(backend, &mail, depth))
        }
    };
    plan.both("-qd32", ring(32));
    plan.both("-qd128", ring(128));
    for locking in ["split", "coarse"] {
        let policy = format!("inline=never,wq_locking={locking}");
        plan.user(&format!("user-wq-{locking}"), &policy, ring(32));
    }
    for count in [1, 2] {
        let mail = mail.clone();
        let work = move |turn: &Turn| passes(turn, || on_threads(&mail, count));
        plan.add(Arm::new(&format!("threads-{count}"), Kind::Limit, work));
    }
    on_tokio::add(&mut plan, &mail);
    Ok(plan)
}

/// Reads all files, and again until the time is up: one pass alone may be a matter of luck.
fn passes(turn: &Turn, mut pass: impl FnMut() -> Result<Sample>) -> Result<Sample> {
    let start = Instant::now();
    let mut all = pass()?;
    while start.elapsed() < turn.slice {
        all.join(pass()?)?;
    }
    Ok(all)
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Open,
    Stat,
    Read,
    Close,
}

/// A file in flight.
struct Slot {
    step: Step,
    file: usize,
    fd: i32,
    began: Instant,
    stat: libc::statx,
    buf: Vec<u8>,
}

struct Reader<'a> {
    mail: &'a Maildir,
    slots: Vec<Slot>,
    next: usize,
    done: usize,
    bytes: u64,
    latency: Histogram<u64>,
}

const EMPTY_PATH: &CStr = c"";

impl Reader<'_> {
    fn new(mail: &Maildir, depth: usize) -> Reader<'_> {
        let slot = |_| Slot {
            step: Step::Close,
            file: 0,
            fd: -1,
            began: Instant::now(),
            // SAFETY: all-zero is a valid statx.
            stat: unsafe { std::mem::zeroed() },
            buf: vec![0; SIZE_MAX as usize],
        };
        let slots = (0..depth).map(slot).collect();
        Reader { mail, slots, next: 0, done: 0, bytes: 0, latency: latencies() }
    }

    /// The first request of the next file, if there is one.
    fn begin(&mut self, index: usize) -> Option<Sqe> {
        let path = self.mail.paths.get(self.next)?;
        let slot = &mut self.slots[index];
        (slot.step, slot.file, slot.began) = (Step::Open, self.next, Instant::now());
        self.next += 1;
        Some(Sqe {
            opcode: op::OPENAT,
            fd: libc::AT_FDCWD,
            addr: path.as_ptr() as u64,
            op_flags: (libc::O_RDONLY | libc::O_CLOEXEC) as u32,
            user_data: index as u64,
            ..Sqe::default()
        })
    }

    /// The request that follows a completion.
    fn advance(&mut self, cqe: Cqe) -> Result<Option<Sqe>> {
        let index = cqe.user_data as usize;
        let slot = &mut self.slots[index];
        if cqe.res < 0 {
            let path = self.mail.paths[slot.file].to_string_lossy().into_owned();
            return Err(Error::errno(path, -cqe.res));
        }
        let base = Sqe { fd: slot.fd, user_data: index as u64, ..Sqe::default() };
        match slot.step {
            Step::Open => {
                (slot.step, slot.fd) = (Step::Stat, cqe.res);
                Ok(Some(Sqe {
                    opcode: op::STATX,
                    fd: slot.fd,
                    addr: EMPTY_PATH.as_ptr() as u64,
                    len: libc::STATX_BASIC_STATS,
                    off: &raw mut slot.stat as u64,
                    op_flags: libc::AT_EMPTY_PATH as u32,
                    ..base
                }))
            }
            Step::Stat => {
                slot.step = Step::Read;
                let (addr, len) = (slot.buf.as_mut_ptr() as u64, slot.stat.stx_size as u32);
                Ok(Some(Sqe { opcode: op::READ, addr, len, ..base }))
            }
            Step::Read => {
                slot.step = Step::Close;
                self.bytes += cqe.res as u64;
                Ok(Some(Sqe { opcode: op::CLOSE, ..base }))
            }
            Step::Close => {
                self.done += 1;
                let _ = self.latency.record(slot.began.elapsed().as_nanos() as u64);
                Ok(self.begin(index))
            }
        }
    }
}

fn on_ring(backend: &Arc<dyn Backend>, mail: &Maildir, depth: u32) -> Result<Sample> {
    // Before the ring, which ends first and with it what is in flight.
    let mut reader = Reader::new(mail, depth as usize);
    let mut ring = Ring::new(backend, depth, MODERN)?;
    let mut cqes = Vec::with_capacity(2 * depth as usize);
    let (start, before) = (Instant::now(), Usage::process());
    (0..depth as usize).filter_map(|i| reader.begin(i)).for_each(|sqe| ring.push(sqe));
    while reader.done < mail.paths.len() {
        ring.submit_and_wait(1)?;
        ring.reap(&mut cqes);
        for cqe in cqes.drain(..) {
            if let Some(sqe) = reader.advance(cqe)? {
                ring.push(sqe);
            }
        }
    }
    let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
    mail.check(reader.bytes)?;
    Ok(Sample::rate(reader.done as u64, elapsed, usage).with_latency(reader.latency))
}

fn on_threads(mail: &Maildir, count: usize) -> Result<Sample> {
    let share = mail.paths.len().div_ceil(count);
    let (start, before) = (Instant::now(), Usage::process());
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            mail.paths.chunks(share).map(|part| scope.spawn(|| plain(part))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::new("panic")))).collect()
    });
    let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
    let (mut bytes, mut latency) = (0, latencies());
    for result in results {
        let (read, one) = result?;
        bytes += read;
        latency.add(one).map_err(|e| Error::new(e.to_string()))?;
    }
    mail.check(bytes)?;
    Ok(Sample::rate(mail.paths.len() as u64, elapsed, usage).with_latency(latency))
}

/// One thread's part with plain calls.
fn plain(paths: &[CString]) -> Result<(u64, Histogram<u64>)> {
    let (mut bytes, mut latency) = (0, latencies());
    let mut buf = vec![0u8; SIZE_MAX as usize];
    for path in paths {
        let began = Instant::now();
        bytes += read_file(path, &mut buf)?;
        let _ = latency.record(began.elapsed().as_nanos() as u64);
    }
    Ok((bytes, latency))
}

/// Opens, examines, reads and closes a file; its bytes.
fn read_file(path: &CStr, buf: &mut [u8]) -> Result<u64> {
    let failed = || Error::os(path.to_string_lossy());
    // SAFETY: all-zero is a valid statx.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string; statx fills a local; read fills as much as the buffer holds.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(failed());
        }
        let (flags, mask) = (libc::AT_EMPTY_PATH, libc::STATX_BASIC_STATS);
        if libc::statx(fd, EMPTY_PATH.as_ptr(), flags, mask, &mut stat) < 0 {
            return Err(failed());
        }
        let len = (stat.stx_size as usize).min(buf.len());
        let read = libc::pread(fd, buf.as_mut_ptr().cast(), len, 0);
        if read < 0 {
            return Err(failed());
        }
        libc::close(fd);
        Ok(read as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use crate::scratch::Scratch;

    #[test]
    fn both_ways_read_every_byte() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let mail = Maildir::make(scratch.path(), 300).unwrap();
        let user: Arc<dyn Backend> = Arc::new(User::new("").unwrap());
        let sample = on_ring(&user, &mail, 32).unwrap();
        assert_eq!((sample.ops, sample.latency.unwrap().len()), (300, 300));
        assert_eq!(on_threads(&mail, 2).unwrap().ops, 300);
        let more = Maildir { bytes: mail.bytes + 1, paths: mail.paths };
        assert!(on_ring(&user, &more, 4).is_err());
    }
}
