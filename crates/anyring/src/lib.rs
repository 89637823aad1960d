//! io_uring, anywhere: the API of the crate `io-uring`, on the kernel's io_uring where it works and
//! on an engine in this process where it is blocked or missing.
//!
//! ```
//! use anyring::{opcode, types, IoUring};
//! use std::fs::File;
//! use std::os::fd::AsRawFd;
//!
//! # fn main() -> std::io::Result<()> {
//! # std::env::set_var("ANYRING_ENGINE", "user");
//! let mut ring = IoUring::new(8)?;
//!
//! let file = File::open("/proc/self/exe")?;
//! let mut buf = vec![0; 1024];
//! let read = opcode::Read::new(types::Fd(file.as_raw_fd()), buf.as_mut_ptr(), buf.len() as u32)
//!     .build()
//!     .user_data(0x42);
//!
//! // SAFETY: the file and the buffer live until the completion was seen.
//! unsafe { ring.submission().push(&read).expect("the queue is empty") };
//! ring.submit_and_wait(1)?;
//!
//! let done = ring.completion().next().expect("one completion");
//! assert_eq!(done.user_data(), 0x42);
//! assert_eq!(done.result(), 1024, "bytes that were read");
//! # Ok(())
//! # }
//! ```
//!
//! # Which backend
//!
//! [`Builder::backend`] decides; if it does not, the environment variable `ANYRING_ENGINE` does
//! (`auto`, `user` or `kernel`); without it the kernel does the work where its io_uring works, and
//! else the engine ([`Backend`]). `ANYRING_POLICY` sets the engine's policies. With
//! `ANYRING_STATS` a process that used the engine appends one line of JSON with its counters to
//! that file when it exits. Under `anyring run` the calls go through the launcher's library.
//!
//! # In user space
//!
//! - Every operation is done by ordinary system calls of this process: seccomp filters, audit and
//!   `strace` see them.
//! - The ring's descriptor is an eventfd with a high number. Once it was asked for
//!   (`as_raw_fd`), it polls as readable while completions are there. The engine drops the
//!   readiness when a [`CompletionQueue`] that has taken all of them is dropped or synchronised,
//!   so level-triggered polling does not spin.
//! - The engine keeps a few descriptors at high numbers. For them it raises the soft limit
//!   `RLIMIT_NOFILE` towards the hard one.
//! - It takes the highest real-time signal that has no handler, to interrupt its workers.
//! - No call here is async-signal-safe, unlike the bare system calls: a signal handler must not
//!   use a ring, and must not leave by `longjmp` while the thread is in a call.
//! - A forked child gets `EEXIST` for the rings of its parent, and can make its own.

mod backend;
mod builder;
pub mod cqueue;
mod memory;
pub mod opcode;
mod params;
pub mod register;
mod registrations;
pub mod squeue;
mod submit;
pub mod types;

pub use backend::Backend;
pub use builder::Builder;
pub use cqueue::{CompletionQueue, CompletionStatus};
pub use params::Parameters;
pub use register::Probe;
pub use squeue::SubmissionQueue;
pub use submit::{EnterFlags, Submitter};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use backend::Descriptor;
use memory::{CqWatch, EntrySizes, Memory};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A ring: a submission queue, a completion queue, and the descriptor that stands for both.
///
/// `S` and `C` are the kinds of entries: of 64 or 128 bytes, and of 16 or 32.
///
/// ```
/// use anyring::{opcode, types, Backend, IoUring};
/// use std::os::{fd::AsRawFd, unix::net::UnixStream};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// let (reader, writer) = UnixStream::pair()?;
///
/// let mut buf = [0u8; 5];
/// let read = opcode::Read::new(types::Fd(reader.as_raw_fd()), buf.as_mut_ptr(), 5).build();
/// let write = opcode::Write::new(types::Fd(writer.as_raw_fd()), b"hello".as_ptr(), 5).build();
/// // SAFETY: the buffers live until both completions were seen.
/// unsafe { ring.submission().push_multiple(&[read, write]).expect("there is room") };
/// ring.submit_and_wait(2)?;
/// assert!(ring.completion().all(|done| done.result() == 5));
/// assert_eq!(&buf, b"hello");
/// # Ok(())
/// # }
/// ```
pub struct IoUring<S = squeue::Entry, C = cqueue::Entry>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    // Dropped in this order: the memory is unmapped before the ring is closed.
    memory: Memory,
    fd: Descriptor,
    params: Parameters,
    /// The descriptor was given out and may be polled.
    watched: AtomicBool,
    entries: PhantomData<fn() -> (S, C)>,
}

