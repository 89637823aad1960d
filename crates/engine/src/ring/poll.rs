//! Waiting for readiness: requests that would block, and POLL_ADD.
//!
//! A registration has a descriptor of its own (a duplicate), so that the program may close its number, or stands
//! ([`super::standing`]); one-shot requests on one file share one ([`super::crowd`]). Requests that retry are one-shot and level-triggered. A multishot
//! poll is edge-triggered, which gives one event a wake-up as the kernel's does. So is every other multishot
//! request: it stays registered, since it never waits again before its file said that it would block. One that
//! gives way to others renews its registration, which puts it behind them if its file is still ready.

use super::cq::Kind;
use super::crowd;
use super::pending::{Kind as WaitKind, Pending, PollArm};
use super::state::State;
use super::{Ring, TOKEN_TIMER, TOKEN_WAKE};
use crate::host::poll::{self as epoll, Event};
use crate::ops::{poll::Add, Issue, Op};
use crate::req::{FileRef, Key, Req, Via};
use crate::task::Task;
use crate::Errno;
use anyring_uapi::{cqe, Cqe};
use std::sync::Arc;

/// How a request that is issued again when its file is ready is registered. A multishot is told of the stream's end, too:
/// see [`crate::ops::net::transfer`].
fn retry_mode(req: &Req) -> u32 {
    if req.multishot {
        epoll::ET | epoll::RDHUP | epoll::PRI
    } else {
        epoll::ONESHOT
    }
}

/// The number by which a request's file may be registered for longer than the request.
fn standing_number(req: &Req) -> Option<i32> {
    match &req.file {
        _ if req.multishot => None,
        FileRef::Plain(number) => Some(*number),
        FileRef::Fixed(file) => Some(file.fd.raw()),
        _ => None,
    }
}

/// What a file without a poll method reports: IN, OUT, RDNORM, WRNORM.
const ALWAYS_READY: u32 = epoll::IN | epoll::OUT | 0x40 | 0x100;

impl Ring {
    /// Waits for `events` on the request's file, then issues it again.
    pub fn arm_retry(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        mut req: Box<Req>,
        events: u32,
    ) {
        req.task.get_or_insert_with(|| task.clone());
        let req = match standing_number(&req) {
            Some(number) if st.standing.is_busy(number) => {
                if let Err((req, e)) = self.join_crowd(st, req, events) {
                    self.arm_failed(st, task, req, e);
                }
                return;
            }
            Some(number) => {
                if let Err(e) = self.keep_file(&mut req) {
                    return self.complete(st, req, e.res(), 0);
                }
                match self.arm_standing(st, req, number, events) {
                    Some(req) => req,
                    None => return,
                }
            }
            None => req,
        };
        self.arm_alone(st, task, req, events);
    }

    /// Waits with a registration that is the request's alone.
    fn arm_alone(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        mut req: Box<Req>,
        events: u32,
    ) {
        let kept = self.keep_file(&mut req).and_then(|()| match &req.file {
            FileRef::Fixed(file) => self.duplicate(file.fd.raw()).map(Some),
            _ => Ok(None),
        });
        let own_fd = match kept {
            Ok(own_fd) => own_fd,
            Err(e) => return self.complete(st, req, e.res(), 0),
        };
        let mode = retry_mode(&req);
        let arm = PollArm { own_fd, ..PollArm::alone(req, events) };
        if let Err((arm, e)) = self.register(st, arm, mode) {
            self.arm_failed(st, task, arm.req, e);
        }
    }

    fn arm_failed(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, req: Box<Req>, e: Errno) {
        if e == Errno::PERM && !req.multishot {
            // A file that cannot be polled.
            return self.send_to_worker(st, task, req);
        }
        self.complete(st, req, e.res(), 0);
    }

    /// Arms the standing registration of `number`. The request comes back if it cannot serve it.
    fn arm_standing(
        self: &Arc<Ring>,
        st: &mut State,
        mut req: Box<Req>,
        number: i32,
        events: u32,
    ) -> Option<Box<Req>> {
        let Ok(ep) = self.epfd() else { return Some(req) };
        let key = st.pending.reserve();
        if !matches!(st.standing.arm(ep, number, events, key), Some(Ok(()))) {
            st.pending.take(key);
            return Some(req);
        }
        self.arm();
        self.arm_link_timeout(st, &mut req, key);
        let arm = PollArm { standing: Some((number, false)), ..PollArm::alone(req, events) };
        st.pending.fill(key, Pending::Poll(arm));
        None
    }

