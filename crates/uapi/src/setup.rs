//! `io_uring_setup(2)`: parameters, flags, feature bits, and where things lie in
//! the shared memory.

/// Offsets of the submission ring's fields from the start of its mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqOffsets {
    /// Index the consumer moves.
    pub head: u32,
    /// Index the program moves.
    pub tail: u32,
    /// Entries − 1.
    pub ring_mask: u32,
    /// Entries.
    pub ring_entries: u32,
    /// `IORING_SQ_*` bits.
    pub flags: u32,
    /// Count of invalid indices skipped.
    pub dropped: u32,
    /// Array of SQE indices, 0 with `NO_SQARRAY`.
    pub array: u32,
    /// Zero.
    pub resv1: u32,
    /// Address of the SQEs with `NO_MMAP`.
    pub user_addr: u64,
}

/// Offsets of the completion ring's fields from the start of its mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqOffsets {
    /// Index the program moves.
    pub head: u32,
    /// Index the producer moves.
    pub tail: u32,
    /// Entries − 1.
    pub ring_mask: u32,
    /// Entries.
    pub ring_entries: u32,
    /// Count of CQEs lost.
    pub overflow: u32,
    /// The CQEs.
    pub cqes: u32,
    /// Flags the program sets, see [`crate::cqe::CQ_EVENTFD_DISABLED`].
    pub flags: u32,
    /// Zero.
    pub resv1: u32,
    /// Address of the rings with `NO_MMAP`.
    pub user_addr: u64,
}

/// `struct io_uring_params`, 120 bytes, read and written by `io_uring_setup`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Out: SQ entries.
    pub sq_entries: u32,
    /// In with `CQSIZE`, out: CQ entries.
    pub cq_entries: u32,
    /// In: `IORING_SETUP_*`.
    pub flags: u32,
    /// In: CPU of the SQPOLL thread with `SQ_AFF`.
    pub sq_thread_cpu: u32,
    /// In: milliseconds the SQPOLL thread spins before it sleeps, 0 for 1 s.
    pub sq_thread_idle: u32,
    /// Out: `IORING_FEAT_*`.
    pub features: u32,
    /// In: ring to share with, with `ATTACH_WQ`.
    pub wq_fd: u32,
    /// Zero.
    pub resv: [u32; 3],
    /// Out (and in for `user_addr`).
    pub sq_off: SqOffsets,
    /// Out (and in for `user_addr`).
    pub cq_off: CqOffsets,
}

const _: () = assert!(size_of::<Params>() == 120);

/// Polled completions.
pub const IOPOLL: u32 = 1 << 0;
/// A thread submits for the program.
pub const SQPOLL: u32 = 1 << 1;
/// Pin the SQPOLL thread to `sq_thread_cpu`.
pub const SQ_AFF: u32 = 1 << 2;
/// `cq_entries` is given.
pub const CQSIZE: u32 = 1 << 3;
/// Clamp sizes instead of refusing.
pub const CLAMP: u32 = 1 << 4;
/// Share the worker pool (and SQPOLL thread) of `wq_fd`.
pub const ATTACH_WQ: u32 = 1 << 5;
/// Start disabled.
pub const R_DISABLED: u32 = 1 << 6;
/// Go on submitting after an error.
pub const SUBMIT_ALL: u32 = 1 << 7;
/// Do not interrupt the task for task work.
pub const COOP_TASKRUN: u32 = 1 << 8;
/// Show pending task work in the SQ flags.
pub const TASKRUN_FLAG: u32 = 1 << 9;
/// SQEs of 128 bytes.
pub const SQE128: u32 = 1 << 10;
/// CQEs of 32 bytes.
pub const CQE32: u32 = 1 << 11;
/// One task submits.
pub const SINGLE_ISSUER: u32 = 1 << 12;
/// Task work runs only in enter(GETEVENTS).
pub const DEFER_TASKRUN: u32 = 1 << 13;
/// The program brings the ring memory.
pub const NO_MMAP: u32 = 1 << 14;
/// The return value is a registered ring index.
pub const REGISTERED_FD_ONLY: u32 = 1 << 15;
/// No SQ index array.
pub const NO_SQARRAY: u32 = 1 << 16;
/// Sleep before polling.
pub const HYBRID_IOPOLL: u32 = 1 << 17;
/// CQEs of both sizes.
pub const CQE_MIXED: u32 = 1 << 18;
/// All flags that Linux 6.18 knows.
pub const ALL_FLAGS: u32 = 0x7ffff;

