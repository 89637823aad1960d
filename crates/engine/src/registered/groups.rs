//! Provided buffers: legacy groups, first in, first out.

use crate::req::Selected;
use crate::Errno;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
struct Buf {
    addr: usize,
    len: usize,
    id: u16,
}

/// All groups of a ring.
#[derive(Default)]
pub struct Groups {
    groups: BTreeMap<u16, VecDeque<Buf>>,
}

impl Groups {
    /// PROVIDE_BUFFERS.
    pub fn provide(&mut self, group: u16, addr: usize, len: usize, count: u32, first: u16) {
        let queue = self.groups.entry(group).or_default();
        for i in 0..count {
            queue.push_back(Buf {
                addr: addr + len * i as usize,
                len,
                id: first.wrapping_add(i as u16),
            });
        }
    }
    /// REMOVE_BUFFERS: how many were removed; ENOENT for an unknown group.
    pub fn remove(&mut self, group: u16, count: u32) -> Result<u32, Errno> {
        let queue = self.groups.get_mut(&group).ok_or(Errno::NOENT)?;
        let n = queue.len().min(count as usize);
        queue.drain(..n);
        Ok(n as u32)
    }
    /// Whether a group is known.
    pub fn exists(&self, group: u16) -> bool {
        self.groups.contains_key(&group)
    }
    /// Takes a buffer, at most `max` bytes of it (0 for all). ENOBUFS if there is none.
    pub fn select(&mut self, group: u16, max: usize) -> Result<Selected, Errno> {
        let buf = self.groups.get_mut(&group).and_then(VecDeque::pop_front).ok_or(Errno::NOBUFS)?;
        let len = if max == 0 { buf.len } else { buf.len.min(max) };
        Ok(Selected { group, id: buf.id, addr: buf.addr, len, whole: buf.len })
    }
    /// A buffer was not used after all.
    pub fn put_back(&mut self, buf: Selected) {
        let queue = self.groups.entry(buf.group).or_default();
        queue.push_front(Buf { addr: buf.addr, len: buf.whole, id: buf.id });
    }
}
