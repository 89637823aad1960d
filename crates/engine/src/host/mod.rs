//! The host: every system call the engine makes goes through this module, as a plain
//! function over integers that returns `Result<_, Errno>` and touches no thread-local
//! state (no libc `errno`).
//!
//! Required of a host (what a fake has to provide in tests): descriptors ([`fd`]),
//! transfers that may take program pointers ([`rw`]), fault-safe copies ([`user`]),
//! readiness ([`poll`]), kernel AIO ([`aio`]), clocks and the engine's own futexes ([`time`]), the program's ([`futex`]), memory ([`mem`]) and threads ([`thread`]).

pub mod aio;
pub mod barrier;
pub mod creds;
pub mod fd;
pub mod futex;
pub mod guard;
pub mod mem;
pub mod poll;
mod raw;
pub mod rw;
pub mod signals;
pub mod thread;
pub mod time;
pub mod user;

pub use linux_raw_sys::general as nr;
pub use raw::{interruptible, on_interrupt_fixup, syscall, Nr};
