//! The engine: a complete io_uring in user space. See docs/ARCHITECTURE.md.
//!
//! Its surface is three calls that mirror the three system calls, and what a front
//! door needs to keep a ring's file descriptor alive: map, duplicate, close.
//! The engine knows nothing of seccomp, preloading or the command line.

pub mod aio;
pub mod bias;
pub mod compat;
pub mod engine;
pub mod errno;
pub mod fds;
pub mod futex;
pub mod host;
pub mod inline;
pub mod lazy;
pub mod limits;
pub mod ops;
pub mod park;
pub mod policy;
pub mod reactor;
pub mod register;
pub mod registered;
pub mod req;
pub mod ring;
pub mod sqpoll;
pub mod stack;
pub mod sync;
pub mod task;
pub mod wq;

mod setup_call;

pub use errno::Errno;
pub use policy::Policy;

use anyring_uapi::{enter as uapi_enter, setup as uapi_setup};
pub(crate) use engine::Inner;
use std::sync::Arc;

/// Where the engine keeps its file descriptors, all above what programs expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLayout {
    /// Ring descriptors are in `ring_base..ring_end`; a front door's seccomp filter
    /// traps calls that name a descriptor of this range.
    pub ring_base: i32,
    /// See `ring_base`.
    pub ring_end: i32,
    /// Everything else of the engine's is at or above this number.
    pub private_min: i32,
}

/// The extra sixth argument by which the engine's own close, dup, fcntl, read and epoll_ctl
/// calls on ring descriptors tell a seccomp filter to let them through.
pub const PASS_MAGIC: u32 = 0x616e_7972;

/// The calling thread, as the front door knows it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Thread id (`gettid(2)`).
    pub tid: i32,
    /// The signal mask the program had when it made the call, to be installed while the
    /// engine waits. `None` if the front door did not block signals.
    pub mask: Option<u64>,
}

/// What a front door decides once.
pub struct Config {
    /// Where file descriptors go.
    pub fds: FdLayout,
    /// What is switched on.
    pub policy: Policy,
    /// Workers are raw threads that never touch libc's thread-local storage: needed where calls arrive in a
    /// signal handler. Needs a global allocator that is not libc's.
    pub raw_threads: bool,
    /// The signal that interrupts a worker's blocking call. The front door installs a handler
    /// for it, without SA_RESTART, that calls [`on_interrupt`].
    pub interrupt_signal: i32,
}

/// To be called by the handler of `Config::interrupt_signal` with its third argument.
///
/// # Safety
/// `ucontext` is the pointer the kernel handed to the handler.
pub unsafe fn on_interrupt(ucontext: *mut core::ffi::c_void) {
    // SAFETY: handed on from the caller.
    unsafe { host::on_interrupt_fixup(ucontext) }
}

/// One process's engine.
pub struct Engine {
    inner: Arc<Inner>,
}

impl Engine {
    /// Makes an engine: no thread, no file descriptor.
    pub fn new(config: Config) -> Engine {
        Engine { inner: Arc::new(Inner::new(config)) }
    }

    /// An engine whose direct transfers go to a model of a device instead of kernel AIO, for experiments and tests. All its rings
    /// share the model.
    pub fn with_model(config: Config, model: Arc<aio::model::Model>) -> Engine {
        Engine { inner: Arc::new(Inner::new(config).with_model(model)) }
    }

    /// `io_uring_setup(2)`; `params` is the program's pointer.
    pub fn setup(&self, caller: &Caller, entries: u32, params: usize) -> Result<u32, Errno> {
        setup_call::setup(&self.inner, caller, entries, params)
    }