/// Feature bits, by number: SINGLE_MMAP.
pub const FEAT_SINGLE_MMAP: u32 = 1 << 0;
/// No CQE is dropped.
pub const FEAT_NODROP: u32 = 1 << 1;
/// What SQEs point to may be reused after submit.
pub const FEAT_SUBMIT_STABLE: u32 = 1 << 2;
/// Offset −1 is the file position.
pub const FEAT_RW_CUR_POS: u32 = 1 << 3;
/// Requests run with the submitter's credentials.
pub const FEAT_CUR_PERSONALITY: u32 = 1 << 4;
/// Pollable files need no worker.
pub const FEAT_FAST_POLL: u32 = 1 << 5;
/// POLL_ADD takes 32 bits of events.
pub const FEAT_POLL_32BITS: u32 = 1 << 6;
/// SQPOLL works with plain fds.
pub const FEAT_SQPOLL_NONFIXED: u32 = 1 << 7;
/// enter takes `struct io_uring_getevents_arg`.
pub const FEAT_EXT_ARG: u32 = 1 << 8;
/// Workers are threads of the process.
pub const FEAT_NATIVE_WORKERS: u32 = 1 << 9;
/// Registered resources carry tags.
pub const FEAT_RSRC_TAGS: u32 = 1 << 10;
/// IOSQE_CQE_SKIP_SUCCESS.
pub const FEAT_CQE_SKIP: u32 = 1 << 11;
/// Files of linked requests are resolved when they start.
pub const FEAT_LINKED_FILE: u32 = 1 << 12;
/// register(2) through a registered ring.
pub const FEAT_REG_REG_RING: u32 = 1 << 13;
/// Bundles for send and recv.
pub const FEAT_RECVSEND_BUNDLE: u32 = 1 << 14;
/// `min_wait_usec`.
pub const FEAT_MIN_TIMEOUT: u32 = 1 << 15;
/// Read and write attributes.
pub const FEAT_RW_ATTR: u32 = 1 << 16;
/// IORING_ENTER_NO_IOWAIT.
pub const FEAT_NO_IOWAIT: u32 = 1 << 17;

/// mmap offset of the SQ ring (and, with SINGLE_MMAP, the CQ ring).
pub const OFF_SQ_RING: u64 = 0;
/// mmap offset of the CQ ring; the same memory as [`OFF_SQ_RING`].
pub const OFF_CQ_RING: u64 = 0x800_0000;
/// mmap offset of the SQEs.
pub const OFF_SQES: u64 = 0x1000_0000;
/// `mmap` offset of a registered memory region.
pub const OFF_PARAM_REGION: u64 = 0x2000_0000;
/// mmap offset of kernel-allocated buffer rings, group id << 16.
pub const OFF_PBUF_RING: u64 = 0x8000_0000;

/// The group whose buffer ring an mmap offset names.
pub fn pbuf_group(offset: u64) -> Option<u16> {
    const KIND: u64 = 0xf800_0000;
    const SHIFT: u32 = 16;
    (offset & KIND == OFF_PBUF_RING).then_some(((offset & !KIND) >> SHIFT) as u16)
}

/// SQ flag: the SQPOLL thread sleeps.
pub const SQ_NEED_WAKEUP: u32 = 1;
/// SQ flag: CQEs wait in the overflow list.
pub const SQ_CQ_OVERFLOW: u32 = 2;
/// SQ flag: task work waits for enter.
pub const SQ_TASKRUN: u32 = 4;
