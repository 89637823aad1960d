//! The engine, called in this process: no preload, no trap.

use super::{Backend, Counters};
use crate::error::{Error, Result};
use anyring_engine::aio::model::Model;
use anyring_engine::{Caller, Config, Engine, Errno, Policy};
use anyring_uapi::Params;
use std::sync::Arc;

/// See the module's description.
pub struct User {
    engine: Engine,
}

extern "C" fn on_interrupt(
    _: libc::c_int,
    _: *mut libc::siginfo_t,
    context: *mut core::ffi::c_void,
) {
    // SAFETY: the kernel's third argument to an SA_SIGINFO handler.
    unsafe { anyring_engine::on_interrupt(context) }
}

/// A signal that no arm uses; the handler is installed again by each engine, which is harmless.
fn install_interrupt() -> i32 {
    let signal = libc::SIGRTMIN() + 9;
    // SAFETY: all-zero is a valid sigaction; the handler fits SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
    signal
}

fn nofile_hard() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_max
}

thread_local! {
    // SAFETY: the call has no argument.
    static TID: i32 = unsafe { libc::gettid() };
}

#[inline]
fn caller() -> Caller {
    Caller { tid: TID.with(|tid| *tid), mask: None }
}

#[inline]
fn answer(result: std::result::Result<u32, Errno>) -> std::result::Result<u32, i32> {
    result.map_err(|errno| errno.0)
}

impl User {
    /// An engine with this policy. A name or value that this build does not have is an error.
    pub fn new(policy: &str) -> Result<User> {
        Ok(User { engine: Engine::new(config(policy)?) })
    }

    /// As [`User::new`], with a model of a device where kernel AIO would be.
    pub fn with_model(policy: &str, model: Arc<Model>) -> Result<User> {
        Ok(User { engine: Engine::with_model(config(policy)?, model) })
    }
}

impl User {
    /// The engine's counters.
    pub fn stats(&self) -> anyring_engine::Stats {
        self.engine.stats()
    }
}

fn config(policy: &str) -> Result<Config> {
    let policy = Policy::parse(policy.as_bytes()).map_err(|item| {
        let item = String::from_utf8_lossy(item);
        Error::new(format!("not available in this build: {item}"))
    })?;
    Ok(Config {
        fds: anyring_front::layout::choose(nofile_hard()),
        policy,
        raw_threads: false,
        interrupt_signal: install_interrupt(),
    })
}

impl Backend for User {
    fn setup(&self, entries: u32, params: &mut Params) -> std::result::Result<u32, i32> {
        answer(self.engine.setup(&caller(), entries, params as *mut Params as usize))
    }
    #[inline]
    fn enter(&self, fd: i32, submit: u32, min: u32, flags: u32) -> std::result::Result<u32, i32> {
        answer(self.engine.enter(&caller(), fd as u32, submit, min, flags, 0, 0))
    }
    fn register(&self, fd: i32, op: u32, arg: usize, nr: u32) -> std::result::Result<u32, i32> {
        answer(self.engine.register(&caller(), fd as u32, op, arg, nr))
    }
    fn mmap(&self, fd: i32, len: usize, offset: u64) -> std::result::Result<usize, i32> {
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as u32;
        let flags = (libc::MAP_SHARED | libc::MAP_POPULATE) as u32;
        self.engine.mmap(fd, 0, len, prot, flags, offset).map_err(|errno| errno.0)
    }
    fn close(&self, fd: i32) {
        self.engine.close(fd);
        self.engine.thread_exit(caller().tid);
    }
    fn counters(&self) -> Option<Counters> {
        let stats = self.engine.stats();
        Some(Counters {
            wakeups: stats.wakeups,
            workers_max: stats.workers_max,
            locks: stats.lock_acquisitions,
            wq_locks: stats.wq_lock_acquisitions,
            wq_wakeups: stats.wq_wakeups,
            wq_returned: stats.wq_returned,
            wq_batches: stats.wq_return_batches,
            wq_held_max_ns: stats.wq_held_max_ns,
            wq_items: stats.ops.iter().map(|op| op.worker).sum(),
        })
    }
}