    /// `io_uring_enter(2)`.
    #[allow(clippy::too_many_arguments)]
    pub fn enter(
        &self,
        caller: &Caller,
        fd: u32,
        to_submit: u32,
        min_complete: u32,
        flags: u32,
        arg: usize,
        argsz: usize,
    ) -> Result<u32, Errno> {
        if flags & !uapi_enter::ALL_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        let ring = if flags & uapi_enter::REGISTERED_RING != 0 {
            register::ring_fds::find(&self.inner, caller, fd)?
        } else {
            self.inner.ring_or_error(fd as i32)?
        };
        let call = ring::enter::Enter { to_submit, min_complete, flags, arg, argsz };
        self.inner.enter(caller, &ring, fd as i32, &call)
    }

    /// A ring that is entered without looking its descriptor up each time; EBADF or EOPNOTSUPP as from enter.
    pub fn handle(&self, fd: i32) -> Result<Handle, Errno> {
        let ring = self.inner.ring_or_error(fd)?;
        Ok(Handle { engine: self.inner.clone(), ring, fd })
    }

    /// `io_uring_register(2)`.
    pub fn register(
        &self,
        caller: &Caller,
        fd: u32,
        opcode: u32,
        arg: usize,
        nr_args: u32,
    ) -> Result<u32, Errno> {
        register::register(&self.inner, caller, fd, opcode, arg, nr_args)
    }

    /// Whether `fd` is a ring of this process.
    pub fn is_ring(&self, fd: i32) -> bool {
        self.inner.ring(fd).is_some()
    }

    /// `mmap(2)` of a ring descriptor.
    pub fn mmap(
        &self,
        fd: i32,
        addr: usize,
        len: usize,
        prot: u32,
        flags: u32,
        offset: u64,
    ) -> Result<usize, Errno> {
        let ring = self.inner.ring_or_error(fd)?;
        match uapi_setup::pbuf_group(offset) {
            Some(group) => {
                let memory = ring.state.lock().groups.shared(group).ok_or(Errno::NOMEM)?;
                memory.map_again(addr, len, prot, flags)
            }
            None => ring.map(addr, len, prot, flags, offset),
        }
    }

    /// `close(2)`; `None` if `fd` is not a ring (then nothing was done).
    pub fn close(&self, fd: i32) -> Option<Result<u32, Errno>> {
        self.inner.remove_ring(fd)?;
        Some(host::fd::close(fd).map(|()| 0))
    }

    /// `dup(2)`, `dup2/dup3(2)` (with `to`), `fcntl(F_DUPFD…)`; `None` if `fd` is not a ring.
    pub fn dup(&self, fd: i32, to: Option<i32>, cloexec: bool) -> Option<Result<u32, Errno>> {
        let ring = self.inner.ring(fd)?;
        Some(self.dup_ring(&ring, fd, to, cloexec))
    }

    fn dup_ring(
        &self,
        ring: &Arc<ring::Ring>,
        fd: i32,
        to: Option<i32>,
        cloexec: bool,
    ) -> Result<u32, Errno> {
        let new = match to {
            Some(to) if to == fd => return Ok(fd as u32),
            Some(to) => {
                host::fd::dup3(fd, to, cloexec)?;
                self.inner.remove_ring(to);
                to
            }
            None => {
                let new = self.inner.fds.ring_number(fd)?.into_raw();
                if !cloexec {
                    host::fd::set_cloexec(new, false)?;
                }
                new
            }
        };
        ring.refs.fetch_add(1, core::sync::atomic::Ordering::AcqRel);
        self.inner.insert_ring(new, ring.clone());
        Ok(new as u32)
    }

    /// The program puts this ring into a poll set (poll, select, epoll_ctl): from now on the descriptor's
    /// readiness follows the completion queue. Does nothing if `fd` is not a ring.
    pub fn watch(&self, fd: i32) {
        if let Some(ring) = self.inner.watch(fd) {
            ring.look_for_work();
        }
    }

    /// Whether a number is one of the engine's own descriptors, which a program does not know and must not close.
    pub fn is_private(&self, fd: i32) -> bool {
        host::fd::is_private(fd)
    }

    /// Whether any ring is in a poll set of the program.
    pub fn has_watched(&self) -> bool {
        self.inner.watched.load(core::sync::atomic::Ordering::Relaxed) != 0
    }

