//! The memory that a ring shares with its backend: mappings, and where the fields of both queues
//! lie in them. Who writes which field with which ordering is said in [`crate::squeue`] and
//! [`crate::cqueue`].

use crate::backend::Descriptor;
use anyring_uapi::setup::{self, FEAT_SINGLE_MMAP, NO_SQARRAY};
use anyring_uapi::Params;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A mapping, gone with the value.
pub(crate) struct Mapping {
    addr: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// # Safety
    /// The range was mapped, and belongs to nobody else.
    pub(crate) unsafe fn new(addr: NonNull<u8>, len: usize) -> Mapping {
        Mapping { addr, len }
    }

    /// The field at an offset that the backend named.
    fn field(&self, offset: u32) -> io::Result<NonNull<AtomicU32>> {
        let offset = offset as usize;
        if offset + 4 > self.len || offset % 4 != 0 {
            return Err(io::Error::other(
                "the backend describes a ring that is not in its mapping",
            ));
        }
        // SAFETY: inside the mapping.
        Ok(unsafe { self.addr.add(offset) }.cast())
    }

    /// Keeps the mapping out of forked children.
    fn dont_fork(&self) -> io::Result<()> {
        // SAFETY: our own mapping, whose contents stay.
        match unsafe { libc::madvise(self.addr.as_ptr().cast(), self.len, libc::MADV_DONTFORK) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and what points into it is gone.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

/// Methods that give a shared field. The mapping lives as long as the value does.
macro_rules! fields {
    ($($field:ident),*) => {$(
        #[inline]
        pub(crate) fn $field(&self) -> &AtomicU32 {
            // SAFETY: in the ring's mapping, which outlives the borrow: see `Memory`.
            unsafe { self.$field.as_ref() }
        }
    )*};
}

/// The submission queue.
pub(crate) struct Sq {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    dropped: NonNull<AtomicU32>,
    sqes: NonNull<u8>,
    entries: u32,
}

impl Sq {
    fields!(head, tail, flags, dropped);

    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Entries that were pushed and not consumed yet.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        let head = self.head().load(Ordering::Acquire);
        self.tail().load(Ordering::Acquire).wrapping_sub(head)
    }

    /// The entry at position `at`.
    #[inline]
    pub(crate) fn slot<E>(&self, at: u32) -> *mut E {
        let index = (at & (self.entries - 1)) as usize;
        self.sqes.as_ptr().cast::<E>().wrapping_add(index)
    }
}

/// The completion queue.
pub(crate) struct Cq {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    overflow: NonNull<AtomicU32>,
    cqes: NonNull<u8>,
    entries: u32,
}

impl Cq {
    fields!(head, tail, flags, overflow);

    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// The entry at position `at`.
    #[inline]
    pub(crate) fn entry<E>(&self, at: u32) -> *const E {
        let index = (at & (self.entries - 1)) as usize;
        self.cqes.as_ptr().cast::<E>().wrapping_add(index)
    }
}

/// Both queues, and the mappings they lie in.
pub(crate) struct Memory {
    pub(crate) sq: Sq,
    pub(crate) cq: Cq,
    _mappings: [Option<Mapping>; 3],
}

// SAFETY: the pointers lead into mappings that the value owns; shared fields are accessed as
// atomics, and entries through the queue types, of which the API lets one of a kind exist.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Sizes of the entries, which the ring's type fixes.
#[derive(Clone, Copy)]
pub(crate) struct EntrySizes {
    pub(crate) sqe: usize,
    pub(crate) cqe: usize,
}

impl Memory {
    /// Maps what `params` describes.
    pub(crate) fn map(
        fd: &Descriptor,
        params: &Params,
        sizes: EntrySizes,
        dont_fork: bool,
    ) -> io::Result<Memory> {
        let (sq_len, cq_len) = ring_lengths(params, sizes);
        let single = params.features & FEAT_SINGLE_MMAP != 0;
        let rings = fd.map(if single { sq_len.max(cq_len) } else { sq_len }, setup::OFF_SQ_RING)?;
        let cq_ring = if single { None } else { Some(fd.map(cq_len, setup::OFF_CQ_RING)?) };
        let sqes = fd.map(params.sq_entries as usize * sizes.sqe, setup::OFF_SQES)?;
        if dont_fork {
            for mapping in [Some(&rings), cq_ring.as_ref(), Some(&sqes)].into_iter().flatten() {
                mapping.dont_fork()?;
            }
        }
        let sq = sq(&rings, &sqes, params)?;
        let cq = cq(cq_ring.as_ref().unwrap_or(&rings), params)?;
        Ok(Memory { sq, cq, _mappings: [Some(rings), cq_ring, Some(sqes)] })
    }
}

/// Bytes of the two rings. A ring without an index array has no end of its own.
fn ring_lengths(params: &Params, sizes: EntrySizes) -> (usize, usize) {
    let sq = params.sq_off.array as usize + params.sq_entries as usize * 4;
    let cq = params.cq_off.cqes as usize + params.cq_entries as usize * sizes.cqe;
    (sq, cq)
}

fn sq(rings: &Mapping, sqes: &Mapping, params: &Params) -> io::Result<Sq> {
    let off = &params.sq_off;
    if params.flags & NO_SQARRAY == 0 {
        // Position i of the queue is always entry i.
        for i in 0..params.sq_entries {
            let index = rings.field(off.array + 4 * i)?;
            // SAFETY: in the mapping.
            unsafe { index.as_ref() }.store(i, Ordering::Relaxed);
        }
    }
    Ok(Sq {
        head: rings.field(off.head)?,
        tail: rings.field(off.tail)?,
        flags: rings.field(off.flags)?,
        dropped: rings.field(off.dropped)?,
        sqes: sqes.addr,
        entries: params.sq_entries,
    })
}

fn cq(rings: &Mapping, params: &Params) -> io::Result<Cq> {
    let off = &params.cq_off;
    Ok(Cq {
        head: rings.field(off.head)?,
        tail: rings.field(off.tail)?,
        flags: rings.field(off.flags)?,
        overflow: rings.field(off.overflow)?,
        cqes: rings.field(off.cqes)?.cast(),
        entries: params.cq_entries,
    })
}

/// Keeps the readiness of the ring's descriptor true: somebody may poll it.
#[derive(Clone, Copy)]
pub(crate) struct CqWatch<'a> {
    pub(crate) fd: &'a Descriptor,
    pub(crate) watched: &'a AtomicBool,
}

impl CqWatch<'_> {
    /// All completions that were there have been taken.
    #[inline]
    pub(crate) fn emptied(self) {
        if self.watched.load(Ordering::Relaxed) {
            self.fd.emptied();
        }
    }
}
