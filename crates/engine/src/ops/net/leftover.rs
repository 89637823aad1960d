//! Whether more bytes wait in a socket after a receive that filled its buffer, for CQE_F_SOCK_NONEMPTY.
//!
//! To know costs a system call each time. That the flag is missing says nothing, since bytes may arrive at any moment; that it is
//! there saves a program a wait. So where a ring's sockets had nothing left many times in a row, as with programs that
//! exchange messages of the size of their buffers, only a sample is asked, until one has something again.

use super::{socket, Ctx};

/// Receives in a row that left nothing before there is sampling.
const SURE: u32 = 32;
/// Of so many one is asked then.
const SAMPLE: u32 = 16;

/// A ring's experience.
#[derive(Debug)]
pub struct Leftover {
    samples: bool,
    /// Receives since one left something.
    empty: u32,
}

impl Leftover {
    /// None yet. `samples`: it may be used.
    pub fn new(samples: bool) -> Leftover {
        Leftover { samples, empty: 0 }
    }

    /// Whether the next socket is to be asked; counted as one that had nothing left.
    fn is_due(&mut self) -> bool {
        self.empty = if self.empty == u32::MAX { SURE } else { self.empty + 1 };
        !self.samples || self.empty <= SURE || self.empty % SAMPLE == 0
    }
}

/// Whether bytes are known to wait.
pub fn asked(ctx: &mut Ctx<'_>, socket: i32) -> bool {
    if !ctx.with_state(|st| st.leftover.is_due()) || !socket::has_more(socket) {
        return false;
    }
    ctx.with_state(|st| st.leftover.empty = 0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_begins_after_many_and_ends_with_one() {
        let mut leftover = Leftover::new(true);
        let due = |l: &mut Leftover, n| (0..n).filter(|_| l.is_due()).count();
        assert_eq!(due(&mut leftover, SURE), SURE as usize);
        assert_eq!(due(&mut leftover, 10 * SAMPLE), 10);
        leftover.empty = 0;
        assert_eq!(due(&mut leftover, SURE), SURE as usize);
        leftover.empty = u32::MAX;
        assert!(due(&mut leftover, SAMPLE) <= 1);
    }

    #[test]
    fn without_sampling_all_are_asked() {
        let mut leftover = Leftover::new(false);
        assert!((0..1000).all(|_| leftover.is_due()));
    }
}
