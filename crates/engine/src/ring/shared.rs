//! The memory a ring shares with the program: where each field lies, and every access to it.
//!
//! The program may write anything here at any time. Indices are masked, loops bounded and each
//! value read once. Ordering, as in the io_uring ABI: the program releases the SQ tail
//! and we acquire it; we release the SQ head after the SQEs were copied; we fill a CQE and
//! release the CQ tail; the program releases the CQ head and we acquire it. The SQ flags
//! are a read-modify-write with full ordering: the program tests NEED_WAKEUP after a full barrier.

use crate::host::mem::{Shared, PAGE};
use crate::host::user;
use crate::Errno;
use anyring_uapi::setup::{self, CqOffsets, SqOffsets};
use anyring_uapi::{Cqe, Params, Sqe};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const SQ_HEAD: usize = 0;
const SQ_TAIL: usize = 4;
const CQ_HEAD: usize = 8;
const CQ_TAIL: usize = 12;
const SQ_MASK: usize = 16;
const CQ_MASK: usize = 20;
const SQ_ENTRIES: usize = 24;
const CQ_ENTRIES: usize = 28;
const SQ_DROPPED: usize = 32;
const SQ_FLAGS: usize = 36;
const CQ_FLAGS: usize = 40;
const CQ_OVERFLOW: usize = 44;
const CQES: usize = 64;

/// Sizes of a ring, decided at setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// SQ entries, a power of two.
    pub sq_entries: u32,
    /// CQ entries, a power of two.
    pub cq_entries: u32,
    /// log2 of the bytes of an SQE.
    pub sqe_shift: u32,
    /// log2 of the bytes of a CQE.
    pub cqe_shift: u32,
    /// Whether there is an index array.
    pub sq_array: bool,
}

impl Geometry {
    /// Sizes for already rounded entry counts.
    pub fn new(sq_entries: u32, cq_entries: u32, flags: u32) -> Geometry {
        Geometry {
            sq_entries,
            cq_entries,
            sqe_shift: if flags & setup::SQE128 != 0 { 7 } else { 6 },
            cqe_shift: if flags & setup::CQE32 != 0 { 5 } else { 4 },
            sq_array: flags & setup::NO_SQARRAY == 0,
        }
    }
    fn cqes_offset(&self) -> usize {
        CQES
    }
    fn array_offset(&self) -> usize {
        // With 32-byte CQEs the whole head is counted double, an old habit of the ABI.
        let head = if self.cqe_shift == 5 { 2 * CQES } else { CQES };
        (head + ((self.cq_entries as usize) << self.cqe_shift)).next_multiple_of(64)
    }
    /// Bytes of the region with both rings.
    pub fn rings_len(&self) -> usize {
        self.array_offset() + if self.sq_array { 4 * self.sq_entries as usize } else { 0 }
    }
    /// Bytes of the SQEs.
    pub fn sqes_len(&self) -> usize {
        (self.sq_entries as usize) << self.sqe_shift
    }
    /// Fills the offsets that the program maps by.
    pub fn describe(&self, p: &mut Params) {
        p.sq_off = SqOffsets {
            head: SQ_HEAD as u32,
            tail: SQ_TAIL as u32,
            ring_mask: SQ_MASK as u32,
            ring_entries: SQ_ENTRIES as u32,
            flags: SQ_FLAGS as u32,
            dropped: SQ_DROPPED as u32,
            array: if self.sq_array { self.array_offset() as u32 } else { 0 },
            resv1: 0,
            user_addr: p.sq_off.user_addr,
        };
        p.cq_off = CqOffsets {
            head: CQ_HEAD as u32,
            tail: CQ_TAIL as u32,
            ring_mask: CQ_MASK as u32,
            ring_entries: CQ_ENTRIES as u32,
            overflow: CQ_OVERFLOW as u32,
            cqes: CQES as u32,
            flags: CQ_FLAGS as u32,
            resv1: 0,
            user_addr: p.cq_off.user_addr,
        };
    }
}

