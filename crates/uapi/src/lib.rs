//! The io_uring ABI as facts: structures as they lie in memory, and the numbers
//! that name opcodes, flags and register operations.
//!
//! Nothing here behaves; every layout is checked at compile time. Sizes are in
//! bytes, offsets are from the start of the structure.

#![no_std]
#![deny(unsafe_code)]

pub mod cqe;
pub mod enter;
pub mod op;
pub mod register;
pub mod setup;
pub mod sqe;

pub use cqe::Cqe;
pub use enter::GeteventsArg;
pub use setup::Params;
pub use sqe::Sqe;

/// `io_uring_setup(2)`, the same number on every architecture.
pub const NR_SETUP: i64 = 425;
/// `io_uring_enter(2)`.
pub const NR_ENTER: i64 = 426;
/// `io_uring_register(2)`.
pub const NR_REGISTER: i64 = 427;
