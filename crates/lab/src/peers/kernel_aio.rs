//! Linux's older asynchronous I/O (what libaio wraps): io_setup, io_submit, io_getevents.

use crate::error::{check, Result};
use crate::reads::{Queue, Read};

/// `struct iocb`, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buf: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}
const _: () = assert!(size_of::<Iocb>() == 64);

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    iocb: u64,
    res: i64,
    res2: i64,
}

const PREAD: u16 = 0;

/// See the module's description.
pub struct KernelAio {
    context: u64,
    iocbs: Vec<Iocb>,
    queued: Vec<usize>,
    events: Vec<Event>,
}

impl KernelAio {
    /// A context for this many reads in flight.
    pub fn new(depth: usize) -> Result<KernelAio> {
        let mut context = 0u64;
        // SAFETY: the context is writable.
        let ret = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        check("io_setup", ret)?;
        let (iocbs, events) = (vec![Iocb::default(); depth], vec![Event::default(); depth]);
        Ok(KernelAio { context, iocbs, queued: Vec::new(), events })
    }
}

impl Queue for KernelAio {
    fn queue(&mut self, read: Read) -> Result<()> {
        self.iocbs[read.slot] = Iocb {
            data: read.slot as u64,
            opcode: PREAD,
            fd: read.fd as u32,
            buf: read.buf as u64,
            len: read.len as u64,
            offset: read.offset as i64,
            ..Iocb::default()
        };
        self.queued.push(read.slot);
        Ok(())
    }

    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()> {
        while !self.queued.is_empty() {
            let list: Vec<*mut Iocb> =
                self.queued.iter().map(|&slot| &raw mut self.iocbs[slot]).collect();
            // SAFETY: the control blocks live until their reads have ended.
            let ret = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, list.len(), list.as_ptr())
            };
            self.queued.drain(..check("io_submit", ret)? as usize);
        }
        let (most, events) = (self.events.len(), self.events.as_mut_ptr());
        let ret = loop {
            // SAFETY: so many events are writable; no timeout.
            let ret = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    min as usize,
                    most,
                    events,
                    0usize,
                )
            };
            let interrupted = std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
            if ret >= 0 || !interrupted {
                break check("io_getevents", ret)?;
            }
            crate::watchdog::check()?;
        };
        done.clear();
        done.extend(self.events[..ret as usize].iter().map(|e| (e.data as usize, e.res)));
        Ok(())
    }
}

impl Drop for KernelAio {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; the call waits for reads in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
