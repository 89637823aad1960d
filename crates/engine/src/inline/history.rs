//! How quick an operation has been on a filesystem.
//!
//! A cell has a *debt*: how many quick calls workers still have to show before the operation runs inline again. 0 is
//! inline. A slow inline call sets it, and doubles what the next slow one will set; long quick runs halve that. A slow
//! call in a worker sets it anew.
//!
//! Any thread may report at any time. The words are changed by plain loads and stores, all relaxed: a report that
//! is lost to another one at the same time moves a hint by one step, and no other memory depends on it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Cells; a power of two. There are about twenty operations, and few filesystems see more than a handful of them.
const CELLS: usize = 256;
/// Places looked at before the last of them is shared.
const PROBES: usize = 8;
/// Quick calls asked for after the first slow one.
const DEBT_MIN: u32 = 4;
/// Doublings of it at most.
const STEPS_MAX: u32 = 8;
/// Quick inline calls in a row that take one doubling back.
const STREAK: u32 = 200;

/// Which cell; never 0 in a request's `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(u16);

/// See the module's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    debt: u32,
    steps: u32,
    streak: u32,
}

impl Record {
    fn unpack(word: u32) -> Record {
        Record { debt: word & 0xffff, steps: word >> 16 & 0xff, streak: word >> 24 }
    }
    fn pack(self) -> u32 {
        self.debt | self.steps << 16 | self.streak << 24
    }
    fn after_inline(self, slow: bool) -> Record {
        if slow {
            let steps = (self.steps + 1).min(STEPS_MAX);
            return Record { debt: DEBT_MIN << (steps - 1), steps, streak: 0 };
        }
        match (self.steps, self.streak) {
            (0, _) => Record { streak: 0, ..self },
            (_, STREAK..) => Record { steps: self.steps - 1, streak: 0, ..self },
            _ => Record { streak: self.streak + 1, ..self },
        }
    }
    fn after_worker(self, slow: bool) -> Record {
        let debt = match (self.debt, slow) {
            (0, _) => 0,
            (_, true) => DEBT_MIN << (self.steps.max(1) - 1),
            (debt, false) => debt - 1,
        };
        Record { debt, ..self }
    }
}

/// A table that only grows, by (operation, filesystem).
pub struct History {
    keys: [AtomicU64; CELLS],
    records: [AtomicU32; CELLS],
}

impl Default for History {
    fn default() -> History {
        History::new()
    }
}

impl History {
    /// Everything is quick until it was slow.
    pub fn new() -> History {
        History {
            keys: [const { AtomicU64::new(0) }; CELLS],
            records: [const { AtomicU32::new(0) }; CELLS],
        }
    }

    /// The cell of an operation on a filesystem, made at first need; `starts_slow` for one that has to show first that
    /// it is quick. When the neighbourhood is full, strangers share.
    pub fn cell(&self, opcode: u8, place: u64, starts_slow: bool) -> Cell {
        let key = (u64::from(opcode) << 48 | (place & 0xffff_ffff_ffff)) + 1;
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut at = 0;
        for probe in 0..PROBES {
            at = (hash as usize + probe) % CELLS;
            let found = match self.keys[at].load(Relaxed) {
                0 => self.claim(at, key, starts_slow),
                found => found,
            };
            if found == key {
                break;
            }
        }
        Cell(at as u16)
    }

    /// Takes a free cell, or tells who was faster.
    fn claim(&self, at: usize, key: u64, starts_slow: bool) -> u64 {
        if let Err(other) = self.keys[at].compare_exchange(0, key, Relaxed, Relaxed) {
            return other;
        }
        if starts_slow {
            self.update(Cell(at as u16), |r| Record { debt: DEBT_MIN, steps: 1, ..r });
        }
        key
    }

    /// Whether the operation runs inline.
    pub fn is_quick(&self, cell: Cell) -> bool {
        Record::unpack(self.records[cell.0 as usize].load(Relaxed)).debt == 0
    }

    /// An inline call has ended.
    #[inline]
    pub fn inline_call(&self, cell: Cell, slow: bool) {
        // The usual case writes nothing.
        if slow || self.records[cell.0 as usize].load(Relaxed) != 0 {
            self.update(cell, |r| r.after_inline(slow));
        }
    }

    /// A call in a worker has ended.
    pub fn worker_call(&self, cell: Cell, slow: bool) {
        self.update(cell, |r| r.after_worker(slow));
    }

    fn update(&self, cell: Cell, change: impl FnOnce(Record) -> Record) {
        let word = &self.records[cell.0 as usize];
        word.store(change(Record::unpack(word.load(Relaxed))).pack(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_call_is_enough_and_workers_lead_back() {
        let history = History::new();
        let cell = history.cell(21, 7, false);
        assert!(history.is_quick(cell));
        history.inline_call(cell, false);
        assert!(history.is_quick(cell));
        history.inline_call(cell, true);
        for _ in 0..DEBT_MIN {
            assert!(!history.is_quick(cell));
            history.worker_call(cell, false);
        }
        assert!(history.is_quick(cell));
    }

    #[test]
    fn a_slow_worker_starts_the_count_anew() {
        let history = History::new();
        let cell = history.cell(3, 1, false);
        history.inline_call(cell, true);
        for _ in 0..100 {
            (1..DEBT_MIN).for_each(|_| history.worker_call(cell, false));
            history.worker_call(cell, true);
            assert!(!history.is_quick(cell));
        }
    }

    #[test]
    fn each_relapse_costs_twice_as_many_until_a_long_quick_run() {
        let history = History::new();
        let cell = history.cell(3, 1, false);
        let pay = || {
            history.inline_call(cell, true);
            let calls = (1..).find(|_| {
                history.worker_call(cell, false);
                history.is_quick(cell)
            });
            calls.unwrap()
        };
        assert_eq!([pay(), pay(), pay()], [DEBT_MIN, 2 * DEBT_MIN, 4 * DEBT_MIN]);
        assert!((0..10).all(|_| pay() >= DEBT_MIN));
        assert_eq!(pay(), DEBT_MIN << (STEPS_MAX - 1));
        for _ in 0..=(STREAK + 1) * STEPS_MAX {
            history.inline_call(cell, false);
        }
        history.inline_call(cell, true);
        (0..DEBT_MIN).for_each(|_| history.worker_call(cell, false));
        assert!(history.is_quick(cell));
    }

    #[test]
    fn what_starts_slow_has_to_show_that_it_is_quick() {
        let history = History::new();
        let cell = history.cell(3, 9, true);
        assert!(!history.is_quick(cell));
        (0..DEBT_MIN).for_each(|_| history.worker_call(cell, false));
        assert!(history.is_quick(history.cell(3, 9, true)), "made once");
    }

    #[test]
    fn operations_and_filesystems_are_kept_apart() {
        let history = History::new();
        let slow = history.cell(3, 1, false);
        history.inline_call(slow, true);
        for (opcode, place) in [(4, 1), (3, 2), (0, 0), (3, 0)] {
            assert!(history.is_quick(history.cell(opcode, place, false)), "{opcode} {place}");
        }
        assert_eq!(history.cell(3, 1, false), slow);
    }

    #[test]
    fn a_full_table_still_answers() {
        let history = History::new();
        for place in 0..10_000 {
            let cell = history.cell(21, place, false);
            history.inline_call(cell, true);
            assert!(!history.is_quick(cell));
        }
    }
}
