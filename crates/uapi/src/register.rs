//! `io_uring_register(2)`: operation numbers and argument structures.

/// `IORING_REGISTER_BUFFERS`.
pub const BUFFERS: u32 = 0;
/// `IORING_UNREGISTER_BUFFERS`.
pub const UNREGISTER_BUFFERS: u32 = 1;
/// `IORING_REGISTER_FILES`.
pub const FILES: u32 = 2;
/// `IORING_UNREGISTER_FILES`.
pub const UNREGISTER_FILES: u32 = 3;
/// `IORING_REGISTER_EVENTFD`.
pub const EVENTFD: u32 = 4;
/// `IORING_UNREGISTER_EVENTFD`.
pub const UNREGISTER_EVENTFD: u32 = 5;
/// `IORING_REGISTER_FILES_UPDATE`.
pub const FILES_UPDATE: u32 = 6;
/// `IORING_REGISTER_EVENTFD_ASYNC`.
pub const EVENTFD_ASYNC: u32 = 7;
/// `IORING_REGISTER_PROBE`.
pub const PROBE: u32 = 8;
/// `IORING_REGISTER_PERSONALITY`.
pub const PERSONALITY: u32 = 9;
/// `IORING_UNREGISTER_PERSONALITY`.
pub const UNREGISTER_PERSONALITY: u32 = 10;
/// `IORING_REGISTER_RESTRICTIONS`.
pub const RESTRICTIONS: u32 = 11;
/// `IORING_REGISTER_ENABLE_RINGS`.
pub const ENABLE_RINGS: u32 = 12;
/// `IORING_REGISTER_FILES2`.
pub const FILES2: u32 = 13;
/// `IORING_REGISTER_FILES_UPDATE2`.
pub const FILES_UPDATE2: u32 = 14;
/// `IORING_REGISTER_BUFFERS2`.
pub const BUFFERS2: u32 = 15;
/// `IORING_REGISTER_BUFFERS_UPDATE`.
pub const BUFFERS_UPDATE: u32 = 16;
/// `IORING_REGISTER_IOWQ_AFF`.
pub const IOWQ_AFF: u32 = 17;
/// `IORING_UNREGISTER_IOWQ_AFF`.
pub const UNREGISTER_IOWQ_AFF: u32 = 18;
/// `IORING_REGISTER_IOWQ_MAX_WORKERS`.
pub const IOWQ_MAX_WORKERS: u32 = 19;
/// `IORING_REGISTER_RING_FDS`.
pub const RING_FDS: u32 = 20;
/// `IORING_UNREGISTER_RING_FDS`.
pub const UNREGISTER_RING_FDS: u32 = 21;
/// `IORING_REGISTER_PBUF_RING`.
pub const PBUF_RING: u32 = 22;
/// `IORING_UNREGISTER_PBUF_RING`.
pub const UNREGISTER_PBUF_RING: u32 = 23;
/// `IORING_REGISTER_SYNC_CANCEL`.
pub const SYNC_CANCEL: u32 = 24;
/// `IORING_REGISTER_FILE_ALLOC_RANGE`.
pub const FILE_ALLOC_RANGE: u32 = 25;
/// `IORING_REGISTER_PBUF_STATUS`.
pub const PBUF_STATUS: u32 = 26;
/// `IORING_REGISTER_NAPI`.
pub const NAPI: u32 = 27;
/// `IORING_UNREGISTER_NAPI`.
pub const UNREGISTER_NAPI: u32 = 28;
/// `IORING_REGISTER_CLOCK`.
pub const CLOCK: u32 = 29;
/// `IORING_REGISTER_CLONE_BUFFERS`.
pub const CLONE_BUFFERS: u32 = 30;
/// `IORING_REGISTER_SEND_MSG_RING`.
pub const SEND_MSG_RING: u32 = 31;
/// `IORING_REGISTER_ZCRX_IFQ`.
pub const ZCRX_IFQ: u32 = 32;
/// `IORING_REGISTER_RESIZE_RINGS`.
pub const RESIZE_RINGS: u32 = 33;
/// `IORING_REGISTER_MEM_REGION`.
pub const MEM_REGION: u32 = 34;
/// `IORING_REGISTER_QUERY`.
pub const QUERY: u32 = 35;

/// Number of register operations of Linux 6.18.
pub const COUNT: u32 = 36;
/// Bit of the operation that says `fd` is a registered ring index.
pub const USE_REGISTERED_RING: u32 = 1 << 31;

/// `struct io_uring_rsrc_register`, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RsrcRegister {
    /// Entries.
    pub nr: u32,
    /// [`RSRC_SPARSE`] or 0.
    pub flags: u32,
    /// Zero.
    pub resv2: u64,
    /// Address of the entries.
    pub data: u64,
    /// Address of u64 tags, or 0.
    pub tags: u64,
}
/// Register empty slots.
pub const RSRC_SPARSE: u32 = 1;