enum Region {
    /// Ours, mapped a second time by the program.
    Own(Shared),
    /// The program's (`NO_MMAP`); it promises to keep it mapped as long as the ring lives.
    Program(usize),
}

impl Region {
    fn addr(&self) -> usize {
        match self {
            Region::Own(s) => s.addr(),
            Region::Program(a) => *a,
        }
    }
}

/// The shared memory of one ring. Resizing replaces it. Whoever else may look at such a ring does so under one of its
/// locks, and resizing takes both: only rings with deferred task work can be resized, on which nobody but the owner
/// submits or waits.
pub struct SharedRings {
    now: AtomicPtr<Mapping>,
    sq_entries: AtomicU32,
}

/// An SQE that asks for nothing but its opcode: no flags of either kind, no ioprio or personality.
#[derive(Clone, Copy, Debug)]
pub struct Bare {
    /// The opcode.
    pub opcode: u8,
    /// `IOSQE_*` that do not matter.
    pub ignored: u8,
}

impl SharedRings {
    fn holding(mapping: Mapping) -> SharedRings {
        let sq_entries = AtomicU32::new(mapping.geo.sq_entries);
        SharedRings { now: AtomicPtr::new(Box::into_raw(Box::new(mapping))), sq_entries }
    }
    /// Maps fresh memory.
    pub fn new(geo: Geometry) -> Result<SharedRings, Errno> {
        Mapping::new(geo).map(SharedRings::holding)
    }
    /// Uses memory of the program, see [`Mapping::in_program_memory`].
    pub fn in_program_memory(
        geo: Geometry,
        rings: usize,
        sqes: usize,
    ) -> Result<SharedRings, Errno> {
        Mapping::in_program_memory(geo, rings, sqes).map(SharedRings::holding)
    }
    /// SQ entries, for threads that hold no lock.
    pub fn sq_entries(&self) -> u32 {
        self.sq_entries.load(Ordering::Relaxed)
    }
    /// Goes over to new memory and ends the old.
    ///
    /// # Safety
    /// The caller is the owner of a ring with deferred task work, holds both of its locks, and has copied what is to stay.
    pub unsafe fn replace(&self, new: Mapping) {
        self.sq_entries.store(new.geo.sq_entries, Ordering::Relaxed);
        let old = self.now.swap(Box::into_raw(Box::new(new)), Ordering::AcqRel);
        // SAFETY: a pointer from Box::into_raw, taken out once; nobody looks at it, as the caller vouches.
        drop(unsafe { Box::from_raw(old) });
    }
}

impl core::ops::Deref for SharedRings {
    type Target = Mapping;
    #[inline]
    fn deref(&self) -> &Mapping {
        // SAFETY: a box's pointer; it is replaced only while nobody else looks, see `replace`.
        unsafe { &*self.now.load(Ordering::Acquire) }
    }
}

impl Drop for SharedRings {
    fn drop(&mut self) {
        // SAFETY: as in `replace`; nobody refers to `self` any more.
        drop(unsafe { Box::from_raw(*self.now.get_mut()) });
    }
}

/// One generation of a ring's shared memory.
pub struct Mapping {
    geo: Geometry,
    rings: Region,
    sqes: Region,
}

impl Mapping {
    /// Maps fresh memory.
    pub fn new(geo: Geometry) -> Result<Mapping, Errno> {
        let rings = Region::Own(Shared::new(geo.rings_len())?);
        let sqes = Region::Own(Shared::new(geo.sqes_len())?);
        Ok(Mapping { geo, rings, sqes }.init())
    }