    /// POLL_ADD that was not ready.
    pub fn arm_poll_request(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Box<Req>) {
        req.task.get_or_insert_with(|| task.clone());
        let Op::Poll(Add { events, multishot }) = req.op else {
            return self.complete(st, req, Errno::INVAL.res(), 0);
        };
        if !multishot {
            if let Err((req, e)) = self.join_crowd(st, req, events) {
                self.poll_failed(st, req, events, e);
            }
            return;
        }
        let own_fd = match self.duplicate(req.file.raw()) {
            Ok(fd) => fd,
            Err(e) => return self.complete(st, req, e.res(), 0),
        };
        let own_fd = match req.file {
            FileRef::Plain(_) => {
                req.file = FileRef::Owned(own_fd);
                None
            }
            _ => Some(own_fd),
        };
        let arm = PollArm { own_fd, multishot, ..PollArm::alone(req, events) };
        match self.register(st, arm, epoll::ET) {
            Ok(()) => st.fresh_multishot = true,
            Err((arm, e)) => self.poll_failed(st, arm.req, events, e),
        }
    }

    fn poll_failed(self: &Arc<Ring>, st: &mut State, req: Box<Req>, events: u32, e: Errno) {
        if e != Errno::PERM {
            return self.complete(st, req, e.res(), 0);
        }
        // Not pollable: always ready, and so done.
        let ready = (events & ALWAYS_READY) as i32;
        self.complete(st, req, if ready == 0 { Errno::INVAL.res() } else { ready }, 0);
    }

    fn register(
        self: &Arc<Ring>,
        st: &mut State,
        mut arm: PollArm,
        mode: u32,
    ) -> Result<(), (PollArm, Errno)> {
        let key = st.pending.reserve();
        let added =
            self.epfd().and_then(|ep| epoll::add_or_modify(ep, arm.fd(), arm.events | mode, key.0));
        if let Err(e) = added {
            st.pending.take(key);
            return Err((arm, e));
        }
        self.arm();
        self.arm_link_timeout(st, &mut arm.req, key);
        st.pending.fill(key, Pending::Poll(arm));
        Ok(())
    }

    /// Handles events that epoll reported. The state lock is taken once for all.
    pub fn handle_events(self: &Arc<Ring>, events: &[Event], limit: usize) {
        let mut st = self.state.lock();
        self.handle_events_locked(&mut st, events, limit);
        self.finish_turn(&mut st);
    }

    /// Serves at most `limit` requests, or as many as there are events.
    fn handle_events_locked(self: &Arc<Ring>, st: &mut State, events: &[Event], limit: usize) {
        let mut left = limit;
        for event in events {
            match event.token {
                TOKEN_WAKE => {}
                super::TOKEN_AIO => {
                    self.reap_aio(st, usize::MAX);
                }
                TOKEN_TIMER => {
                    st.timers.set_to = None;
                    self.expire_timers(st);
                }
                token => {
                    let served = match crowd::of_token(token) {
                        Some(id) => self.crowd_ready(st, id, event.events, left.max(1)),
                        None => self.handle_ready(st, Key(token), event.events),
                    };
                    left = left.saturating_sub(served);
                }
            }
        }
    }

    /// A thread that does not sleep has received the edge of the wake descriptor, which a sleeping thread needs.
    fn return_wake(&self) {
        if self.cq.lock().has_sleepers() {
            self.tell(true);
        }
    }

    /// Handles what is ready without waiting.
    pub fn poll_now(self: &Arc<Ring>, st: &mut State, limit: usize) -> usize {
        let Some(ep) = self.existing_epfd() else { return 0 };
        let mut events = [Event::default(); 64];
        let most = limit.clamp(1, events.len());
        let n = epoll::wait(ep, &mut events[..most], Some((0, 0)), None).unwrap_or(0);
        if events[..n].iter().any(|event| event.token == TOKEN_WAKE) {
            self.return_wake();
        }
        self.handle_events_locked(st, &events[..n], limit);
        n
    }

    fn handle_ready(self: &Arc<Ring>, st: &mut State, key: Key, revents: u32) -> usize {
        match st.pending.get(key) {
            Some(Pending::Poll(arm)) if arm.is_orphan() => {
                if let Some(mut arm) = self.take_poll(st, key) {
                    arm.req.via = Via::Polled;
                    self.complete(st, arm.req, Errno::CANCELED.res(), 0);
                }
            }
            Some(Pending::Poll(arm)) if arm.multishot => self.poll_fired_again(st, key, revents),
            Some(Pending::Poll(_)) => self.retry_ready(st, key, revents),
            _ => return 0,
        }
        1
    }

