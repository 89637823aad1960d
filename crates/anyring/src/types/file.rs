//! Files, and the slots they go to.

use std::num::NonZeroU32;
use std::os::fd::RawFd;

/// Traits that only this crate implements.
pub(crate) mod sealed {
    use super::{Fd, Fixed};
    use std::os::fd::RawFd;

    /// A file, either way.
    #[derive(Debug, Clone, Copy)]
    pub enum Target {
        /// A descriptor.
        Fd(RawFd),
        /// A slot of the file table.
        Fixed(u32),
    }

    /// What names a descriptor.
    pub trait UseFd: Sized {
        /// The descriptor.
        fn into(self) -> RawFd;
    }

    /// What names a descriptor or a slot.
    pub trait UseFixed: Sized {
        /// Which.
        fn into(self) -> Target;
    }

    impl UseFd for Fd {
        #[inline]
        fn into(self) -> RawFd {
            self.0
        }
    }
    impl UseFixed for Fd {
        #[inline]
        fn into(self) -> Target {
            Target::Fd(self.0)
        }
    }
    impl UseFixed for Fixed {
        #[inline]
        fn into(self) -> Target {
            Target::Fixed(self.0)
        }
    }
}

/// A file descriptor of the process.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Fd(pub RawFd);

/// A slot of the ring's file table, see
/// [`Submitter::register_files`](crate::Submitter::register_files).
///
/// ```
/// use anyring::{opcode, types};
///
/// let mut buf = [0u8; 16];
/// let read = opcode::Read::new(types::Fixed(3), buf.as_mut_ptr(), 16).build();
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Fixed(pub u32);

/// The slot of the file table that a new file goes to.
#[derive(Debug, Clone, Copy)]
pub struct DestinationSlot {
    /// As the ABI counts: the slot plus one, or all ones for any.
    encoded: NonZeroU32,
}

impl DestinationSlot {
    const ANY: NonZeroU32 = NonZeroU32::MAX;

    /// Any slot that is free; the completion says which.
    pub const fn auto_target() -> Self {
        DestinationSlot { encoded: Self::ANY }
    }

    /// This slot; gives the number back if it is above `u32::MAX - 2`, which no table has.
    pub fn try_from_slot_target(target: u32) -> Result<Self, u32> {
        match target.checked_add(1).and_then(NonZeroU32::new) {
            Some(encoded) if encoded != Self::ANY => Ok(DestinationSlot { encoded }),
            _ => Err(target),
        }
    }

    /// As SQEs carry it.
    #[inline]
    pub(crate) const fn file_index(self) -> u32 {
        self.encoded.get()
    }
}

/// `struct open_how` of `openat2(2)`.
///
/// ```
/// use anyring::types::OpenHow;
///
/// let how = OpenHow::new().flags(libc::O_RDONLY as u64).resolve(libc::RESOLVE_BENEATH);
/// ```
#[derive(Default, Debug, Clone, Copy)]
#[repr(C)]
pub struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

impl OpenHow {
    /// All zeroes.
    pub const fn new() -> Self {
        OpenHow { flags: 0, mode: 0, resolve: 0 }
    }

    /// `O_*` bits.
    pub const fn flags(mut self, flags: u64) -> Self {
        self.flags = flags;
        self
    }

    /// Permission bits of a file that is created.
    pub const fn mode(mut self, mode: u64) -> Self {
        self.mode = mode;
        self
    }

    /// `RESOLVE_*` bits.
    pub const fn resolve(mut self, resolve: u64) -> Self {
        self.resolve = resolve;
        self
    }
}
