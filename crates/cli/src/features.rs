//! Host features the engine makes use of, each tried in a forked child.

use crate::child::{attempt, check, Outcome};
use anyring_engine::{Errno, FdLayout};
use anyring_front::{filter, layout};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// One feature.
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// Its name in JSON.
    pub key: &'static str,
    /// What the engine does with it.
    pub use_for: &'static str,
    /// Whether it is there.
    pub outcome: Outcome,
}

/// Name, name in JSON, use, and the try.
type Probe = (&'static str, &'static str, &'static str, fn() -> Result<u32, Errno>);

const PROBES: [Probe; 7] = [
    ("RWF_NOWAIT", "rwf_nowait", "cached reads without a worker", rwf_nowait),
    ("RESOLVE_CACHED", "resolve_cached", "opens without a worker", resolve_cached),
    ("kernel AIO", "kernel_aio", "O_DIRECT without workers", kernel_aio),
    ("futex_waitv", "futex_waitv", "many futexes in one wait", futex_waitv),
    ("epoll_pwait2", "epoll_pwait2", "timeouts in nanoseconds", epoll_pwait2),
    ("process_vm_readv", "process_vm_readv", "bad pointers are errors", process_vm_readv),
    ("seccomp TRAP", "seccomp_trap", "answering inline system calls", seccomp_trap),
];

/// Tries all of them.
pub fn probe_all() -> Vec<Feature> {
    let one = |(name, key, use_for, probe)| Feature { name, key, use_for, outcome: attempt(probe) };
    PROBES.into_iter().map(one).collect()
}

fn rwf_nowait() -> Result<u32, Errno> {
    // SAFETY: the path is a C string, and the vector's buffer is writable.
    unsafe {
        let fd = check(libc::open(c"/proc/self/exe".as_ptr(), libc::O_RDONLY).into())? as i32;
        let mut buf = [0u8; 64];
        let iov = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        match check(libc::preadv2(fd, &iov, 1, 0, libc::RWF_NOWAIT) as i64) {
            // Not cached at the moment, but the flag is known.
            Err(Errno::AGAIN) => Ok(0),
            other => other,
        }
    }
}

fn resolve_cached() -> Result<u32, Errno> {
    const RESOLVE_CACHED: u64 = 0x20;
    let how = [(libc::O_RDONLY | libc::O_CLOEXEC) as u64, 0, RESOLVE_CACHED];
    let (at, size) = (libc::AT_FDCWD, size_of_val(&how));
    // SAFETY: the path is a C string, and `how` is as large as `struct open_how`.
    match check(unsafe { libc::syscall(libc::SYS_openat2, at, c"/".as_ptr(), &how, size) }) {
        Err(Errno::AGAIN) => Ok(0),
        other => other,
    }
}

fn kernel_aio() -> Result<u32, Errno> {
    let mut context = 0u64;
    // SAFETY: the context is writable.
    check(unsafe { libc::syscall(libc::SYS_io_setup, 8, &raw mut context) })
}

fn futex_waitv() -> Result<u32, Errno> {
    // No futexes are given: a kernel that knows the call finds the arguments invalid.
    // SAFETY: null pointers with a count of zero.
    match check(unsafe { libc::syscall(libc::SYS_futex_waitv, 0, 0, 0, 0, 0) }) {
        Err(Errno::INVAL) => Ok(0),
        other => other,
    }
}

fn epoll_pwait2() -> Result<u32, Errno> {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: one event is writable, the timeout is readable, and there is no mask.
    unsafe {
        let epoll = check(libc::epoll_create1(libc::EPOLL_CLOEXEC).into())?;
        let nr = libc::SYS_epoll_pwait2;
        check(libc::syscall(nr, epoll, &raw mut event, 1, &raw const now, 0, 0))
    }
}

fn process_vm_readv() -> Result<u32, Errno> {
    let from = 0x1234_5678u32;
    let mut to = 0u32;
    let local = libc::iovec { iov_base: (&raw mut to).cast(), iov_len: 4 };
    let remote = libc::iovec { iov_base: (&raw const from).cast_mut().cast(), iov_len: 4 };
    // SAFETY: both vectors name four bytes of this process.
    let copied =
        check(unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) } as i64)?;
    if to == from {
        Ok(copied)
    } else {
        Err(Errno::IO)
    }
}

static TRAPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_sigsys(_: libc::c_int) {
    TRAPPED.store(true, Relaxed);
}

/// Installs the filter that `run` needs, and is trapped by it.
pub fn seccomp_trap() -> Result<u32, Errno> {
    let FdLayout { ring_base, ring_end, .. } = layout::choose(1024);
    // SAFETY: the handler only stores; the call has no valid arguments.
    unsafe {
        libc::signal(libc::SIGSYS, on_sigsys as *const () as libc::sighandler_t);
        filter::install(&filter::program(ring_base as u32, ring_end as u32))?;
        libc::syscall(anyring_uapi::NR_ENTER, -1, 0, 0, 0, 0, 0);
    }
    if TRAPPED.load(Relaxed) {
        Ok(0)
    } else {
        Err(Errno::NOSYS)
    }
}

/// `fs.aio-nr` and `fs.aio-max-nr`.
pub fn aio_use() -> Option<(u64, u64)> {
    let read = |path| fs::read_to_string(path).ok()?.trim().parse().ok();
    Some((read("/proc/sys/fs/aio-nr")?, read("/proc/sys/fs/aio-max-nr")?))
}
