//! Which descriptors are known to be of files that were not opened with O_DIRECT.
//!
//! A direct transfer waits for its device even if it is asked not to wait, so a file's flags are looked at before it is
//! read inline. To ask for them costs half as much as a small cached read. What was seen is therefore believed for the
//! next few reads by the same number; and no longer, since the program may replace the file without our being told. At worst
//! that many direct reads in a row are done one after the other.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Numbers below this are remembered.
const TRACKED: usize = 65536;
/// Reads for which a look is good.
const READS: u8 = 32;

/// Reads left by number. A decrement that is lost lets one more pass.
static LEFT: [AtomicU8; TRACKED] = [const { AtomicU8::new(0) }; TRACKED];

fn left(fd: i32) -> Option<&'static AtomicU8> {
    LEFT.get(usize::try_from(fd).ok()?)
}

/// The file behind the number has just been seen not to be direct.
pub fn learn(fd: i32) {
    if let Some(left) = left(fd) {
        left.store(READS, Relaxed);
    }
}

/// The number is closed, or was not worth it.
pub fn forget(fd: i32) {
    if let Some(left) = left(fd) {
        left.store(0, Relaxed);
    }
}

/// Whether to believe it once more.
#[inline]
pub fn is_known(fd: i32) -> bool {
    let Some(left) = left(fd) else { return false };
    let now = left.load(Relaxed);
    if now > 0 {
        left.store(now - 1, Relaxed);
    }
    now > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_good_for_some_reads() {
        let fd = TRACKED as i32 - 1;
        assert!(!is_known(fd));
        learn(fd);
        assert_eq!((0..100).filter(|_| is_known(fd)).count(), READS as usize);
        learn(fd);
        forget(fd);
        assert!(!is_known(fd));
    }

    #[test]
    fn numbers_out_of_range_are_never_known() {
        for fd in [-1, i32::MIN, TRACKED as i32, i32::MAX] {
            learn(fd);
            assert!(!is_known(fd));
        }
    }
}
