//! What the library knows about its process.
//!
//! Two kinds of state. Fixed once by the constructor and the same in forked children: whether we
//! answer at all ([`active`]) and the descriptor layout ([`layout`]). Belonging to one process:
//! the engine and the counters, in a page that is full of zeroes in a forked child, so that the
//! child starts without an engine even if the C library's fork was not used.

use crate::sys::{self, SignalsOff};
use crate::tls;
use anyring_engine::{Caller, Config, Engine, FdLayout, Policy};
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::*,
};

static ACTIVE: AtomicBool = AtomicBool::new(false);
static POLICY: AtomicPtr<Policy> = AtomicPtr::new(ptr::null_mut());
static RING_BASE: AtomicI32 = AtomicI32::new(i32::MAX);
static RING_END: AtomicI32 = AtomicI32::new(i32::MAX);
static PRIVATE_MIN: AtomicI32 = AtomicI32::new(i32::MAX);

/// Whether the user-space engine answers in this process and its children.
pub fn active() -> bool {
    ACTIVE.load(Relaxed)
}

/// From now on the engine answers.
pub fn activate(layout: FdLayout, policy: Policy) {
    set_layout(layout);
    POLICY.store(Box::into_raw(Box::new(policy)), Release);
    ACTIVE.store(true, Release);
}

/// The policy this process was started with.
fn policy() -> Policy {
    // SAFETY: null, or a box that is never freed.
    unsafe { POLICY.load(Acquire).as_ref() }.copied().unwrap_or_default()
}

/// Fixes where descriptors go.
pub fn set_layout(layout: FdLayout) {
    RING_BASE.store(layout.ring_base, Relaxed);
    RING_END.store(layout.ring_end, Relaxed);
    PRIVATE_MIN.store(layout.private_min, Relaxed);
}

/// Where descriptors go.
pub fn layout() -> FdLayout {
    FdLayout {
        ring_base: RING_BASE.load(Relaxed),
        ring_end: RING_END.load(Relaxed),
        private_min: PRIVATE_MIN.load(Relaxed),
    }
}

/// Whether `fd` is where ring descriptors are.
pub fn in_ring_range(fd: i32) -> bool {
    fd >= RING_BASE.load(Relaxed) && fd < RING_END.load(Relaxed)
}

/// As [`in_ring_range`], or a ring that dup2 put elsewhere.
pub fn may_be_ring(fd: i32) -> bool {
    in_ring_range(fd) || (process().low_rings.load(Relaxed) && is_ring_elsewhere(fd))
}

#[cold]
fn is_ring_elsewhere(fd: i32) -> bool {
    let _signals = SignalsOff::new();
    process().own_engine().is_some_and(|engine| engine.is_ring(fd))
}

/// The state of one process. All zeroes: no engine yet.
pub struct Process {
    engine: AtomicPtr<Engine>,
    /// The process the engine belongs to: a child of vfork sees the same memory.
    pid: AtomicI32,
    /// Differs between a process and its forked children; 0 before the first engine.
    epoch: AtomicU64,
    /// Calls that arrived by SIGSYS.
    pub traps: AtomicU64,
    /// io_uring calls that arrived through a function of ours.
    pub direct: AtomicU64,
    /// The program put a ring at a number outside the range, where the filter does not look.
    pub low_rings: AtomicBool,
    /// The line of statistics was written.
    pub reported: AtomicBool,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
/// Before the page is mapped, and if there is no memory for it.
static NO_PROCESS: Process = Process {
    engine: AtomicPtr::new(ptr::null_mut()),
    pid: AtomicI32::new(0),
    epoch: AtomicU64::new(0),
    traps: AtomicU64::new(0),
    direct: AtomicU64::new(0),
    low_rings: AtomicBool::new(false),
    reported: AtomicBool::new(false),
};
/// Survives fork: the engine that was made last, and for which process. A child finds its
/// parent's here.
static LAST: AtomicPtr<Engine> = AtomicPtr::new(ptr::null_mut());
static LAST_PID: AtomicI32 = AtomicI32::new(0);
static EPOCHS: AtomicU64 = AtomicU64::new(0);
/// The program's own wish for its soft limit, plus one; see [`crate::limits`].
pub static NOFILE_WISH: AtomicUsize = AtomicUsize::new(0);

/// Maps the page. Called by the constructor.
pub fn map_process() {
    let page = sys::map_wiped_on_fork(size_of::<Process>()).cast::<Process>();
    PROCESS.store(page, Release);
}

/// The state of this process.
pub fn process() -> &'static Process {
    let page = PROCESS.load(Acquire);
    // SAFETY: null, or mapped for good; any bytes that were written are of this type.
    unsafe { page.as_ref() }.unwrap_or(&NO_PROCESS)
}

