//! What the front doors have to agree on: the names of the settings, the seccomp filter, where
//! ring descriptors live, how a program file is judged before it is executed, the environment
//! that carries anyring into it, and the line of statistics.
//!
//! The preload library calls into this crate between fork and exec and from constructors, so
//! nothing here locks or panics, and nothing but [`stats`] allocates.

pub mod env;
pub mod filter;
pub mod layout;
pub mod program;
pub mod scan;
pub mod settings;
pub mod stats;
