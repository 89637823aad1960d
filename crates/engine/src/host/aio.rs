//! Kernel AIO: `io_setup`, `io_submit`, `io_pgetevents`, `io_destroy`, and the completion ring that the kernel maps into
//! the process.
//!
//! The mapping starts with a header; its head belongs to whoever consumes, its tail to the kernel. A consumer here
//! reads the tail with acquire, copies events, and stores the head with release. Two consumers must not do so at the same time, and
//! none while another thread is inside `io_pgetevents`, which moves the head under a lock of the kernel's own; callers
//! see to that (see [`crate::aio`]). What lies in the mapping is memory of the process and is bounded, never trusted.
//!
//! There is no `io_cancel` here: reads and writes of files cannot be cancelled once the kernel has them.

use super::{interruptible, nr, syscall};
use crate::Errno;
use core::sync::atomic::{AtomicU32, Ordering};

/// Read into one buffer.
pub const PREAD: u16 = 0;
/// Write from one buffer.
pub const PWRITE: u16 = 1;
/// Read into vectors.
pub const PREADV: u16 = 7;
/// Write from vectors.
pub const PWRITEV: u16 = 8;

/// `resfd` is an eventfd to signal at completion.
pub const FLAG_RESFD: u32 = 1;
/// `priority` is an I/O priority.
pub const FLAG_IOPRIO: u32 = 2;

/// `struct iocb` of the 64-bit little-endian ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iocb {
    /// Comes back in the event.
    pub data: u64,
    /// The kernel's.
    pub key: u32,
    /// `RWF_*`.
    pub rw_flags: u32,
    /// `IOCB_CMD_*`.
    pub opcode: u16,
    /// I/O priority, see [`FLAG_IOPRIO`].
    pub priority: u16,
    /// The file.
    pub fd: u32,
    /// Address of the data, or of vectors.
    pub buf: u64,
    /// Bytes, or number of vectors.
    pub nbytes: u64,
    /// From where.
    pub offset: i64,
    /// Zero.
    pub reserved: u64,
    /// `IOCB_FLAG_*`.
    pub flags: u32,
    /// See [`FLAG_RESFD`].
    pub resfd: u32,
}
const _: () = assert!(size_of::<Iocb>() == 64);

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// From the control block.
    pub data: u64,
    /// Its address then.
    pub obj: u64,
    /// Result: bytes or a negative errno.
    pub res: i64,
    /// Unused.
    pub res2: i64,
}

/// The header of the completion ring.
#[repr(C)]
struct Header {
    id: u32,
    nr: AtomicU32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compat_features: u32,
    incompat_features: u32,
    header_length: u32,
}

const MAGIC: u32 = 0xa10a_10a1;

/// An AIO context. Its number is the address of its completion ring.
#[derive(Debug)]
pub struct Context {
    id: usize,
    /// Places of the completion ring; 0 if it cannot be read from here.
    places: u32,
    events: usize,
}

/// How a wait for events is bounded, and with which signal mask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Seconds and nanoseconds; `None` for ever.
    pub timeout: Option<(i64, i64)>,
    /// Signal mask while sleeping.
    pub mask: Option<u64>,
}

impl Context {
    /// `io_setup(2)` for so many requests in flight. EAGAIN if `fs.aio-max-nr` is used up.
    pub fn new(slots: u32) -> Result<Context, Errno> {
        let mut id = 0usize;
        let args = [slots as usize, &raw mut id as usize, 0, 0, 0, 0];
        // SAFETY: one word is written to a local.
        unsafe { syscall(nr::__NR_io_setup, args) }?;
        let mut context = Context { id, places: 0, events: 0 };
        let header = context.header();
        let (skip, places) = (header.header_length as usize, header.nr.load(Ordering::Relaxed));
        let known = header.magic == MAGIC && header.incompat_features == 0;
        if known && skip >= size_of::<Header>() {
            (context.events, context.places) = (id + skip, places);
        }
        Ok(context)
    }

    fn header(&self) -> &Header {
        // SAFETY: the kernel mapped the header there when it made the context, for as long as that lives.
        unsafe { &*(self.id as *const Header) }
    }

