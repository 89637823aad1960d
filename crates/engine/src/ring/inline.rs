//! Where a request's first attempt is made: in the submitting call, or in a worker. See [`crate::inline`].

use super::state::{State, TaskWork};
use super::Ring;
use crate::host::fd;
use crate::inline::history::Cell;
use crate::limits::INLINE_BYTES_MAX;
use crate::ops::{rw, Ctx, Issue, Waits};
use crate::policy::Inline as Mode;
use crate::req::{FileRef, Req};
use crate::task::Task;
use anyring_uapi::setup::{DEFER_TASKRUN, IOPOLL};
use anyring_uapi::{op, sqe, Cqe, Sqe};
use std::sync::Arc;

impl Ring {
    /// The first attempt of a request whose file is known.
    pub fn first_attempt(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        req: &mut Req,
    ) -> Issue {
        if req.multishot && req.has(sqe::ASYNC) && is_pollable(req) {
            // It waits before its first attempt, as it does in one of the kernel's workers.
            st.fresh_multishot |= !self.defers();
            return Issue::Poll(crate::host::poll::IN);
        }
        if req.def.on_ring || req.multishot {
            return self.attempt(st, task, req);
        }
        if req.creds.is_some() {
            return Issue::Worker;
        }
        if self.is_for_aio(st, req) {
            return self.attempt(st, task, req);
        }
        if self.inline.mode == Mode::Never {
            let to_worker = req.def.always_async
                || self.is_for_worker(req)
                || (req.has(sqe::ASYNC) && !is_pollable(req));
            let closes = req.def.waits == Waits::Close;
            return if to_worker && !closes { Issue::Worker } else { self.attempt(st, task, req) };
        }
        if req.def.waits == Waits::Close && closes_at_once(st, req) {
            return self.attempt(st, task, req);
        }
        match req.def.waits {
            // It has a form that does not wait: what the file or the device makes of it is another matter.
            Waits::Unknown | Waits::File if !req.def.always_async => {
                let long = req.has(sqe::ASYNC) && req.op.bytes() > INLINE_BYTES_MAX;
                if long && !is_pollable(req) {
                    return Issue::Worker;
                }
                match self.attempt(st, task, req) {
                    Issue::Worker if req.def.waits == Waits::File => {
                        self.bold_attempt(st, task, req)
                    }
                    first => first,
                }
            }
            Waits::Unknown => Issue::Worker,
            _ => self.bold_attempt(st, task, req),
        }
    }

    /// A socket's transfer whose every attempt is a worker's: with `inline=never`, IOSQE_ASYNC means that, as in the kernel.
    /// Not where a buffer is to be picked, which is the ring's business.
    pub fn is_for_worker(&self, req: &Req) -> bool {
        self.inline.mode == Mode::Never
            && req.has(sqe::ASYNC)
            && !req.multishot
            && !req.has(sqe::BUFFER_SELECT)
            && matches!(req.def.code, op::SEND | op::RECV | op::SENDMSG | op::RECVMSG)
    }

    /// The blocking form in the submitting call, if it is not expected to wait; else the other form, if it has one.
    fn bold_attempt(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, req: &mut Req) -> Issue {
        let Some(cell) = self.admit(st, req) else {
            let opens = req.def.waits == Waits::Path && !req.def.always_async;
            return if opens { self.attempt(st, task, req) } else { Issue::Worker };
        };
        if !self.inline.pays(cell) {
            req.pace = Some(cell);
            return Issue::Worker;
        }
        let watch = self.inline.watch_inline(&st.turn);
        let mut ctx = Ctx { ring: self, st: Some(st), blocking: None, bold: true, task };
        let outcome = (req.def.issue)(req, &mut ctx);
        self.inline.ended_inline(&mut st.turn, cell, watch);
        outcome
    }

    fn admit(&self, st: &mut State, req: &Req) -> Option<Cell> {
        self.freshen(st);
        self.inline.admit(&mut st.turn, req)
    }

    fn freshen(&self, st: &mut State) {
        if st.turn.is_fresh() {
            return;
        }
        if let Some(engine) = self.engine.upgrade() {
            self.inline.freshen(&engine.fds, &mut st.turn);
        }
    }

    /// A read that asks for nothing else and is over with one system call. If it is not, nothing has happened that
    /// the usual way does not do again.
    pub fn read_at_once(&self, st: &mut State, sqe: &Sqe) -> bool {
        let bare = sqe.flags & !sqe::ASYNC == 0 && sqe.personality == 0 && sqe.ioprio == 0;
        if !bare || !st.is_plain() || self.has(IOPOLL) || self.inline.mode == Mode::Never {
            return false;
        }
        let Some(res) = rw::read_at_once(sqe) else { return false };
        st.turn.interrupt();
        st.counts[op::READ as usize].over_at_once(1);
        let cqe = Cqe { user_data: sqe.user_data, res, flags: 0 };
        self.post_at_its_place(st, cqe, sqe.flags & sqe::ASYNC != 0);
        true
    }

    /// Posts the CQE of a request that is over: where a worker's would be if the program `offloaded` it.
    #[inline]
    pub fn post_at_its_place(&self, st: &mut State, cqe: Cqe, offloaded: bool) {
        if offloaded {
            self.post_as_worker(st, cqe);
        } else {
            self.stage(st, cqe, false);
        }
    }

    /// Posts the CQE of a request that the program expects to be a worker's, as if it were: on a DEFER_TASKRUN ring that
    /// is its owner's affair when it asks for events.
    pub fn post_as_worker(&self, st: &mut State, cqe: Cqe) {
        if !self.has(DEFER_TASKRUN) {
            return self.stage(st, cqe, true);
        }
        let first = !self.has_task_work();
        // Until its CQE is posted, a draining request waits for it.
        st.outstanding += 1;
        self.push_task_work(st, TaskWork::Post(cqe));
        if first {
            self.show_task_work();
        }
    }

    /// The CQE's turn has come.
    pub fn post_deferred(&self, st: &mut State, cqe: Cqe) {
        self.stage(st, cqe, true);
        st.outstanding = st.outstanding.saturating_sub(1);
        if !st.drain.is_empty() {
            self.release_drained(st);
        }
    }

    /// Whether a request that is alone may leave its path in the program's memory until it has been tried.
    pub fn may_borrow(&self, st: &mut State, req: &Req) -> bool {
        const COMPANY: u8 = sqe::IO_LINK | sqe::IO_HARDLINK | sqe::IO_DRAIN;
        if self.inline.mode == Mode::Never || req.flags & COMPANY != 0 || req.creds.is_some() {
            return false;
        }
        if !st.is_unattached() {
            return false;
        }
        self.freshen(st);
        st.turn.any_path_is_local()
    }
}

/// What needs no look at the mounts: a slot of the file table, and what is on no disk. If there has been a look anyway,
/// it serves for all.
fn closes_at_once(st: &State, req: &Req) -> bool {
    req.op.closes_slot() || !(st.turn.is_fresh() || fd::mount_of(req.fd).is_ok_and(|at| at.on_disk))
}

/// A file whose readiness can be waited for: then IOSQE_ASYNC needs no worker.
fn is_pollable(req: &Req) -> bool {
    if matches!(req.file, FileRef::None) {
        return false;
    }
    fd::stat(req.file.raw())
        .is_ok_and(|s| !s.is_regular() && !s.is_block() && !s.is_memory_device())
}
