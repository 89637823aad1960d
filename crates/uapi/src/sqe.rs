//! The submission queue entry (SQE).

/// One submission queue entry, 64 bytes. Unions are kept as the integer that the
/// most operations use; the accessors name the other readings.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sqe {
    /// Operation, see [`crate::op`]. Any byte may stand here.
    pub opcode: u8,
    /// `IOSQE_*` bits.
    pub flags: u8,
    /// I/O priority, or per-operation flags of network operations.
    pub ioprio: u16,
    /// File descriptor, or slot with [`FIXED_FILE`].
    pub fd: i32,
    /// Offset; also `addr2`, or `cmd_op` in its low half.
    pub off: u64,
    /// Address; also `splice_off_in`.
    pub addr: u64,
    /// Length in bytes or count.
    pub len: u32,
    /// Per-operation flags: `rw_flags`, `poll32_events`, `msg_flags` and others.
    pub op_flags: u32,
    /// Handed back in the CQE untouched.
    pub user_data: u64,
    /// Registered buffer index, or provided buffer group with [`BUFFER_SELECT`].
    pub buf_index: u16,
    /// Registered credentials, 0 for the submitter's own.
    pub personality: u16,
    /// `file_index` (slot + 1), `splice_fd_in`, `optlen` or `addr_len`.
    pub file_index: u32,
    /// `addr3`, `optval` or `attr_ptr`.
    pub addr3: u64,
    /// Padding, or `attr_type_mask`.
    pub pad2: u64,
}

const _: () = assert!(size_of::<Sqe>() == 64);
const _: () = assert!(core::mem::offset_of!(Sqe, user_data) == 32);
const _: () = assert!(core::mem::offset_of!(Sqe, addr3) == 48);

impl Sqe {
    /// `splice_fd_in`, the signed reading of `file_index`.
    pub fn splice_fd_in(&self) -> i32 {
        self.file_index as i32
    }
    /// `addr_len`, the low half of `file_index`.
    pub fn addr_len(&self) -> u16 {
        self.file_index as u16
    }
    /// The padding above `addr_len`.
    pub fn addr_len_pad(&self) -> u16 {
        (self.file_index >> 16) as u16
    }
    /// `cmd_op` of `IORING_OP_URING_CMD`.
    pub fn cmd_op(&self) -> u32 {
        self.off as u32
    }
}

/// `fd` is a slot of the registered file table.
pub const FIXED_FILE: u8 = 1 << 0;
/// Start after everything submitted before has completed.
pub const IO_DRAIN: u8 = 1 << 1;
/// The next SQE starts when this one succeeded.
pub const IO_LINK: u8 = 1 << 2;
/// The next SQE starts when this one completed, whatever the result.
pub const IO_HARDLINK: u8 = 1 << 3;
/// Skip the inline attempt.
pub const ASYNC: u8 = 1 << 4;
/// Take a buffer from group `buf_index`.
pub const BUFFER_SELECT: u8 = 1 << 5;
/// Post no CQE on success.
pub const CQE_SKIP_SUCCESS: u8 = 1 << 6;
/// All flags that Linux 6.18 knows.
pub const VALID_FLAGS: u8 = 0x7f;

/// `file_index` value that asks for any free slot.
pub const FILE_INDEX_ALLOC: u32 = !0;
