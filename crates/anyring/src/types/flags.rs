//! Sets of flags.

use bitflags::bitflags;

bitflags! {
    /// How a [`Timeout`](crate::opcode::Timeout) reads its time. With nothing set it is a
    /// duration on the monotonic clock.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct TimeoutFlags: u32 {
        /// A point in time.
        const ABS = 1 << 0;
        /// On `CLOCK_BOOTTIME`.
        const BOOTTIME = 1 << 2;
        /// On `CLOCK_REALTIME`.
        const REALTIME = 1 << 3;
        /// [`TimeoutUpdate`](crate::opcode::TimeoutUpdate) means a
        /// [`LinkTimeout`](crate::opcode::LinkTimeout).
        const LINK_TIMEOUT_UPDATE = 1 << 4;
        /// Running out of time does not break the chain of links. The result is `-ETIME` all the same.
        const ETIME_SUCCESS = 1 << 5;
        /// Fires again and again.
        const MULTISHOT = 1 << 6;
    }
}

bitflags! {
    /// How an [`Fsync`](crate::opcode::Fsync) works.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct FsyncFlags: u32 {
        /// As `fdatasync(2)`: metadata that reading does not need may stay behind.
        const DATASYNC = 1 << 0;
    }
}

bitflags! {
    /// How
    /// [`register_buffers_clone_offset`](crate::Submitter::register_buffers_clone_offset) works.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct CloneBuffersFlags: u32 {
        /// The source is named by the index of a registered ring descriptor.
        const SRC_REGISTERED = 1 << 0;
        /// Buffers that are there already are replaced.
        const DST_REPLACE = 1 << 1;
    }
}

/// What io-uring 0.6 called `from_bits_retain`, which `bitflags` 1 gave it.
macro_rules! unchecked {
    ($($name:ty: $bits:ty),*) => {$(
        impl $name {
            /// The same as `from_bits_retain`, under its name in versions before 0.7.
            ///
            /// # Safety
            /// None is needed; it is marked as it was there.
            pub const unsafe fn from_bits_unchecked(bits: $bits) -> Self {
                Self::from_bits_retain(bits)
            }
        }
    )*};
}
unchecked!(TimeoutFlags: u32, FsyncFlags: u32, crate::squeue::Flags: u8);
