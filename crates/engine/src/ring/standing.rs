//! Standing registrations: a file's place in a ring's epoll that outlives the request it was made for.
//!
//! A server receives on the same descriptors again and again. Where a one-shot request names the program's own number (or
//! a registered file), that number is registered rather than a duplicate, and stays registered, disarmed, when the
//! request has ended: the next request on it only arms it again. An epoll registration holds no reference, so a file
//! that the program closes is closed. Why a number that means another file by now does no harm:
//! - Arming happens in the call that names the number, when it means the request's file; epoll keeps registrations by
//!   file and number, so another file under the same number has a registration of its own.
//! - A number serves one request at a time; a second request joins a crowd ([`super::crowd`]), and one that has to wait once
//!   more after an event registers its own duplicate.
//! - What a request leaves armed under a number that changed hands fires once at most, with a key that nobody has.

use crate::host::poll as epoll;
use crate::req::Key;
use crate::Errno;
use std::collections::BTreeMap;

/// The numbers registered, and which of them serve a request.
#[derive(Default)]
pub struct Standing {
    numbers: BTreeMap<i32, bool>,
}

impl Standing {
    /// Whether `number` serves a request.
    pub fn is_busy(&self, number: i32) -> bool {
        self.numbers.get(&number).is_some_and(|busy| *busy)
    }

    /// Arms `number` for one event; `None` if it serves another request already.
    pub fn arm(
        &mut self,
        ep: i32,
        number: i32,
        events: u32,
        key: Key,
    ) -> Option<Result<(), Errno>> {
        let events = events | epoll::ONESHOT;
        let known = self.numbers.get(&number).copied();
        let armed = match known {
            Some(true) => return None,
            Some(false) => match epoll::modify(ep, number, events, key.0) {
                Err(Errno::NOENT) => epoll::add(ep, number, events, key.0),
                other => other,
            },
            None => epoll::add_or_modify(ep, number, events, key.0),
        };
        if armed.is_ok() {
            self.numbers.insert(number, true);
        }
        Some(armed)
    }

    /// The request that `number` served is gone; `fired` if its one event has come.
    pub fn release(&mut self, ep: i32, number: i32, fired: bool) {
        if !fired {
            let _ = epoll::modify(ep, number, epoll::ONESHOT, super::TOKEN_WAKE);
        }
        if let Some(busy) = self.numbers.get_mut(&number) {
            *busy = false;
        }
    }
}
