//! The lab: experiments that say what an idea is worth, and what the engine costs against the kernel's
//! io_uring, against the limit, and against what a user would pick instead.
//!
//! An experiment ([`experiments`]) makes its arms ([`arm`]); they take turns, so that what disturbs one disturbs
//! all ([`run`]); figures are medians with intervals and comparisons are made pair by pair ([`stats`]); [`report`] tells.

pub mod arm;
pub mod device;
pub mod error;
pub mod experiments;
pub mod machine;
pub mod net;
pub mod pbuf;
pub mod peers;
pub mod reads;
pub mod report;
pub mod ring;
pub mod rng;
pub mod run;
pub mod scratch;
pub mod stats;
pub mod stop;
pub mod usage;
pub mod watchdog;
