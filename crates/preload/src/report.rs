//! The line of statistics a process appends to ANYRING_STATS when it ends.
//!
//! The file is opened at start, since a program may change its user or its root later; the
//! descriptor is kept just below the engine's, which a forked child closes. If it was closed all
//! the same, the file is opened again. A process that made no io_uring call writes nothing. One that executes another
//! program writes before that; if exec then fails it writes again at its end, with the sums
//! of both: of a process's lines the last one counts.

use crate::state;
use crate::sys::{self, SignalsOff};
use anyring_engine::Stats;
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering::Relaxed, Ordering::*};

static FD: AtomicI32 = AtomicI32::new(-1);
static INODE: AtomicU64 = AtomicU64::new(0);
static DEVICE: AtomicU64 = AtomicU64::new(0);
/// The path, with its terminator.
static PATH: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// How far below the engine's descriptors ours is looked for.
const ROOM: i32 = 16;

/// Opens the file. Called by the constructor.
pub fn open(path: Option<&[u8]>, private_min: i32) {
    let Some(path) = path.filter(|path| !path.is_empty()) else { return };
    remember(path);
    let low = open_file();
    if low < 0 {
        sys::complain(&[b"cannot write statistics to '", path, b"'"]);
        return;
    }
    let high = move_up(low, private_min - ROOM);
    let stat = stat_of(high);
    INODE.store(stat.st_ino, Relaxed);
    DEVICE.store(stat.st_dev, Relaxed);
    FD.store(high, Release);
}

/// Remembers the path only: where the kernel answers, few processes have a line to write.
pub fn remember(path: &[u8]) {
    let mut copy = path.to_vec();
    copy.push(0);
    PATH.store(Vec::leak(copy).as_mut_ptr(), Release);
}

fn open_file() -> i32 {
    let path = PATH.load(Acquire);
    if path.is_null() {
        return -1;
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let a = [libc::AT_FDCWD as usize, path as usize, flags as usize, 0o666, 0, 0];
    // SAFETY: the path has its terminator.
    unsafe { sys::call6(libc::SYS_openat, a) as i32 }
}

/// Moves `low` to a number at or above `min`, for which the soft limit is raised for a moment.
fn move_up(low: i32, min: i32) -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let at = &raw mut limit as usize;
    let nofile = libc::RLIMIT_NOFILE as usize;
    // SAFETY: the limits live across the calls; the descriptor is ours.
    unsafe {
        sys::call6(libc::SYS_prlimit64, [0, nofile, 0, at, 0, 0]);
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        sys::call6(libc::SYS_prlimit64, [0, nofile, &raw const raised as usize, 0, 0, 0]);
        let dup = [low as usize, libc::F_DUPFD_CLOEXEC as usize, min as usize, 0, 0];
        let high = sys::pass(libc::SYS_fcntl, dup) as i32;
        sys::call6(libc::SYS_prlimit64, [0, nofile, at, 0, 0, 0]);
        if high < 0 {
            return low;
        }
        sys::pass(libc::SYS_close, [low as usize, 0, 0, 0, 0]);
        high
    }
}

fn stat_of(fd: i32) -> libc::stat {
    // SAFETY: all zeroes is a valid `stat`, and it lives across the call.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        sys::call6(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]);
        stat
    }
}

/// The descriptor of the file, if this process keeps one.
pub fn descriptor() -> Option<u32> {
    u32::try_from(FD.load(Relaxed)).ok()
}

/// Whether `fd` is the descriptor of the file, which the program does not know of.
pub fn owns(fd: i32) -> bool {
    fd >= 0 && fd == FD.load(Relaxed)
}

/// Writes the line, once.
pub fn at_exit() {
    let process = state::process();
    if is_due() && !process.reported.swap(true, AcqRel) {
        write_line();
    }
}

/// Writes the line before exec.
pub fn before_exec() {
    if is_due() && !state::process().reported.load(Acquire) {
        write_line();
    }
}

/// A process that made an io_uring call, and is not a child of vfork.
fn is_due() -> bool {
    if PATH.load(Relaxed).is_null() {
        return false;
    }
    let process = state::process();
    process.own_engine().is_some() || process.used_the_kernel()
}

