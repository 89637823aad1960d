//! A request: what prep captured of an SQE, and what it holds while it lives.
//!
//! Exactly one place owns a request at a time: the submitter's stack, a chain behind its head, the drain
//! queue, the table of pending requests (poll arms, timers), a work item, or the task-work
//! queue. Whoever takes it out of such a place may complete it; so it completes once.

use crate::host::fd::OwnedFd;
use crate::inline::history::Cell;
use crate::ops::{Op, OpDef};
use crate::registered::creds::Creds;
use crate::registered::files::FixedFile;
use crate::task::Task;
use anyring_uapi::sqe;
use std::sync::Arc;

/// Index into a ring's table of pending requests, with a generation against reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// How a request came to its end, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// In the submitting call.
    Inline,
    /// After its file became ready.
    Polled,
    /// In a worker.
    Worker,
    /// By kernel AIO.
    Aio,
}

/// The file of a request.
#[derive(Debug)]
pub enum FileRef {
    /// Not resolved yet, or the operation has none.
    None,
    /// The program's own number, good while the submitting call lasts.
    Plain(i32),
    /// A duplicate that keeps the open file for a request that waits.
    Owned(OwnedFd),
    /// A duplicate that several waiting requests share.
    Shared(Arc<OwnedFd>),
    /// A registered file.
    Fixed(Arc<FixedFile>),
}

impl FileRef {
    /// The number to give to the host; −1 without a file.
    #[inline]
    pub fn raw(&self) -> i32 {
        match self {
            FileRef::None => -1,
            FileRef::Plain(fd) => *fd,
            FileRef::Owned(fd) => fd.raw(),
            FileRef::Shared(fd) => fd.raw(),
            FileRef::Fixed(file) => file.fd.raw(),
        }
    }
}

/// A provided buffer taken by a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Group.
    pub group: u16,
    /// Buffer id.
    pub id: u16,
    /// Address.
    pub addr: usize,
    /// Bytes to use.
    pub len: usize,
    /// Bytes in all.
    pub whole: usize,
    /// Of a buffer ring.
    pub ring: bool,
    /// The ring's head has moved past it already.
    pub held: bool,
    /// When it was held, the buffer had room left.
    pub more: bool,
    /// A bundle: several buffers from here on.
    pub many: bool,
    /// The ring had no buffer after these.
    pub last: bool,
}

/// See the module's description.
pub struct Req {
    /// From the SQE.
    pub user_data: u64,
    /// The opcode's row.
    pub def: &'static OpDef,
    /// `IOSQE_*`.
    pub flags: u8,
    /// From the SQE: descriptor or slot.
    pub fd: i32,
    /// From the SQE: buffer index or group.
    pub buf: u16,
    /// What prep captured.
    pub op: Op,
    /// The file.
    pub file: FileRef,
    /// A provided buffer.
    pub selected: Option<Selected>,
    /// A failure breaks the chain, and a CQE is posted in spite of CQE_SKIP_SUCCESS.
    pub failed: bool,
    /// The result decided by a failed prep, or of the cancelled rest of a chain.
    pub early: Option<i32>,
    /// The rest of the chain.
    pub next: Option<Box<Req>>,
    /// The armed link timeout that watches this request.
    pub link_timeout: Option<Key>,
    /// For a request that is cancelled while something still runs it.
    pub via: Via,
    /// Its file reported readiness again and again that no attempt found: a worker's call is the last word.
    pub stubborn: bool,
    /// Registered credentials to use.
    pub creds: Option<Arc<Creds>>,
    /// The poll events that led to this attempt, 0 for the first.
    pub woken_by: u32,
    /// Its turn has come, be it to fail.
    pub started: bool,
    /// The result of the notification that follows the result of a zero-copy send.
    pub notification: Option<i32>,
    /// Posts CQEs until it ends; no worker ever runs it.
    pub multishot: bool,
    /// Where the time that a worker takes for it is noted.
    pub pace: Option<Cell>,
    /// An attempt that must not wait was made.
    pub tried: bool,
    /// Whose workers run it; set once it leaves the submitting call.
    pub task: Option<Arc<Task>>,
}

impl Req {
    /// An IOSQE flag.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
    /// Whether the program is to take its completion for a worker's: it was one's, or the kernel always makes it one's.
    pub fn is_from_worker(&self) -> bool {
        let belongs = self.has(sqe::ASYNC) || self.def.always_async || self.op.creates();
        let over_before = self.early.is_some() || !self.started;
        match self.via {
            Via::Inline | Via::Aio => {
                belongs && !over_before && !self.def.on_ring && !self.multishot
            }
            Via::Polled | Via::Worker => true,
        }
    }
    /// LINK or HARDLINK.
    #[inline]
    pub fn links(&self) -> bool {
        self.flags & (sqe::IO_LINK | sqe::IO_HARDLINK) != 0
    }
    /// Marks it failed with a result.
    pub fn fail(&mut self, res: i32) {
        self.failed = true;
        self.early = Some(res);
    }
    /// Number of requests from here to the chain's end.
    pub fn chain_len(&self) -> usize {
        let mut n = 1;
        let mut at = &self.next;
        while let Some(next) = at {
            n += 1;
            at = &next.next;
        }
        n
    }
}

impl Drop for Req {
    /// Long chains are dropped one by one, not by recursion.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut req) = next {
            next = req.next.take();
        }
    }
}
