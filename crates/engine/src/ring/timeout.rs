//! Timers: TIMEOUT, its counted form, LINK_TIMEOUT, and the descriptor they share.

use super::cancel::Found;
use super::cq::Kind;
use super::pending::{Kind as WaitKind, Pending, TimerArm, TimerKind};
use super::state::State;
use super::Ring;
use crate::host::poll as epoll;
use crate::host::time::{now_ns, Clock};
use crate::ops::timeout::{Repeat, Timeout};
use crate::ops::Op;
use crate::req::{Key, Req, Via};
use crate::Errno;
use anyring_uapi::{cqe, Cqe};
use std::sync::Arc;

/// A deadline on the monotonic clock for a time on `clock`.
pub fn monotonic_deadline(clock: Clock, absolute: bool, ns: u64) -> u64 {
    let now = now_ns(Clock::Monotonic);
    match (absolute, clock) {
        (false, _) => now.saturating_add(ns),
        (true, Clock::Monotonic) => ns,
        (true, other) => now.saturating_add(ns.saturating_sub(now_ns(other))),
    }
}

impl Ring {
    /// Lets a timer request wait; `None` if it failed (and was completed).
    pub fn add_timer(
        self: &Arc<Ring>,
        st: &mut State,
        req: Box<Req>,
        kind: TimerKind,
    ) -> Option<Key> {
        let Op::Timeout(spec) = &req.op else {
            self.complete(st, req, Errno::INVAL.res(), 0);
            return None;
        };
        let deadline = monotonic_deadline(spec.clock, spec.absolute, spec.ns);
        let count = spec.count.map(|n| (self.count_exactly(st), n));
        if self.timerfd().is_err() {
            self.complete(st, req, Errno::NOMEM.res(), 0);
            return None;
        }
        let key = st.pending.reserve();
        if count.is_some() {
            st.timers.counted.push(key);
        }
        st.pending.fill(key, Pending::Timer(TimerArm { req, deadline, count, kind }));
        st.timers.insert(deadline, key);
        self.arm();
        self.set_timerfd(st);
        Some(key)
    }

    /// From now on completions are counted one by one; their number before.
    fn count_exactly(&self, st: &State) -> u32 {
        let mut cq = self.cq.lock();
        cq.exact = true;
        st.count_base.wrapping_add(cq.early_now)
    }

    /// TIMEOUT as a request: it may itself be watched by a link timeout.
    pub fn arm_timer(self: &Arc<Ring>, st: &mut State, req: Box<Req>, kind: TimerKind) {
        let Some(key) = self.add_timer(st, req, kind) else { return };
        let Some(Pending::Timer(mut arm)) = st.pending.lift(key) else { return };
        self.arm_link_timeout(st, &mut arm.req, key);
        st.pending.fill(key, Pending::Timer(arm));
    }

    /// The request a link timeout watches now waits at another place.
    pub fn retarget_link_timeout(&self, st: &mut State, timer: Key, target: Key) {
        if let Some(Pending::Timer(arm)) = st.pending.get(timer) {
            arm.kind = TimerKind::Link(target);
        }
    }

    /// Sets the descriptor to the earliest deadline if that came nearer.
    pub fn set_timerfd(&self, st: &mut State) {
        let Some(earliest) = st.timers.earliest() else { return };
        if st.timers.set_to.is_some_and(|at| at <= earliest) {
            return;
        }
        if let Ok(fd) = self.timerfd() {
            if epoll::timerfd_set(fd, Some(earliest)).is_ok() {
                st.timers.set_to = Some(earliest);
            }
        }
    }

    /// Fires what has expired.
    pub fn expire_timers(self: &Arc<Ring>, st: &mut State) {
        let now = now_ns(Clock::Monotonic);
        while let Some(key) = st.timers.pop_expired(now) {
            match st.pending.get(key) {
                Some(Pending::Timer(arm)) => match arm.kind {
                    TimerKind::Timeout => self.fire_timeout(st, key, now),
                    TimerKind::Link(target) => self.fire_link_timeout(st, key, target),
                },
                _ => continue,
            }
        }
        self.set_timerfd(st);
    }

    fn fire_timeout(self: &Arc<Ring>, st: &mut State, key: Key, now: u64) {
        let Some(Pending::Timer(mut arm)) = st.pending.lift(key) else { return };
        arm.req.via = Via::Polled;
        if self.repeat_timeout(st, &mut arm, now) {
            st.timers.insert(arm.deadline, key);
            st.pending.fill(key, Pending::Timer(arm));
            return;
        }
        st.pending.take(key);
        st.timers.remove(arm.deadline, key);
        self.disarm();
        let success = matches!(&arm.req.op, Op::Timeout(Timeout { etime_success: true, .. }));
        self.end_timeout(st, arm.req, Errno::TIME.res(), success);
    }

