use super::sealed::{Target, UseFixed};
use bitflags::bitflags;

bitflags! {
    /// `IORING_ASYNC_CANCEL_*`
    #[derive(Debug, Clone, Copy)]
    struct Match: u32 {
        const ALL = 1 << 0;
        const FD = 1 << 1;
        const ANY = 1 << 2;
        const FD_FIXED = 1 << 3;
    }
}

/// Which requests to cancel.
///
/// ```
/// use anyring::types::{CancelBuilder, Fd, Fixed};
///
/// CancelBuilder::any(); // all of the ring
/// CancelBuilder::user_data(42); // the first with this user data
/// CancelBuilder::fd(Fd(42)); // the first on this descriptor
/// CancelBuilder::fd(Fixed(42)).all(); // all on this slot
/// ```
#[derive(Debug)]
pub struct CancelBuilder {
    matching: Match,
    user_data: u64,
    fd: i32,
}

impl CancelBuilder {
    /// Every request of the ring.
    pub const fn any() -> Self {
        CancelBuilder { matching: Match::ANY, user_data: 0, fd: -1 }
    }

    /// The first request with this user data.
    pub const fn user_data(user_data: u64) -> Self {
        CancelBuilder { matching: Match::empty(), user_data, fd: -1 }
    }

    /// The first request on this file.
    pub fn fd(fd: impl UseFixed) -> Self {
        let (matching, fd) = match fd.into() {
            Target::Fd(fd) => (Match::FD, fd),
            Target::Fixed(slot) => (Match::FD | Match::FD_FIXED, slot as i32),
        };
        CancelBuilder { matching, user_data: 0, fd }
    }

    /// All that match, not the first only.
    pub fn all(mut self) -> Self {
        self.matching |= Match::ALL;
        self
    }

    pub(crate) fn flags_field(&self) -> u32 {
        self.matching.bits()
    }

    pub(crate) fn user_data_field(&self) -> u64 {
        self.user_data
    }

    pub(crate) fn fd_field(&self) -> i32 {
        self.fd
    }
}
