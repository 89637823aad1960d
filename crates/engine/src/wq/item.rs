//! A request on its way through a worker.

use super::{reads, Pool};
use crate::host::fd;
use crate::req::{Key, Req};
use crate::ring::Ring;
use crate::stack::{Link, Linked};
use crate::sync::Lock;
use crate::task::Task;
use std::sync::Arc;

/// A request for a worker. Whoever takes the request out of it, worker or canceller, completes it.
pub struct WorkItem {
    /// Its ring.
    pub ring: Arc<Ring>,
    /// Its place in the ring's table.
    pub key: Key,
    /// Whose pool runs it.
    pub task: Arc<Task>,
    /// Match keys for cancel.
    pub user_data: u64,
    /// See `user_data`.
    pub opcode: u8,
    /// See `user_data`.
    pub file: i32,
    /// Items with the same value run one at a time.
    pub hash: Option<u64>,
    /// The account.
    pub bound: bool,
    /// Its file is a regular one.
    pub regular: bool,
    /// A read of a regular file that found its data not cached.
    pub cold: bool,
    req: Lock<Option<Box<Req>>>,
    outcome: Lock<Option<(Box<Req>, i32, u32)>>,
    link: Link<WorkItem>,
}

impl Linked for WorkItem {
    fn link(&self) -> &Link<WorkItem> {
        &self.link
    }
}

impl WorkItem {
    /// Wraps a request whose file is its own.
    pub fn new(ring: Arc<Ring>, key: Key, req: Box<Req>, task: Arc<Task>) -> WorkItem {
        let def = req.def;
        let needs_stat = def.unbound || def.hashed;
        let stat = needs_stat.then(|| fd::stat(req.file.raw()).ok()).flatten();
        let regular = stat.is_some_and(|s| s.is_regular());
        let on_disk = regular || stat.is_some_and(|s| s.is_block());
        let cold = regular && req.tried && reads::is_candidate(&req);
        let hash = stat.filter(|_| def.hashed && regular).map(|s| s.dev.rotate_left(32) ^ s.ino);
        WorkItem {
            ring,
            key,
            task,
            user_data: req.user_data,
            opcode: def.code,
            file: req.file.raw(),
            hash,
            bound: !def.unbound || on_disk,
            regular,
            cold,
            req: Lock::new(Some(req)),
            outcome: Lock::new(None),
            link: Link::default(),
        }
    }
    /// Takes the request: whoever gets it completes it.
    pub fn take_request(&self) -> Option<Box<Req>> {
        self.req.lock().take()
    }
    /// Looks at the request while nobody has taken it.
    pub fn with_request<R>(&self, f: impl FnOnce(&Req) -> R) -> Option<R> {
        self.req.lock().as_deref().map(f)
    }
    /// Its request has ended so: result and CQE flags. From now on a canceller finds nothing in it.
    pub fn set_outcome(&self, req: Box<Req>, res: i32, flags: u32) {
        *self.outcome.lock() = Some((req, res, flags));
    }
    /// How it ended.
    pub fn take_outcome(&self) -> Option<(Box<Req>, i32, u32)> {
        self.outcome.lock().take()
    }
    /// What tells it from all others that live.
    pub fn id(&self) -> usize {
        self as *const WorkItem as usize
    }
}

/// A worker's hand, held out while it completes a request under the ring's lock: what follows in the chain and needs a
/// worker goes on with this one.
pub struct Hand {
    pool: Arc<Pool>,
    bound: bool,
    item: Option<Arc<WorkItem>>,
}

impl Hand {
    /// Of a worker of this account.
    pub fn new(pool: Arc<Pool>, bound: bool) -> Hand {
        Hand { pool, bound, item: None }
    }
    /// Puts an item into the hand if it may be done there: the first one of the same account that waits for no other.
    pub fn offer(&mut self, item: &Arc<WorkItem>) -> bool {
        let fits = self.item.is_none()
            && item.hash.is_none()
            && item.bound == self.bound
            && Arc::ptr_eq(&item.task.pool, &self.pool);
        if fits {
            self.item = Some(item.clone());
        }
        fits
    }
    /// What it got.
    pub fn into_item(self) -> Option<Arc<WorkItem>> {
        self.item
    }
}
