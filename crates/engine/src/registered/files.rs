//! Registered files: a table of slots that hold duplicates of the program's descriptors.

use crate::host::fd::OwnedFd;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::ring::Ring;

/// A registered file. Requests share it; its tag's CQE is posted when the last of them lets go.
#[derive(Debug)]
pub struct FixedFile {
    /// The engine's duplicate.
    pub fd: OwnedFd,
    /// Notice of release.
    pub tag: Tag,
    /// Known to be direct, see [`crate::aio::hints`].
    pub direct: AtomicBool,
}

impl FixedFile {
    /// A file that takes a slot.
    pub fn new(fd: OwnedFd, tag: Tag) -> FixedFile {
        FixedFile { fd, tag, direct: AtomicBool::new(false) }
    }
}

/// A tag's CQE {user_data: tag, res: 0, flags: 0}, posted when a registered resource is released.
#[derive(Default)]
pub struct Tag {
    /// The value, 0 for none.
    pub value: u64,
    /// Where it is posted.
    pub ring: Weak<Ring>,
}

impl Tag {
    /// A tag whose CQE `ring` will post.
    pub fn new(value: u64, ring: &Arc<Ring>) -> Tag {
        if value != 0 {
            ring.tagged.store(true, Ordering::Relaxed);
        }
        Tag { value, ring: Arc::downgrade(ring) }
    }
}

impl core::fmt::Debug for Tag {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Tag({})", self.value)
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        if self.value == 0 {
            return;
        }
        if let Some(ring) = self.ring.upgrade() {
            ring.post_tag(self.value);
        }
    }
}

/// The table.
#[derive(Default)]
pub struct Files {
    slots: Option<Vec<Option<Arc<FixedFile>>>>,
    /// Slots that automatic allocation may use.
    alloc: core::ops::Range<u32>,
    hint: u32,
}

impl Files {
    /// Whether a table is registered.
    pub fn exists(&self) -> bool {
        self.slots.is_some()
    }
    /// Slots.
    pub fn len(&self) -> u32 {
        self.slots.as_ref().map_or(0, |s| s.len() as u32)
    }
    /// No slots.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Installs a table.
    pub fn install(&mut self, slots: Vec<Option<Arc<FixedFile>>>) {
        self.alloc = 0..slots.len() as u32;
        self.hint = 0;
        self.slots = Some(slots);
    }
    /// Removes the table; whoever gets it drops it without the ring's lock.
    pub fn remove(&mut self) -> Option<Vec<Option<Arc<FixedFile>>>> {
        self.alloc = 0..0;
        self.slots.take()
    }
    /// The file of a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<Arc<FixedFile>> {
        self.slots.as_ref()?.get(slot as usize)?.clone()
    }
    /// Puts a file into a slot of the table; returns what was there.
    pub fn set(&mut self, slot: u32, file: Option<Arc<FixedFile>>) -> Option<Arc<FixedFile>> {
        let place = self.slots.as_mut()?.get_mut(slot as usize)?;
        // The next search starts behind a slot that was filled, or at one that was emptied.
        self.hint = if file.is_some() { slot + 1 } else { slot };
        core::mem::replace(place, file)
    }
    /// A free slot inside the allocation range, searching on from the last one given out.
    pub fn free_slot(&mut self) -> Option<u32> {
        let slots = self.slots.as_ref()?;
        let free = |i: &u32| slots.get(*i as usize).is_some_and(Option::is_none);
        let start = self.hint.clamp(self.alloc.start, self.alloc.end);
        (start..self.alloc.end).find(free).or_else(|| (self.alloc.start..start).find(free))
    }
    /// IORING_REGISTER_FILE_ALLOC_RANGE.
    pub fn set_alloc_range(&mut self, range: core::ops::Range<u32>) {
        self.hint = range.start;
        self.alloc = range;
    }
}
