//! [`anyring`] under the name of the crate `io-uring`, version 0.6, for `[patch.crates-io]`.
//!
//! What 0.6 has and 0.7 has not: the type `RwFlags` is signed, and sets of flags have
//! `from_bits_unchecked`.

#![no_std]

pub use anyring::*;

/// Types of arguments, as 0.6 has them.
pub mod types {
    pub use anyring::types::*;

    /// `RWF_*` bits.
    pub type RwFlags = core::ffi::c_int;
}