/// `struct io_uring_rsrc_update2`, 32 bytes; its first 16 are `io_uring_rsrc_update`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RsrcUpdate2 {
    /// First slot.
    pub offset: u32,
    /// Zero.
    pub resv: u32,
    /// Address of the entries.
    pub data: u64,
    /// Address of u64 tags, or 0.
    pub tags: u64,
    /// Entries.
    pub nr: u32,
    /// Zero.
    pub resv2: u32,
}

/// `struct io_uring_probe` header, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe {
    /// Highest opcode.
    pub last_op: u8,
    /// Entries filled.
    pub ops_len: u8,
    /// Zero.
    pub resv: u16,
    /// Zero.
    pub resv2: [u32; 3],
}
/// `struct io_uring_probe_op`, 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeOp {
    /// Opcode.
    pub op: u8,
    /// Zero.
    pub resv: u8,
    /// [`PROBE_SUPPORTED`] or 0.
    pub flags: u16,
    /// Zero.
    pub resv2: u32,
}
/// The opcode works.
pub const PROBE_SUPPORTED: u16 = 1;

/// `struct io_uring_buf_reg`, 40 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BufReg {
    /// Address of the ring, page-aligned; ignored with [`PBUF_RING_MMAP`].
    pub addr: u64,
    /// Entries, a power of two.
    pub entries: u32,
    /// Group.
    pub group: u16,
    /// [`PBUF_RING_MMAP`], [`PBUF_RING_INC`].
    pub flags: u16,
    /// Zero.
    pub resv: [u64; 3],
}
/// The kernel allocates the ring; the program maps it.
pub const PBUF_RING_MMAP: u16 = 1;
/// Buffers are consumed in pieces.
pub const PBUF_RING_INC: u16 = 2;

/// `struct io_uring_buf_status`, 40 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BufStatus {
    /// Group.
    pub group: u32,
    /// Out: the ring's head.
    pub head: u32,
    /// Zero.
    pub resv: [u32; 8],
}
const _: () = assert!(size_of::<BufReg>() == 40 && size_of::<BufStatus>() == 40);

/// `struct io_uring_restriction`, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Restriction {
    /// Kind: 0 register op, 1 SQE op, 2 SQE flags allowed, 3 SQE flags required.
    pub opcode: u16,
    /// The operation, or the flags.
    pub value: u8,
    /// Zero.
    pub resv: u8,
    /// Zero.
    pub resv2: [u32; 3],
}

/// `struct io_uring_sync_cancel_reg`, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncCancel {
    /// user_data to match.
    pub addr: u64,
    /// File to match.
    pub fd: i32,
    /// `IORING_ASYNC_CANCEL_*`.
    pub flags: u32,
    /// How long to wait; −1, −1 for ever.
    pub timeout: crate::enter::Timespec,
    /// Opcode to match.
    pub opcode: u8,
    /// Zero.
    pub pad: [u8; 7],
    /// Zero.
    pub pad2: [u64; 3],
}
const _: () = assert!(size_of::<SyncCancel>() == 64);
const _: () = assert!(size_of::<RsrcUpdate2>() == 32 && size_of::<RsrcRegister>() == 32);

/// `struct io_uring_clone_buffers`, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloneBuffers {
    /// The ring to clone from.
    pub src_fd: u32,
    /// `CLONE_*`.
    pub flags: u32,
    /// First slot there.
    pub src_off: u32,
    /// First slot here.
    pub dst_off: u32,
    /// Slots; 0 for all.
    pub nr: u32,
    /// Zero.
    pub pad: [u32; 3],
}
/// `src_fd` is a registered ring index.
pub const CLONE_SRC_REGISTERED: u32 = 1 << 0;
/// The ring may have buffers already.
pub const CLONE_DST_REPLACE: u32 = 1 << 1;

/// `struct io_uring_mem_region_reg`, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemRegionReg {
    /// Address of a [`RegionDesc`].
    pub region: u64,
    /// [`MEM_REGION_WAIT_ARG`] or 0.
    pub flags: u64,
    /// Zero.
    pub resv: [u64; 2],
}
/// The region holds arguments of waits.
pub const MEM_REGION_WAIT_ARG: u64 = 1;

/// `struct io_uring_region_desc`, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionDesc {
    /// The program's memory, with [`MEM_REGION_TYPE_USER`].
    pub user_addr: u64,
    /// Bytes: whole pages.
    pub size: u64,
    /// [`MEM_REGION_TYPE_USER`] or 0.
    pub flags: u32,
    /// Zero.
    pub id: u32,
    /// Where to map it, filled in.
    pub mmap_offset: u64,
    /// Zero.
    pub resv: [u64; 4],
}
/// The memory is the program's.
pub const MEM_REGION_TYPE_USER: u32 = 1;

const _: () = assert!(size_of::<CloneBuffers>() == 32 && size_of::<MemRegionReg>() == 32);
const _: () = assert!(size_of::<RegionDesc>() == 64);
