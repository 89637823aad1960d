//! Where ring descriptors and the engine's private ones are, and how a process tells the
//! program it executes which range the filter it leaves behind watches.
//!
//! The range is fixed in the filter's instructions when the filter is installed. The filter
//! survives exec, so an executed program must use the same range; it learns it from
//! `ANYRING_FILTER`, whose text has a fixed width, since it is rewritten in place: the soft
//! limit the program itself believes in is part of it (see [`Inherited::nofile_soft`]).

use anyring_engine::FdLayout;

/// No descriptor above this, whatever the hard limit: the kernel's table of a process grows
/// to the highest number used (8 bytes each).
const TOP_MAX: u64 = 65536;
/// Most ring descriptors of a process.
const RINGS_MAX: u64 = 4096;

/// The layout for a process with this hard limit of RLIMIT_NOFILE: rings in the top quarter
/// (at most 4096 of them), the engine's other descriptors from the middle on.
pub fn choose(nofile_hard: u64) -> FdLayout {
    let top = nofile_hard.min(TOP_MAX);
    let rings = RINGS_MAX.min(top / 4);
    FdLayout {
        ring_base: (top - rings) as i32,
        ring_end: top as i32,
        private_min: (top / 2) as i32,
    }
}

/// Length of the text of [`Inherited`].
pub const TEXT_LEN: usize = 3 * 10 + 2;

/// What `ANYRING_FILTER` says: `base,end,soft`, each of ten digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// First ring descriptor.
    pub ring_base: u32,
    /// One after the last ring descriptor.
    pub ring_end: u32,
    /// The soft limit of RLIMIT_NOFILE the program should see, where the engine had raised the
    /// real one and could not put it back before exec (`system(3)`, `posix_spawn(3)`); else 0.
    pub nofile_soft: u32,
}

impl Inherited {
    /// As text.
    pub fn text(self) -> [u8; TEXT_LEN] {
        let mut text = [b','; TEXT_LEN];
        for (i, n) in [self.ring_base, self.ring_end, self.nofile_soft].into_iter().enumerate() {
            let mut n = n;
            for digit in text[i * 11..i * 11 + 10].iter_mut().rev() {
                *digit = b'0' + (n % 10) as u8;
                n /= 10;
            }
        }
        text
    }

    /// From text; `None` if it is not exactly what [`Inherited::text`] makes, or no range.
    pub fn parse(text: &[u8]) -> Option<Inherited> {
        let mut numbers = [0u32; 3];
        let mut fields = text.split(|&b| b == b',');
        for number in &mut numbers {
            let field = fields.next()?;
            if field.len() != 10 {
                return None;
            }
            for &digit in field {
                let digit = digit.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                *number = number.checked_mul(10)?.checked_add(u32::from(digit))?;
            }
        }
        let [ring_base, ring_end, nofile_soft] = numbers;
        let fits = ring_base < ring_end && u64::from(ring_end) <= TOP_MAX;
        (fields.next().is_none() && fits).then_some(Inherited { ring_base, ring_end, nofile_soft })
    }

    /// The layout of a process that has this filter.
    pub fn layout(self) -> FdLayout {
        FdLayout {
            ring_base: self.ring_base as i32,
            ring_end: self.ring_end as i32,
            private_min: (self.ring_end / 2) as i32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_on_top_and_private_descriptors_below() {
        let small = choose(1024);
        assert_eq!((small.private_min, small.ring_base, small.ring_end), (512, 768, 1024));
        let large = choose(u64::MAX);
        assert_eq!((large.private_min, large.ring_base, large.ring_end), (32768, 61440, 65536));
    }

    #[test]
    fn text_and_back() {
        let one = Inherited { ring_base: 768, ring_end: 1024, nofile_soft: 256 };
        assert_eq!(&one.text(), b"0000000768,0000001024,0000000256");
        assert_eq!(Inherited::parse(&one.text()), Some(one));
        assert_eq!(one.layout(), choose(1024));
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            &b"0000000768,0000001024"[..],
            b"0000000768,0000001024,0000000256,",
            b"0000001024,0000000768,0000000000",
            b"0000000000,9999999999,0000000000",
            b"000000076x,0000001024,0000000000",
            b"",
        ] {
            assert_eq!(Inherited::parse(bad), None, "{bad:?}");
        }
    }
}
