//! What a user would pick instead of io_uring.

pub mod kernel_aio;
pub mod posix_aio;
