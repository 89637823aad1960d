//! Requests in flight, and the order in which finished ones are handed over.
//!
//! `each`: a finished request is taken out by itself, whatever became of those before it. `ordered`: it is only marked, and
//! waits until all that were issued before it have finished. Both change the list when a completion is reaped, never when it
//! happens: a completion is an event in the queue, which anybody may put there.
//!
//! The list is doubly linked through the slots, so one that finished leaves it without a walk; free slots are linked singly,
//! through the same field. The requests themselves carry nothing for it.

const NONE: u32 = u32::MAX;

struct Slot<T> {
    generation: u32,
    next: u32,
    prev: u32,
    /// Marked as finished, with this result.
    result: Option<i64>,
    what: Option<T>,
}

/// See the module's description. A token names what was put in, and nothing that comes into its slot later.
pub struct InFlight<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    head: u32,
    tail: u32,
    len: usize,
    marked: usize,
    ordered: bool,
}

impl<T> InFlight<T> {
    /// Empty.
    pub fn new(ordered: bool) -> InFlight<T> {
        let (free, head, tail) = (NONE, NONE, NONE);
        InFlight { slots: Vec::new(), free, head, tail, len: 0, marked: 0, ordered }
    }
    /// How many are in flight.
    pub fn len(&self) -> usize {
        self.len
    }
    /// None is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// How many have not finished, as far as was seen.
    pub fn unfinished(&self) -> usize {
        self.len - self.marked
    }

    /// Puts one in, behind all others.
    pub fn insert(&mut self, what: T) -> u64 {
        let index = self.free_slot();
        let (prev, slot) = (self.tail, &mut self.slots[index as usize]);
        slot.what = Some(what);
        (slot.prev, slot.next, slot.result) = (prev, NONE, None);
        let token = u64::from(slot.generation) << 32 | u64::from(index);
        match prev {
            NONE => self.head = index,
            before => self.slots[before as usize].next = index,
        }
        self.tail = index;
        self.len += 1;
        token
    }

    fn free_slot(&mut self) -> u32 {
        if self.free == NONE {
            let index = self.slots.len() as u32;
            let links = (NONE, NONE);
            let (next, prev) = links;
            self.slots.push(Slot { generation: 0, next, prev, result: None, what: None });
            return index;
        }
        let index = self.free;
        self.free = self.slots[index as usize].next;
        index
    }

    fn find(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let slot = self.slots.get(index as usize)?;
        (slot.what.is_some() && slot.generation == (token >> 32) as u32).then_some(index)
    }

    /// Looks at one.
    pub fn get(&self, token: u64) -> Option<&T> {
        self.slots[self.find(token)? as usize].what.as_ref()
    }

    /// Takes one out, finished or not.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let index = self.find(token)?;
        Some(self.unlink(index).0)
    }

    fn unlink(&mut self, index: u32) -> (T, Option<i64>) {
        let slot = &mut self.slots[index as usize];
        let (prev, next, result) = (slot.prev, slot.next, slot.result.take());
        let what = slot.what.take();
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = core::mem::replace(&mut self.free, index);
        match prev {
            NONE => self.head = next,
            before => self.slots[before as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            after => self.slots[after as usize].prev = prev,
        }
        self.len -= 1;
        self.marked -= usize::from(result.is_some());
        match what {
            Some(what) => (what, result),
            // `find` and `pop` hand out indices of full slots only.
            None => unreachable!("an empty slot is in no list"),
        }
    }

    /// A completion was reaped: `hand_over` gets the requests that it lets go. How many those were.
    pub fn finish(&mut self, token: u64, result: i64, hand_over: &mut dyn FnMut(T, i64)) -> usize {
        let Some(index) = self.find(token) else { return 0 };
        if !self.ordered {
            hand_over(self.unlink(index).0, result);
            return 1;
        }
        let slot = &mut self.slots[index as usize];
        if slot.result.is_some() {
            return 0;
        }
        slot.result = Some(result);
        self.marked += 1;
        let mut n = 0;
        while self.head != NONE && self.slots[self.head as usize].result.is_some() {
            if let (what, Some(result)) = self.unlink(self.head) {
                hand_over(what, result);
                n += 1;
            }
        }
        n
    }

    /// Takes all out, oldest first.
    pub fn drain(&mut self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.len);
        while self.head != NONE {
            all.push(self.unlink(self.head).0);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift: the same sequence for the same seed.
    fn draw(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Requests come and finish in seeded random order; `model` says which may be handed over by then.
    fn play(seed: u64, ordered: bool) -> (Vec<u64>, Vec<u64>) {
        let mut rng = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut list = InFlight::new(ordered);
        let (mut flying, mut finished, mut out) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0u64;
        while next < 500 || !flying.is_empty() {
            if next < 500 && (flying.is_empty() || draw(&mut rng) % 2 == 0) {
                flying.push((next, list.insert(next)));
                next += 1;
                continue;
            }
            let (id, token) = flying.swap_remove((draw(&mut rng) % flying.len() as u64) as usize);
            finished.push(id);
            let before = out.len();
            let mut got = |id, result| out.push((id, result));
            let n = list.finish(token, id as i64 * 10, &mut got);
            let again = list.finish(token, -1, &mut |_, _| panic!("seed {seed}: reaped twice"));
            assert_eq!((again, out.len() - before), (0, n), "seed {seed}");
            assert!(out.iter().all(|(id, result)| *result == *id as i64 * 10), "seed {seed}");
            if !ordered {
                assert_eq!(out.last().map(|o| o.0), Some(id), "seed {seed}: {id} waited");
            }
            assert_eq!(list.unfinished(), flying.len(), "seed {seed}");
        }
        assert!(list.is_empty(), "seed {seed}: one was lost");
        assert!(list.slots.len() < 500, "free slots are used again");
        (finished, out.into_iter().map(|o| o.0).collect())
    }

    #[test]
    fn each_is_handed_over_in_the_order_of_completion() {
        for seed in 0..200 {
            let (finished, out) = play(seed, false);
            assert_eq!(finished, out, "seed {seed}");
        }
    }

    #[test]
    fn ordered_ones_wait_for_those_before_them() {
        for seed in 0..200 {
            let (_, out) = play(seed, true);
            assert_eq!(out, (0..500).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn an_old_token_names_nothing() {
        let mut list = InFlight::new(false);
        let old = list.insert('a');
        assert_eq!(list.remove(old), Some('a'));
        let new = list.insert('b');
        assert_eq!((list.remove(old), list.get(old), list.get(new)), (None, None, Some(&'b')));
        list.insert('c');
        assert_eq!(list.drain(), ['b', 'c']);
    }
}
