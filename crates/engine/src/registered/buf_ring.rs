//! Buffer rings: provided buffers that the program publishes by moving a tail in shared memory.
//!
//! The head is the engine's own and moves only when I/O used a buffer. The memory is the program's
//! to scribble on: the tail is read once a look and never believed beyond the ring's size, slots
//! are masked. A ring in program memory is read through fault-safe copies, several entries at a
//! time; entries between head and tail are the engine's by the ABI, so copies of them stay good.

use crate::host::mem::Shared;
use crate::host::rw::Iovec;
use crate::host::user;
use crate::Errno;
use core::sync::atomic::{AtomicU16, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

/// One entry as the ABI lays it out: address, length, id; the first entry's last half-word is the tail.
const ENTRY: usize = 16;
const LEN_AT: usize = 8;
const TAIL_AT: usize = 14;
/// Entries copied in one go from program memory.
const BATCH: usize = 32;

/// A published buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address.
    pub addr: usize,
    /// Bytes.
    pub len: usize,
    /// Id.
    pub id: u16,
}

impl Entry {
    fn parse(words: [u64; 2]) -> Entry {
        Entry {
            addr: words[0] as usize,
            len: words[1] as u32 as usize,
            id: (words[1] >> 32) as u16,
        }
    }
}

/// Where a ring lies.
pub enum Memory {
    /// The engine's (IOU_PBUF_RING_MMAP), mapped a second time by the program.
    Own(Arc<Shared>),
    /// The program's.
    Program(usize),
}

/// See the module's description.
pub struct BufRing {
    memory: Memory,
    mask: u16,
    head: u16,
    incremental: bool,
    /// Copies of the entries from `head` on.
    known: VecDeque<Entry>,
}

impl BufRing {
    /// An empty ring of a power of two of entries.
    pub fn new(memory: Memory, entries: u16, incremental: bool) -> BufRing {
        BufRing {
            memory,
            mask: entries.wrapping_sub(1),
            head: 0,
            incremental,
            known: VecDeque::new(),
        }
    }
    /// Bytes of a ring of so many entries.
    pub fn bytes(entries: u32) -> usize {
        entries as usize * ENTRY
    }
    /// How far the engine has consumed.
    pub fn head(&self) -> u16 {
        self.head
    }
    /// Whether buffers are consumed in pieces.
    pub fn is_incremental(&self) -> bool {
        self.incremental
    }
    /// The memory to map for the program, if it is the engine's.
    pub fn shared(&self) -> Option<Arc<Shared>> {
        match &self.memory {
            Memory::Own(shared) => Some(shared.clone()),
            Memory::Program(_) => None,
        }
    }

    fn slot(&self, position: u16) -> usize {
        (position & self.mask) as usize * ENTRY
    }

    fn tail(&self) -> Result<u16, Errno> {
        match &self.memory {
            // SAFETY: inside the mapping, aligned; the program writes it atomically or harms only itself.
            Memory::Own(m) => Ok(unsafe { AtomicU16::from_ptr((m.addr() + TAIL_AT) as *mut u16) }
                .load(Ordering::Acquire)),
            Memory::Program(base) => user::read::<u16>(base + TAIL_AT),
        }
    }

    /// Copies up to `count` entries that follow each other in memory, from `position` on.
    fn copy(&self, position: u16, count: usize) -> Result<Vec<[u64; 2]>, Errno> {
        let at = self.slot(position);
        match &self.memory {
            Memory::Own(m) => Ok((0..count)
                // SAFETY: the caller keeps the range inside the mapping; any bytes make two integers, read once.
                .map(|i| unsafe {
                    ((m.addr() + at + i * ENTRY) as *const [u64; 2]).read_volatile()
                })
                .collect()),
            Memory::Program(base) => user::read_vec::<[u64; 2]>(base + at, count),
        }
    }

    /// Sees to it that the next `wanted` entries are known, as far as they are published.
    fn look(&mut self, wanted: usize) -> Result<(), Errno> {
        if self.known.len() >= wanted {
            return Ok(());
        }
        let entries = self.mask as usize + 1;
        let published = (self.tail()?.wrapping_sub(self.head) as usize).min(entries);
        let goal = published.min(wanted.max(BATCH));
        while self.known.len() < goal {
            let position = self.head.wrapping_add(self.known.len() as u16);
            let until_wrap = entries - (position & self.mask) as usize;
            let count = (goal - self.known.len()).min(until_wrap);
            let copied = self.copy(position, count)?;
            self.known.extend(copied.into_iter().map(Entry::parse));
        }
        Ok(())
    }

    /// The buffer at the head. ENOBUFS if none is published.
    pub fn peek(&mut self) -> Result<Entry, Errno> {
        self.look(1)?;
        self.known.front().copied().ok_or(Errno::NOBUFS)
    }

    /// Buffers from the head on that hold at most `bytes` (0 for no limit), at most `count` of them. Only the first is
    /// cut short: what is left of a later one would be lost.
    pub fn peek_many(&mut self, bytes: usize, count: usize) -> Result<Vec<Iovec>, Errno> {
        let mut out = Vec::new();
        let mut room = if bytes == 0 { usize::MAX } else { bytes };
        while out.len() < count && room > 0 {
            self.look(out.len() + 1)?;
            let Some(entry) = self.known.get(out.len()) else { break };
            if entry.len > room && !out.is_empty() && !self.incremental {
                break;
            }
            let len = entry.len.min(room);
            room -= len;
            out.push(Iovec { base: entry.addr, len });
        }
        if out.is_empty() {
            return Err(Errno::NOBUFS);
        }
        Ok(out)
    }

