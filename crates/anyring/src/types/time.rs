//! Times and futex vectors.

use anyring_uapi::enter;
use std::time::Duration;

/// `struct __kernel_timespec`.
///
/// ```
/// use anyring::types::Timespec;
/// use std::time::Duration;
///
/// let second = Timespec::new().sec(1);
/// let same = Timespec::from(Duration::from_secs(1));
/// assert_eq!(format!("{second:?}"), format!("{same:?}"));
/// ```
#[derive(Default, Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Timespec(enter::Timespec);

impl Timespec {
    /// Zero.
    #[inline]
    pub const fn new() -> Self {
        Timespec(enter::Timespec { sec: 0, nsec: 0 })
    }

    /// What the kernel takes for no end.
    pub(crate) const fn endless() -> Self {
        Timespec(enter::Timespec { sec: -1, nsec: -1 })
    }

    /// Whole seconds.
    #[inline]
    pub const fn sec(mut self, sec: u64) -> Self {
        self.0.sec = sec as i64;
        self
    }

    /// Nanoseconds beyond them.
    #[inline]
    pub const fn nsec(mut self, nsec: u32) -> Self {
        self.0.nsec = nsec as i64;
        self
    }
}

impl From<Duration> for Timespec {
    #[inline]
    fn from(value: Duration) -> Self {
        Timespec::new().sec(value.as_secs()).nsec(value.subsec_nanos())
    }
}

/// `struct futex_waitv` of `futex_waitv(2)`.
#[derive(Default, Debug, Clone, Copy)]
#[repr(C)]
pub struct FutexWaitV {
    val: u64,
    uaddr: u64,
    flags: u32,
    reserved: u32,
}

impl FutexWaitV {
    /// All zeroes.
    pub const fn new() -> Self {
        FutexWaitV { val: 0, uaddr: 0, flags: 0, reserved: 0 }
    }

    /// The value that the futex must have.
    pub const fn val(mut self, val: u64) -> Self {
        self.val = val;
        self
    }

    /// Address of the futex.
    pub const fn uaddr(mut self, uaddr: u64) -> Self {
        self.uaddr = uaddr;
        self
    }

    /// `FUTEX2_*` bits.
    pub const fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }
}
