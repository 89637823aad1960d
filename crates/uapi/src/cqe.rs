//! The completion queue entry (CQE).

/// One completion queue entry, 16 bytes. With `IORING_SETUP_CQE32` each is
/// followed by 16 further bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cqe {
    /// From the SQE.
    pub user_data: u64,
    /// Result, or a negative errno.
    pub res: i32,
    /// `IORING_CQE_F_*` bits.
    pub flags: u32,
}

const _: () = assert!(size_of::<Cqe>() == 16);

/// The upper 16 bits of `flags` hold a provided buffer's id.
pub const F_BUFFER: u32 = 1 << 0;
/// More CQEs will come from this request.
pub const F_MORE: u32 = 1 << 1;
/// The socket had more data, or more connections, when this was posted.
pub const F_SOCK_NONEMPTY: u32 = 1 << 2;
/// The second CQE of a zero-copy send.
pub const F_NOTIF: u32 = 1 << 3;
/// The provided buffer is not used up.
pub const F_BUF_MORE: u32 = 1 << 4;
/// Filler of a mixed-size ring, to be ignored.
pub const F_SKIP: u32 = 1 << 5;
/// A 32-byte CQE on a mixed-size ring.
pub const F_32: u32 = 1 << 15;
/// Shift of the buffer id in `flags`.
pub const BUFFER_SHIFT: u32 = 16;
/// `flags` field of the CQ ring: the program wants no eventfd signals.
pub const CQ_EVENTFD_DISABLED: u32 = 1;
