//! What waits in one account, in order. Items of one hash run one at a time; those behind a running one stand aside,
//! so that what is ready is always at the front and a stalled hash is never looked through.

use super::WorkItem;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One that can run.
struct Ready {
    item: Arc<WorkItem>,
    /// Its hash is reserved for it already.
    owns_hash: bool,
}

/// See the module's description.
#[derive(Default)]
pub struct Queue {
    ready: VecDeque<Ready>,
    /// Cold reads whose readahead was started.
    started: VecDeque<Arc<WorkItem>>,
    /// Hashes that run or are reserved, and who waits for them.
    busy: BTreeMap<u64, VecDeque<Arc<WorkItem>>>,
}

impl Queue {
    /// Adds one at the end.
    pub fn push(&mut self, item: Arc<WorkItem>) {
        self.ready.push_back(Ready { item, owns_hash: false });
    }

    /// The next to run; its hash is busy until [`Queue::release`]. Who is at reading goes on with the reads that were started,
    /// others take them last.
    pub fn take(&mut self, reading: bool) -> Option<Arc<WorkItem>> {
        if reading {
            self.started.pop_front().or_else(|| self.take_ready())
        } else {
            self.take_ready().or_else(|| self.started.pop_front())
        }
    }

    fn take_ready(&mut self) -> Option<Arc<WorkItem>> {
        while let Some(Ready { item, owns_hash }) = self.ready.pop_front() {
            let Some(hash) = item.hash.filter(|_| !owns_hash) else { return Some(item) };
            match self.busy.get_mut(&hash) {
                Some(waiting) => waiting.push_back(item),
                None => {
                    self.busy.insert(hash, VecDeque::new());
                    return Some(item);
                }
            }
        }
        None
    }

    /// Counts those at the front that fit as started, and hands them out to be started.
    pub fn start_while(
        &mut self,
        most: usize,
        fits: impl Fn(&WorkItem) -> bool,
    ) -> Vec<Arc<WorkItem>> {
        let fit = |r: &&Ready| r.item.hash.is_none() && fits(&r.item);
        let count = self.ready.iter().take(most).take_while(fit).count();
        let run: Vec<_> = self.ready.drain(..count).map(|r| r.item).collect();
        self.started.extend(run.iter().cloned());
        run
    }

    /// An item of this hash has ended: the next one of it is the next to run.
    pub fn release(&mut self, hash: u64) {
        let Some(waiting) = self.busy.get_mut(&hash) else { return };
        match waiting.pop_front() {
            Some(item) => self.ready.push_front(Ready { item, owns_hash: true }),
            None => drop(self.busy.remove(&hash)),
        }
    }

    /// Removes one, wherever it waits.
    pub fn remove(&mut self, item: &WorkItem) {
        let is_it = |i: &Arc<WorkItem>| i.id() == item.id();
        if let Some(at) = self.ready.iter().position(|r| is_it(&r.item)) {
            let owned = self.ready.remove(at).filter(|r| r.owns_hash);
            if let Some(hash) = owned.and(item.hash) {
                self.release(hash);
            }
        } else if let Some(at) = self.started.iter().position(is_it) {
            self.started.remove(at);
        } else if let Some(waiting) = item.hash.and_then(|hash| self.busy.get_mut(&hash)) {
            waiting.retain(|i| !is_it(i));
        }
    }

    /// Takes all that wait.
    pub fn drain(&mut self) -> Vec<Arc<WorkItem>> {
        let ready: Vec<Ready> = self.ready.drain(..).collect();
        let mut items: Vec<_> = self.busy.values_mut().flat_map(|w| w.drain(..)).collect();
        items.extend(self.started.drain(..));
        for Ready { item, owns_hash } in ready {
            if let Some(hash) = item.hash.filter(|_| owns_hash) {
                self.release(hash);
            }
            items.push(item);
        }
        items
    }

    /// How many could run at once.
    pub fn ready(&self) -> u32 {
        self.ready.len() as u32
    }
    /// How many of those that were started wait.
    pub fn started(&self) -> u32 {
        self.started.len() as u32
    }
}
