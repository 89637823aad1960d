use crate::backend::Descriptor;
use crate::memory::Sq;
use crate::types::SubmitArgs;
use crate::Parameters;
use anyring_uapi::enter;
use anyring_uapi::setup::{SQ_CQ_OVERFLOW, SQ_NEED_WAKEUP, SQ_TASKRUN};
use anyring_uapi::GeteventsArg;
use bitflags::bitflags;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::atomic::{fence, Ordering};

bitflags! {
    /// Flags of [`Submitter::enter`]. `IORING_ENTER_*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct EnterFlags: u32 {
        /// Waits for `min_complete` completions.
        const GETEVENTS = enter::GETEVENTS;
        /// Wakes the submitting thread.
        const SQ_WAKEUP = enter::SQ_WAKEUP;
        /// Waits for room in the submission queue.
        const SQ_WAIT = enter::SQ_WAIT;
        /// The argument is the extended one, see [`SubmitArgs`].
        const EXT_ARG = enter::EXT_ARG;
        /// The ring is named by its registered index.
        const REGISTERED_RING = enter::REGISTERED_RING;
        /// The time is a point in time.
        const ABS_TIMER = enter::ABS_TIMER;
        /// The argument is an offset into a registered region.
        const EXT_ARG_REG = enter::EXT_ARG_REG;
        /// The wait does not count as waiting for I/O.
        const NO_IOWAIT = enter::NO_IOWAIT;
    }
}

/// Submits what was pushed, waits for completions, and registers files and buffers.
///
/// ```
/// use anyring::{opcode, Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// // SAFETY: a NOP points to nothing.
/// unsafe { ring.submission().push(&opcode::Nop::new().build()).expect("the queue is empty") };
/// assert_eq!(ring.submitter().submit_and_wait(1)?, 1);
/// # Ok(())
/// # }
/// ```
pub struct Submitter<'a> {
    pub(crate) fd: &'a Descriptor,
    pub(crate) params: &'a Parameters,
    sq: &'a Sq,
    /// The index that [`register_ring_fd`](Self::register_ring_fd) got.
    pub(crate) index: Option<u32>,
}

impl<'a> Submitter<'a> {
    #[inline]
    pub(crate) fn new(fd: &'a Descriptor, params: &'a Parameters, sq: &'a Sq) -> Self {
        Submitter { fd, params, sq, index: None }
    }

    /// `io_uring_enter(2)` as it is.
    ///
    /// # Safety
    /// `arg` is what the flags say: a signal set, or with [`EnterFlags::EXT_ARG`] the extended
    /// argument; and what it points to is valid.
    pub unsafe fn enter<T: Sized>(
        &self,
        to_submit: u32,
        min_complete: u32,
        flag: u32,
        arg: Option<&T>,
    ) -> io::Result<usize> {
        /// Of the C library's larger set the kernel reads this much.
        const KERNEL_SIGSET: usize = 8;
        let arg = match arg {
            None => (0, 0),
            Some(arg) if flag & enter::EXT_ARG != 0 => {
                (std::ptr::from_ref(arg) as usize, size_of::<T>())
            }
            Some(arg) => (std::ptr::from_ref(arg) as usize, size_of::<T>().min(KERNEL_SIGSET)),
        };
        // SAFETY: the caller's.
        unsafe { self.fd.enter(self.index, [to_submit, min_complete, flag], arg) }
    }

    /// Submits all that was pushed; the result is how many entries.
    #[inline]
    pub fn submit(&self) -> io::Result<usize> {
        self.submit_and_wait(0)
    }

    /// Submits all that was pushed, and waits until `want` completions are there.
    #[inline]
    pub fn submit_and_wait(&self, want: usize) -> io::Result<usize> {
        self.flush(want, 0, None)
    }

    /// As [`submit_and_wait`](Self::submit_and_wait), with a time limit or a signal mask.
    #[inline]
    pub fn submit_with_args(&self, want: usize, args: &SubmitArgs<'_, '_>) -> io::Result<usize> {
        self.flush(want, 0, Some(&args.arg))
    }

    /// As [`submit_with_args`](Self::submit_with_args), with
    /// [`ABS_TIMER`](EnterFlags::ABS_TIMER) or [`NO_IOWAIT`](EnterFlags::NO_IOWAIT); other flags
    /// are `EINVAL`.
    pub fn submit_with_args_and_flags(
        &self,
        want: usize,
        args: &SubmitArgs<'_, '_>,
        flags: EnterFlags,
    ) -> io::Result<usize> {
        if !(EnterFlags::ABS_TIMER | EnterFlags::NO_IOWAIT).contains(flags) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.flush(want, flags.bits(), Some(&args.arg))
    }

    #[inline]
    fn flush(&self, want: usize, flags: u32, arg: Option<&GeteventsArg>) -> io::Result<usize> {
        let len = self.sq.len();
        let mut flags = flags;
        let sq_flags = self.sq.flags().load(Ordering::Relaxed);
        let must_collect = sq_flags & (SQ_CQ_OVERFLOW | SQ_TASKRUN) != 0;
        if want > 0 || must_collect || self.params.is_setup_iopoll() {
            flags |= enter::GETEVENTS;
        }
        if self.params.is_setup_sqpoll() {
            // Between the store of the tail and the load of the flag; pairs with the fence of the
            // polling thread between its store of the flag and its load of the tail.
            fence(Ordering::SeqCst);
            if self.sq.flags().load(Ordering::Relaxed) & SQ_NEED_WAKEUP != 0 {
                flags |= enter::SQ_WAKEUP;
            } else if flags & enter::GETEVENTS == 0 {
                return Ok(len as usize);
            }
        }
        let arg = match arg {
            Some(arg) => {
                flags |= enter::EXT_ARG;
                (std::ptr::from_ref(arg) as usize, size_of::<GeteventsArg>())
            }
            None => (0, 0),
        };
        let want = u32::try_from(want).unwrap_or(u32::MAX);
        // SAFETY: the argument is of the kind that the flags say, and what it refers to lives.
        unsafe { self.fd.enter(self.index, [len, want, flags], arg) }
    }

    /// With [`setup_sqpoll`](crate::Builder::setup_sqpoll): waits for room in the submission
    /// queue.
    pub fn squeue_wait(&self) -> io::Result<usize> {
        // SAFETY: no argument.
        unsafe { self.fd.enter(self.index, [0, 0, enter::SQ_WAIT], (0, 0)) }
    }
}

impl Debug for Submitter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter").field("fd", &self.fd.number()).finish_non_exhaustive()
    }
}
