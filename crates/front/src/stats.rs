//! The line of statistics that a process appends to ANYRING_STATS when it ends.
//!
//! The file is opened at start, since a program may change its user or its root later; the
//! descriptor is kept just below the engine's, which a forked child closes. If it was closed all the same, or its number is
//! another file's by now, the file is opened again. Of a process's lines the last one counts.
//!
//! The state is one per linked copy of this module. [`open`] and [`remember`] run before any other thread
//! asks; what they store is published by PATH and FD. Only this module allocates.

use anyring_engine::Stats;
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering::Relaxed, Ordering::*};

/// Makes a system call of at most five arguments; a negative error number is returned as it is.
///
/// # Safety
/// As the call demands of its arguments.
pub type Call = unsafe fn(nr: i64, args: [usize; 5]) -> isize;

static FD: AtomicI32 = AtomicI32::new(-1);
static INODE: AtomicU64 = AtomicU64::new(0);
static DEVICE: AtomicU64 = AtomicU64::new(0);
/// The path, with its terminator.
static PATH: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// How far below the engine's descriptors ours is looked for.
const ROOM: i32 = 16;

/// Opens the file; false if that fails. `private_min` is where the engine's descriptors begin.
pub fn open(call: Call, path: &[u8], private_min: i32) -> bool {
    remember(path);
    let low = open_file(call);
    if low < 0 {
        return false;
    }
    let high = move_up(call, low, private_min - ROOM);
    let stat = stat_of(call, high);
    INODE.store(stat.st_ino, Relaxed);
    DEVICE.store(stat.st_dev, Relaxed);
    FD.store(high, Release);
    true
}

/// Remembers the path only: where the kernel answers, few processes have a line to write.
pub fn remember(path: &[u8]) {
    let mut copy = path.to_vec();
    copy.push(0);
    PATH.store(Vec::leak(copy).as_mut_ptr(), Release);
}

/// Whether there is a file to write to.
pub fn wanted() -> bool {
    !PATH.load(Relaxed).is_null()
}

/// The descriptor of the file, if this process keeps one.
pub fn descriptor() -> Option<u32> {
    u32::try_from(FD.load(Relaxed)).ok()
}

/// Whether `fd` is the descriptor of the file, which the program does not know of.
pub fn owns(fd: i32) -> bool {
    fd >= 0 && fd == FD.load(Relaxed)
}

fn open_file(call: Call) -> i32 {
    let path = PATH.load(Acquire);
    if path.is_null() {
        return -1;
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: the path has its terminator.
    unsafe { call(libc::SYS_openat, at_cwd(path as usize, flags, 0o666)) as i32 }
}

fn at_cwd(path: usize, flags: libc::c_int, mode: usize) -> [usize; 5] {
    [libc::AT_FDCWD as usize, path, flags as usize, mode, 0]
}

/// Moves `low` to a number at or above `min`, for which the soft limit is raised for a moment.
fn move_up(call: Call, low: i32, min: i32) -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let at = &raw mut limit as usize;
    let nofile = libc::RLIMIT_NOFILE as usize;
    // SAFETY: the limits live across the calls; the descriptor is ours.
    unsafe {
        call(libc::SYS_prlimit64, [0, nofile, 0, at, 0]);
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        call(libc::SYS_prlimit64, [0, nofile, &raw const raised as usize, 0, 0]);
        let dup = [low as usize, libc::F_DUPFD_CLOEXEC as usize, min as usize, 0, 0];
        let high = call(libc::SYS_fcntl, dup) as i32;
        call(libc::SYS_prlimit64, [0, nofile, at, 0, 0]);
        if high < 0 {
            return low;
        }
        call(libc::SYS_close, [low as usize, 0, 0, 0, 0]);
        high
    }
}

fn stat_of(call: Call, fd: i32) -> libc::stat {
    // SAFETY: all zeroes is a valid `stat`, and it lives across the call.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0]);
        stat
    }
}

/// What the line says beside the engine's counters.
#[derive(Clone, Copy)]
pub struct Process {
    /// `user` or `kernel`.
    pub engine: &'static str,
    /// Calls that arrived by SIGSYS, and through a function of the C library, where that is counted.
    pub calls: Option<[u64; 2]>,
}

/// Writes the line.
pub fn write_line(call: Call, process: Process, stats: &Stats) {
    let mut line = String::with_capacity(4096);
    // SAFETY: takes no arguments.
    let pid = unsafe { call(libc::SYS_getpid, [0; 5]) };
    format(&mut line, pid, &comm(call), process, stats);
    let kept = FD.load(Relaxed);
    let stat = stat_of(call, kept);
    if kept >= 0 && stat.st_ino == INODE.load(Relaxed) && stat.st_dev == DEVICE.load(Relaxed) {
        write(call, kept, &line);
        return;
    }
    let fd = open_file(call);
    if fd >= 0 {
        write(call, fd, &line);
        // SAFETY: the descriptor is ours.
        unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0]) };
    }
}