impl Process {
    /// The engine, if one was made.
    pub fn engine(&self) -> Option<&'static Engine> {
        // SAFETY: null, or a box that is never freed.
        unsafe { self.engine.load(Acquire).as_ref() }
    }

    /// The engine, if it is this process's: `None` in a child of vfork.
    pub fn own_engine(&self) -> Option<&'static Engine> {
        self.engine().filter(|_| self.pid.load(Relaxed) == sys::getpid())
    }

    /// Counts a call that goes to the kernel, since it works here.
    pub fn count_kernel_call(&self) {
        if self.pid.load(Relaxed) == 0 {
            self.pid.store(sys::getpid(), Relaxed);
        }
        self.direct.fetch_add(1, Relaxed);
    }

    /// Whether this process made such calls: `false` in a child of vfork.
    pub fn used_the_kernel(&self) -> bool {
        !active() && self.direct.load(Relaxed) != 0 && self.pid.load(Relaxed) == sys::getpid()
    }

    /// The engine, made at the first call. Needs the program's signals blocked.
    pub fn engine_or_new(&self) -> &'static Engine {
        match self.engine() {
            Some(engine) => engine,
            None => self.make_engine(),
        }
    }

    #[cold]
    fn make_engine(&self) -> &'static Engine {
        forget_parent();
        let config = Config {
            fds: layout(),
            policy: policy(),
            raw_threads: true,
            interrupt_signal: libc::SIGSYS,
        };
        let new = Box::into_raw(Box::new(Engine::new(config)));
        self.pid.store(sys::getpid(), Relaxed);
        self.epoch.store(EPOCHS.fetch_add(1, Relaxed) + 1, Relaxed);
        match self.engine.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => {
                LAST.store(new, Release);
                LAST_PID.store(self.pid.load(Relaxed), Release);
                // SAFETY: never freed.
                unsafe { &*new }
            }
            Err(first) => {
                // SAFETY: ours, and nobody has seen it; `first` is never freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*first
                }
            }
        }
    }
}

/// The parent's engine, in a forked child that has not forgotten it yet.
fn parents_engine() -> Option<&'static Engine> {
    let last = LAST.load(Acquire);
    let foreign = !last.is_null() && LAST_PID.load(Acquire) != sys::getpid();
    // SAFETY: not null, and engines are never freed.
    foreign.then(|| unsafe { &*last })
}

/// In a forked child: closes what was inherited from the parent's engine.
pub fn forget_parent() {
    if process().engine().is_some() {
        return; // a child of vfork: the memory is the parent's
    }
    if let Some(engine) = parents_engine() {
        engine.forget_in_child();
        LAST.store(ptr::null_mut(), Release);
    }
}

/// The engine that raised the limits this process lives under: its own, or its parent's.
pub fn engine_of_limits() -> Option<&'static Engine> {
    process().engine().or_else(parents_engine)
}

/// In the child of fork(3).
pub fn after_fork() {
    let page = PROCESS.load(Acquire);
    if !page.is_null() {
        // SAFETY: the child has one thread. Only kernels before 4.14 leave anything to do here.
        unsafe { ptr::write_bytes(page, 0, 1) };
    }
    if let Some(engine) = parents_engine() {
        crate::limits::settle_in_child(engine);
    }
    forget_parent();
}

/// Describes the calling thread to the engine. `signals` are off.
pub fn caller(signals: &SignalsOff) -> Caller {
    Caller { tid: announce_thread(), mask: Some(signals.mask) }
}

/// The calling thread's id; its end will be reported to the engine.
fn announce_thread() -> i32 {
    let process = process();
    let thread = tls::current();
    // SAFETY: the thread's own variable, and signal handlers that could see it half written
    // find the epoch wrong and write the same values.
    let thread = unsafe { &mut *thread };
    let epoch = process.epoch.load(Relaxed);
    if thread.epoch != epoch || thread.tid == 0 {
        thread.tid = sys::gettid();
        thread.epoch = epoch;
    }
    if !thread.announced {
        thread.announced = crate::exit::announce_thread(thread.tid);
    }
    thread.tid
}
