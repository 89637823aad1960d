//! Where a request's first attempt is made: in the submitting call, or in a worker. See [`crate::inline`].

use super::state::State;
use super::Ring;
use crate::host::fd;
use crate::inline::history::Cell;
use crate::limits::INLINE_BYTES_MAX;
use crate::ops::{Ctx, Issue, Waits};
use crate::policy::Inline as Mode;
use crate::req::{FileRef, Req};
use crate::task::Task;
use anyring_uapi::sqe;
use std::sync::Arc;

impl Ring {
    /// The first attempt of a request whose file is known.
    pub fn first_attempt(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        req: &mut Req,
    ) -> Issue {
        if req.def.on_ring || req.multishot {
            return self.attempt(st, task, req);
        }
        if req.creds.is_some() {
            return Issue::Worker;
        }
        if self.inline.mode == Mode::Never {
            let to_worker = req.def.always_async || (req.has(sqe::ASYNC) && !is_pollable(req));
            let closes = req.def.waits == Waits::Close;
            return if to_worker && !closes { Issue::Worker } else { self.attempt(st, task, req) };
        }
        let first = if req.def.always_async || req.def.waits == Waits::Close {
            Issue::Worker
        } else if req.has(sqe::ASYNC) && req.op.bytes() > INLINE_BYTES_MAX && !is_pollable(req) {
            return Issue::Worker;
        } else {
            self.attempt(st, task, req)
        };
        match first {
            Issue::Worker if req.def.waits != Waits::Unknown => self.bold_attempt(st, task, req),
            first => first,
        }
    }

    /// The blocking form in the submitting call, if it is not expected to wait.
    fn bold_attempt(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, req: &mut Req) -> Issue {
        let Some(cell) = self.admit(st, req) else { return Issue::Worker };
        if !self.inline.pays(cell) {
            req.pace = Some(cell);
            return Issue::Worker;
        }
        let watch = self.inline.watch();
        let mut ctx = Ctx { ring: self, st: Some(st), blocking: None, bold: true, task };
        let outcome = (req.def.issue)(req, &mut ctx);
        self.inline.ended_inline(cell, watch);
        outcome
    }

    fn admit(&self, st: &mut State, req: &Req) -> Option<Cell> {
        if !st.turn.is_fresh() {
            let engine = self.engine.upgrade()?;
            self.inline.freshen(&engine.fds, &mut st.turn);
        }
        self.inline.admit(&mut st.turn, req)
    }
}

/// A file whose readiness can be waited for: then IOSQE_ASYNC needs no worker.
fn is_pollable(req: &Req) -> bool {
    if matches!(req.file, FileRef::None) {
        return false;
    }
    fd::stat(req.file.raw())
        .is_ok_and(|s| !s.is_regular() && !s.is_block() && !s.is_memory_device())
}
