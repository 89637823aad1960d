//! What the suites share that run whole programs on the engine: a process runner with a
//! time limit, sandboxes that block io_uring, the sysctl guard, statistics and the table of
//! expected results.
//!
//! Nothing here links against the engine: a program meets it only through `anyring run`.

pub mod expected;
pub mod load;
pub mod place;
pub mod places;
pub mod process;
pub mod sandbox;
pub mod stats;
pub mod sysctl;
