//! Operations: each type here builds one kind of submission queue entry.
//!
//! `new` takes what the operation cannot do without, methods set the rest, `build` gives the
//! [`squeue::Entry`](crate::squeue::Entry) to push. What an entry points to (buffers, paths,
//! addresses) must stay valid until the operation's completion arrived, except where
//! [`is_feature_submit_stable`](crate::Parameters::is_feature_submit_stable) says that it was
//! copied at submission.
//!
//! ```
//! use anyring::{opcode, types};
//!
//! let mut buf = [0u8; 64];
//! let read = opcode::Read::new(types::Fd(0), buf.as_mut_ptr(), buf.len() as u32)
//!     .offset(4096)
//!     .build()
//!     .user_data(7);
//! assert_eq!(read.get_opcode(), u32::from(opcode::Read::CODE));
//! ```

#[macro_use]
mod define;

mod buffers;
mod cancel;
mod command;
mod file;
mod futex;
mod message;
mod nop;
mod path;
mod poll;
mod recv;
mod rw;
mod send;
mod socket;
mod splice;
mod timeout;
mod xattr;

pub use buffers::*;
pub use cancel::*;
pub use command::*;
pub use file::*;
pub use futex::*;
pub use message::*;
pub use nop::*;
pub use path::*;
pub use poll::*;
pub use recv::*;
pub use rw::*;
pub use send::*;
pub use socket::*;
pub use splice::*;
pub use timeout::*;
pub use xattr::*;
