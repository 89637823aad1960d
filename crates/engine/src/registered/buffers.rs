//! Registered buffers. Nothing is pinned: a buffer that the program unmaps gives EFAULT from the call that uses it.

use super::files::Tag;
use std::sync::Arc;

/// One buffer.
#[derive(Debug)]
pub struct FixedBuffer {
    /// Address.
    pub addr: usize,
    /// Bytes.
    pub len: usize,
    /// Notice of release.
    pub tag: Tag,
}

impl FixedBuffer {
    /// Whether a range lies inside.
    pub fn contains(&self, addr: usize, len: usize) -> bool {
        addr >= self.addr && addr.checked_add(len).is_some_and(|end| end <= self.addr + self.len)
    }
}

/// The table.
#[derive(Default)]
pub struct Buffers {
    slots: Option<Vec<Option<Arc<FixedBuffer>>>>,
}

impl Buffers {
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
    pub fn install(&mut self, slots: Vec<Option<Arc<FixedBuffer>>>) {
        self.slots = Some(slots);
    }
    /// Removes the table.
    pub fn remove(&mut self) -> Option<Vec<Option<Arc<FixedBuffer>>>> {
        self.slots.take()
    }
    /// The buffer of a slot.
    pub fn get(&self, slot: u16) -> Option<Arc<FixedBuffer>> {
        self.slots.as_ref()?.get(slot as usize)?.clone()
    }
    /// Puts a buffer into a slot; returns what was there.
    pub fn set(&mut self, slot: u32, buffer: Option<Arc<FixedBuffer>>) -> Option<Arc<FixedBuffer>> {
        let place = self.slots.as_mut()?.get_mut(slot as usize)?;
        core::mem::replace(place, buffer)
    }
}
