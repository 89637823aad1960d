//! The waiting requests by kind of wait and user_data, so that to cancel one of many does not mean to look at all.
//!
//! A hash table whose chains run through the entries themselves: entering and leaving costs no allocation. A chain is in the
//! order in which its entries came, so the first match is the oldest.

/// No entry.
const NONE: u32 = u32::MAX;
/// Buckets of the smallest table.
const BUCKETS_MIN: usize = 16;

/// An entry's place in the index.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    hash: u64,
    prev: u32,
    next: u32,
    linked: bool,
}

impl Default for Link {
    fn default() -> Link {
        Link { hash: 0, prev: NONE, next: NONE, linked: false }
    }
}

impl Link {
    /// Whether the entry is in the index.
    pub fn is_linked(&self) -> bool {
        self.linked
    }
}

/// Where the entries with their links are.
pub trait Entries {
    /// The link of an entry that is in the index.
    fn link(&mut self, at: u32) -> &mut Link;
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Index {
    /// First and last entry of each chain; a power of two of them, or none yet.
    chains: Vec<(u32, u32)>,
    len: usize,
}

/// The hash of a kind of wait and a user_data.
pub fn hash(kind: u8, user_data: u64) -> u64 {
    let both = user_data ^ u64::from(kind + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = both.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

impl Index {
    fn chain(&self, hash: u64) -> usize {
        hash as usize & (self.chains.len() - 1)
    }

    /// Enters an entry that is not in the index.
    pub fn enter(&mut self, entries: &mut impl Entries, at: u32, hash: u64) {
        if self.len >= self.chains.len() {
            self.grow(entries);
        }
        self.len += 1;
        self.append(entries, at, hash);
    }

    fn append(&mut self, entries: &mut impl Entries, at: u32, hash: u64) {
        let chain = self.chain(hash);
        let last = self.chains[chain].1;
        *entries.link(at) = Link { hash, prev: last, next: NONE, linked: true };
        if last == NONE {
            self.chains[chain].0 = at;
        } else {
            entries.link(last).next = at;
        }
        self.chains[chain].1 = at;
    }

    fn grow(&mut self, entries: &mut impl Entries) {
        let size = (2 * self.chains.len()).max(BUCKETS_MIN);
        let old = core::mem::replace(&mut self.chains, vec![(NONE, NONE); size]);
        for (mut at, _) in old {
            while at != NONE {
                let Link { hash, next, .. } = *entries.link(at);
                self.append(entries, at, hash);
                at = next;
            }
        }
    }

    /// Takes an entry out, if it is in.
    pub fn leave(&mut self, entries: &mut impl Entries, at: u32) {
        let Link { hash, prev, next, linked } = *entries.link(at);
        if !linked {
            return;
        }
        self.len -= 1;
        entries.link(at).linked = false;
        let chain = self.chain(hash);
        match prev {
            NONE => self.chains[chain].0 = next,
            _ => entries.link(prev).next = next,
        }
        match next {
            NONE => self.chains[chain].1 = prev,
            _ => entries.link(next).prev = prev,
        }
    }

    /// The first entry that may have this hash.
    pub fn first(&self, hash: u64) -> Option<u32> {
        if self.chains.is_empty() {
            return None;
        }
        Some(self.chains[self.chain(hash)].0).filter(|at| *at != NONE)
    }

    /// The entry behind one.
    pub fn after(link: &Link) -> Option<u32> {
        Some(link.next).filter(|at| *at != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entries for Vec<Link> {
        fn link(&mut self, at: u32) -> &mut Link {
            &mut self[at as usize]
        }
    }

    fn chain(index: &Index, entries: &[Link], hash: u64) -> Vec<u32> {
        let mut at = index.first(hash);
        let mut found = Vec::new();
        while let Some(i) = at {
            let link = &entries[i as usize];
            found.extend((link.hash == hash).then_some(i));
            at = Index::after(link);
        }
        found
    }

    #[test]
    fn kinds_of_one_user_data_are_in_chains_of_their_own() {
        let chains: std::collections::BTreeSet<u64> = (0..4).map(|k| hash(k, 7) % 4096).collect();
        assert_eq!(chains.len(), 4);
    }

    #[test]
    fn entries_are_found_oldest_first_whatever_comes_and_goes() {
        let (mut index, mut entries) = (Index::default(), vec![Link::default(); 500]);
        let mut state = 7u64;
        let mut model: Vec<(u32, u64)> = Vec::new();
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (at, data) = ((state >> 33) as u32 % 500, state >> 60);
            if entries[at as usize].is_linked() {
                index.leave(&mut entries, at);
                model.retain(|(i, _)| *i != at);
            } else {
                index.enter(&mut entries, at, hash(1, data));
                model.push((at, data));
            }
        }
        for data in 0..16 {
            let wanted: Vec<u32> =
                model.iter().filter(|(_, d)| *d == data).map(|(i, _)| *i).collect();
            assert_eq!(chain(&index, &entries, hash(1, data)), wanted);
        }
        assert_eq!(index.len, model.len());
    }
}
