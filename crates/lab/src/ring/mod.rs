//! A ring as a program sees it, over either backend: the same code drives the kernel's io_uring
//! and the engine, so that what is compared is what answers.

mod counters;
mod kernel;
mod user;

pub use counters::{Counters, NAMES as COUNTER_NAMES};
pub use kernel::Kernel;
pub use user::User;

use crate::error::{Error, Result};
use anyring_uapi::enter::GETEVENTS;
use anyring_uapi::{setup, Cqe, Params, Sqe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Who answers the three calls. Errors are errno numbers.
pub trait Backend: Send + Sync {
    /// `io_uring_setup(2)`.
    fn setup(&self, entries: u32, params: &mut Params) -> std::result::Result<u32, i32>;
    /// `io_uring_enter(2)` without an argument.
    fn enter(&self, fd: i32, submit: u32, min: u32, flags: u32) -> std::result::Result<u32, i32>;
    /// `io_uring_register(2)`.
    fn register(&self, fd: i32, op: u32, arg: usize, nr: u32) -> std::result::Result<u32, i32>;
    /// A shared, writable mapping of the ring's memory.
    fn mmap(&self, fd: i32, len: usize, offset: u64) -> std::result::Result<usize, i32>;
    /// Closes a ring of the calling thread, and what the backend keeps for that thread.
    fn close(&self, fd: i32);
    /// What it did so far, where that is known.
    fn counters(&self) -> Option<Counters> {
        None
    }
}

/// What a program of today asks for when one thread uses the ring.
pub const MODERN: u32 = setup::SINGLE_ISSUER | setup::DEFER_TASKRUN | setup::SUBMIT_ALL;

/// A ring used by the thread that made it.
pub struct Ring {
    backend: Arc<dyn Backend>,
    fd: i32,
    p: Params,
    base: *mut u8,
    base_len: usize,
    sqes: *mut Sqe,
    tail: u32,
    unsubmitted: u32,
    head: u32,
}

impl Ring {
    /// A ring of `entries` with setup `flags`.
    pub fn new(backend: &Arc<dyn Backend>, entries: u32, flags: u32) -> Result<Ring> {
        let mut p = Params { flags, ..Params::default() };
        let fd = backend.setup(entries, &mut p).map_err(|e| Error::errno("io_uring_setup", e))?;
        let fd = fd as i32;
        let cqes_end = p.cq_off.cqes as usize + p.cq_entries as usize * size_of::<Cqe>();
        let base_len = cqes_end.max((p.sq_off.array + 4 * p.sq_entries) as usize);
        let map = |len, offset| {
            backend.mmap(fd, len, offset).map_err(|e| Error::errno("mmap of a ring", e))
        };
        let base = map(base_len, setup::OFF_SQ_RING)? as *mut u8;
        let sqes = map(p.sq_entries as usize * size_of::<Sqe>(), setup::OFF_SQES)? as *mut Sqe;
        let (backend, tail, unsubmitted, head) = (backend.clone(), 0, 0, 0);
        let ring = Ring { backend, fd, p, base, base_len, sqes, tail, unsubmitted, head };
        for i in 0..p.sq_entries {
            ring.word(p.sq_off.array + 4 * i).store(i, Ordering::Relaxed);
        }
        Ok(ring)
    }

    #[inline]
    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: offsets come from setup and lie inside the mapping, aligned to 4.
        unsafe { AtomicU32::from_ptr(self.base.add(offset as usize).cast()) }
    }

    /// Its descriptor.
    pub fn fd(&self) -> i32 {
        self.fd
    }

    /// Places for SQEs.
    #[inline]
    pub fn room(&self) -> u32 {
        let head = self.word(self.p.sq_off.head).load(Ordering::Acquire);
        self.p.sq_entries - self.tail.wrapping_sub(head)
    }

    /// Queues an SQE; the caller knows that there is room.
    #[inline]
    pub fn push(&mut self, sqe: Sqe) {
        debug_assert!(self.room() > 0);
        let slot = (self.tail & (self.p.sq_entries - 1)) as usize;
        // SAFETY: the slot is inside the mapping, and the program's until it is submitted.
        unsafe { self.sqes.add(slot).write_volatile(sqe) };
        self.tail = self.tail.wrapping_add(1);
        self.unsubmitted += 1;
    }

    /// Submits what was queued, and waits for `min` CQEs (0: does not wait). A signal ends the wait early.
    #[inline]
    pub fn submit_and_wait(&mut self, min: u32) -> Result<()> {
        self.word(self.p.sq_off.tail).store(self.tail, Ordering::Release);
        loop {
            match self.backend.enter(self.fd, self.unsubmitted, min, GETEVENTS) {
                Ok(n) if n < self.unsubmitted => self.unsubmitted -= n,
                Ok(_) => {
                    self.unsubmitted = 0;
                    return Ok(());
                }
                Err(libc::EINTR) => crate::watchdog::check()?,
                Err(e) => return Err(Error::errno("io_uring_enter", e)),
            }
        }
    }

    /// Moves all CQEs that are there into `out`, which is emptied first.
    #[inline]
    pub fn reap(&mut self, out: &mut Vec<Cqe>) {
        out.clear();
        let tail = self.word(self.p.cq_off.tail).load(Ordering::Acquire);
        while self.head != tail {
            let slot = (self.head & (self.p.cq_entries - 1)) as usize;
            let at = self.p.cq_off.cqes as usize + slot * size_of::<Cqe>();
            // SAFETY: the masked slot lies inside the mapping.
            out.push(unsafe { self.base.add(at).cast::<Cqe>().read() });
            self.head = self.head.wrapping_add(1);
        }
        self.word(self.p.cq_off.head).store(self.head, Ordering::Release);
    }

    /// `io_uring_register(2)`.
    pub fn register(&self, op: u32, arg: usize, nr: u32) -> Result<u32> {
        self.backend
            .register(self.fd, op, arg, nr)
            .map_err(|e| Error::errno(format!("io_uring_register {op}"), e))
    }

    /// Limits the workers of this thread's rings, as IORING_REGISTER_IOWQ_MAX_WORKERS does.
    pub fn limit_workers(&self, bound: u32, unbound: u32) -> Result<()> {
        let mut limits = [bound, unbound];
        let op = anyring_uapi::register::IOWQ_MAX_WORKERS;
        self.register(op, limits.as_mut_ptr() as usize, 2).map(drop)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both mappings are this ring's, and nothing borrows from them any more.
        unsafe {
            libc::munmap(self.base.cast(), self.base_len);
            libc::munmap(self.sqes.cast(), self.p.sq_entries as usize * size_of::<Sqe>());
        }
        self.backend.close(self.fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyring_uapi::{op, sqe};

    #[test]
    fn nops_come_back_through_the_engine() {
        let backend: Arc<dyn Backend> = Arc::new(User::new("inline=never").unwrap());
        let mut ring = Ring::new(&backend, 8, MODERN).unwrap();
        ring.limit_workers(1, 1).unwrap();
        let mut cqes = Vec::new();
        for flags in [0, sqe::ASYNC] {
            for user_data in 0..8 {
                ring.push(Sqe { opcode: op::NOP, flags, user_data, ..Sqe::default() });
            }
            assert_eq!(ring.room(), 0);
            ring.submit_and_wait(8).unwrap();
            ring.reap(&mut cqes);
            let mut seen: Vec<u64> = cqes.iter().map(|c| c.user_data).collect();
            seen.sort();
            assert_eq!(seen, (0..8).collect::<Vec<_>>());
            assert_eq!(ring.room(), 8);
        }
        assert_eq!(backend.counters().map(|c| c.workers_max), Some(1));
    }

    #[test]
    fn unknown_policies_are_named() {
        let error = User::new("lazy_wake=on,no_such=1").err().unwrap();
        assert_eq!(error.to_string(), "not available in this build: no_such=1");
    }
}
