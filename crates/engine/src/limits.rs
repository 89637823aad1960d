//! Every integer limit, with its reason.

/// Most SQ entries, as in Linux.
pub const SQ_ENTRIES_MAX: u32 = 32768;
/// Most CQ entries, as in Linux: twice the SQ's.
pub const CQ_ENTRIES_MAX: u32 = 2 * SQ_ENTRIES_MAX;
/// Registered ring descriptors of one task, as in Linux.
pub const RING_FDS: usize = 16;
/// Registered files of one ring, as in Linux.
pub const FILES_MAX: u32 = 1 << 20;
/// Registered buffers of one ring, as in Linux.
pub const BUFFERS_MAX: u32 = 1 << 14;
/// Bytes of one registered buffer, as in Linux.
pub const BUFFER_BYTES_MAX: usize = 1 << 30;
/// Vectors of one request, `UIO_MAXIOV`.
pub const IOV_MAX: u32 = 1024;
/// Bytes of one transfer: Linux clamps to this (`MAX_RW_COUNT`).
pub const RW_BYTES_MAX: usize = 0x7fff_f000;
/// Events taken from a ring's epoll in one go; with DEFER_TASKRUN also the least bounded batch a turn.
pub const EVENTS_BATCH: usize = 20;
/// Results of one multishot request in a row before others get a turn, as in Linux.
pub const SHOTS_MAX: usize = 32;
/// Looks at multishot requests that gave way to others, before the submitting call returns.
pub const YIELD_ROUNDS: usize = 16;
/// Nanoseconds after which an idle worker leaves, as in Linux.
pub const WORKER_IDLE_NS: u64 = 5_000_000_000;
/// Bounded workers per CPU, as in Linux.
pub const BOUND_WORKERS_PER_CPU: u32 = 4;
/// Reads of files that a worker takes together to start readahead for all.
pub const COLD_READS_MAX: usize = 32;
/// Bytes of socket control data copied at prep.
pub const CONTROL_BYTES_MAX: usize = 64 * 1024;
/// Personalities of one ring, as in Linux.
pub const PERSONALITIES_MAX: u32 = 65535;
/// Milliseconds an SQPOLL thread spins when the program asks for 0.
pub const SQPOLL_IDLE_MS: u32 = 1000;
/// Bytes of an extended attribute's name, as in Linux.
pub const XATTR_NAME_MAX: usize = 255;
/// Bytes of an extended attribute's value, as in Linux.
pub const XATTR_VALUE_MAX: usize = 65536;
/// Words of futex waits in one lane: what `futex_waitv(2)` takes, less the bell.
pub const FUTEX_WORDS_MAX: usize = 127;
/// Nanoseconds for which a changed futex word may be explained by a wake: between a program's store and its wake.
pub const FUTEX_SUSPICION_NS: u64 = 2_000_000;
/// Fewest and most requests that a ring's AIO context takes; of `fs.aio-max-nr` for the whole system (65536) each context uses
/// up as many.
pub const AIO_SLOTS_MIN: u32 = 64;
/// See [`AIO_SLOTS_MIN`].
pub const AIO_SLOTS_MAX: u32 = 4096;
/// Direct requests sent to workers before a ring asks again for a context that the system had none left of.
pub const AIO_RETRY: u32 = 1024;
/// Nanoseconds from which on an inline call without a non-blocking form counts as slow: more than to hand it to a
/// worker and back, less than one read from a disk.
pub const INLINE_SLOW_NS: u64 = 50_000;
/// Bytes of a table of mounts that is still read; with a longer one paths do not count as local.
pub const MOUNTINFO_BYTES_MAX: usize = 1 << 20;
/// Bytes of a transfer up to which IOSQE_ASYNC does not need a worker if the data are at hand: to copy more takes
/// longer than to hand it over.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
