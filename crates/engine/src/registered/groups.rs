//! Provided buffers: groups of two kinds. A legacy group is a queue of buffers, each taken when it is
//! selected and put back if it was not used; a buffer ring is in [`super::buf_ring`].

use super::buf_ring::BufRing;
use crate::host::mem::Shared;
use crate::host::rw::Iovec;
use crate::limits::IOV_MAX;
use crate::req::Selected;
use crate::Errno;
use anyring_uapi::cqe;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
struct Buf {
    addr: usize,
    len: usize,
    id: u16,
}

enum Group {
    Legacy(VecDeque<Buf>),
    Ring(BufRing),
}

/// How a buffer is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is decided under this hold of the ring's lock whether it is used.
    Peek,
    /// The request leaves the lock with it: it counts as used.
    Hold,
}

/// All groups of a ring.
#[derive(Default)]
pub struct Groups {
    groups: BTreeMap<u16, Group>,
}

impl Groups {
    /// PROVIDE_BUFFERS. EINVAL for a buffer ring.
    pub fn provide(
        &mut self,
        group: u16,
        addr: usize,
        len: usize,
        count: u32,
        first: u16,
    ) -> Result<(), Errno> {
        let group = self.groups.entry(group).or_insert_with(|| Group::Legacy(VecDeque::new()));
        let Group::Legacy(queue) = group else { return Err(Errno::INVAL) };
        for i in 0..count {
            queue.push_back(Buf {
                addr: addr + len * i as usize,
                len,
                id: first.wrapping_add(i as u16),
            });
        }
        Ok(())
    }
    /// REMOVE_BUFFERS: how many were removed; ENOENT for an unknown group, EINVAL for a buffer ring.
    pub fn remove(&mut self, group: u16, count: u32) -> Result<u32, Errno> {
        let Group::Legacy(queue) = self.groups.get_mut(&group).ok_or(Errno::NOENT)? else {
            return Err(Errno::INVAL);
        };
        let n = queue.len().min(count as usize);
        queue.drain(..n);
        Ok(n as u32)
    }
    /// Whether a group is known.
    pub fn exists(&self, group: u16) -> bool {
        self.groups.contains_key(&group)
    }

    /// Whether a buffer ring may be registered here: EEXIST for another one, or a legacy group with buffers.
    pub fn check_free(&self, group: u16) -> Result<(), Errno> {
        match self.groups.get(&group) {
            None => Ok(()),
            Some(Group::Legacy(queue)) if queue.is_empty() => Ok(()),
            Some(_) => Err(Errno::EXIST),
        }
    }
    /// IORING_REGISTER_PBUF_RING.
    pub fn add_ring(&mut self, group: u16, ring: BufRing) -> Result<(), Errno> {
        self.check_free(group)?;
        self.groups.insert(group, Group::Ring(ring));
        Ok(())
    }
    /// IORING_UNREGISTER_PBUF_RING: ENOENT for an unknown group, EINVAL for a legacy one.
    pub fn remove_ring(&mut self, group: u16) -> Result<(), Errno> {
        self.ring(group)?;
        self.groups.remove(&group);
        Ok(())
    }
    /// The buffer ring of a group; errors as for [`Groups::remove_ring`].
    pub fn ring(&mut self, group: u16) -> Result<&mut BufRing, Errno> {
        match self.groups.get_mut(&group) {
            None => Err(Errno::NOENT),
            Some(Group::Legacy(_)) => Err(Errno::INVAL),
            Some(Group::Ring(ring)) => Ok(ring),
        }
    }
    /// The memory of a group's ring, to be mapped by the program.
    pub fn shared(&mut self, group: u16) -> Option<Arc<Shared>> {
        self.ring(group).ok()?.shared()
    }

    /// Takes a buffer, at most `max` bytes of it (0 for all). ENOBUFS if there is none.
    pub fn select(&mut self, group: u16, max: usize, take: Take) -> Result<Selected, Errno> {
        let limit = |len: usize| if max == 0 { len } else { len.min(max) };
        let blank = Selected { group, ..Selected::default() };
        match self.groups.get_mut(&group).ok_or(Errno::NOBUFS)? {
            Group::Legacy(queue) => {
                let buf = queue.pop_front().ok_or(Errno::NOBUFS)?;
                let last = queue.is_empty();
                Ok(Selected {
                    id: buf.id,
                    addr: buf.addr,
                    len: limit(buf.len),
                    whole: buf.len,
                    last,
                    ..blank
                })
            }
            Group::Ring(ring) => {
                let entry = ring.peek()?;
                let len = limit(entry.len);
                let mut sel = Selected {
                    id: entry.id,
                    addr: entry.addr,
                    len,
                    whole: entry.len,
                    ring: true,
                    ..blank
                };
                if take == Take::Hold {
                    sel.held = true;
                    sel.more = ring.consume(len, false);
                }
                Ok(sel)
            }
        }
    }

    /// Takes as many buffers of a ring as hold `max` bytes (0 for no limit); one of a legacy group. The second result
    /// are the vectors.
    pub fn select_many(
        &mut self,
        group: u16,
        max: usize,
        take: Take,
    ) -> Result<(Selected, Vec<Iovec>), Errno> {
        if let Some(Group::Legacy(_)) | None = self.groups.get(&group) {
            let one = self.select(group, max, take)?;
            return Ok((one, vec![Iovec { base: one.addr, len: one.len }]));
        }
        let ring = self.ring(group)?;
        let first = ring.peek()?;
        let vectors = ring.peek_many(max, IOV_MAX as usize)?;
        let len = vectors.iter().map(|v| v.len).sum();
        let last = ring.is_used_up(vectors.len());
        let mut sel = Selected {
            group,
            id: first.id,
            addr: first.addr,
            len,
            whole: len,
            ring: true,
            many: true,
            last,
            ..Selected::default()
        };
        if take == Take::Hold {
            sel.held = true;
            sel.more = ring.consume(len, true);
        }
        Ok((sel, vectors))
    }

    /// The request goes away to wait with its buffer partly filled: it counts as used from now on.
    pub fn hold(&mut self, sel: &mut Selected) {
        if !sel.ring || sel.held {
            return;
        }
        sel.held = true;
        if let Ok(ring) = self.ring(sel.group) {
            sel.more = ring.consume(sel.len, sel.many);
        }
    }

    /// I/O used `bytes` of what was taken; the CQE's flags.
    pub fn used(&mut self, sel: Selected, bytes: usize) -> u32 {
        let mut more = sel.more;
        if sel.ring && !sel.held {
            if let Ok(ring) = self.ring(sel.group) {
                more = ring.consume(bytes, sel.many);
            }
        }
        let more = if more { cqe::F_BUF_MORE } else { 0 };
        (sel.id as u32) << cqe::BUFFER_SHIFT | cqe::F_BUFFER | more
    }

    /// A buffer was not used after all. Returns false if it stays with its request all the same.
    pub fn put_back(&mut self, sel: Selected) -> bool {
        if sel.ring {
            return !sel.held;
        }
        let group = self.groups.entry(sel.group).or_insert_with(|| Group::Legacy(VecDeque::new()));
        if let Group::Legacy(queue) = group {
            queue.push_front(Buf { addr: sel.addr, len: sel.whole, id: sel.id });
        }
        true
    }
}
