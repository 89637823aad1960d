//! Behaviour tests: each scenario puts questions to a ring through raw system calls and
//! says lines of answers. The same scenario runs on the kernel's io_uring and on the
//! user-space engine; the lines must be equal.
//!
//! `sys`, `ring`, `sqe` and `mem` are a ring without any library; `scenario` says what
//! a scenario is; `scenarios` holds them by topic; `run`, `pending`, `golden` and `diff`
//! are the side that runs both and compares.

pub mod diff;
pub mod errno_name;
pub mod fixture;
pub mod fuzz;
pub mod golden;
pub mod mem;
pub mod pending;
pub mod ring;
pub mod run;
pub mod scenario;
pub mod scenarios;
pub mod sqe;
pub mod sys;

/// What nearly every scenario uses.
pub mod prelude {
    pub use crate::errno_name::{ok, res};
    pub use crate::fixture::{pipe, Dir, Fd};
    pub use crate::mem::{self, at, buf, leak};
    pub use crate::ring::{raw_setup, show, show_sorted, Ring};
    pub use crate::scenario::{Cx, Scenario};
    pub use crate::sqe::*;
    pub use crate::{scenario, sys};
    pub use anyring_uapi::enter::{GeteventsArg, Timespec};
    pub use anyring_uapi::sqe::{
        ASYNC, BUFFER_SELECT, CQE_SKIP_SUCCESS, FIXED_FILE, IO_DRAIN, IO_HARDLINK, IO_LINK,
    };
    pub use anyring_uapi::{enter, op, register, setup, Params};
    pub use libc::{POLLIN, POLLOUT};
    pub use std::os::fd::AsRawFd;
    pub use std::os::unix::net::{UnixDatagram, UnixStream};
}
