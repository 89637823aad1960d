//! Contexts of closed rings, for the next ring: giving one back to the kernel takes tens of milliseconds, and waits for
//! what is in flight.

use super::queue::Queue;
use super::EVENTS;
use crate::fds::Fds;
use crate::host::aio::Event;
use crate::sync::Lock;
use crate::Errno;
use std::sync::Arc;

/// Contexts that are kept.
const KEPT: usize = 16;
/// Requests that they take together: so many of the system's limit (65536) stay used up.
const KEPT_SLOTS: u32 = 8192;

struct Kept {
    queue: Arc<Queue>,
    slots: u32,
    /// Requests of the closed ring that the device has not finished.
    outstanding: usize,
}

/// See the module's description.
pub struct Contexts {
    kept: Lock<Vec<Kept>>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        Contexts { kept: Lock::new(Vec::new()) }
    }
}

impl Contexts {
    /// A context for so many requests: one that was kept and has become idle, or a new one.
    pub fn get(&self, fds: &Fds, slots: u32) -> Result<Arc<Queue>, Errno> {
        if let Some(queue) = self.reuse(slots) {
            return Ok(queue);
        }
        let new = Queue::kernel(fds, slots);
        if matches!(new, Err(Errno::AGAIN)) {
            // The limit of the system: a smaller one may be lying here.
            return self.reuse(0).ok_or(Errno::AGAIN);
        }
        new.map(Arc::new)
    }

    fn reuse(&self, slots: u32) -> Option<Arc<Queue>> {
        let mut kept = self.kept.lock();
        kept.iter_mut().for_each(settle);
        let at = kept.iter().position(|k| k.outstanding == 0 && k.slots >= slots)?;
        Some(kept.swap_remove(at).queue)
    }

    /// A ring is closed with so many requests in flight, whose results nobody wants.
    pub fn put(&self, queue: Arc<Queue>, outstanding: usize) {
        let Queue::Kernel { slots, .. } = &*queue else { return };
        let slots = *slots;
        let surplus = {
            let mut kept = self.kept.lock();
            kept.push(Kept { queue, slots, outstanding });
            let all: u32 = kept.iter().map(|k| k.slots).sum();
            let too_many = kept.len() > KEPT || (all > KEPT_SLOTS && kept.len() > 1);
            too_many.then(|| kept.swap_remove(0))
        };
        // Given back without the lock, since that takes its time.
        drop(surplus);
    }
}

/// Drops results that have come in.
fn settle(kept: &mut Kept) {
    let mut events = [Event::default(); EVENTS];
    while kept.outstanding > 0 {
        match kept.queue.take_by_call(&mut events) {
            0 => return,
            n => kept.outstanding = kept.outstanding.saturating_sub(n),
        }
    }
}