    /// Whether nothing is published beyond the first `taken` buffers.
    pub fn is_used_up(&mut self, taken: usize) -> bool {
        self.look(taken + 1).is_err() || self.known.len() <= taken
    }

    /// One buffer is used up.
    fn pop(&mut self) -> Option<Entry> {
        self.head = self.head.wrapping_add(1);
        self.known.pop_front()
    }

    /// I/O used `bytes` from the head on. Returns whether the last buffer touched has room left (incremental rings only).
    pub fn consume(&mut self, bytes: usize, many: bool) -> bool {
        if self.incremental {
            return self.consume_pieces(bytes);
        }
        let mut left = bytes;
        loop {
            let Some(entry) = self.pop() else { return false };
            left = left.saturating_sub(entry.len.max(1));
            if !many || left == 0 {
                return false;
            }
        }
    }

    /// The entry in memory tells the program what is left of a buffer.
    fn consume_pieces(&mut self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        let mut left = bytes;
        while left > 0 {
            let at = self.slot(self.head);
            let Some(entry) = self.known.front_mut() else { return false };
            let n = left.min(entry.len);
            left -= n;
            entry.len -= n;
            if entry.len > 0 {
                entry.addr += n;
                let rest = *entry;
                self.write_back(at, Some(rest.addr), rest.len);
                return true;
            }
            self.write_back(at, None, 0);
            self.pop();
        }
        false
    }

    /// A fault here has no one to be told: the program has taken its ring away.
    fn write_back(&self, at: usize, addr: Option<usize>, len: usize) {
        let len = len as u32;
        match &self.memory {
            // SAFETY: inside the mapping and aligned.
            Memory::Own(m) => unsafe {
                if let Some(addr) = addr {
                    ((m.addr() + at) as *mut u64).write_volatile(addr as u64);
                }
                ((m.addr() + at + LEN_AT) as *mut u32).write_volatile(len);
            },
            Memory::Program(base) => {
                if let Some(addr) = addr {
                    let _ = user::write(base + at, &(addr as u64));
                }
                let _ = user::write(base + at + LEN_AT, &len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Page {
        words: Box<[u64; 64]>,
    }

    impl Page {
        fn new() -> Page {
            Page { words: Box::new([0; 64]) }
        }
        fn publish(&mut self, slot: usize, addr: u64, len: u64, id: u64) {
            let tail = self.words[1] & 0xffff << 48;
            self.words[2 * slot] = addr;
            self.words[2 * slot + 1] = len | id << 32;
            self.words[1] = self.words[1] & !(0xffff << 48) | tail;
        }
        fn set_tail(&mut self, tail: u16) {
            self.words[1] = self.words[1] & !(0xffff << 48) | (tail as u64) << 48;
        }
        fn ring(&mut self, entries: u16, incremental: bool) -> BufRing {
            BufRing::new(Memory::Program(self.words.as_mut_ptr() as usize), entries, incremental)
        }
    }

    #[test]
    fn head_moves_only_when_used() {
        let mut page = Page::new();
        let mut ring = page.ring(4, false);
        assert_eq!(ring.peek(), Err(Errno::NOBUFS));
        page.publish(0, 0x1000, 8, 7);
        page.set_tail(1);
        assert_eq!(ring.peek(), Ok(Entry { addr: 0x1000, len: 8, id: 7 }));
        assert_eq!(ring.head(), 0);
        assert!(!ring.consume(3, false));
        assert_eq!((ring.head(), ring.peek()), (1, Err(Errno::NOBUFS)));
    }

    #[test]
    fn a_wild_tail_stays_inside() {
        let mut page = Page::new();
        for slot in 0..4 {
            page.publish(slot, 0x1000, 8, slot as u64);
        }
        page.set_tail(60000);
        let mut ring = page.ring(4, false);
        assert_eq!(ring.peek_many(0, 100).map(|v| v.len()), Ok(4));
    }

    #[test]
    fn pieces_are_written_back() {
        let mut page = Page::new();
        page.publish(0, 0x1000, 10, 3);
        page.publish(1, 0x2000, 4, 4);
        page.set_tail(2);
        let mut ring = page.ring(4, true);
        assert!(ring.peek().is_ok() && ring.consume(3, false));
        assert_eq!((page.words[0], page.words[1] as u32), (0x1003, 7));
        assert_eq!(
            ring.peek_many(9, 8).unwrap(),
            [Iovec { base: 0x1003, len: 7 }, Iovec { base: 0x2000, len: 2 }]
        );
        assert!(ring.consume(9, true));
        assert_eq!((ring.head(), page.words[2], page.words[3] as u32), (1, 0x2002, 2));
    }

    #[test]
    fn bundles_use_whole_buffers() {
        let mut page = Page::new();
        for slot in 0..3 {
            page.publish(slot, 0x1000, 8, slot as u64);
        }
        page.set_tail(3);
        let mut ring = page.ring(4, false);
        assert_eq!(ring.peek_many(12, 8).map(|v| v.len()), Ok(1));
        assert_eq!(ring.peek_many(16, 8).map(|v| v.len()), Ok(2));
        ring.consume(12, true);
        assert_eq!((ring.head(), ring.is_used_up(0), ring.is_used_up(1)), (2, false, true));
    }

    #[test]
    fn unmapped_memory_is_an_error() {
        let mut ring = BufRing::new(Memory::Program(4096), 4, false);
        assert_eq!(ring.peek(), Err(Errno::FAULT));
    }
}
