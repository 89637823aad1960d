//! Threads inside enter. A ring that is closed while one waits in it lives on until that thread leaves, as
//! the kernel's does.
//!
//! A thread becomes a visitor under the ring's state lock, having seen that the ring is not closed; a call that never
//! lets go of that lock need not be one. Whoever closes a ring looks for visitors under the same lock.
//!
//! A thread may leave by longjmp from a signal handler, and tells nobody. Its record is recognised
//! the next time the same thread comes along higher up its stack: the frame that made it is gone. (On a stack of
//! its own, a coroutine may be taken for gone while it still waits; then only the closing of the ring comes early.)

use super::Ring;
use crate::engine::Inner;
use crate::host::thread;
use crate::sync::Lock;
use crate::Caller;
use std::sync::Arc;

struct Visitor {
    tid: i32,
    stack: usize,
}

/// See the module's description.
#[derive(Default)]
pub struct Visitors {
    list: Vec<Visitor>,
}

/// An address in the caller's frame.
#[inline(always)]
pub fn stack_mark() -> usize {
    let here = 0u8;
    core::hint::black_box(&raw const here) as usize
}

impl Visitors {
    /// None.
    pub fn none() -> Lock<Visitors> {
        Lock::new(Visitors::default())
    }
    /// Forgets frames of this thread that are gone; true if there were any.
    pub fn forget_gone(&mut self, tid: i32, stack: usize) -> bool {
        let before = self.list.len();
        self.list.retain(|v| v.tid != tid || v.stack > stack);
        self.list.len() != before
    }
    /// The calling thread's own gone frames.
    pub fn forget_own_gone(&mut self) -> bool {
        if self.list.is_empty() {
            return false;
        }
        self.forget_gone(thread::gettid(), stack_mark())
    }
    /// A thread comes in.
    pub fn arrive(&mut self, tid: i32, stack: usize) {
        self.list.push(Visitor { tid, stack });
    }
    /// It leaves.
    pub fn leave(&mut self, tid: i32, stack: usize) {
        if let Some(at) = self.list.iter().position(|v| v.tid == tid && v.stack == stack) {
            self.list.swap_remove(at);
        }
    }
    /// Nobody is inside.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A thread's stay inside enter, until dropped.
pub struct Visit<'a> {
    ring: &'a Arc<Ring>,
    engine: &'a Arc<Inner>,
    tid: i32,
    stack: usize,
}

impl Ring {
    /// The calling thread becomes a visitor; it holds the state lock.
    #[inline(always)]
    pub fn visit<'a>(self: &'a Arc<Ring>, engine: &'a Arc<Inner>, caller: &Caller) -> Visit<'a> {
        let visit = Visit { ring: self, engine, tid: caller.tid, stack: stack_mark() };
        self.arrive(visit.tid, visit.stack);
        visit
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.engine.leave(self.ring, self.tid, self.stack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_frames_stay_and_abandoned_ones_go() {
        let mut v = Visitors::default();
        v.arrive(1, 1000);
        assert!(!v.forget_gone(1, 900), "a handler's call is deeper");
        v.arrive(1, 900);
        assert!(v.forget_gone(1, 950), "the handler left by longjmp");
        v.leave(1, 1000);
        assert!(v.is_empty());
        v.arrive(2, 500);
        assert!(!v.forget_gone(1, 2000), "another thread's");
    }
}
