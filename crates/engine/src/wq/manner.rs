//! How a worker goes about a request: what is known of whether its call waits.

use super::WorkItem;
use crate::req::Req;
use anyring_uapi::{op, sqe};

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Never waits.
    Quick,
    /// Has a form that does not wait, which comes first; where that cannot finish, the call will wait.
    TryFirst,
    /// Usually does not wait, and nothing tells beforehand: the watcher looks after it.
    Watched,
    /// Is there to wait.
    Waits,
}

/// Of a request that a worker is about to issue.
pub fn of(item: &WorkItem, req: &Req) -> Manner {
    if req.has(sqe::BUFFER_SELECT) {
        // A buffer is only borrowed by an attempt that must not wait, under the ring's lock.
        return Manner::Waits;
    }
    match req.def.code {
        op::NOP => Manner::Quick,
        op::READ | op::READV | op::READ_FIXED | op::READV_FIXED => first(req, Manner::Waits),
        op::WRITE | op::WRITEV | op::WRITE_FIXED | op::WRITEV_FIXED => {
            first(req, if item.regular { Manner::Watched } else { Manner::Waits })
        }
        op::SEND | op::RECV | op::SENDMSG | op::RECVMSG => first(req, Manner::Waits),
        op::SPLICE | op::TEE | op::FSYNC | op::SYNC_FILE_RANGE => Manner::Waits,
        op::ACCEPT | op::CONNECT | op::WAITID | op::FUTEX_WAIT | op::FUTEX_WAITV => Manner::Waits,
        _ => Manner::Watched,
    }
}

/// An attempt that was made before, or is known to be useless, is not made again.
fn first(req: &Req, otherwise: Manner) -> Manner {
    if req.tried || req.stubborn {
        otherwise
    } else {
        Manner::TryFirst
    }
}
