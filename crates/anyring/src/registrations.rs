//! The registering half of [`Submitter`]: each method is one operation of `io_uring_register(2)`.

use crate::register::{Probe, Restriction};
use crate::types::{io_uring_zcrx_ifq_reg, CancelBuilder, CloneBuffersFlags, Napi, Timespec};
use crate::Submitter;
use anyring_uapi::register::{self as op, RsrcRegister, RsrcUpdate2};
use libc::iovec;
use std::io;
use std::os::fd::RawFd;

/// `struct io_uring_rsrc_update`
#[repr(C)]
struct RsrcUpdate {
    offset: u32,
    resv: u32,
    data: u64,
}

/// `struct io_uring_clone_buffers`
#[repr(C)]
struct CloneBuffers {
    src_fd: u32,
    flags: u32,
    src_off: u32,
    dst_off: u32,
    nr: u32,
    pad: [u32; 3],
}

/// `struct io_uring_buf_reg`
#[repr(C)]
#[derive(Default)]
struct BufReg {
    ring_addr: u64,
    ring_entries: u32,
    bgid: u16,
    flags: u16,
    resv: [u64; 3],
}

const _: () = assert!(size_of::<RsrcUpdate>() == 16);
const _: () = assert!(size_of::<CloneBuffers>() == 32 && size_of::<BufReg>() == 40);

/// `struct io_uring_sync_cancel_reg` has the time in it.
#[repr(C)]
struct SyncCancel {
    addr: u64,
    fd: i32,
    flags: u32,
    timeout: Timespec,
    opcode: u8,
    pad: [u8; 7],
    pad2: [u64; 3],
}
const _: () = assert!(size_of::<SyncCancel>() == 64);

fn tags_ptr(count: usize, tags: Option<&[u64]>) -> io::Result<u64> {
    match tags {
        None => Ok(0),
        Some(tags) if tags.len() == count => Ok(tags.as_ptr() as u64),
        Some(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "as many tags are needed as there are buffers",
        )),
    }
}