    /// Uses memory of the program (`NO_MMAP`). Addresses are page-aligned (EINVAL), mapped and writable (EFAULT).
    pub fn in_program_memory(geo: Geometry, rings: usize, sqes: usize) -> Result<Mapping, Errno> {
        for (addr, len) in [(rings, geo.rings_len()), (sqes, geo.sqes_len())] {
            if addr == 0 {
                return Err(Errno::FAULT);
            }
            if addr % PAGE != 0 {
                return Err(Errno::INVAL);
            }
            for page in (addr..addr + len).step_by(PAGE) {
                let word: u64 = user::read(page)?;
                user::write(page, &word)?;
            }
        }
        let zero = [0u64; 8];
        user::write(rings, &zero)?;
        Ok(Mapping { geo, rings: Region::Program(rings), sqes: Region::Program(sqes) }.init())
    }

    fn init(self) -> Mapping {
        self.word(SQ_MASK).store(self.geo.sq_entries - 1, Ordering::Relaxed);
        self.word(CQ_MASK).store(self.geo.cq_entries - 1, Ordering::Relaxed);
        self.word(SQ_ENTRIES).store(self.geo.sq_entries, Ordering::Relaxed);
        self.word(CQ_ENTRIES).store(self.geo.cq_entries, Ordering::Release);
        self
    }

