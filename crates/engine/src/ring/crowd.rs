//! Crowds: one-shot requests that wait for one file share a descriptor and a registration.
//!
//! A crowd is made for the first request that has no standing registration to use ([`super::standing`]); others on the same
//! number join it as long as the number means the crowd's file. Its registration is one-shot and level-triggered, for whatever any member
//! waits for. Linux limits how often one file can be registered (500 times where epolls are nested, as here), and every
//! process how many descriptors it has. A crowd holds its file as long as one member waits, which holds the file by itself.
//!
//! When it fires, members are served newest first, as the kernel wakes its waiters, and no more of them than the turn
//! may serve; the registration is armed again for those that still wait. As in the kernel a poll completes with what the
//! event said, even if an earlier member has used it up.

use super::pending::{Pending, PollArm};
use super::state::State;
use super::Ring;
use crate::host::fd::{self, OwnedFd};
use crate::host::poll as epoll;
use crate::ops::Op;
use crate::req::{FileRef, Key, Req, Via};
use crate::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Low half of the token of every crowd's registration; its number is the high half.
pub const TOKEN_CROWD: u64 = 2;
/// Keys of members that have left, beyond as many as there are members, before they are swept out.
const STALE_MAX: usize = 16;

/// The requests that wait for one file.
struct Crowd {
    fd: Arc<OwnedFd>,
    /// The number by which it is found.
    number: i32,
    /// Oldest first; some may have left.
    members: Vec<Key>,
    /// Members that have not left.
    live: usize,
    /// Registered events; 0 when its one event has come.
    events: u32,
}

/// A ring's crowds.
#[derive(Default)]
pub struct Crowds {
    last: u32,
    all: BTreeMap<u32, Crowd>,
    by_number: BTreeMap<i32, u32>,
}

impl Crowds {
    /// The crowd of the file that the number means.
    fn find(&self, number: i32) -> Option<u32> {
        let id = *self.by_number.get(&number)?;
        fd::same_file(number, self.all.get(&id)?.fd.raw()).then_some(id)
    }

    fn add(&mut self, fd: OwnedFd, number: i32, events: u32) -> u32 {
        self.last = self.last.wrapping_add(1);
        let (fd, members) = (Arc::new(fd), Vec::new());
        let crowd = Crowd { fd, number, members, live: 0, events };
        self.all.insert(self.last, crowd);
        self.by_number.insert(number, self.last);
        self.last
    }

    fn remove(&mut self, id: u32) -> Option<Crowd> {
        let crowd = self.all.remove(&id)?;
        if self.by_number.get(&crowd.number) == Some(&id) {
            self.by_number.remove(&crowd.number);
        }
        Some(crowd)
    }
}

fn token(id: u32) -> u64 {
    u64::from(id) << 32 | TOKEN_CROWD
}

/// The crowd of a token, if it is one's.
pub fn of_token(token: u64) -> Option<u32> {
    (token as u32 as u64 == TOKEN_CROWD).then_some((token >> 32) as u32)
}

fn is_member(st: &mut State, key: Key, id: u32) -> Option<&mut PollArm> {
    match st.pending.get(key) {
        Some(Pending::Poll(arm)) if arm.crowd == Some(id) => Some(arm),
        _ => None,
    }
}

impl Ring {
    /// Lets a one-shot request wait for `events` among others. It comes back if it cannot.
    pub fn join_crowd(
        self: &Arc<Ring>,
        st: &mut State,
        mut req: Box<Req>,
        events: u32,
    ) -> Result<(), (Box<Req>, Errno)> {
        let id = match self.crowd_for(st, req.file.raw(), events) {
            Ok(id) => id,
            Err(e) => return Err((req, e)),
        };
        let key = st.pending.reserve();
        self.arm();
        self.arm_link_timeout(st, &mut req, key);
        if let Some(crowd) = st.crowds.all.get_mut(&id) {
            if let FileRef::Plain(_) = req.file {
                req.file = FileRef::Shared(crowd.fd.clone());
            }
            crowd.members.push(key);
            crowd.live += 1;
        }
        let arm = PollArm { crowd: Some(id), ..PollArm::alone(req, events) };
        st.pending.fill(key, Pending::Poll(arm));
        Ok(())
    }

