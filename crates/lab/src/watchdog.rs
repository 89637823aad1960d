//! Ends a run of an arm that hangs, so that the others go on.
//!
//! A thread cannot be ended from outside. A run that is overdue is told so, and a signal gets it out of the
//! call in which it waits; who waits in a loop asks [`check`] when a signal has interrupted it. A thread that still
//! does not end is left to itself, and the report says so.

use crate::arm::{Sample, Turn, Work};
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an overdue run has to end.
const GRACE: Duration = Duration::from_secs(2);
/// A signal that comes just before the wait is lost, so it is sent again.
const AGAIN: Duration = Duration::from_millis(50);

thread_local! {
    /// Set by [`run`] when the run of this thread is overdue.
    static OVERDUE: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// An error if this thread's run is overdue; to be called when a signal has interrupted a wait.
pub fn check() -> Result<()> {
    let overdue =
        OVERDUE.with_borrow(|flag| flag.as_ref().is_some_and(|f| f.load(Ordering::Acquire)));
    match overdue {
        true => Err(Error::new("overdue")),
        false => Ok(()),
    }
}

/// One run, on a thread of its own, which has no workers, limits or rings left over from an earlier run.
/// The work comes back unless its thread had to be left to itself.
pub fn run(mut work: Work, turn: Turn, limit: Duration) -> (Option<Work>, Result<Sample>) {
    install();
    let overdue = Arc::new(AtomicBool::new(false));
    let (mine, (sender, receiver)) = (overdue.clone(), channel());
    let thread = std::thread::spawn(move || {
        OVERDUE.set(Some(mine));
        let result = work(&turn);
        // Nobody listens any more to a run that was left to itself.
        let _ = sender.send((work, result));
    });
    match receiver.recv_timeout(limit) {
        Ok((work, result)) => return (Some(work), result),
        Err(RecvTimeoutError::Disconnected) => return (None, Err(Error::new("panicked"))),
        Err(RecvTimeoutError::Timeout) => {}
    }
    overdue.store(true, Ordering::Release);
    let told = Instant::now();
    while told.elapsed() < GRACE {
        interrupt(&thread);
        if let Ok((work, result)) = receiver.recv_timeout(AGAIN) {
            let stopped = |_| Error::new(format!("no end within {} s, stopped", limit.as_secs()));
            return (Some(work), result.map_err(stopped));
        }
    }
    let text = "cannot be stopped: it goes on in the background and may disturb the others";
    (None, Err(Error::new(format!("no end within {} s, and {text}", limit.as_secs()))))
}

fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 8
}

extern "C" fn on_signal(_: libc::c_int) {}

/// The handler does nothing, and calls are not restarted after it.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all-zero is a valid sigaction; the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            libc::sigaction(signal(), &action, std::ptr::null_mut());
        }
    });
}

fn interrupt(thread: &JoinHandle<()>) {
    // SAFETY: the thread was neither joined nor detached, so its number is its own.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), signal()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Backend, Ring, User, MODERN};
    use anyring_uapi::{op, Sqe};
    use std::os::fd::AsRawFd;

    const TURN: Turn = Turn { slice: Duration::ZERO, seed: 0 };
    const LIMIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_wait_for_what_never_comes_is_ended() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let work: Work = Box::new(move |_| {
            let user: Arc<dyn Backend> = Arc::new(User::new("")?);
            let mut ring = Ring::new(&user, 8, MODERN)?;
            let (mut byte, fd) = (0u8, reader.as_raw_fd());
            let addr = &raw mut byte as u64;
            ring.push(Sqe { opcode: op::READ, fd, addr, len: 1, ..Sqe::default() });
            let mut cqes = Vec::new();
            while cqes.is_empty() {
                ring.submit_and_wait(1)?;
                ring.reap(&mut cqes);
            }
            Ok(Sample::default())
        });
        let (work, result) = run(work, TURN, LIMIT);
        assert_eq!(result.unwrap_err().to_string(), "no end within 1 s, stopped");
        assert!(work.is_some());
    }

    #[test]
    fn what_cannot_be_stopped_is_left_to_itself() {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let work: Work = Box::new(move |_| {
            while !seen.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(Sample::default())
        });
        let (work, result) = run(work, TURN, LIMIT);
        over.store(true, Ordering::Release);
        assert!(work.is_none());
        assert!(result.unwrap_err().to_string().contains("cannot be stopped"));
    }

    #[test]
    fn a_run_in_time_gives_its_sample() {
        let work: Work = Box::new(|turn| {
            check()?;
            Ok(Sample { value: turn.seed as f64, ..Sample::default() })
        });
        let (work, result) = run(work, Turn { seed: 7, ..TURN }, LIMIT);
        assert_eq!((work.is_some(), result.unwrap().value), (true, 7.0));
    }
}
