//! Which files are direct: asking costs a system call for each request, remembering may be wrong.
//!
//! A file is remembered only after it was found to be direct. If the number has become another file since, or
//! the program has cleared O_DIRECT, AIO still does the right thing or refuses, and the number is forgotten. The other error, a
//! direct file taken for a buffered one, would hold the submitter, so what is not remembered is asked for every time.

use crate::host::fd::Stat;
use crate::req::FileRef;
use core::sync::atomic::Ordering;

/// Plain numbers that are remembered.
const NUMBERS: usize = 8;

/// See the module's description.
#[derive(Default)]
pub struct Hints {
    numbers: [Option<i32>; NUMBERS],
    /// Device and inode of each.
    inodes: [(u64, u64); NUMBERS],
    next: usize,
}

impl Hints {
    /// Whether the file was direct when it was last looked at.
    #[inline]
    pub fn is_direct(&self, file: &FileRef) -> bool {
        match file {
            FileRef::Plain(number) => self.numbers.contains(&Some(*number)),
            FileRef::Fixed(file) => file.direct.load(Ordering::Relaxed),
            _ => false,
        }
    }
    /// It is.
    pub fn learn(&mut self, file: &FileRef, stat: &Stat) {
        match file {
            FileRef::Plain(number) => {
                self.forget(file);
                self.numbers[self.next] = Some(*number);
                self.inodes[self.next] = (stat.dev, stat.ino);
                self.next = (self.next + 1) % NUMBERS;
            }
            FileRef::Fixed(file) => file.direct.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
    /// Device and inode of a number when it was learnt.
    pub fn inode(&self, file: &FileRef) -> Option<(u64, u64)> {
        let FileRef::Plain(number) = file else { return None };
        let at = self.numbers.iter().position(|n| *n == Some(*number))?;
        Some(self.inodes[at])
    }
    /// It may not be any more.
    pub fn forget(&mut self, file: &FileRef) {
        match file {
            FileRef::Plain(number) => {
                self.numbers.iter_mut().filter(|n| **n == Some(*number)).for_each(|n| *n = None);
            }
            FileRef::Fixed(file) => file.direct.store(false, Ordering::Relaxed),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_number_makes_room() {
        let mut hints = Hints::default();
        let stat = crate::host::fd::stat(0).unwrap();
        (0..9).for_each(|n| hints.learn(&FileRef::Plain(n), &stat));
        assert!(!hints.is_direct(&FileRef::Plain(0)) && !hints.is_direct(&FileRef::Plain(-1)));
        assert!((1..9).all(|n| hints.is_direct(&FileRef::Plain(n))));
        hints.forget(&FileRef::Plain(4));
        assert!(!hints.is_direct(&FileRef::Plain(4)));
    }

    #[test]
    fn any_number_may_be_asked_for() {
        let mut hints = Hints::default();
        for number in [i32::MAX, i32::MIN, -1] {
            assert!(!hints.is_direct(&FileRef::Plain(number)));
            assert_eq!(hints.inode(&FileRef::Plain(number)), None);
            hints.forget(&FileRef::Plain(number));
        }
    }
}
