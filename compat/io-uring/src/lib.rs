//! [`anyring`] under the name of the crate `io-uring`, version 0.7, for `[patch.crates-io]`.

#![no_std]

pub use anyring::*;
