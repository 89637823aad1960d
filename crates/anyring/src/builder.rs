use crate::backend::{Backend, Descriptor};
use crate::{cqueue, squeue, IoUring, Parameters};
use anyring_uapi::{setup, Params};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;

/// How a ring is made.
///
/// ```
/// use anyring::{Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let ring: IoUring = IoUring::builder()
///     .backend(Backend::User)
///     .setup_cqsize(128)
///     .setup_single_issuer()
///     .build(32)?;
/// assert_eq!((ring.params().sq_entries(), ring.params().cq_entries()), (32, 128));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Builder<S = squeue::Entry, C = cqueue::Entry>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    backend: Backend,
    params: Params,
    dont_fork: bool,
    entries: PhantomData<(S, C)>,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Default for Builder<S, C> {
    fn default() -> Self {
        let flags = S::BUILD_FLAGS | C::BUILD_FLAGS;
        Builder {
            backend: Backend::Auto,
            params: Params { flags, ..Params::default() },
            dont_fork: false,
            entries: PhantomData,
        }
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Builder<S, C> {
    fn flag(&mut self, bit: u32) -> &mut Self {
        self.params.flags |= bit;
        self
    }

    /// Who does the work; [`Backend::Auto`] if it is not said.
    pub fn backend(&mut self, backend: Backend) -> &mut Self {
        self.backend = backend;
        self
    }

    /// Keeps the ring's memory out of forked children.
    pub fn dontfork(&mut self) -> &mut Self {
        self.dont_fork = true;
        self
    }

    /// Completions of files opened with `O_DIRECT` are polled for, by the program's own calls.
    pub fn setup_iopoll(&mut self) -> &mut Self {
        self.flag(setup::IOPOLL)
    }

    /// A thread submits what the program pushes; it sleeps after `idle` milliseconds without
    /// work.
    pub fn setup_sqpoll(&mut self, idle: u32) -> &mut Self {
        self.params.sq_thread_idle = idle;
        self.flag(setup::SQPOLL)
    }

    /// The CPU of that thread.
    pub fn setup_sqpoll_cpu(&mut self, cpu: u32) -> &mut Self {
        self.params.sq_thread_cpu = cpu;
        self.flag(setup::SQ_AFF)
    }

    /// Entries of the completion queue, rounded up to a power of two; else twice those of the
    /// submission queue.
    pub fn setup_cqsize(&mut self, entries: u32) -> &mut Self {
        self.params.cq_entries = entries;
        self.flag(setup::CQSIZE)
    }

    /// Sizes that are too large become the largest there are, instead of an error.
    pub fn setup_clamp(&mut self) -> &mut Self {
        self.flag(setup::CLAMP)
    }

    /// Shares the workers, and the submitting thread, of the ring with this descriptor.
    pub fn setup_attach_wq(&mut self, fd: RawFd) -> &mut Self {
        self.params.wq_fd = fd as u32;
        self.flag(setup::ATTACH_WQ)
    }

    /// The ring does nothing before
    /// [`register_enable_rings`](crate::Submitter::register_enable_rings).
    pub fn setup_r_disabled(&mut self) -> &mut Self {
        self.flag(setup::R_DISABLED)
    }

    /// A submission goes on after an entry that is in error.
    pub fn setup_submit_all(&mut self) -> &mut Self {
        self.flag(setup::SUBMIT_ALL)
    }

    /// The program is not interrupted when something completes.
    pub fn setup_coop_taskrun(&mut self) -> &mut Self {
        self.flag(setup::COOP_TASKRUN)
    }

    /// [`taskrun`](crate::SubmissionQueue::taskrun) says when completions wait for a call that
    /// collects them.
    pub fn setup_taskrun_flag(&mut self) -> &mut Self {
        self.flag(setup::TASKRUN_FLAG)
    }

    /// Completions are posted only by calls that wait or collect. Needs
    /// [`setup_single_issuer`](Self::setup_single_issuer).
    pub fn setup_defer_taskrun(&mut self) -> &mut Self {
        self.flag(setup::DEFER_TASKRUN)
    }

    /// Only one thread submits; others get `EEXIST`.
    pub fn setup_single_issuer(&mut self) -> &mut Self {
        self.flag(setup::SINGLE_ISSUER)
    }

    /// Leaves out the index array between the queue and its entries.
    pub fn setup_no_sqarray(&mut self) -> &mut Self {
        self.flag(setup::NO_SQARRAY)
    }

    /// Makes the ring, with a submission queue of this many entries, rounded up to a power of
    /// two.
    pub fn build(&self, entries: u32) -> io::Result<IoUring<S, C>> {
        let mut params = self.params;
        let fd = Descriptor::setup(self.backend, entries, &mut params)?;
        IoUring::map(fd, Parameters(params), self.dont_fork)
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Debug for Builder<S, C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("backend", &self.backend).finish_non_exhaustive()
    }
}