    /// Issues a request again; if it has to wait once more its registration is armed anew.
    pub fn retry_ready(self: &Arc<Ring>, st: &mut State, key: Key, revents: u32) {
        let Some(Pending::Poll(mut arm)) = st.pending.lift(key) else { return };
        let task = self.task_of(&arm.req);
        arm.tries += 1;
        arm.req.woken_by = revents;
        if let Some((_, fired)) = &mut arm.standing {
            *fired = true;
        }
        let tries = arm.tries;
        let outcome = self.retry(st, &task, &mut arm.req, tries);
        let rearmed = match (&outcome, self.existing_epfd()) {
            (Issue::Poll(events), Some(_)) if arm.req.multishot && arm.events == *events => true,
            (Issue::Poll(events), Some(_)) if arm.crowd.is_some() => {
                arm.events = *events;
                true
            }
            (Issue::Poll(events), Some(ep)) if arm.standing.is_some() => {
                self.leave_standing(st, &mut arm, ep);
                arm.events = *events;
                self.own_registration(&mut arm)
                    && epoll::add_or_modify(ep, arm.fd(), events | epoll::ONESHOT, key.0).is_ok()
            }
            (Issue::Poll(events) | Issue::Yield(events), Some(ep)) => {
                arm.events = *events;
                st.fresh_multishot |= matches!(outcome, Issue::Yield(_)) && !self.defers();
                epoll::modify(ep, arm.fd(), events | retry_mode(&arm.req), key.0).is_ok()
            }
            _ => false,
        };
        st.pending.fill(key, Pending::Poll(arm));
        if rearmed {
            return;
        }
        let Some(arm) = self.take_poll(st, key) else { return };
        match outcome {
            Issue::Poll(_) | Issue::Yield(_) => {
                self.complete(st, arm.req, Errno::CANCELED.res(), 0)
            }
            outcome => self.settle(st, &task, arm.req, outcome),
        }
    }

    /// Ends a request's use of a standing registration.
    pub fn leave_standing(&self, st: &mut State, arm: &mut PollArm, ep: i32) {
        if let Some((number, fired)) = arm.standing.take() {
            st.standing.release(ep, number, fired);
        }
    }

    /// A descriptor to register that is the request's alone.
    fn own_registration(&self, arm: &mut PollArm) -> bool {
        if let FileRef::Fixed(file) = &arm.req.file {
            arm.own_fd = self.duplicate(file.fd.raw()).ok();
            return arm.own_fd.is_some();
        }
        true
    }

    /// One more event of a multishot poll.
    fn poll_fired_again(self: &Arc<Ring>, st: &mut State, key: Key, revents: u32) {
        let Some(Pending::Poll(arm)) = st.pending.get(key) else { return };
        let res = (revents & (arm.events | epoll::ERR | epoll::HUP)) as i32;
        arm.req.via = Via::Polled;
        let cqe = Cqe { user_data: arm.req.user_data, res, flags: cqe::F_MORE };
        let code = arm.req.def.code as usize;
        if self.post_if_room(st, cqe, Kind::Normal) {
            st.counts[code].posted += 1;
            return;
        }
        // No room: the last CQE goes to the backlog without F_MORE, and the poll is gone.
        if let Some(arm) = self.take_poll(st, key) {
            self.complete(st, arm.req, res, 0);
        }
    }
}

impl Ring {
    /// POLL_REMOVE: cancels a poll, or changes its events or user_data. ENOENT if there is none.
    pub fn change_poll(
        self: &Arc<Ring>,
        st: &mut State,
        change: &crate::ops::poll::Remove,
    ) -> Result<(), Errno> {
        let is_poll =
            |p: &Pending| matches!(p, Pending::Poll(a) if matches!(a.req.op, Op::Poll(_)));
        let key = st.pending.with_data(WaitKind::Poll, change.user_data, is_poll).next();
        let key = key.ok_or(Errno::NOENT)?;
        if change.events.is_none() && change.new_user_data.is_none() {
            let arm = self.take_poll(st, key).ok_or(Errno::NOENT)?;
            self.push_task_work(
                st,
                super::state::TaskWork::Complete(arm.req, Errno::CANCELED.res(), 0),
            );
            return Ok(());
        }
        if let Some(user_data) = change.new_user_data {
            st.pending.rename(key, user_data);
        }
        let Some(Pending::Poll(arm)) = st.pending.get(key) else { return Err(Errno::NOENT) };
        if let Some(events) = change.events {
            arm.events = events;
            st.fresh_multishot = true;
            if let Some(id) = arm.crowd {
                return self.change_member(st, id, events);
            }
            let mode = if arm.multishot { epoll::ET } else { epoll::ONESHOT };
            let fd = arm.fd();
            let ep = self.epfd()?;
            epoll::modify(ep, fd, events | mode, key.0)?;
        }
        Ok(())
    }
}