fn write_line() {
    let _signals = SignalsOff::new();
    let process = state::process();
    let (engine, stats) = match process.own_engine() {
        Some(engine) => ("user", engine.stats()),
        None => ("kernel", Stats::default()),
    };
    let traps = process.traps.load(Relaxed);
    let direct = process.direct.load(Relaxed);
    let mut line = String::with_capacity(4096);
    format(&mut line, &comm(), engine, [traps, direct], &stats);
    let kept = FD.load(Relaxed);
    let stat = stat_of(kept);
    if kept >= 0 && stat.st_ino == INODE.load(Relaxed) && stat.st_dev == DEVICE.load(Relaxed) {
        sys::write(kept, line.as_bytes());
        return;
    }
    let fd = open_file();
    if fd >= 0 {
        sys::write(fd, line.as_bytes());
        // SAFETY: the descriptor is ours.
        unsafe { sys::pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0]) };
    }
}

/// The process's name, as `ps` shows it.
fn comm() -> Vec<u8> {
    let mut buf = [0u8; 64];
    let path = c"/proc/self/comm".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let mut len = 0;
    // SAFETY: the path is a C string, the buffer is writable, and the descriptor is ours.
    unsafe {
        let fd = sys::call6(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]);
        if fd >= 0 {
            let a = [fd as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0, 0];
            len = sys::call6(libc::SYS_read, a).max(0) as usize;
            sys::pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0]);
        }
    }
    let name = buf[..len].strip_suffix(b"\n").unwrap_or(&buf[..len]);
    name.to_vec()
}

fn format(line: &mut String, comm: &[u8], engine: &str, [traps, direct]: [u64; 2], stats: &Stats) {
    let _ = write!(line, "{{\"pid\":{},\"comm\":\"", sys::getpid());
    for &byte in comm {
        match byte {
            b'"' | b'\\' => line.extend(['\\', byte as char]),
            b' '..=b'~' => line.push(byte as char),
            _ => {
                let _ = write!(line, "\\u{byte:04x}");
            }
        }
    }
    let Stats { rings, overflow, wakeups, workers_max, .. } = stats;
    let Stats { lock_acquisitions, wq_lock_acquisitions, wq_wakeups, aio_refused, .. } = stats;
    let _ = write!(
        line,
        "\",\"engine\":\"{engine}\",\"traps\":{traps},\"direct\":{direct},\"rings\":{rings},\
         \"overflow\":{overflow},\"wakeups\":{wakeups},\"workers_max\":{workers_max},\
         \"lock_acquisitions\":{lock_acquisitions},\
         \"wq_lock_acquisitions\":{wq_lock_acquisitions},\"wq_wakeups\":{wq_wakeups},\
         \"aio_refused\":{aio_refused},\"ops\":{{"
    );
    for (i, op) in stats.ops.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(
            line,
            "{comma}\"{}\":{{\"submitted\":{},\"posted\":{},\"inline\":{},\"polled\":{},\
             \"worker\":{},\"aio\":{}}}",
            op.name, op.submitted, op.posted, op.inline, op.polled, op.worker, op.aio
        );
    }
    line.push_str("}}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyring_engine::OpStats;

    #[test]
    fn one_line_of_json() {
        let read = OpStats {
            name: "READ",
            submitted: 5,
            posted: 4,
            inline: 3,
            polled: 2,
            worker: 1,
            aio: 0,
        };
        let nop = OpStats { name: "NOP", ..read.clone() };
        let stats = Stats {
            rings: 1,
            ops: vec![read, nop],
            overflow: 2,
            wakeups: 3,
            workers_max: 4,
            lock_acquisitions: 9,
            wq_lock_acquisitions: 6,
            wq_wakeups: 5,
            aio_refused: 10,
        };
        let mut line = String::new();
        format(&mut line, b"a\"b\\c\n\xff", "user", [7, 8], &stats);
        let counts =
            "{\"submitted\":5,\"posted\":4,\"inline\":3,\"polled\":2,\"worker\":1,\"aio\":0}";
        assert_eq!(
            line,
            format!(
                "{{\"pid\":{},\"comm\":\"a\\\"b\\\\c\\u000a\\u00ff\",\"engine\":\"user\",\
                 \"traps\":7,\"direct\":8,\"rings\":1,\"overflow\":2,\"wakeups\":3,\
                 \"workers_max\":4,\"lock_acquisitions\":9,\"wq_lock_acquisitions\":6,\
                 \"wq_wakeups\":5,\"aio_refused\":10,\"ops\":{{\"READ\":{counts},\"NOP\":{counts}}}}}\n",
                std::process::id()
            )
        );
    }
}