    /// `io_submit(2)`: how many were taken. The error is that of the first one.
    ///
    /// # Safety
    /// The pointers are to control blocks whose vectors, if any, are the engine's own and valid.
    pub unsafe fn submit(&self, list: &[*const Iocb]) -> Result<usize, Errno> {
        let args = [self.id, list.len(), list.as_ptr() as usize, 0, 0, 0];
        // SAFETY: vouched for by the caller; data addresses are the program's, which the kernel checks.
        unsafe { syscall(nr::__NR_io_submit, args) }
    }

    /// Whether completions can be taken without a call.
    pub fn is_readable(&self) -> bool {
        self.places != 0
    }

    /// A completion is there. May be asked by any thread at any time.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let header = self.header();
        header.head.load(Ordering::Relaxed) != header.tail.load(Ordering::Acquire)
    }

    /// Copies completions out of the ring. The caller is the only consumer.
    pub fn take(&self, out: &mut [Event]) -> usize {
        let header = self.header();
        let mut head = header.head.load(Ordering::Relaxed);
        let tail = header.tail.load(Ordering::Acquire);
        if head >= self.places || tail >= self.places {
            return 0;
        }
        let mut n = 0;
        while head != tail && n < out.len() {
            let at = self.events + head as usize * size_of::<Event>();
            // SAFETY: the index is inside the ring as it was when the context was made; the acquire above ordered
            // the kernel's writes before this read.
            out[n] = unsafe { (at as *const Event).read() };
            n += 1;
            head = if head + 1 == self.places { 0 } else { head + 1 };
        }
        if n > 0 {
            header.head.store(head, Ordering::Release);
        }
        n
    }

    /// `io_pgetevents(2)`: sleeps until `min` events are there, the time is up, or a signal comes. With `flag`, also
    /// until that is non-zero and the interrupt signal was sent; both end with EINTR.
    pub fn wait(
        &self,
        min: usize,
        out: &mut [Event],
        limits: &Limits,
        flag: Option<&AtomicU32>,
    ) -> Result<usize, Errno> {
        let ts = limits.timeout.map(|(s, n)| [s, n]);
        let ts = ts.as_ref().map_or(0, |t| t.as_ptr() as usize);
        let mask = limits.mask.as_ref().map_or(0, |m| m as *const u64 as usize);
        let sigset = [mask, 8];
        let sigset = if mask == 0 { 0 } else { sigset.as_ptr() as usize };
        let args = [self.id, min.min(out.len()), out.len(), out.as_mut_ptr() as usize, ts, sigset];
        // SAFETY: the kernel writes at most so many events; the other structures are locals.
        unsafe {
            match flag {
                Some(flag) => interruptible(flag, nr::__NR_io_pgetevents, args),
                None => syscall(nr::__NR_io_pgetevents, args),
            }
        }
    }
}

impl Drop for Context {
    /// `io_destroy(2)`: waits for what is in flight.
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; nobody reads its ring any more.
        let _ = unsafe { syscall(nr::__NR_io_destroy, [self.id, 0, 0, 0, 0, 0]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// Reads of nothing end inside `io_submit`: enough of them go round the ring several times.
    #[test]
    fn completions_are_read_without_a_call() {
        let Ok(context) = Context::new(8) else { return };
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let mut out = [Event::default(); 16];
        assert!(context.is_readable() && !context.is_ready());
        for round in 0..1000u64 {
            let one = Iocb { data: round, fd: file.as_raw_fd() as u32, ..Iocb::default() };
            // SAFETY: a read of no bytes.
            assert_eq!(unsafe { context.submit(&[&one, &one]) }, Ok(2));
            assert!(context.is_ready());
            assert_eq!(context.take(&mut out[..1]), 1);
            assert_eq!(context.take(&mut out), 1);
            assert_eq!((out[0].data, out[0].res), (round, 0));
            assert_eq!(context.take(&mut out), 0);
        }
        let nothing = Limits { timeout: Some((0, 0)), mask: None };
        assert_eq!(context.wait(1, &mut out, &nothing, None), Ok(0));
    }
}