    /// The program is about to wait in poll, select or epoll_wait: drops the readiness of watched rings whose completion
    /// queue was emptied. Cheap when no ring is watched.
    pub fn refresh_readiness(&self) {
        if !self.has_watched() {
            return;
        }
        self.inner.drop_stale_readiness();
        self.inner
            .all_rings()
            .iter()
            .filter(|ring| ring.is_looked_after())
            .for_each(|ring| ring.look_for_work());
    }

    /// The program has taken all completions of a watched ring: drops the ring's readiness, as
    /// [`refresh_readiness`](Self::refresh_readiness) does for all rings.
    pub fn completions_taken(&self, fd: i32) {
        if let Some(ring) = self.inner.ring(fd) {
            ring.refresh_readiness();
        }
    }

    /// A thread of the program ends.
    pub fn thread_exit(&self, tid: i32) {
        self.inner.end_task(tid);
    }

    /// The process changed its credentials: idle workers are replaced.
    pub fn credentials_changed(&self) {
        self.inner.replace_workers();
    }

    /// The program's own soft RLIMIT_NOFILE, if the engine had to raise the real one.
    pub fn program_nofile_soft(&self) -> Option<u64> {
        self.inner.fds.program_soft()
    }

    /// In the child after fork: closes the inherited private descriptors. Called on the parent's (copied) engine,
    /// which is not used otherwise afterwards.
    pub fn forget_in_child(&self) {
        self.inner.fds.close_copies();
    }

    /// Counters, to be printed at exit.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

/// A ring at hand, see [`Engine::handle`]. It keeps the ring's memory, not the ring, from going: once the descriptor is
/// closed, calls answer EBADF.
pub struct Handle {
    engine: Arc<Inner>,
    ring: Arc<ring::Ring>,
    fd: i32,
}

impl Handle {
    /// `io_uring_enter(2)`; `flags` without REGISTERED_RING.
    #[inline]
    pub fn enter(
        &self,
        caller: &Caller,
        to_submit: u32,
        min_complete: u32,
        flags: u32,
        arg: usize,
        argsz: usize,
    ) -> Result<u32, Errno> {
        if flags & !uapi_enter::ALL_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        let call = ring::enter::Enter { to_submit, min_complete, flags, arg, argsz };
        self.engine.enter(caller, &self.ring, self.fd, &call)
    }
}

/// Counters of one process. All are totals since the first ring.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Rings made.
    pub rings: u64,
    /// (opcode name, SQEs submitted, CQEs posted, completed inline, polled, by a worker, by kernel AIO), for opcodes that were used.
    pub ops: Vec<OpStats>,
    /// CQEs that went through the overflow list.
    pub overflow: u64,
    /// Wake-ups sent to waiting threads.
    pub wakeups: u64,
    /// Most workers alive at once.
    pub workers_max: u64,
    /// Direct transfers that went to workers because kernel AIO was not to be had, or had no room.
    pub aio_refused: u64,
    /// Acquisitions of the locks on a request's way: ring states, CQs and worker accounts.
    pub lock_acquisitions: u64,
    /// Of these, acquisitions of worker accounts' locks.
    pub wq_lock_acquisitions: u64,
    /// Idle workers that were woken.
    pub wq_wakeups: u64,
    /// Looks of workers for more work before they slept: those that found some, and others.
    pub wq_lingers: [u64; 2],
    /// Finished requests that workers returned in batches.
    pub wq_returned: u64,
    /// Those batches.
    pub wq_return_batches: u64,
    /// The longest that a finished request was held before it was returned, in nanoseconds.
    pub wq_held_max_ns: u64,
}

/// Counters of one opcode.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct OpStats {
    pub name: &'static str,
    pub submitted: u64,
    pub posted: u64,
    pub inline: u64,
    pub polled: u64,
    pub worker: u64,
    pub aio: u64,
}