impl IoUring<squeue::Entry, cqueue::Entry> {
    /// A ring with a submission queue of this many entries, rounded up to a power of two.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let ring = anyring::IoUring::new(8)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(entries: u32) -> io::Result<Self> {
        Self::builder().build(entries)
    }

    /// Takes over the descriptor of a ring that was made elsewhere with these parameters.
    ///
    /// # Safety
    /// `fd` is such a ring, with entries of the usual sizes, and nobody else closes it or works
    /// on its queues.
    pub unsafe fn from_fd(fd: RawFd, params: Parameters) -> io::Result<Self> {
        IoUring::map(Descriptor::adopt(fd), params, false)
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> IoUring<S, C> {
    /// Says how the ring shall be made.
    #[must_use]
    pub fn builder() -> Builder<S, C> {
        Builder::default()
    }

    fn map(fd: Descriptor, params: Parameters, dont_fork: bool) -> io::Result<Self> {
        let sizes = EntrySizes { sqe: size_of::<S>(), cqe: size_of::<C>() };
        Ok(IoUring {
            memory: Memory::map(&fd, &params.0, sizes, dont_fork)?,
            fd,
            params,
            watched: AtomicBool::new(false),
            entries: PhantomData,
        })
    }

    /// Who does the work of this ring: [`Backend::User`] or [`Backend::Kernel`].
    pub fn backend(&self) -> Backend {
        self.fd.backend()
    }

    /// Submits, waits and registers.
    #[inline]
    pub fn submitter(&self) -> Submitter<'_> {
        Submitter::new(&self.fd, &self.params, &self.memory.sq)
    }

    /// What the ring was made with, and what its backend can do.
    #[inline]
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// Submits what was pushed; see [`Submitter::submit`].
    #[inline]
    pub fn submit(&self) -> io::Result<usize> {
        self.submitter().submit()
    }

    /// Submits what was pushed and waits for `want` completions; see
    /// [`Submitter::submit_and_wait`].
    #[inline]
    pub fn submit_and_wait(&self, want: usize) -> io::Result<usize> {
        self.submitter().submit_and_wait(want)
    }

    /// All three parts at once.
    ///
    /// ```
    /// use anyring::{opcode, Backend, IoUring};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
    /// let (submitter, mut sq, mut cq) = ring.split();
    /// // SAFETY: a NOP points to nothing.
    /// unsafe { sq.push(&opcode::Nop::new().build()).expect("the queue is empty") };
    /// sq.sync();
    /// submitter.submit_and_wait(1)?;
    /// cq.sync();
    /// assert_eq!(cq.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn split(&mut self) -> (Submitter<'_>, SubmissionQueue<'_, S>, CompletionQueue<'_, C>) {
        // SAFETY: the ring is borrowed exclusively.
        unsafe { (self.submitter(), self.submission_shared(), self.completion_shared()) }
    }

    /// The submission queue.
    #[inline]
    pub fn submission(&mut self) -> SubmissionQueue<'_, S> {
        // SAFETY: the ring is borrowed exclusively.
        unsafe { self.submission_shared() }
    }

    /// The submission queue, from a shared reference.
    ///
    /// # Safety
    /// No other [`SubmissionQueue`] of this ring exists at the same time.
    #[inline]
    pub unsafe fn submission_shared(&self) -> SubmissionQueue<'_, S> {
        // SAFETY: the caller's; the ring was made for entries of this kind.
        unsafe { SubmissionQueue::new(&self.memory.sq) }
    }

    /// The completion queue, as it is now.
    #[inline]
    pub fn completion(&mut self) -> CompletionQueue<'_, C> {
        // SAFETY: the ring is borrowed exclusively.
        unsafe { self.completion_shared() }
    }

    /// The completion queue, from a shared reference.
    ///
    /// # Safety
    /// No other [`CompletionQueue`] of this ring exists at the same time.
    #[inline]
    pub unsafe fn completion_shared(&self) -> CompletionQueue<'_, C> {
        let watch = CqWatch { fd: &self.fd, watched: &self.watched };
        // SAFETY: the caller's; the ring was made for entries of this kind.
        unsafe { CompletionQueue::new(&self.memory.cq, watch) }
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> AsRawFd for IoUring<S, C> {
    /// The ring's descriptor, to be polled, or named to another ring.
    fn as_raw_fd(&self) -> RawFd {
        if !self.watched.load(Ordering::Relaxed) && self.fd.watch() {
            self.watched.store(true, Ordering::Relaxed);
        }
        self.fd.number()
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Debug for IoUring<S, C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoUring")
            .field("fd", &self.fd.number())
            .field("backend", &self.backend())
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
