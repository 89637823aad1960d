//! Where the engine's descriptors live: high numbers, close-on-exec, above the program's soft limit if need be.
//!
//! The first ring raises the soft RLIMIT_NOFILE to the hard one so that high numbers can be given out; the
//! program's own value is remembered for a front door that hides the change. A forked child closes its copies:
//! duplicates that it kept would hold pipes and connections open.

use crate::host::fd::{self, OwnedFd};
use crate::sync::Lock;
use crate::{Errno, FdLayout};
use core::sync::atomic::{AtomicU64, Ordering};

/// See the module's description.
pub struct Fds {
    layout: FdLayout,
    /// The program's soft limit + 1, or 0 if the limit was not touched.
    program_soft: AtomicU64,
    ring_numbers: Lock<()>,
}

impl Fds {
    /// Nothing is opened yet.
    pub fn new(layout: FdLayout) -> Fds {
        Fds { layout, program_soft: AtomicU64::new(0), ring_numbers: Lock::new(()) }
    }
    /// The layout.
    pub fn layout(&self) -> FdLayout {
        self.layout
    }

    /// Raises the soft limit so that the layout's numbers can be used.
    pub fn make_room(&self) {
        let Ok((soft, hard)) = fd::nofile_limit() else { return };
        if soft >= self.layout.ring_end as u64 {
            return;
        }
        if fd::set_nofile_limit(hard.min(1 << 20).max(soft), hard).is_ok() {
            let _ = self.program_soft.compare_exchange(
                0,
                soft + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }

    /// The program's soft limit, if it differs from the real one.
    pub fn program_soft(&self) -> Option<u64> {
        self.program_soft.load(Ordering::Acquire).checked_sub(1)
    }

    /// A private duplicate.
    #[inline]
    pub fn duplicate(&self, number: i32) -> Result<OwnedFd, Errno> {
        let made = self.duplicate_anywhere(number)?;
        made.mark_private();
        Ok(made)
    }

    fn duplicate_anywhere(&self, number: i32) -> Result<OwnedFd, Errno> {
        match fd::dup_above(number, self.layout.private_min) {
            Err(Errno::INVAL) => {
                // The program lowered its limit in the meantime.
                self.make_room();
                fd::dup_above(number, self.layout.private_min).or_else(|_| fd::dup_above(number, 0))
            }
            other => other,
        }
    }

    /// In a forked child: closes the copies of all private descriptors.
    pub fn close_copies(&self) {
        fd::take_private(|number| {
            let _ = fd::close(number);
        });
    }

    /// Moves a fresh descriptor up.
    pub fn move_high(&self, low: OwnedFd) -> Result<OwnedFd, Errno> {
        self.duplicate(low.raw())
    }

    /// A number for a ring, from the range that a front door traps.
    pub fn ring_number(&self, efd: i32) -> Result<OwnedFd, Errno> {
        let _one_at_a_time = self.ring_numbers.lock();
        let new = match fd::dup_above(efd, self.layout.ring_base) {
            Err(Errno::INVAL) => {
                self.make_room();
                fd::dup_above(efd, self.layout.ring_base)
            }
            other => other,
        };
        match new {
            Ok(new) if new.raw() < self.layout.ring_end => Ok(new),
            Ok(_) | Err(Errno::INVAL) => Err(Errno::MFILE),
            Err(e) => Err(e),
        }
    }
}
