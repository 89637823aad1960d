//! Waiting for readiness: requests that would block, and POLL_ADD.
//!
//! Each registration has a descriptor of its own (a duplicate), so that several requests may wait on one
//! file and the program may close its number. Requests that retry are one-shot and level-triggered. A multishot
//! poll is edge-triggered, which gives one event a wake-up as the kernel's does. So is every other multishot
//! request: it stays registered, since it never waits again before its file said that it would block. One that
//! gives way to others renews its registration, which puts it behind them if its file is still ready.

use super::cq::Kind;
use super::pending::{Pending, PollArm};
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
        let number = standing_number(&req);
        if let Err(e) = self.keep_file(&mut req) {
            return self.complete(st, req, e.res(), 0);
        }
        req.task.get_or_insert_with(|| task.clone());
        let req = match number {
            Some(number) => match self.arm_standing(st, req, number, events) {
                Some(req) => req,
                None => return,
            },
            None => req,
        };
        let own_fd = match &req.file {
            FileRef::Fixed(file) => match self.duplicate(file.fd.raw()) {
                Ok(fd) => Some(fd),
                Err(e) => return self.complete(st, req, e.res(), 0),
            },
            _ => None,
        };
        let mode = retry_mode(&req);
        let arm = PollArm { req, own_fd, events, multishot: false, tries: 0, standing: None };
        if let Err((arm, e)) = self.register(st, arm, mode) {
            if e == Errno::PERM && !arm.req.multishot {
                // A file that cannot be polled.
                return self.send_to_worker(st, task, arm.req);
            }
            self.complete(st, arm.req, e.res(), 0);
        }
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
        let standing = Some((number, false));
        let arm = PollArm { req, own_fd: None, events, multishot: false, tries: 0, standing };
        st.pending.fill(key, Pending::Poll(arm));
        None
    }

    /// POLL_ADD that was not ready.
    pub fn arm_poll_request(self: &Arc<Ring>, st: &mut State, mut req: Box<Req>) {
        let Op::Poll(Add { events, multishot }) = req.op else {
            return self.complete(st, req, Errno::INVAL.res(), 0);
        };
        let own_fd = match self.duplicate(req.file.raw()) {
            Ok(fd) => fd,
            Err(e) => return self.complete(st, req, e.res(), 0),
        };
        if let FileRef::Plain(_) = req.file {
            req.file = FileRef::Owned(own_fd);
        } else {
            let arm =
                PollArm { req, own_fd: Some(own_fd), events, multishot, tries: 0, standing: None };
            return self.finish_poll_arm(st, arm);
        }
        self.finish_poll_arm(
            st,
            PollArm { req, own_fd: None, events, multishot, tries: 0, standing: None },
        );
    }

    fn finish_poll_arm(self: &Arc<Ring>, st: &mut State, arm: PollArm) {
        let multishot = arm.multishot;
        let mode = if multishot { epoll::ET } else { epoll::ONESHOT };
        match self.register(st, arm, mode) {
            Ok(()) => st.fresh_multishot |= multishot,
            // Not pollable: always ready, and so done.
            Err((arm, Errno::PERM)) => {
                let ready = (arm.events & ALWAYS_READY) as i32;
                let res = if ready == 0 { Errno::INVAL.res() } else { ready };
                self.complete(st, arm.req, res, 0);
            }
            Err((arm, e)) => self.complete(st, arm.req, e.res(), 0),
        }
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
    pub fn handle_events(self: &Arc<Ring>, events: &[Event]) {
        let mut st = self.state.lock();
        self.handle_events_locked(&mut st, events);
        self.finish_turn(&mut st);
    }

    fn handle_events_locked(self: &Arc<Ring>, st: &mut State, events: &[Event]) {
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
                token => self.handle_ready(st, Key(token), event.events),
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
        let limit = limit.clamp(1, events.len());
        let n = epoll::wait(ep, &mut events[..limit], Some((0, 0)), None).unwrap_or(0);
        if events[..n].iter().any(|event| event.token == TOKEN_WAKE) {
            self.return_wake();
        }
        self.handle_events_locked(st, &events[..n]);
        n
    }

    fn handle_ready(self: &Arc<Ring>, st: &mut State, key: Key, revents: u32) {
        match st.pending.get(key) {
            Some(Pending::Poll(arm)) if arm.multishot => self.poll_fired_again(st, key, revents),
            Some(Pending::Poll(arm)) if matches!(arm.req.op, Op::Poll(_)) => {
                let res = revents & (arm.events | epoll::ERR | epoll::HUP);
                if let Some(mut arm) = self.take_poll(st, key) {
                    arm.req.via = Via::Polled;
                    self.complete(st, arm.req, res as i32, 0);
                }
            }
            Some(Pending::Poll(_)) => self.retry_ready(st, key, revents),
            _ => {}
        }
    }

    /// Issues a request again; if it has to wait once more its registration is armed anew.
    fn retry_ready(self: &Arc<Ring>, st: &mut State, key: Key, revents: u32) {
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
        let is_target = |p: &Pending| match p {
            Pending::Poll(arm) => {
                matches!(arm.req.op, Op::Poll(_)) && arm.req.user_data == change.user_data
            }
            _ => false,
        };
        let key = st.pending.find(is_target).ok_or(Errno::NOENT)?;
        if change.events.is_none() && change.new_user_data.is_none() {
            let arm = self.take_poll(st, key).ok_or(Errno::NOENT)?;
            self.push_task_work(
                st,
                super::state::TaskWork::Complete(arm.req, Errno::CANCELED.res(), 0),
            );
            return Ok(());
        }
        let Some(Pending::Poll(arm)) = st.pending.get(key) else { return Err(Errno::NOENT) };
        if let Some(user_data) = change.new_user_data {
            arm.req.user_data = user_data;
        }
        if let Some(events) = change.events {
            arm.events = events;
            let mode = if arm.multishot { epoll::ET } else { epoll::ONESHOT };
            let fd = arm.fd();
            st.fresh_multishot = true;
            let ep = self.epfd()?;
            epoll::modify(ep, fd, events | mode, key.0)?;
        }
        Ok(())
    }
}
