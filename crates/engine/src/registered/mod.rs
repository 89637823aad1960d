//! Resources that a program registers with a ring.

pub mod buf_ring;
pub mod buffers;
pub mod creds;
pub mod files;
pub mod groups;
pub mod region;
pub mod restrictions;
