//! How the types of this module are written down: an opcode, what `new` fills, and one line per
//! further field. Each type wraps the entry under construction, so a setter is an assignment.

use crate::types::sealed::{Target, UseFixed};
use crate::types::DestinationSlot;
use anyring_uapi::{sqe, Sqe};

/// Defines one operation. A `@pointer` field is kept as a pointer until `build`, since its setter is `const`.
macro_rules! opcode {
    (
        $(#[$doc:meta])*
        $name:ident = $code:expr;
        new($($arg:ident: $ty:ty),* $(,)?) |$new:ident| $fill:block
        $(@pointer $(#[$pdoc:meta])* $pointer:ident($pty:ty) => $pfield:ident;)*
        $($(#[$sdoc:meta])* $setter:ident($sarg:ident: $sty:ty) |$set:ident| $assign:block)*
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            sqe: ::anyring_uapi::Sqe,
            $($pointer: $pty,)*
        }

        impl $name {
            /// The number of the operation, for [`Probe::is_supported`](crate::Probe::is_supported).
            pub const CODE: u8 = $code;

            /// An operation on these arguments; everything else starts as zero.
            #[inline]
            #[allow(clippy::new_without_default, clippy::too_many_arguments)]
            pub fn new($($arg: $ty),*) -> Self {
                let mut sqe = ::anyring_uapi::Sqe { opcode: Self::CODE, ..Default::default() };
                {
                    let $new = &mut sqe;
                    $fill
                }
                $name { sqe, $($pointer: ::core::ptr::null(),)* }
            }

            $(
                $(#[$pdoc])*
                #[inline]
                pub const fn $pointer(mut self, $pointer: $pty) -> Self {
                    self.$pointer = $pointer;
                    self
                }
            )*

            $(
                $(#[$sdoc])*
                #[inline]
                pub const fn $setter(mut self, $sarg: $sty) -> Self {
                    {
                        let $set = &mut self.sqe;
                        $assign
                    }
                    self
                }
            )*

            /// The finished entry.
            #[inline]
            pub fn build(self) -> $crate::squeue::Entry {
                #[allow(unused_mut)]
                let mut sqe = self.sqe;
                $(sqe.$pfield = self.$pointer as u64;)*
                $crate::squeue::Entry(sqe)
            }
        }
    };
}

/// Names the file of the operation.
#[inline]
pub(super) fn set_file(entry: &mut Sqe, fd: impl UseFixed) {
    match fd.into() {
        Target::Fd(fd) => entry.fd = fd,
        Target::Fixed(slot) => {
            entry.fd = slot as i32;
            entry.flags |= sqe::FIXED_FILE;
        }
    }
}

/// Where the descriptor that the operation makes goes.
#[inline]
pub(super) const fn set_slot(entry: &mut Sqe, slot: Option<DestinationSlot>) {
    entry.file_index = match slot {
        Some(slot) => slot.file_index(),
        None => 0,
    };
}

/// No file: what liburing writes there too.
pub(super) const NO_FILE: i32 = -1;
