//! The library's own allocator.
//!
//! The engine allocates inside signal handlers, on threads the C library knows nothing of, and
//! in children of multi-threaded programs, so it cannot use the program's malloc. Blocks of up to
//! [`SMALL_MAX`] bytes come in size classes, cut from large mappings and kept in one list of free
//! blocks per class; larger ones are mappings of their own.
//!
//! Locking: each class has a lock, and so has the source of fresh memory; a class's lock may be
//! held when the source's is taken, never the other way round. Callers keep the program's
//! signals blocked, so a lock is never taken twice by one thread.
//!
//! Fork: locks and lists live in memory that is full of zeroes in a forked child, which is the
//! state of a new allocator. The child may still free blocks of its parent: they are copies that
//! nobody else uses, and become free blocks of the child.

use crate::lock::Lock;
use crate::sys;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The largest block that comes from a class.
const SMALL_MAX: usize = 32 << 10;
/// Smallest block, and the distance of the first eight classes.
const GRAIN: usize = 16;
/// Classes: 16, 32, … 128, then four to each doubling.
const CLASSES: usize = 8 + 4 * 8;
/// Fresh memory is mapped in pieces of this size.
const PIECE: usize = 1 << 20;
/// A class that has run dry is given about this much at once.
const REFILL: usize = 16 << 10;
const PAGE: usize = 4096;

/// A list of free blocks: each holds the address of the next.
struct Class {
    lock: Lock,
    free: UnsafeCell<*mut *mut u8>,
}

/// Fresh memory: `next..end` of the current piece.
struct Source {
    lock: Lock,
    range: UnsafeCell<(usize, usize)>,
}

/// All state; valid when all zeroes.
struct Control {
    classes: [Class; CLASSES],
    source: Source,
}

/// An allocator. Its state is mapped at the first use.
pub struct Allocator {
    control: AtomicPtr<Control>,
}

/// The index of the class for `size`, which is at most [`SMALL_MAX`].
fn class_of(size: usize) -> usize {
    let size = size.max(1);
    if size <= 8 * GRAIN {
        return (size - 1) / GRAIN;
    }
    let power = (size - 1).ilog2() as usize; // 2^power < size <= 2^(power + 1)
    let step = 1 << (power - 2);
    8 + (power - 7) * 4 + (size - 1 - (1 << power)) / step
}

/// The size of the blocks of a class.
fn size_of_class(class: usize) -> usize {
    if class < 8 {
        return (class + 1) * GRAIN;
    }
    let (power, quarter) = (7 + (class - 8) / 4, (class - 8) % 4);
    (1 << power) + (quarter + 1) * (1 << (power - 2))
}

/// The size that decides on the class: blocks of a power of two are aligned to their size.
fn effective(layout: Layout) -> usize {
    if layout.align() <= GRAIN {
        layout.size()
    } else {
        layout.size().max(layout.align()).next_power_of_two()
    }
}

fn pages(size: usize) -> usize {
    size.next_multiple_of(PAGE)
}

impl Allocator {
    /// An allocator without memory.
    pub const fn new() -> Allocator {
        Allocator { control: AtomicPtr::new(ptr::null_mut()) }
    }

    fn control(&self) -> Option<&Control> {
        let known = self.control.load(Ordering::Acquire);
        let control = if known.is_null() { self.make_control() } else { known };
        // SAFETY: null, or mapped for the life of the process; zeroes are a valid state.
        unsafe { control.as_ref() }
    }

    #[cold]
    fn make_control(&self) -> *mut Control {
        let len = pages(size_of::<Control>());
        let new = sys::map_wiped_on_fork(len).cast::<Control>();
        let null = ptr::null_mut();
        match self.control.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(first) => {
                // SAFETY: our own mapping, not published.
                unsafe { sys::unmap(new as usize, len) };
                first
            }
        }
    }

    /// Starts afresh in a forked child, for kernels that do not wipe the state themselves.
    pub fn wipe(&self) {
        let control = self.control.load(Ordering::Acquire);
        if !control.is_null() {
            // SAFETY: the child has one thread, which is in its fork handler, not in here.
            unsafe { ptr::write_bytes(control, 0, 1) };
        }
    }

    fn take(&self, class: usize) -> *mut u8 {
        let Some(control) = self.control() else { return ptr::null_mut() };
        let list = &control.classes[class];
        let _held = list.lock.hold();
        // SAFETY: guarded by the lock.
        let free = unsafe { &mut *list.free.get() };
        if free.is_null() {
            *free = control.source.cut(size_of_class(class));
        }
        let block = *free;
        if !block.is_null() {
            // SAFETY: a free block holds the address of the next one.
            *free = unsafe { *block }.cast();
        }
        block.cast()
    }

    /// # Safety
    /// `block` is a block of this class that nobody uses.
    unsafe fn give(&self, class: usize, block: *mut u8) {
        let Some(control) = self.control() else { return };
        let list = &control.classes[class];
        let _held = list.lock.hold();
        let block = block.cast::<*mut u8>();
        // SAFETY: guarded by the lock; the block is ours from here on.
        unsafe {
            let free = &mut *list.free.get();
            *block = free.cast();
            *free = block;
        }
    }
}

impl Source {
    /// Cuts a few blocks of `size` and links them; null if there is no memory.
    fn cut(&self, size: usize) -> *mut *mut u8 {
        let count = (REFILL / size).max(1);
        // Blocks of a power of two lie at multiples of their size, as far as a page reaches.
        let align = if size.is_power_of_two() { size.min(PAGE) } else { GRAIN };
        let at = self.fresh(count * size, align);
        if at == 0 {
            return ptr::null_mut();
        }
        let mut list: *mut *mut u8 = ptr::null_mut();
        for i in (0..count).rev() {
            let block = (at + i * size) as *mut *mut u8;
            // SAFETY: within the fresh memory.
            unsafe { *block = list.cast() };
            list = block;
        }
        list
    }

