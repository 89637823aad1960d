use super::Timespec;
use anyring_uapi::GeteventsArg;
use std::marker::PhantomData;

/// What bounds a wait: see
/// [`Submitter::submit_with_args`](crate::Submitter::submit_with_args).
///
/// ```
/// use anyring::types::{SubmitArgs, Timespec};
/// use anyring::{Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// let millisecond = Timespec::new().nsec(1_000_000);
/// let args = SubmitArgs::new().timespec(&millisecond);
/// let error = ring.submitter().submit_with_args(1, &args).unwrap_err();
/// assert_eq!(error.raw_os_error(), Some(libc::ETIME));
/// # Ok(())
/// # }
/// ```
///
/// What it refers to must live as long as it does:
///
/// ```compile_fail
/// use anyring::types::{SubmitArgs, Timespec};
///
/// let args = {
///     let short_lived = Timespec::new();
///     SubmitArgs::new().timespec(&short_lived)
/// };
/// drop(args);
/// ```
#[derive(Default, Debug, Clone, Copy)]
#[repr(transparent)]
pub struct SubmitArgs<'prev, 'now> {
    pub(crate) arg: GeteventsArg,
    prev: PhantomData<&'prev ()>,
    now: PhantomData<&'now ()>,
}

impl<'prev, 'now> SubmitArgs<'prev, 'now> {
    /// No bounds.
    #[inline]
    pub const fn new() -> SubmitArgs<'static, 'static> {
        SubmitArgs {
            arg: GeteventsArg { sigmask: 0, sigmask_sz: 0, min_wait_usec: 0, ts: 0 },
            prev: PhantomData,
            now: PhantomData,
        }
    }

    /// The signals that are blocked during the wait.
    #[inline]
    pub fn sigmask<'new>(self, sigmask: &'new libc::sigset_t) -> SubmitArgs<'now, 'new> {
        /// Bytes of the kernel's signal set, which the C library's begins with.
        const KERNEL_SIGSET: u32 = 8;
        let sigmask = std::ptr::from_ref(sigmask) as u64;
        let arg = GeteventsArg { sigmask, sigmask_sz: KERNEL_SIGSET, ..self.arg };
        SubmitArgs { arg, prev: PhantomData, now: PhantomData }
    }

    /// Microseconds after which any completion ends the wait, where it else waits for as many as
    /// were asked for.
    #[inline]
    pub fn min_wait_usec(mut self, min_wait_usec: u32) -> Self {
        self.arg.min_wait_usec = min_wait_usec;
        self
    }

    /// How long to wait at most.
    #[inline]
    pub fn timespec<'new>(self, timespec: &'new Timespec) -> SubmitArgs<'now, 'new> {
        let arg = GeteventsArg { ts: std::ptr::from_ref(timespec) as u64, ..self.arg };
        SubmitArgs { arg, prev: PhantomData, now: PhantomData }
    }
}
