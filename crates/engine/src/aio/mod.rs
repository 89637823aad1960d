//! Kernel AIO: O_DIRECT reads and writes, many in flight from one thread, without a worker each.
//!
//! [`queue`] is where requests go: the kernel's, or a model of a device. [`flight`] holds the requests that are there,
//! [`hints`] remembers which files are worth asking, [`pool`] keeps contexts of closed rings. What a ring does with them
//! is in [`crate::ring::aio`].
//!
//! Every request is started with RWF_NOWAIT, so that `io_submit(2)` does not hold the submitter: what would have to wait
//! (for metadata, for a lock, for a place in the device's queue, for blocks of a file that grows) comes back with EAGAIN and goes to a
//! worker. For the same reason a wrong guess about a file is harmless: it costs a detour.
//!
//! # Who consumes completions
//!
//! [`Aio`] is guarded by the ring's state lock. Completions are read from the mapped ring under that lock, or by a thread that
//! sleeps in `io_pgetevents(2)`; while one sleeps there (`Aio::sleepers`), others consume by system call too, since
//! the kernel takes a lock of its own. A token carries a generation, so an event that were seen twice would find nothing.

pub mod flight;
pub mod hints;
pub mod model;
pub mod pool;
pub mod queue;

use crate::host::aio::Event;
use crate::req::{Key, Req};
use flight::InFlight;
use hints::Hints;
use queue::{Prepared, Queue};
use std::sync::Arc;

/// Events taken in one go.
pub const EVENTS: usize = 64;

/// A request that the queue has.
pub struct Flying {
    /// The request.
    pub req: Box<Req>,
    /// A place in the ring's table that is never filled: what a link timeout aims at. Like the kernel's, it finds nothing to
    /// cancel.
    pub place: Option<Key>,
    /// Others wait for it: a chain, a link timeout.
    pub linked: bool,
    /// Device and inode behind a plain number, which the program may have closed when the request comes back undone.
    pub inode: Option<(u64, u64)>,
    /// In which call it was submitted.
    pub call: u64,
}

/// A ring's part.
pub struct Aio {
    /// Made at first need.
    pub queue: Option<Arc<Queue>>,
    /// Direct requests still to be sent to workers before a queue is asked for again, once it was refused.
    pub refused: u32,
    /// Requests to be submitted together.
    pub batch: Vec<Prepared>,
    /// The running or last call that submits.
    pub call: u64,
    /// It is running: numbers that its requests name are still what the program meant.
    pub in_call: bool,
    /// Requests that were submitted or are in the batch.
    pub flight: InFlight<Flying>,
    /// Those of them that others wait for.
    pub linked: u32,
    /// Files.
    pub hints: Hints,
    /// Threads that sleep in the queue.
    pub sleepers: u32,
    /// The one thread that uses the ring, as far as is known.
    pub user: Option<i32>,
    /// More than one thread does.
    pub shared: bool,
    /// The queue's eventfd is in the ring's epoll.
    pub in_epoll: bool,
    /// How long polled waits took lately, in nanoseconds, for HYBRID_IOPOLL.
    pub polled_ns: u64,
    /// Where events are copied to.
    pub events: Vec<Event>,
    /// Requests on their way from the list to their completion.
    pub ready: Vec<(Flying, i64)>,
}

impl Aio {
    /// Nothing is opened yet. `ordered`: see [`InFlight::new`].
    pub fn new(ordered: bool) -> Aio {
        Aio {
            queue: None,
            refused: 0,
            batch: Vec::new(),
            call: 0,
            in_call: false,
            flight: InFlight::new(ordered),
            linked: 0,
            hints: Hints::default(),
            sleepers: 0,
            user: None,
            shared: false,
            in_epoll: false,
            polled_ns: 0,
            events: vec![Event::default(); EVENTS],
            ready: Vec::new(),
        }
    }

    /// A thread uses the ring. True the first time that it is not the only one.
    #[inline]
    pub fn note_user(&mut self, tid: i32) -> bool {
        if self.user == Some(tid) || self.shared {
            return false;
        }
        self.shared = self.user.is_some();
        self.user = Some(tid);
        self.shared
    }
}