    fn fresh(&self, len: usize, align: usize) -> usize {
        let _held = self.lock.hold();
        // SAFETY: guarded by the lock.
        let (next, end) = unsafe { &mut *self.range.get() };
        let mut at = next.next_multiple_of(align);
        if *next == 0 || at + len > *end {
            let piece = sys::map(PIECE);
            if piece == 0 {
                return 0;
            }
            (at, *end) = (piece, piece + PIECE);
        }
        *next = at + len;
        at
    }
}

// SAFETY: blocks do not overlap, and are as large and as aligned as asked for.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = effective(layout);
        if layout.align() > PAGE {
            return ptr::null_mut();
        }
        if size <= SMALL_MAX {
            self.take(class_of(size))
        } else {
            sys::map(pages(layout.size())) as *mut u8
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let size = effective(layout);
        if size <= SMALL_MAX {
            // SAFETY: the caller's: `block` came from `alloc` with this layout.
            unsafe { self.give(class_of(size), block) };
        } else {
            // SAFETY: as above.
            unsafe { sys::unmap(block as usize, pages(layout.size())) };
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() && effective(layout) <= SMALL_MAX {
            // SAFETY: a block of this size; larger ones are fresh from the kernel.
            unsafe { ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, old: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for size and alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, old.align()) };
        let (before, after) = (effective(old), effective(new));
        if before <= SMALL_MAX && after <= SMALL_MAX && class_of(before) == class_of(after) {
            return block;
        }
        if before > SMALL_MAX && after > SMALL_MAX {
            const MAY_MOVE: usize = 1;
            let args = [block as usize, pages(old.size()), pages(size), MAY_MOVE, 0, 0];
            // SAFETY: a mapping of our own.
            let at = unsafe { sys::call6(libc::SYS_mremap, args) };
            return if at < 0 { ptr::null_mut() } else { at as *mut u8 };
        }
        // SAFETY: both blocks are at least as large as what is copied.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, old.size().min(size));
                self.dealloc(block, old);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_fit_and_are_tight() {
        for size in 1..=SMALL_MAX {
            let class = class_of(size);
            assert!(class < CLASSES, "{size}");
            assert!(size_of_class(class) >= size, "{size}");
            assert!(class == 0 || size_of_class(class - 1) < size, "{size}");
        }
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_are_aligned_and_apart() {
        let allocator = Allocator::new();
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for align in [1, 8, 16, 32, 64, 256, 4096] {
            for size in [1, 16, 17, 100, 129, 4096, 5000, 32768, 32769, 100_000] {
                for _ in 0..3 {
                    // SAFETY: the layout is not empty.
                    let at = unsafe { allocator.alloc(layout(size, align)) };
                    assert!(!at.is_null());
                    assert_eq!(at as usize % align, 0, "{size} {align}");
                    // SAFETY: the block is that large.
                    unsafe { at.write_bytes(0xaa, size) };
                    blocks.push((at as usize, size));
                }
            }
        }
        blocks.sort_unstable();
        assert!(blocks.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
    }

    #[test]
    fn freed_blocks_are_used_again_and_zeroed_on_demand() {
        let allocator = Allocator::new();
        let layout = layout(200, 8);
        // SAFETY: each block is used within its layout and freed once.
        unsafe {
            let first = allocator.alloc(layout);
            first.write_bytes(0xff, 200);
            allocator.dealloc(first, layout);
            let second = allocator.alloc_zeroed(layout);
            assert_eq!(first, second);
            assert!((0..200).all(|i| *second.add(i) == 0));
        }
    }

    #[test]
    fn a_grown_block_keeps_its_contents() {
        let allocator = Allocator::new();
        let mut size = 1;
        // SAFETY: each layout is the one of the block's last size.
        unsafe {
            let mut block = allocator.alloc(layout(size, 1));
            *block = 0;
            while size < 300_000 {
                let grown = size + size / 3 + 1;
                block = allocator.realloc(block, layout(size, 1), grown);
                for i in size..grown {
                    *block.add(i) = i as u8;
                }
                size = grown;
            }
            assert!((0..size).all(|i| *block.add(i) == i as u8));
            block = allocator.realloc(block, layout(size, 1), 50);
            assert!((0..50).all(|i| *block.add(i) == i as u8));
        }
    }

    #[test]
    fn threads_do_not_get_the_same_block() {
        let allocator = &Allocator::new();
        std::thread::scope(|scope| {
            for id in 0..4u8 {
                scope.spawn(move || {
                    for round in 0..2000usize {
                        let layout = layout(round % 700 + 1, 8);
                        // SAFETY: used within its layout and freed once.
                        unsafe {
                            let block = allocator.alloc(layout);
                            block.write_bytes(id, layout.size());
                            std::thread::yield_now();
                            assert!((0..layout.size()).all(|i| *block.add(i) == id));
                            allocator.dealloc(block, layout);
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_forked_child_starts_afresh_even_while_a_lock_is_held() {
        let allocator = Allocator::new();
        let layout = layout(64, 8);
        // SAFETY: the child only allocates, frees and exits.
        unsafe {
            let old = allocator.alloc(layout);
            let held = allocator.control().unwrap().classes[class_of(64)].lock.hold();
            let child = libc::fork();
            if child == 0 {
                libc::alarm(5);
                let new = allocator.alloc(layout);
                allocator.dealloc(old, layout);
                let again = allocator.alloc(layout);
                libc::_exit(i32::from(new.is_null() || new == old || again != old));
            }
            drop(held);
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
    }
}
