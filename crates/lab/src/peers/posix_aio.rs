//! The C library's POSIX AIO: aio_read, aio_suspend. In glibc, threads do the reads, and those of one
//! descriptor one after the other.

use crate::error::{check, Error, Result};
use crate::reads::{Queue, Read};

/// See the module's description.
pub struct PosixAio {
    blocks: Vec<Option<Box<libc::aiocb>>>,
}

impl PosixAio {
    /// Room for this many reads in flight.
    pub fn new(depth: usize) -> PosixAio {
        PosixAio { blocks: (0..depth).map(|_| None).collect() }
    }
}

impl Queue for PosixAio {
    fn queue(&mut self, read: Read) -> Result<()> {
        // SAFETY: all-zero is a valid control block.
        let mut block: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        block.aio_fildes = read.fd;
        block.aio_buf = read.buf.cast();
        block.aio_nbytes = read.len;
        block.aio_offset = read.offset as i64;
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        // SAFETY: the block stays where it is until the read has ended.
        check("aio_read", i64::from(unsafe { libc::aio_read(&mut *block) }))?;
        self.blocks[read.slot] = Some(block);
        Ok(())
    }

    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()> {
        done.clear();
        loop {
            for (slot, place) in self.blocks.iter_mut().enumerate() {
                let Some(block) = place else { continue };
                // SAFETY: the block was started and its result not yet taken.
                let result = match unsafe { libc::aio_error(&**block) } {
                    libc::EINPROGRESS => continue,
                    // SAFETY: as above, and the read has ended.
                    0 => unsafe { libc::aio_return(&mut **block) as i64 },
                    error => -i64::from(error),
                };
                *place = None;
                done.push((slot, result));
            }
            if done.len() >= min as usize {
                return Ok(());
            }
            self.suspend()?;
        }
    }
}

impl PosixAio {
    fn suspend(&self) -> Result<()> {
        let list: Vec<*const libc::aiocb> =
            self.blocks.iter().flatten().map(|block| &raw const **block).collect();
        // SAFETY: all blocks of the list are in flight.
        let ret = unsafe { libc::aio_suspend(list.as_ptr(), list.len() as i32, std::ptr::null()) };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if ret == 0 => Ok(()),
            Some(libc::EINTR) => crate::watchdog::check(),
            Some(libc::EAGAIN) => Ok(()),
            _ => Err(Error::os("aio_suspend")),
        }
    }
}