/// With one call, so that lines of several processes do not mix.
fn write(call: Call, fd: i32, line: &str) {
    // SAFETY: the line is readable for its length.
    unsafe { call(libc::SYS_write, [fd as usize, line.as_ptr() as usize, line.len(), 0, 0]) };
}

/// The process's name, as `ps` shows it.
fn comm(call: Call) -> Vec<u8> {
    let mut buf = [0u8; 64];
    let path = c"/proc/self/comm".as_ptr() as usize;
    let mut len = 0;
    // SAFETY: the path is a C string, the buffer is writable, and the descriptor is ours.
    unsafe {
        let fd = call(libc::SYS_openat, at_cwd(path, libc::O_RDONLY | libc::O_CLOEXEC, 0));
        if fd >= 0 {
            let a = [fd as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0];
            len = call(libc::SYS_read, a).max(0) as usize;
            call(libc::SYS_close, [fd as usize, 0, 0, 0, 0]);
        }
    }
    let name = buf[..len].strip_suffix(b"\n").unwrap_or(&buf[..len]);
    name.to_vec()
}

fn format(line: &mut String, pid: isize, comm: &[u8], process: Process, stats: &Stats) {
    let _ = write!(line, "{{\"pid\":{pid},\"comm\":\"");
    for &byte in comm {
        match byte {
            b'"' | b'\\' => line.extend(['\\', byte as char]),
            b' '..=b'~' => line.push(byte as char),
            _ => {
                let _ = write!(line, "\\u{byte:04x}");
            }
        }
    }
    let _ = write!(line, "\",\"engine\":\"{}\"", process.engine);
    if let Some([traps, direct]) = process.calls {
        let _ = write!(line, ",\"traps\":{traps},\"direct\":{direct}");
    }
    for (name, value) in counters(stats) {
        let _ = write!(line, ",\"{name}\":{value}");
    }
    line.push_str(",\"ops\":{");
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

/// The engine's counters by their names in the line.
fn counters(stats: &Stats) -> [(&'static str, u64); 13] {
    [
        ("rings", stats.rings),
        ("overflow", stats.overflow),
        ("wakeups", stats.wakeups),
        ("workers_max", stats.workers_max),
        ("lock_acquisitions", stats.lock_acquisitions),
        ("wq_lock_acquisitions", stats.wq_lock_acquisitions),
        ("wq_wakeups", stats.wq_wakeups),
        ("wq_lingers_found", stats.wq_lingers[0]),
        ("wq_lingers_empty", stats.wq_lingers[1]),
        ("wq_returned", stats.wq_returned),
        ("wq_return_batches", stats.wq_return_batches),
        ("wq_held_max_ns", stats.wq_held_max_ns),
        ("aio_refused", stats.aio_refused),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyring_engine::OpStats;

    fn stats() -> Stats {
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
        Stats {
            rings: 1,
            ops: vec![read, nop],
            overflow: 2,
            wakeups: 3,
            workers_max: 4,
            lock_acquisitions: 9,
            wq_lock_acquisitions: 6,
            wq_wakeups: 5,
            aio_refused: 10,
            ..Stats::default()
        }
    }

    #[test]
    fn one_line_of_json() {
        let mut line = String::new();
        let process = Process { engine: "user", calls: Some([7, 8]) };
        format(&mut line, 77, b"a\"b\\c\n\xff", process, &stats());
        let counts =
            "{\"submitted\":5,\"posted\":4,\"inline\":3,\"polled\":2,\"worker\":1,\"aio\":0}";
        assert_eq!(
            line,
            format!(
                "{{\"pid\":77,\"comm\":\"a\\\"b\\\\c\\u000a\\u00ff\",\"engine\":\"user\",\
                 \"traps\":7,\"direct\":8,\"rings\":1,\"overflow\":2,\"wakeups\":3,\
                 \"workers_max\":4,\"lock_acquisitions\":9,\"wq_lock_acquisitions\":6,\
                 \"wq_wakeups\":5,\"wq_lingers_found\":0,\"wq_lingers_empty\":0,\
                 \"wq_returned\":0,\"wq_return_batches\":0,\"wq_held_max_ns\":0,\
                 \"aio_refused\":10,\"ops\":{{\"READ\":{counts},\"NOP\":{counts}}}}}\n"
            )
        );
    }

    #[test]
    fn calls_are_left_out_where_nobody_counts_them() {
        let mut line = String::new();
        format(&mut line, 1, b"x", Process { engine: "user", calls: None }, &Stats::default());
        assert!(line.starts_with("{\"pid\":1,\"comm\":\"x\",\"engine\":\"user\",\"rings\":0,"));
        assert!(line.ends_with("\"ops\":{}}\n"));
    }
}
