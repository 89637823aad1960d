//! Cancellation.

use super::define::NO_FILE;
use crate::types::CancelBuilder;
use anyring_uapi::op;

opcode! {
    /// Cancels the first request with this user data. The result is 0, `-ENOENT` if there is
    /// none, or `-EALREADY` if it runs and could not be stopped.
    AsyncCancel = op::ASYNC_CANCEL;
    new(user_data: u64) |s| {
        s.fd = NO_FILE;
        s.addr = user_data;
    }
}

opcode! {
    /// Cancels what the builder describes. The result is the number of requests where several
    /// are asked for, else as for [`AsyncCancel`].
    AsyncCancel2 = op::ASYNC_CANCEL;
    new(builder: CancelBuilder) |s| {
        s.fd = builder.fd_field();
        s.addr = builder.user_data_field();
        s.op_flags = builder.flags_field();
    }
}