    /// The sizes.
    pub fn geometry(&self) -> Geometry {
        self.geo
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.geo.rings_len());
        // SAFETY: inside the region, aligned, mapped as long as `self` lives; other parties use it atomically too or
        // harm only themselves.
        unsafe { AtomicU32::from_ptr((self.rings.addr() + offset) as *mut u32) }
    }

    /// The program's SQ tail.
    #[inline]
    pub fn sq_tail(&self) -> u32 {
        self.word(SQ_TAIL).load(Ordering::Acquire)
    }
    /// The SQ tail, after everything else was seen: for the re-check after NEED_WAKEUP was set.
    pub fn sq_tail_fenced(&self) -> u32 {
        core::sync::atomic::fence(Ordering::SeqCst);
        self.sq_tail()
    }
    /// Publishes how far the SQ was consumed.
    #[inline]
    pub fn set_sq_head(&self, head: u32) {
        self.word(SQ_HEAD).store(head, Ordering::Release);
    }
    /// One more invalid index.
    pub fn count_dropped(&self) {
        self.word(SQ_DROPPED).fetch_add(1, Ordering::Relaxed);
    }
    /// Sets SQ flag bits.
    pub fn set_sq_flags(&self, bits: u32) {
        self.word(SQ_FLAGS).fetch_or(bits, Ordering::SeqCst);
    }
    /// Clears SQ flag bits.
    pub fn clear_sq_flags(&self, bits: u32) {
        if self.word(SQ_FLAGS).load(Ordering::Relaxed) & bits != 0 {
            self.word(SQ_FLAGS).fetch_and(!bits, Ordering::SeqCst);
        }
    }
    /// Whether the program switched eventfd signals off.
    pub fn eventfd_disabled(&self) -> bool {
        self.word(CQ_FLAGS).load(Ordering::Relaxed) & anyring_uapi::cqe::CQ_EVENTFD_DISABLED != 0
    }
    /// The program's CQ head.
    #[inline]
    pub fn cq_head(&self) -> u32 {
        self.word(CQ_HEAD).load(Ordering::Acquire)
    }
    /// Publishes a new CQ tail.
    #[inline]
    pub fn set_cq_tail(&self, tail: u32) {
        self.word(CQ_TAIL).store(tail, Ordering::Release);
    }
    /// The index the array holds for SQ position `at`.
    #[inline]
    pub fn sq_index(&self, at: u32) -> u32 {
        let slot = at & (self.geo.sq_entries - 1);
        if !self.geo.sq_array {
            return slot;
        }
        self.word(self.geo.array_offset() + 4 * slot as usize).load(Ordering::Relaxed)
    }

    /// A private copy of SQE `index`, which is below `sq_entries`.
    #[inline]
    pub fn sqe(&self, index: u32) -> Sqe {
        debug_assert!(index < self.geo.sq_entries);
        let at = self.sqes.addr() + ((index as usize) << self.geo.sqe_shift);
        // SAFETY: inside the region; any bytes make an Sqe; a volatile copy reads each byte once.
        unsafe { (at as *const Sqe).read_volatile() }
    }

    /// A look at the SQEs at positions `from..to` without copying them: calls `take` for each that is bare,
    /// with its user_data and whether it has ignored flags. Returns the position of the first that is different, or `to`.
    #[inline]
    pub fn take_bare(
        &self,
        from: u32,
        to: u32,
        bare: Bare,
        mut take: impl FnMut(u64, bool),
    ) -> u32 {
        let (wanted, ignored) = (u32::from(bare.opcode), u32::from(bare.ignored) << 8);
        /// Words of an SQE: opcode, flags and ioprio; op_flags; buffer index and personality.
        const HEAD: usize = 0;
        const OP_FLAGS: usize = 7;
        const USER_DATA: usize = 4;
        const PERSONALITY: usize = 10;
        let mask = self.geo.sq_entries - 1;
        let array = self.geo.sq_array.then(|| self.rings.addr() + self.geo.array_offset());
        let mut at = from;
        while at != to {
            let slot = (at & mask) as usize;
            // SAFETY: inside the region, aligned, mapped; the program writes it atomically or harms only itself.
            let index = array
                .map_or(slot, |a| unsafe { (a as *const u32).add(slot).read_volatile() as usize });
            if index > mask as usize {
                break;
            }
            let sqe = self.sqes.addr() + (index << self.geo.sqe_shift);
            // SAFETY: inside the region and aligned, for any bytes.
            let (bare, user_data, flagged) = unsafe {
                let words = sqe as *const u32;
                let other = words.add(OP_FLAGS).read_volatile()
                    | words.add(PERSONALITY).read_volatile() >> 16;
                let head = words.add(HEAD).read_volatile();
                let bare = head & !ignored == wanted && other == 0;
                let user_data = (sqe as *const u64).add(USER_DATA).read_volatile();
                (bare, user_data, head & ignored != 0)
            };
            if !bare {
                break;
            }
            take(user_data, flagged);
            at = at.wrapping_add(1);
        }
        at
    }

    /// Writes the CQE at position `at`; `extra` are the second 16 bytes of a large one.
    #[inline]
    pub fn write_cqe(&self, at: u32, cqe: &Cqe, extra: [u64; 2]) {
        let slot = (at & (self.geo.cq_entries - 1)) as usize;
        let at = self.rings.addr() + self.geo.cqes_offset() + (slot << self.geo.cqe_shift);
        // SAFETY: inside the region; not yet published, so nobody else may read it.
        unsafe {
            (at as *mut Cqe).write_volatile(*cqe);
            if self.geo.cqe_shift == 5 {
                ((at + 16) as *mut [u64; 2]).write_volatile(extra);
            }
        }
    }

    /// Writes CQEs from position `at` on; the second halves of large ones are zero.
    #[inline]
    pub fn write_cqes(&self, at: u32, cqes: &[Cqe]) {
        if self.geo.cqe_shift != 4 {
            for (i, cqe) in cqes.iter().enumerate() {
                self.write_cqe(at.wrapping_add(i as u32), cqe, [0; 2]);
            }
            return;
        }
        let mask = self.geo.cq_entries - 1;
        let base = (self.rings.addr() + self.geo.cqes_offset()) as *mut Cqe;
        for (i, cqe) in cqes.iter().enumerate() {
            // SAFETY: as in `write_cqe`.
            unsafe {
                base.add((at.wrapping_add(i as u32) & mask) as usize).write_volatile(*cqe);
            }
        }
    }

    /// `mmap(2)` at one of the ABI's offsets. ENOMEM for others, as the kernel answers, and for rings in program memory.
    pub fn map(
        &self,
        addr: usize,
        len: usize,
        prot: u32,
        flags: u32,
        offset: u64,
    ) -> Result<usize, Errno> {
        // The kernel looks at these bits only.
        const MASK: u64 = 0xf800_0000;
        let region = match offset & MASK {
            setup::OFF_SQ_RING | setup::OFF_CQ_RING => &self.rings,
            setup::OFF_SQES => &self.sqes,
            _ => return Err(Errno::NOMEM),
        };
        match region {
            Region::Own(shared) => shared.map_again(addr, len, prot, flags),
            Region::Program(_) => Err(Errno::NOMEM),
        }
    }

    /// Takes over what waits in `old`: SQEs from `sq_head` on, CQEs up to `cq_tail`, counters and flags. EOVERFLOW if
    /// they do not fit. Slots differ, positions stay.
    pub fn take_over(&self, old: &Mapping, sq_head: u32, cq_tail: u32) -> Result<(), Errno> {
        let (sq_tail, cq_head) = (old.sq_tail(), old.cq_head());
        let sqes = sq_tail.wrapping_sub(sq_head);
        let cqes = cq_tail.wrapping_sub(cq_head);
        if sqes > self.geo.sq_entries.min(old.geo.sq_entries)
            || cqes > self.geo.cq_entries.min(old.geo.cq_entries)
        {
            return Err(Errno::OVERFLOW);
        }
        for i in 0..sqes {
            self.copy_sqe(old, sq_head.wrapping_add(i));
        }
        for i in 0..cqes {
            self.copy_cqe(old, cq_head.wrapping_add(i));
        }
        for (field, value) in
            [(SQ_HEAD, sq_head), (SQ_TAIL, sq_tail), (CQ_HEAD, cq_head), (CQ_TAIL, cq_tail)]
        {
            self.word(field).store(value, Ordering::Release);
        }
        for field in [SQ_DROPPED, SQ_FLAGS, CQ_FLAGS, CQ_OVERFLOW] {
            self.word(field).store(old.word(field).load(Ordering::Relaxed), Ordering::Release);
        }
        Ok(())
    }

    fn copy_sqe(&self, old: &Mapping, at: u32) {
        let place = |m: &Mapping| {
            let slot = (at & (m.geo.sq_entries - 1)) as usize;
            (m.sqes.addr() + (slot << m.geo.sqe_shift)) as *mut [u64; 8]
        };
        for half in 0..1 << (self.geo.sqe_shift - 6) {
            // SAFETY: both places are inside their regions, and SQEs are of one size.
            unsafe { place(self).add(half).write_volatile(place(old).add(half).read_volatile()) };
        }
    }

    fn copy_cqe(&self, old: &Mapping, at: u32) {
        let place = |m: &Mapping| {
            let slot = (at & (m.geo.cq_entries - 1)) as usize;
            (m.rings.addr() + m.geo.cqes_offset() + (slot << m.geo.cqe_shift)) as *mut [u64; 2]
        };
        for half in 0..1 << (self.geo.cqe_shift - 4) {
            // SAFETY: as for SQEs.
            unsafe { place(self).add(half).write_volatile(place(old).add(half).read_volatile()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(sq: u32, cq: u32, flags: u32) -> (u32, usize) {
        let geo = Geometry::new(sq, cq, flags);
        let mut p = Params::default();
        geo.describe(&mut p);
        (p.sq_off.array, geo.rings_len())
    }

    #[test]
    fn layout_is_the_kernels() {
        assert_eq!(offsets(8, 16, 0), (320, 352));
        assert_eq!(offsets(8, 16, setup::CQE32).0, 640);
        assert_eq!(offsets(8, 16, setup::NO_SQARRAY).0, 0);
        assert_eq!(offsets(8, 16, setup::SQE128).0, 320);
    }

    #[test]
    fn scribbled_indices_stay_inside() {
        let rings = SharedRings::new(Geometry::new(4, 8, 0)).unwrap();
        rings.write_cqe(u32::MAX, &Cqe { user_data: 1, res: 2, flags: 3 }, [0; 2]);
        assert_eq!(rings.sq_index(u32::MAX), 0);
    }
}