    /// Posts a firing of a multishot timeout and sets its next; false if this was the last.
    fn repeat_timeout(&self, st: &mut State, arm: &mut TimerArm, now: u64) -> bool {
        let Op::Timeout(spec) = &mut arm.req.op else { return false };
        match &mut spec.repeat {
            Repeat::Once | Repeat::Times(0 | 1) => return false,
            Repeat::Times(n) => *n -= 1,
            Repeat::Forever => {}
        }
        let cqe = Cqe { user_data: arm.req.user_data, res: Errno::TIME.res(), flags: cqe::F_MORE };
        if !self.post_if_room(st, cqe, Kind::Fired) {
            return false;
        }
        st.counts[arm.req.def.code as usize].posted += 1;
        arm.deadline = arm.deadline.saturating_add(spec.ns).max(now);
        true
    }

    /// A TIMEOUT ends; with ETIME_SUCCESS an expiry does not break its chain.
    fn end_timeout(self: &Arc<Ring>, st: &mut State, req: Box<Req>, res: i32, success: bool) {
        if !success {
            return self.complete(st, req, res, 0);
        }
        self.complete_unbroken(st, req, res);
    }

    fn fire_link_timeout(self: &Arc<Ring>, st: &mut State, key: Key, target: Key) {
        let Some(Pending::Timer(timer)) = st.pending.take(key) else { return };
        self.disarm();
        let mut head = None;
        let listed = st.pending.get(target).and_then(|p| p.list()).is_some();
        let res = match self.take_for_cancel(st, target) {
            Found::Taken(req) => {
                head = Some(req);
                if listed {
                    1
                } else {
                    Errno::TIME.res()
                }
            }
            Found::Running if listed => 1,
            Found::Running => Errno::ALREADY.res(),
            Found::Gone => Errno::NOENT.res(),
        };
        let mut timeout = timer.req;
        timeout.via = Via::Polled;
        self.end_of_link_timeout(st, timeout, res);
        if let Some(mut req) = head {
            req.link_timeout = None;
            self.complete(st, req, Errno::CANCELED.res(), 0);
        }
    }

    /// Completes the counted timeouts whose number of CQEs has been posted.
    pub fn complete_counted(self: &Arc<Ring>, st: &mut State) {
        self.empty_stage(st);
        let posted = self.cq.lock_as(st.holder).non_timeouts;
        let mut due: Vec<(u32, Key)> = Vec::new();
        for &key in &st.timers.counted.clone() {
            if let Some(Pending::Timer(TimerArm { count: Some((start, number)), .. })) =
                st.pending.get(key)
            {
                if posted.wrapping_sub(*start) >= *number {
                    due.push((start.wrapping_add(*number), key));
                }
            }
        }
        due.sort_by(|a, b| {
            (a.0.wrapping_sub(posted) as i32).cmp(&(b.0.wrapping_sub(posted) as i32))
        });
        for (_, key) in due {
            if let Some(timer) = self.take_timer(st, key) {
                self.complete(st, timer.req, 0, 0);
            }
        }
    }
}

impl Ring {
    fn find_timer(&self, st: &State, user_data: u64, link: bool) -> Option<Key> {
        let wanted = move |p: &Pending| matches!(p, Pending::Timer(t) if (t.kind != TimerKind::Timeout) == link);
        let found = st.pending.with_data(WaitKind::Timer, user_data, wanted).next();
        found
    }

    /// TIMEOUT_REMOVE: the target ends with ECANCELED. ENOENT if there is none.
    pub fn remove_timeout(self: &Arc<Ring>, st: &mut State, user_data: u64) -> Result<(), Errno> {
        let key = self.find_timer(st, user_data, false).ok_or(Errno::NOENT)?;
        let timer = self.take_timer(st, key).ok_or(Errno::NOENT)?;
        self.push_task_work(
            st,
            super::state::TaskWork::Complete(timer.req, Errno::CANCELED.res(), 0),
        );
        Ok(())
    }

    /// TIMEOUT_REMOVE with an update: a new time; a counted timeout becomes a plain one.
    pub fn update_timeout(
        self: &Arc<Ring>,
        st: &mut State,
        user_data: u64,
        link: bool,
        ns: u64,
        absolute: bool,
    ) -> Result<(), Errno> {
        let key = self.find_timer(st, user_data, link).ok_or(Errno::NOENT)?;
        let Some(Pending::Timer(mut arm)) = st.pending.lift(key) else { return Err(Errno::NOENT) };
        st.timers.remove(arm.deadline, key);
        if let Op::Timeout(spec) = &mut arm.req.op {
            spec.ns = ns;
            spec.absolute = absolute;
            spec.count = None;
            // The count is gone: a repeating timeout now repeats for ever.
            if spec.repeat != Repeat::Once {
                spec.repeat = Repeat::Forever;
            }
            arm.deadline = monotonic_deadline(spec.clock, absolute, ns);
        }
        arm.count = None;
        st.timers.insert(arm.deadline, key);
        st.pending.fill(key, Pending::Timer(arm));
        self.set_timerfd(st);
        Ok(())
    }
}