    /// A crowd that is registered for these events.
    fn crowd_for(&self, st: &mut State, number: i32, events: u32) -> Result<u32, Errno> {
        let ep = self.epfd()?;
        let Some(id) = st.crowds.find(number) else {
            let fd = self.duplicate(number)?;
            let next = token(st.crowds.last.wrapping_add(1));
            epoll::add(ep, fd.raw(), events | epoll::ONESHOT, next)?;
            return Ok(st.crowds.add(fd, number, events));
        };
        self.register_crowd(st, id, events)?;
        Ok(id)
    }

    /// Sees to it that the registration covers `events`, too.
    fn register_crowd(&self, st: &mut State, id: u32, events: u32) -> Result<(), Errno> {
        let (ep, crowd) = (self.epfd()?, st.crowds.all.get_mut(&id).ok_or(Errno::NOENT)?);
        if crowd.events & events == events && events != 0 {
            return Ok(());
        }
        let all = crowd.events | events;
        epoll::modify(ep, crowd.fd.raw(), all | epoll::ONESHOT, token(id))?;
        crowd.events = all;
        Ok(())
    }

    /// A member waits for other events from now on.
    pub fn change_member(&self, st: &mut State, id: u32, events: u32) -> Result<(), Errno> {
        if let Some(crowd) = st.crowds.all.get_mut(&id) {
            crowd.events &= !events;
        }
        self.register_crowd(st, id, events)
    }

    /// A member is out of the table.
    pub fn leave_crowd(&self, st: &mut State, id: u32) {
        let Some(crowd) = st.crowds.all.get_mut(&id) else { return };
        crowd.live -= 1;
        if crowd.live == 0 {
            let gone = st.crowds.remove(id);
            if let (Some(ep), Some(crowd)) = (self.existing_epfd(), gone) {
                let _ = epoll::remove(ep, crowd.fd.raw());
            }
        } else if crowd.members.len() > 2 * crowd.live + STALE_MAX {
            let mut members = core::mem::take(&mut crowd.members);
            members.retain(|key| is_member(st, *key, id).is_some());
            if let Some(crowd) = st.crowds.all.get_mut(&id) {
                crowd.members = members;
            }
        }
    }

    /// Serves at most `limit` members of a crowd whose registration has fired. How many it were.
    pub fn crowd_ready(
        self: &Arc<Ring>,
        st: &mut State,
        id: u32,
        revents: u32,
        limit: usize,
    ) -> usize {
        let Some(crowd) = st.crowds.all.get_mut(&id) else { return 0 };
        crowd.events = 0;
        let mut members = core::mem::take(&mut crowd.members);
        let (mut waiting, mut again, mut served) = (Vec::new(), Vec::new(), 0);
        while let Some(key) = members.pop() {
            let Some(arm) = is_member(st, key, id) else { continue };
            if served == limit || revents & (arm.events | epoll::ERR | epoll::HUP) == 0 {
                waiting.push(key);
                continue;
            }
            served += 1;
            self.member_ready(st, key, id, revents);
            if is_member(st, key, id).is_some() {
                again.push(key);
            }
        }
        self.rearm_crowd(st, id, waiting.into_iter().rev().chain(again.into_iter().rev()));
        served
    }

    fn rearm_crowd(&self, st: &mut State, id: u32, members: impl Iterator<Item = Key>) {
        let members: Vec<Key> = members.collect();
        let mut wanted = 0;
        for key in &members {
            wanted |= is_member(st, *key, id).map_or(0, |arm| arm.events);
        }
        let Some(crowd) = st.crowds.all.get_mut(&id) else { return };
        // Whoever joined meanwhile comes last.
        let late = core::mem::replace(&mut crowd.members, members);
        crowd.members.extend(late);
        if wanted != 0 {
            let _ = self.register_crowd(st, id, wanted);
        }
    }

    fn member_ready(self: &Arc<Ring>, st: &mut State, key: Key, id: u32, revents: u32) {
        let Some(arm) = is_member(st, key, id) else { return };
        if !matches!(arm.req.op, Op::Poll(_)) && !arm.is_orphan() {
            return self.retry_ready(st, key, revents);
        }
        let res = match arm.is_orphan() {
            true => Errno::CANCELED.res(),
            false => (revents & (arm.events | epoll::ERR | epoll::HUP)) as i32,
        };
        if let Some(mut arm) = self.take_poll(st, key) {
            arm.req.via = Via::Polled;
            self.complete(st, arm.req, res, 0);
        }
    }
}
