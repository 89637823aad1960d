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
    content: Lock<Content>,
    link: Link<WorkItem>,
}

/// What is in an item.
enum Content {
    /// Its request, which waits.
    Waiting(Box<Req>),
    /// Nothing: somebody has it.
    Taken,
    /// The request that has ended, with its result and CQE flags.
    Ended(Box<Req>, i32, u32),
}

/// Items of one ring that are done with, to be used again: they keep their references, and their memory.
#[derive(Default)]
pub struct Spare(Vec<Arc<WorkItem>>);

/// Most of them.
const SPARE_MAX: usize = 64;

impl Spare {
    /// Wraps a request whose file is its own.
    pub fn wrap(
        &mut self,
        ring: &Arc<Ring>,
        key: Key,
        req: Box<Req>,
        task: &Arc<Task>,
    ) -> Arc<WorkItem> {
        if let Some(mut item) = self.0.pop() {
            if let Some(old) = Arc::get_mut(&mut item).filter(|old| Arc::ptr_eq(&old.task, task)) {
                old.fill(key, req);
                return item;
            }
        }
        Arc::new(WorkItem::new(ring.clone(), key, req, task.clone()))
    }
    /// An item is done with, as far as the caller is concerned.
    pub fn put(&mut self, item: Arc<WorkItem>) {
        if self.0.len() < SPARE_MAX && Arc::strong_count(&item) == 1 {
            self.0.push(item);
        }
    }
    /// The ring goes: they hold it.
    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }
}

impl Linked for WorkItem {
    fn link(&self) -> &Link<WorkItem> {
        &self.link
    }
}

impl WorkItem {
    /// Wraps a request whose file is its own.
    pub fn new(ring: Arc<Ring>, key: Key, req: Box<Req>, task: Arc<Task>) -> WorkItem {
        let mut item = WorkItem {
            ring,
            key,
            task,
            user_data: 0,
            opcode: 0,
            file: -1,
            hash: None,
            bound: true,
            regular: false,
            cold: false,
            content: Lock::new(Content::Taken),
            link: Link::default(),
        };
        item.fill(key, req);
        item
    }

    fn fill(&mut self, key: Key, req: Box<Req>) {
        let def = req.def;
        let needs_stat = def.unbound || def.hashed;
        let stat = needs_stat.then(|| fd::stat(req.file.raw()).ok()).flatten();
        self.regular = stat.is_some_and(|s| s.is_regular());
        let on_disk = self.regular || stat.is_some_and(|s| s.is_block());
        self.cold = self.regular && req.tried && reads::is_candidate(&req);
        let hashed = stat.filter(|_| def.hashed && self.regular);
        self.hash = hashed.map(|s| s.dev.rotate_left(32) ^ s.ino);
        self.bound = !def.unbound || on_disk;
        (self.key, self.user_data, self.opcode) = (key, req.user_data, def.code);
        self.file = req.file.raw();
        self.content = Lock::new(Content::Waiting(req));
    }
    /// Takes the request: whoever gets it completes it.
    pub fn take_request(&self) -> Option<Box<Req>> {
        let mut content = self.content.lock();
        match core::mem::replace(&mut *content, Content::Taken) {
            Content::Waiting(req) => Some(req),
            other => {
                *content = other;
                None
            }
        }
    }
    /// Looks at the request while nobody has taken it.
    pub fn with_request<R>(&self, f: impl FnOnce(&Req) -> R) -> Option<R> {
        match &*self.content.lock() {
            Content::Waiting(req) => Some(f(req)),
            _ => None,
        }
    }
    /// Its request has ended so: result and CQE flags. From now on a canceller finds nothing in it.
    pub fn set_outcome(&self, req: Box<Req>, res: i32, flags: u32) {
        *self.content.lock() = Content::Ended(req, res, flags);
    }
    /// How it ended.
    pub fn take_outcome(&self) -> Option<(Box<Req>, i32, u32)> {
        match core::mem::replace(&mut *self.content.lock(), Content::Taken) {
            Content::Ended(req, res, flags) => Some((req, res, flags)),
            _ => None,
        }
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
