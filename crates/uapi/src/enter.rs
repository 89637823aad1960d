//! `io_uring_enter(2)`: flags and the extended argument.

/// Wait for completions.
pub const GETEVENTS: u32 = 1 << 0;
/// Wake the SQPOLL thread.
pub const SQ_WAKEUP: u32 = 1 << 1;
/// Wait until the SQ has room.
pub const SQ_WAIT: u32 = 1 << 2;
/// `arg` is a [`GeteventsArg`].
pub const EXT_ARG: u32 = 1 << 3;
/// `fd` is a registered ring index.
pub const REGISTERED_RING: u32 = 1 << 4;
/// The timeout is absolute.
pub const ABS_TIMER: u32 = 1 << 5;
/// `arg` is an offset into the registered wait region.
pub const EXT_ARG_REG: u32 = 1 << 6;
/// Do not account the wait as I/O wait.
pub const NO_IOWAIT: u32 = 1 << 7;
/// All flags that Linux 6.18 knows.
pub const ALL_FLAGS: u32 = 0xff;

/// `struct io_uring_getevents_arg`, 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeteventsArg {
    /// Address of the signal mask for the wait, or 0.
    pub sigmask: u64,
    /// Size of that mask in bytes; 8.
    pub sigmask_sz: u32,
    /// Microseconds during which only `min_complete` CQEs end the wait.
    pub min_wait_usec: u32,
    /// Address of a timespec, or 0.
    pub ts: u64,
}

const _: () = assert!(size_of::<GeteventsArg>() == 24);

/// `struct __kernel_timespec`, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timespec {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds.
    pub nsec: i64,
}

/// `struct io_uring_reg_wait`, 64 bytes: the argument of a wait in a registered region.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegWait {
    /// How long, with [`REG_WAIT_TS`].
    pub ts: Timespec,
    /// As in [`GeteventsArg`].
    pub min_wait_usec: u32,
    /// [`REG_WAIT_TS`] or 0.
    pub flags: u32,
    /// As in [`GeteventsArg`].
    pub sigmask: u64,
    /// As in [`GeteventsArg`].
    pub sigmask_sz: u32,
    /// Unused.
    pub pad: [u32; 3],
    /// Unused.
    pub pad2: [u64; 2],
}
/// `ts` counts.
pub const REG_WAIT_TS: u32 = 1;

const _: () = assert!(size_of::<RegWait>() == 64);
