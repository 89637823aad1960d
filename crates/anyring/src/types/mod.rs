//! What operations and registrations take as arguments, beyond what the C library defines.
//!
//! A file is named by its descriptor ([`Fd`]) or by its place in the ring's table ([`Fixed`]):
//!
//! ```
//! use anyring::{opcode, types, Backend, IoUring};
//! use std::{fs::File, os::fd::AsRawFd};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
//! let (file, mut buf) = (File::open("/proc/self/exe")?, [0u8; 4]);
//! ring.submitter().register_files(&[file.as_raw_fd()])?;
//!
//! let read = opcode::Read::new(types::Fixed(0), buf.as_mut_ptr(), 4).build();
//! // SAFETY: the buffer lives until the completion was seen.
//! unsafe { ring.submission().push(&read).expect("the queue is empty") };
//! ring.submit_and_wait(1)?;
//! assert_eq!(&buf, b"\x7fELF");
//! # Ok(())
//! # }
//! ```

mod buf_ring;
mod cancel;
mod file;
mod flags;
mod napi;
mod recvmsg;
mod submit_args;
mod time;
mod zcrx;

pub use buf_ring::{BufRingEntry, IOU_PBUF_RING_INC, IOU_PBUF_RING_MMAP};
pub use cancel::CancelBuilder;
pub(crate) use file::sealed;
pub use file::{DestinationSlot, Fd, Fixed, OpenHow};
pub use flags::{CloneBuffersFlags, FsyncFlags, TimeoutFlags};
pub use napi::{Napi, NapiTracking};
pub use recvmsg::RecvMsgOut;
pub use submit_args::SubmitArgs;
pub use time::{FutexWaitV, Timespec};
pub use zcrx::{
    io_uring_region_desc, io_uring_zcrx_area_reg, io_uring_zcrx_cqe, io_uring_zcrx_ifq_reg,
    io_uring_zcrx_offsets, io_uring_zcrx_rqe, IORING_MEM_REGION_TYPE_USER, IORING_ZCRX_AREA_MASK,
    IORING_ZCRX_AREA_SHIFT,
};

/// The type of `RWF_*` bits in the C headers.
pub type RwFlags = u32;

/// Stands for [`struct@libc::statx`]: cast the pointer.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Debug)]
pub struct statx {
    _opaque: [u8; 0],
}

/// Stands for [`libc::epoll_event`]: cast the pointer.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Debug)]
pub struct epoll_event {
    _opaque: [u8; 0],
}
