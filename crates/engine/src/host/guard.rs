//! Calls that must not wait but have no non-blocking form: a bound on how long they may.
//!
//! `accept4(2)` of a listener in blocking mode is the case: after `poll(2)` reported a connection, another
//! thread or process may take it, and the call would sleep. Changing the listener's mode, or its receive timeout,
//! would be seen by everybody who shares it; a worker for each accept costs two thread switches a connection.
//! Instead a POSIX timer of the calling thread sends the interrupt signal after `BOUND_NS`, and again until it
//! is stopped. Why that is right:
//! - A call that finds its connection returns it at once; the signal only ends a sleep, with EINTR and
//!   without an effect on the listener. Nothing is taken and lost.
//! - The timer repeats, so a signal that comes before the call has gone to sleep is followed by another one.
//! - It is stopped before the caller goes on, on the same thread, and the signal is never blocked: none is left
//!   over to interrupt a call of the program's.
//! - The program sees nothing: timers are not inherited by fork, end with exec, and have ids of their own.

use super::{nr, syscall, Nr};
use crate::sync::Lock;
use crate::{Errno, PASS_MAGIC};
use std::collections::BTreeMap;

/// Longest time such a call may sleep.
const BOUND_NS: i64 = 1_000_000;

/// `struct sigevent`, 64 bytes.
#[repr(C)]
struct SigEvent {
    value: u64,
    signal: i32,
    notify: i32,
    tid: i32,
    pad: [i32; 11],
}
const _: () = assert!(size_of::<SigEvent>() == 64);

/// The timers, one a thread that needed it.
pub struct Guards {
    timers: Lock<BTreeMap<i32, i32>>,
}

impl Guards {
    /// No timer yet.
    pub fn new() -> Guards {
        Guards { timers: Lock::new(BTreeMap::new()) }
    }

    /// The calling thread's timer, made at first need.
    fn timer(&self, signal: i32) -> Result<i32, Errno> {
        let tid = super::thread::gettid();
        let mut timers = self.timers.lock();
        if let Some(timer) = timers.get(&tid) {
            return Ok(*timer);
        }
        const THREAD_ID: i32 = 4;
        let event =
            SigEvent { value: PASS_MAGIC as u64, signal, notify: THREAD_ID, tid, pad: [0; 11] };
        let mut timer = 0i32;
        let clock = super::time::Clock::Monotonic as usize;
        let args = [clock, &raw const event as usize, &raw mut timer as usize, 0, 0, 0];
        // SAFETY: the event and the id are locals.
        unsafe { syscall(nr::__NR_timer_create, args) }?;
        timers.insert(tid, timer);
        Ok(timer)
    }

    /// A thread has ended.
    pub fn forget(&self, tid: i32) {
        if let Some(timer) = self.timers.lock().remove(&tid) {
            // SAFETY: the id is ours.
            let _ = unsafe { syscall(nr::__NR_timer_delete, [timer as usize, 0, 0, 0, 0, 0]) };
        }
    }

    /// Makes a call that sleeps about a millisecond at most; EINTR then.
    ///
    /// # Safety
    /// As for [`syscall`].
    pub unsafe fn call(&self, signal: i32, nr: Nr, args: [usize; 6]) -> Result<usize, Errno> {
        let timer = self.timer(signal)?;
        set(timer, BOUND_NS)?;
        // SAFETY: handed on from the caller.
        let result = unsafe { syscall(nr, args) };
        set(timer, 0)?;
        result
    }
}

impl Default for Guards {
    fn default() -> Guards {
        Guards::new()
    }
}

/// Starts a repeating timer, or stops it.
fn set(timer: i32, every_ns: i64) -> Result<(), Errno> {
    let spec = [0, every_ns, 0, every_ns];
    // SAFETY: a local of four integers.
    unsafe { syscall(nr::__NR_timer_settime, [timer as usize, 0, spec.as_ptr() as usize, 0, 0, 0]) }
        .map(drop)
}
