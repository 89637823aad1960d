//! The engine in this process.
//!
//! One engine, made with the first ring. A forked child starts without one; its use of a ring of
//! its parent's is answered with EEXIST. The engine needs three things of its process: a signal
//! that interrupts its workers, word of threads that end, and word of a fork.

use super::report;
use anyring_engine::{Caller, Config, Engine, Errno, Handle, Policy};
use anyring_front::{layout, settings::POLICY};
use anyring_uapi::Params;
use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::Mutex;

/// The engine of this process; null before the first ring, and in a forked child. Never freed.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());
/// How many forks lie between this process and the one that the library was loaded into.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// The signal that interrupts workers; 0 before there is one. Its handler survives a fork.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

/// The engine, if a ring was made.
#[inline]
pub(super) fn existing() -> Option<&'static Engine> {
    // SAFETY: null, or a box that is never freed.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// The engine, for a call on a ring that exists. A child of fork makes its own, which knows that
/// the ring is its parent's.
#[inline]
fn engine() -> io::Result<&'static Engine> {
    match existing() {
        Some(engine) => Ok(engine),
        None => make(),
    }
}

#[cold]
fn make() -> io::Result<&'static Engine> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(engine) = existing() {
        return Ok(engine);
    }
    let fds = layout::choose(hard_limit());
    report::prepare(fds.private_min);
    let engine = Box::leak(Box::new(Engine::new(Config {
        fds,
        policy: policy()?,
        raw_threads: false,
        interrupt_signal: signal()?,
    })));
    ENGINE.store(engine, Ordering::Release);
    Ok(engine)
}

fn hard_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 1024 };
    // SAFETY: `limit` is written.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_max
}

fn policy() -> io::Result<Policy> {
    let list = std::env::var_os(OsStr::from_bytes(POLICY.to_bytes())).unwrap_or_default();
    Policy::parse(list.as_bytes()).map_err(|item| {
        let item = String::from_utf8_lossy(item);
        let text = format!("ANYRING_POLICY: '{item}' is not understood: use {}", Policy::HELP);
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

/// The signal for workers, with its handler, and the hook for forks: once per process.
fn signal() -> io::Result<i32> {
    let known = SIGNAL.load(Ordering::Relaxed);
    if known != 0 {
        return Ok(known);
    }
    let signal = free_signal().ok_or_else(|| {
        io::Error::other(
            "no real-time signal is left for the io_uring engine: free one above SIGRTMIN",
        )
    })?;
    // SAFETY: the handler only touches the registers it is given; the action is fully set. The
    // hook does nothing that a child of a program with threads may not do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupted as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        if libc::sigaction(signal, &action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::pthread_atfork(None, None, Some(forked)) {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
    SIGNAL.store(signal, Ordering::Relaxed);
    Ok(signal)
}

/// The highest real-time signal that nobody handles.
fn free_signal() -> Option<i32> {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|&signal| {
        // SAFETY: only reads the action.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_DFL
        }
    })
}

/// Without SA_RESTART: what it interrupts fails with EINTR.
extern "C" fn interrupted(
    _signal: libc::c_int,
    _info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: the handler's third argument.
    unsafe { anyring_engine::on_interrupt(ucontext) }
}

/// In the child of a fork: the engine and its threads are the parent's.
extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let parents = ENGINE.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null, or a box that is never freed.
    if let Some(parents) = unsafe { parents.as_ref() } {
        parents.forget_in_child();
    }
}

/// What is known about a thread, and what happens when it ends.
struct Thread {
    tid: Cell<i32>,
    /// The value of [`FORKS`] for which `tid` holds, plus one.
    era: Cell<u32>,
}

thread_local! {
    static THREAD: Thread = const { Thread { tid: Cell::new(0), era: Cell::new(0) } };
}

impl Thread {
    #[inline]
    fn tid(&self) -> i32 {
        let era = FORKS.load(Ordering::Relaxed) + 1;
        if self.era.get() != era {
            self.tid.set(gettid());
            self.era.set(era);
        }
        self.tid.get()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.era.get() == FORKS.load(Ordering::Relaxed) + 1 {
            if let Some(engine) = existing() {
                engine.thread_exit(self.tid.get());
            }
        }
    }
}

fn gettid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The calling thread. Signals are not blocked, so the engine finds the mask as it is.
#[inline]
fn caller() -> Caller {
    Caller { tid: THREAD.try_with(Thread::tid).unwrap_or_else(|_| gettid()), mask: None }
}

pub(super) fn setup(entries: u32, params: &mut Params) -> io::Result<RawFd> {
    let at = ptr::from_mut(params) as usize;
    engine()?.setup(&caller(), entries, at).map(|fd| fd as RawFd).map_err(error)
}

/// A ring at hand, and the engine it is of: in a forked child that is not the process's own.
pub(super) struct Ring {
    engine: *const Engine,
    handle: Handle,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

// SAFETY: the engine is only compared, never reached through the pointer.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// `None` if `fd` is not a ring of this process.
    pub(super) fn of(fd: RawFd) -> Option<Ring> {
        let engine = existing()?;
        Some(Ring { engine, handle: engine.handle(fd).ok()? })
    }

    /// `io_uring_enter(2)`; `call` without the descriptor.
    #[inline]
    pub(super) fn enter(
        &self,
        fd: RawFd,
        call: [u32; 3],
        arg: (usize, usize),
    ) -> io::Result<usize> {
        let [to_submit, min_complete, flags] = call;
        if !ptr::eq(ENGINE.load(Ordering::Relaxed), self.engine) {
            return enter([fd as u32, to_submit, min_complete, flags], arg);
        }
        let n = self.handle.enter(&caller(), to_submit, min_complete, flags, arg.0, arg.1);
        n.map(|n| n as usize).map_err(error)
    }
}

#[inline]
pub(super) fn enter(call: [u32; 4], arg: (usize, usize)) -> io::Result<usize> {
    let [fd, to_submit, min_complete, flags] = call;
    let (arg, argsz) = arg;
    let submitted = engine()?.enter(&caller(), fd, to_submit, min_complete, flags, arg, argsz);
    submitted.map(|n| n as usize).map_err(error)
}

pub(super) fn register(fd: u32, op: u32, arg: usize, nr: u32) -> io::Result<u32> {
    engine()?.register(&caller(), fd, op, arg, nr).map_err(error)
}

pub(super) fn map(fd: RawFd, len: usize, prot: i32, flags: i32, offset: u64) -> io::Result<usize> {
    engine()?.mmap(fd, 0, len, prot as u32, flags as u32, offset).map_err(error)
}

pub(super) fn watch(fd: RawFd) {
    if let Some(engine) = existing() {
        engine.watch(fd);
    }
}

pub(super) fn emptied(fd: RawFd) {
    if let Some(engine) = existing() {
        engine.completions_taken(fd);
    }
}

/// Ends the ring. In a forked child only its copy of the descriptor goes.
pub(super) fn close(fd: RawFd) {
    if existing().and_then(|engine| engine.close(fd)).is_none() {
        // SAFETY: ours.
        unsafe { libc::close(fd) };
    }
}
