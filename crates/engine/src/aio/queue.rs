//! Where direct requests go: a context of kernel AIO, or a model of a device in its place.

use super::model::Model;
use crate::fds::Fds;
use crate::host::aio::{self, Context, Event, Iocb, Limits};
use crate::host::fd::{self, OwnedFd};
use crate::host::time::{now_ns, Clock};
use crate::Errno;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

/// Control blocks handed to the kernel in one call.
const CALL: usize = 64;

/// A request that is ready to be submitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepared {
    /// As the kernel wants it. Vectors that it points to live as long as the request, which is in flight already.
    pub iocb: Iocb,
    /// Bytes in all.
    pub bytes: u64,
}

impl Prepared {
    /// It comes with an I/O priority.
    pub fn has_priority(&self) -> bool {
        self.iocb.flags & aio::FLAG_IOPRIO != 0
    }
}

/// See the module's description.
pub enum Queue {
    /// The kernel's.
    Kernel {
        /// The context.
        context: Context,
        /// Signalled by every completion, for whoever sleeps on the ring's epoll or looks after it.
        bell: OwnedFd,
        /// Requests that it takes.
        slots: u32,
    },
    /// A model.
    Model(Arc<Model>),
}

impl Queue {
    /// A context of the kernel's.
    pub fn kernel(fds: &Fds, slots: u32) -> Result<Queue, Errno> {
        let context = Context::new(slots)?;
        let bell = fds.move_high(fd::eventfd()?)?;
        Ok(Queue::Kernel { context, bell, slots })
    }

    /// The eventfd that completions signal.
    pub fn bell(&self) -> Option<i32> {
        match self {
            Queue::Kernel { bell, .. } => Some(bell.raw()),
            Queue::Model(_) => None,
        }
    }

    /// Submits from the front: how many were taken, or the error of the first.
    pub fn submit(&self, batch: &mut [Prepared]) -> Result<usize, Errno> {
        match self {
            Queue::Kernel { context, bell, .. } => {
                let mut list = [core::ptr::null::<Iocb>(); CALL];
                let count = batch.len().min(CALL);
                for (place, one) in list.iter_mut().zip(&mut *batch) {
                    one.iocb.flags |= aio::FLAG_RESFD;
                    one.iocb.resfd = bell.raw() as u32;
                    *place = &raw const one.iocb;
                }
                // SAFETY: the control blocks are the batch's, and their vectors those of requests that are in flight.
                unsafe { context.submit(&list[..count]) }
            }
            Queue::Model(model) => model.submit(batch),
        }
    }

    /// Whether completions can be seen without a call.
    pub fn is_readable(&self) -> bool {
        match self {
            Queue::Kernel { context, .. } => context.is_readable(),
            Queue::Model(_) => true,
        }
    }

    /// Looks once whether something has completed.
    #[inline]
    pub fn poll(&self) -> bool {
        match self {
            Queue::Kernel { context, .. } => context.is_ready(),
            Queue::Model(model) => model.poll(),
        }
    }

    /// Looks again and again; false if nothing completed in so many nanoseconds, or `stop` says so.
    pub fn spin(&self, ns: u64, stop: impl Fn() -> bool) -> bool {
        const LOOKS: u32 = 64;
        let mut end = None;
        loop {
            for _ in 0..LOOKS {
                if self.poll() {
                    return true;
                }
                core::hint::spin_loop();
            }
            if stop() {
                return false;
            }
            // In a model, looking is what makes time pass.
            if matches!(self, Queue::Kernel { .. }) {
                let now = now_ns(Clock::Monotonic);
                if now >= *end.get_or_insert(now + ns) {
                    return false;
                }
            }
        }
    }

    /// Takes completions without a call. The caller is the only consumer.
    pub fn take(&self, out: &mut [Event]) -> usize {
        match self {
            Queue::Kernel { context, .. } if context.is_readable() => context.take(out),
            Queue::Kernel { .. } => self.take_by_call(out),
            Queue::Model(model) => model.take(out),
        }
    }

    /// Takes completions by a call that does not sleep: others may be consuming.
    pub fn take_by_call(&self, out: &mut [Event]) -> usize {
        match self {
            Queue::Kernel { context, .. } => {
                let at_once = Limits { timeout: Some((0, 0)), mask: None };
                context.wait(0, out, &at_once, None).unwrap_or(0)
            }
            Queue::Model(model) => model.take(out),
        }
    }

    /// Sleeps until `min` have completed, and takes them; see [`Context::wait`].
    pub fn wait(
        &self,
        min: usize,
        out: &mut [Event],
        limits: &Limits,
        flag: Option<&AtomicU32>,
    ) -> Result<usize, Errno> {
        match self {
            Queue::Kernel { context, .. } => context.wait(min, out, limits, flag),
            Queue::Model(model) => Ok(model.wait(min, out, limits)),
        }
    }
}