impl Submitter<'_> {
    /// An operation on `nr` things at `arg`.
    ///
    /// # Safety
    /// They are what the operation reads or writes.
    unsafe fn call(&self, op: u32, arg: *const impl Sized, nr: usize) -> io::Result<u32> {
        let nr = u32::try_from(nr).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let index = self.index.filter(|_| self.params.registers_by_index());
        // SAFETY: the caller's.
        unsafe { self.fd.register(index, op, arg as usize, nr) }
    }

    /// An operation without arguments.
    fn bare(&self, op: u32) -> io::Result<u32> {
        // SAFETY: nothing is read or written.
        unsafe { self.call(op, std::ptr::null::<u8>(), 0) }
    }

    /// Registers buffers for [`ReadFixed`](crate::opcode::ReadFixed) and
    /// [`WriteFixed`](crate::opcode::WriteFixed).
    ///
    /// # Safety
    /// The buffers stay valid until they are unregistered or the ring is dropped.
    pub unsafe fn register_buffers(&self, bufs: &[iovec]) -> io::Result<()> {
        // SAFETY: a list; the buffers are the caller's.
        unsafe { self.call(op::BUFFERS, bufs.as_ptr(), bufs.len()) }.map(drop)
    }

    /// Puts buffers into the table, from slot `offset` on. With tags, a completion with the tag as
    /// user data says when a buffer is used no more.
    ///
    /// # Safety
    /// The buffers stay valid until they are replaced or the ring is dropped.
    pub unsafe fn register_buffers_update(
        &self,
        offset: u32,
        bufs: &[iovec],
        tags: Option<&[u64]>,
    ) -> io::Result<()> {
        let update = RsrcUpdate2 {
            offset,
            data: bufs.as_ptr() as u64,
            tags: tags_ptr(bufs.len(), tags)?,
            nr: bufs.len() as u32,
            ..RsrcUpdate2::default()
        };
        // SAFETY: the size of the structure goes with it; the buffers are the caller's.
        unsafe { self.call(op::BUFFERS_UPDATE, &raw const update, size_of_val(&update)) }.map(drop)
    }

    /// As [`register_buffers`](Self::register_buffers), with a tag for each buffer: a completion
    /// with it as user data says when the buffer is used no more. The tag 0 is none.
    ///
    /// # Safety
    /// The buffers stay valid until they are unregistered or the ring is dropped.
    pub unsafe fn register_buffers2(&self, bufs: &[iovec], tags: &[u64]) -> io::Result<()> {
        let table = RsrcRegister {
            nr: bufs.len() as u32,
            data: bufs.as_ptr() as u64,
            tags: tags_ptr(bufs.len(), Some(tags))?,
            ..RsrcRegister::default()
        };
        // SAFETY: the size of the structure goes with it; the buffers are the caller's.
        unsafe { self.call(op::BUFFERS2, &raw const table, size_of_val(&table)) }.map(drop)
    }

    /// Makes a table of `nr` empty slots for buffers.
    pub fn register_buffers_sparse(&self, nr: u32) -> io::Result<()> {
        self.sparse(op::BUFFERS2, nr)
    }

    fn sparse(&self, operation: u32, nr: u32) -> io::Result<()> {
        let table = RsrcRegister { nr, flags: op::RSRC_SPARSE, ..RsrcRegister::default() };
        // SAFETY: the size of the structure goes with it.
        unsafe { self.call(operation, &raw const table, size_of_val(&table)) }.map(drop)
    }

    /// Shares the whole buffer table of another ring.
    pub fn register_buffers_clone(&self, src_fd: RawFd) -> io::Result<()> {
        self.register_buffers_clone_offset(src_fd, 0, 0, 0, CloneBuffersFlags::empty())
    }

    /// Shares `nr` buffers of another ring, from its slot `src_off` on, at `dst_off`; 0 is all.
    pub fn register_buffers_clone_offset(
        &self,
        src_fd: RawFd,
        src_off: u32,
        dst_off: u32,
        nr: u32,
        flags: CloneBuffersFlags,
    ) -> io::Result<()> {
        let clone = CloneBuffers {
            src_fd: src_fd as u32,
            flags: flags.bits(),
            src_off,
            dst_off,
            nr,
            pad: [0; 3],
        };
        // SAFETY: one structure.
        unsafe { self.call(op::CLONE_BUFFERS, &raw const clone, 1) }.map(drop)
    }

    /// Makes a table of `nr` empty slots for files.
    pub fn register_files_sparse(&self, nr: u32) -> io::Result<()> {
        self.sparse(op::FILES2, nr)
    }

    /// Registers files, to be named as [`Fixed`](crate::types::Fixed); −1 is an empty slot.
    ///
    /// ```
    /// use anyring::{Backend, IoUring};
    /// use std::os::fd::AsRawFd;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
    /// let null = std::fs::File::open("/dev/null")?;
    /// ring.submitter().register_files(&[null.as_raw_fd(), -1])?;
    /// ring.submitter().unregister_files()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_files(&self, fds: &[RawFd]) -> io::Result<()> {
        // SAFETY: a list.
        unsafe { self.call(op::FILES, fds.as_ptr(), fds.len()) }.map(drop)
    }

    /// Puts files into the table, from slot `offset` on; −1 empties a slot,
    /// [`SKIP_FILE`](crate::register::SKIP_FILE) leaves it. The result is how many were done.
    pub fn register_files_update(&self, offset: u32, fds: &[RawFd]) -> io::Result<usize> {
        let update = RsrcUpdate { offset, resv: 0, data: fds.as_ptr() as u64 };
        // SAFETY: a structure that points to a list of that length.
        let done = unsafe { self.call(op::FILES_UPDATE, &raw const update, fds.len()) }?;
        Ok(done as usize)
    }

    /// Signals this eventfd with each completion.
    pub fn register_eventfd(&self, eventfd: RawFd) -> io::Result<()> {
        // SAFETY: one descriptor.
        unsafe { self.call(op::EVENTFD, &raw const eventfd, 1) }.map(drop)
    }

    /// Signals this eventfd with each completion of a request that did not complete at once.
    pub fn register_eventfd_async(&self, eventfd: RawFd) -> io::Result<()> {
        // SAFETY: one descriptor.
        unsafe { self.call(op::EVENTFD_ASYNC, &raw const eventfd, 1) }.map(drop)
    }

    /// Finds out which operations work, see [`Probe`].
    pub fn register_probe(&self, probe: &mut Probe) -> io::Result<()> {
        // SAFETY: a probe has room for that many operations.
        unsafe { self.call(op::PROBE, probe.as_mut_ptr(), Probe::COUNT) }.map(drop)
    }

    /// Registers the credentials of the process; the result goes to
    /// [`Entry::personality`](crate::squeue::Entry::personality).
    pub fn register_personality(&self) -> io::Result<u16> {
        self.bare(op::PERSONALITY).map(|id| id as u16)
    }

    /// Unregisters all buffers.
    pub fn unregister_buffers(&self) -> io::Result<()> {
        self.bare(op::UNREGISTER_BUFFERS).map(drop)
    }

    /// Unregisters all files.
    pub fn unregister_files(&self) -> io::Result<()> {
        self.bare(op::UNREGISTER_FILES).map(drop)
    }

    /// Signals no eventfd any more.
    pub fn unregister_eventfd(&self) -> io::Result<()> {
        self.bare(op::UNREGISTER_EVENTFD).map(drop)
    }

    /// Unregisters credentials.
    pub fn unregister_personality(&self, personality: u16) -> io::Result<()> {
        let none = std::ptr::null::<u8>();
        // SAFETY: the number stands for the count; nothing is read.
        unsafe { self.call(op::UNREGISTER_PERSONALITY, none, personality.into()) }.map(drop)
    }

    /// Restricts a disabled ring to what is listed, for good.
    pub fn register_restrictions(&self, res: &mut [Restriction]) -> io::Result<()> {
        // SAFETY: a list.
        unsafe { self.call(op::RESTRICTIONS, res.as_mut_ptr(), res.len()) }.map(drop)
    }

    /// Enables a ring that was made disabled, see
    /// [`setup_r_disabled`](crate::Builder::setup_r_disabled).
    pub fn register_enable_rings(&self) -> io::Result<()> {
        self.bare(op::ENABLE_RINGS).map(drop)
    }

    /// Sets the CPUs of the workers.
    pub fn register_iowq_aff(&self, cpu_set: &libc::cpu_set_t) -> io::Result<()> {
        let set = std::ptr::from_ref(cpu_set);
        // SAFETY: the size of the set goes with it.
        unsafe { self.call(op::IOWQ_AFF, set, size_of::<libc::cpu_set_t>()) }.map(drop)
    }

    /// Lets workers run on all CPUs again.
    pub fn unregister_iowq_aff(&self) -> io::Result<()> {
        self.bare(op::UNREGISTER_IOWQ_AFF).map(drop)
    }

    /// Sets the most workers there may be for work that ends by itself (files) and for other work
    /// (sockets, pipes); 0 leaves a limit as it is. The former limits are written back.
    pub fn register_iowq_max_workers(&self, max: &mut [u32; 2]) -> io::Result<()> {
        // SAFETY: two numbers.
        unsafe { self.call(op::IOWQ_MAX_WORKERS, max.as_mut_ptr(), max.len()) }.map(drop)
    }

    /// Registers the ring's descriptor for the calling thread; this submitter names the ring by
    /// the index from then on. `EEXIST` if it does already.
    pub fn register_ring_fd(&mut self) -> io::Result<()> {
        if self.index.is_some() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let data = self.fd.number() as u64;
        let mut update = RsrcUpdate { offset: u32::MAX, resv: 0, data };
        // SAFETY: one structure, whose offset is written.
        match unsafe { self.call(op::RING_FDS, &raw mut update, 1) }? {
            1 => {
                self.index = Some(update.offset);
                Ok(())
            }
            _ => Err(io::Error::other("the ring's descriptor was not registered")),
        }
    }

    /// Undoes [`register_ring_fd`](Self::register_ring_fd). `EINVAL` if nothing is registered.
    pub fn unregister_ring_fd(&mut self) -> io::Result<()> {
        let Some(offset) = self.index else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let update = RsrcUpdate { offset, resv: 0, data: 0 };
        // SAFETY: one structure.
        unsafe { self.call(op::UNREGISTER_RING_FDS, &raw const update, 1) }?;
        self.index = None;
        Ok(())
    }

    /// Sets busy polling of network devices; the former settings are written back.
    pub fn register_napi(&self, napi: &mut Napi) -> io::Result<()> {
        // SAFETY: one structure, which is written.
        unsafe { self.call(op::NAPI, std::ptr::from_mut(napi), 1) }.map(drop)
    }

    /// Ends busy polling; the former settings are written back.
    pub fn unregister_napi(&self, napi: &mut Napi) -> io::Result<()> {
        // SAFETY: one structure, which is written.
        unsafe { self.call(op::UNREGISTER_NAPI, std::ptr::from_mut(napi), 1) }.map(drop)
    }

    /// Adds a queue to those that are polled, with static tracking.
    pub fn register_napi_add_id(&self, napi_id: u32) -> io::Result<()> {
        self.register_napi(&mut Napi::add(napi_id))
    }

    /// Removes a queue from those that are polled, with static tracking.
    pub fn register_napi_del_id(&self, napi_id: u32) -> io::Result<()> {
        self.register_napi(&mut Napi::del(napi_id))
    }

    /// Registers a ring of provided buffers: `ring_entries`
    /// [entries](crate::types::BufRingEntry) at `ring_addr`, page-aligned, for the group `bgid`.
    ///
    /// # Safety
    /// The memory stays valid until the group is unregistered or the ring is dropped.
    pub unsafe fn register_buf_ring(
        &self,
        ring_addr: u64,
        ring_entries: u16,
        bgid: u16,
    ) -> io::Result<()> {
        // SAFETY: the caller's.
        unsafe { self.register_buf_ring_with_flags(ring_addr, ring_entries, bgid, 0) }
    }

    /// As [`register_buf_ring`](Self::register_buf_ring), with `IOU_PBUF_RING_*` bits, see
    /// [`types`](crate::types).
    ///
    /// # Safety
    /// The memory stays valid until the group is unregistered or the ring is dropped.
    pub unsafe fn register_buf_ring_with_flags(
        &self,
        ring_addr: u64,
        ring_entries: u16,
        bgid: u16,
        flags: u16,
    ) -> io::Result<()> {
        let ring_entries = ring_entries.into();
        let reg = BufReg { ring_addr, ring_entries, bgid, flags, resv: [0; 3] };
        // SAFETY: one structure; the ring's memory is the caller's.
        unsafe { self.call(op::PBUF_RING, &raw const reg, 1) }.map(drop)
    }

    /// Unregisters a ring of provided buffers.
    pub fn unregister_buf_ring(&self, bgid: u16) -> io::Result<()> {
        let reg = BufReg { bgid, ..BufReg::default() };
        // SAFETY: one structure.
        unsafe { self.call(op::UNREGISTER_PBUF_RING, &raw const reg, 1) }.map(drop)
    }

    /// Cancels requests and waits until they are gone, for ever or as long as `timeout` says.
    ///
    /// The error is `ENOENT` if none matches, `ETIME` if the time ran out.
    pub fn register_sync_cancel(
        &self,
        timeout: Option<Timespec>,
        builder: CancelBuilder,
    ) -> io::Result<()> {
        // −1 in both fields waits for ever.
        let forever = Timespec::endless();
        let cancel = SyncCancel {
            addr: builder.user_data_field(),
            fd: builder.fd_field(),
            flags: builder.flags_field(),
            timeout: timeout.unwrap_or(forever),
            opcode: 0,
            pad: [0; 7],
            pad2: [0; 3],
        };
        // SAFETY: one structure.
        unsafe { self.call(op::SYNC_CANCEL, &raw const cancel, 1) }.map(drop)
    }

    /// Registers a receive queue of a network device for
    /// [`RecvZc`](crate::opcode::RecvZc). The structure is written to.
    pub fn register_ifq(&self, reg: &io_uring_zcrx_ifq_reg) -> io::Result<()> {
        // SAFETY: one structure.
        unsafe { self.call(op::ZCRX_IFQ, std::ptr::from_ref(reg), 1) }.map(drop)
    }
}
