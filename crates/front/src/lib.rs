//! What the launcher and the preload library have to agree on: the names of the settings, the
//! seccomp filter, where ring descriptors live, how a program file is judged before it is
//! executed, and the environment that carries anyring into it.
//!
//! The preload library calls into this crate between fork and exec and from constructors, so
//! nothing here allocates, locks or panics.

pub mod env;
pub mod filter;
pub mod layout;
pub mod program;
pub mod scan;
pub mod settings;
