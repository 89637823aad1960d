//! A lock-free stack of shared values that many push to and that is taken as a whole.
//!
//! Intrusive: a value has its link inside and is in at most one stack, once. A push publishes with release; taking
//! everything is one swap with acquire, so there is no pop of single values and nothing to go wrong with reused addresses.
//! The order among pushers is that of their swaps, and what is taken comes out oldest first.
//!
//! For those who push and then ask whether somebody will look (`wq::crew`): the push is sequentially consistent,
//! and so is [`Stack::is_empty`].

#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, Ordering};

use core::ptr;
use std::sync::Arc;

/// The place in a value for its stack's use; only the stack touches it.
pub struct Link<T>(AtomicPtr<T>);

impl<T> Default for Link<T> {
    fn default() -> Link<T> {
        Link(AtomicPtr::new(ptr::null_mut()))
    }
}

/// What can be in a stack.
pub trait Linked: Sized {
    /// Its link.
    fn link(&self) -> &Link<Self>;
}

/// See the module's description.
pub struct Stack<T: Linked> {
    /// The newest; each value in the stack is a reference that the stack owns.
    head: AtomicPtr<T>,
}

impl<T: Linked> Default for Stack<T> {
    fn default() -> Stack<T> {
        Stack { head: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T: Linked> Stack<T> {
    /// Adds a value.
    pub fn push(&self, value: Arc<T>) {
        let new = Arc::into_raw(value).cast_mut();
        // SAFETY: the pointer comes from an Arc whose reference is ours until the exchange succeeds.
        let link = unsafe { (*new).link() };
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link.0.store(head, Ordering::Relaxed);
            match self.head.compare_exchange(head, new, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::SeqCst).is_null()
    }

    /// Takes all there is, oldest first.
    pub fn take_all(&self) -> Taken<T> {
        let mut newest = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap handed the whole list to us; each link was stored before its push published it.
            let link = unsafe { (*newest).link() };
            let next = link.0.load(Ordering::Relaxed);
            link.0.store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
        Taken { next: oldest }
    }
}

impl<T: Linked> Drop for Stack<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// What was taken.
pub struct Taken<T: Linked> {
    next: *mut T,
}

impl<T: Linked> Iterator for Taken<T> {
    type Item = Arc<T>;

    fn next(&mut self) -> Option<Arc<T>> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: a reference that the stack owned, and that is ours since it was taken.
        let value = unsafe { Arc::from_raw(self.next.cast_const()) };
        self.next = value.link().0.load(Ordering::Relaxed);
        Some(value)
    }
}

impl<T: Linked> Drop for Taken<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(test)]
struct Number {
    value: u32,
    link: Link<Number>,
}

#[cfg(test)]
impl Linked for Number {
    fn link(&self) -> &Link<Number> {
        &self.link
    }
}

#[cfg(test)]
fn number(value: u32) -> Arc<Number> {
    Arc::new(Number { value, link: Link::default() })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn order_and_ownership() {
        let stack = Stack::default();
        let kept = number(2);
        stack.push(number(1));
        stack.push(kept.clone());
        assert!(!stack.is_empty());
        assert_eq!(stack.take_all().map(|n| n.value).collect::<Vec<_>>(), [1, 2]);
        assert!(stack.is_empty());
        assert_eq!(Arc::strong_count(&kept), 1);
        stack.push(kept.clone());
        stack.push(number(3));
        drop(stack.take_all());
        assert_eq!(Arc::strong_count(&kept), 1);
        stack.push(kept.clone());
        drop(stack);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Two push while a third takes: each value comes out once.
    #[test]
    fn loom_push_against_take() {
        loom::model(|| {
            let stack = loom::sync::Arc::new(Stack::default());
            let pushers: Vec<_> = (1..3)
                .map(|n| {
                    let stack = stack.clone();
                    loom::thread::spawn(move || stack.push(number(n)))
                })
                .collect();
            let mut seen: Vec<u32> = stack.take_all().map(|n| n.value).collect();
            pushers.into_iter().for_each(|p| p.join().unwrap());
            seen.extend(stack.take_all().map(|n| n.value));
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
            assert!(stack.is_empty());
        });
    }
}
