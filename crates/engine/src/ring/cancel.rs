//! Cancelling: one predicate, and one way to take a waiting request.

use super::pending::{Kind, Pending, TimerKind};
use super::state::State;
use super::Ring;
use crate::host::fd;
use crate::req::{Key, Req};
use crate::wq::Stopped;
use crate::Errno;
use std::sync::Arc;

/// `IORING_ASYNC_CANCEL_ALL`.
pub const ALL: u32 = 1 << 0;
/// `IORING_ASYNC_CANCEL_FD`.
pub const FD: u32 = 1 << 1;
/// `IORING_ASYNC_CANCEL_ANY`.
pub const ANY: u32 = 1 << 2;
/// `IORING_ASYNC_CANCEL_FD_FIXED`.
pub const FD_FIXED: u32 = 1 << 3;
/// `IORING_ASYNC_CANCEL_USERDATA`.
pub const USERDATA: u32 = 1 << 4;
/// `IORING_ASYNC_CANCEL_OP`.
pub const OP: u32 = 1 << 5;
/// All of them.
pub const ALL_FLAGS: u32 = ALL | FD | ANY | FD_FIXED | USERDATA | OP;

/// What a cancel looks for.
#[derive(Clone, Debug, Default)]
pub struct Criteria {
    /// `IORING_ASYNC_CANCEL_*`.
    pub flags: u32,
    /// user_data.
    pub user_data: u64,
    /// With FD: the descriptor whose open file is meant.
    pub fd: i32,
    /// With OP.
    pub opcode: u8,
}

impl Criteria {
    /// The one match predicate.
    pub fn matches(&self, user_data: u64, opcode: u8, file: i32) -> bool {
        if self.flags & ANY != 0 {
            return true;
        }
        if self.flags & FD != 0 && !(file >= 0 && fd::same_file(self.fd, file)) {
            return false;
        }
        if self.flags & OP != 0 && self.opcode != opcode {
            return false;
        }
        !self.names_data() || self.user_data == user_data
    }
    /// Only requests with its user_data match.
    fn names_data(&self) -> bool {
        self.flags & ANY == 0 && (self.flags & (FD | OP) == 0 || self.flags & USERDATA != 0)
    }
    /// All that match, not one.
    pub fn wants_all(&self) -> bool {
        self.flags & (ALL | ANY) != 0
    }
}

/// Requests looked at of each kind to cancel one: a few, as a worker may have finished one just now.
const CANDIDATES: usize = 8;

/// What became of a request that was to be taken.
pub enum Found {
    /// It is the caller's now, to be completed.
    Taken(Box<Req>),
    /// A worker runs it; it was told to stop.
    Running,
    /// It is not there (any more).
    Gone,
}

impl Ring {
    /// Takes a waiting request from wherever it waits.
    pub fn take_for_cancel(self: &Arc<Ring>, st: &mut State, key: Key) -> Found {
        match st.pending.get(key) {
            Some(Pending::Poll(_)) => match self.take_poll(st, key) {
                Some(arm) => Found::Taken(arm.req),
                None => Found::Gone,
            },
            Some(Pending::Timer(_)) => match self.take_timer(st, key) {
                Some(timer) => Found::Taken(timer.req),
                None => Found::Gone,
            },
            Some(Pending::Futex(_)) => match self.cancel_futex(st, key) {
                Some(req) => Found::Taken(req),
                None => Found::Gone,
            },
            Some(Pending::Work(item)) => {
                let item = item.clone();
                match item.task.pool.stop(&item) {
                    Stopped::Queued(req) => {
                        st.pending.take(key);
                        Found::Taken(req)
                    }
                    Stopped::Running => Found::Running,
                    Stopped::Gone => Found::Gone,
                }
            }
            None => Found::Gone,
        }
    }

    /// Keys that match, workers' first, then poll arms, then futex waits, then timers: the kernel's order of search.
    fn matching(&self, st: &State, what: &Criteria) -> Vec<Key> {
        let hit = |p: &Pending| match p {
            Pending::Work(item) => what.matches(item.user_data, item.opcode, item.file),
            Pending::Poll(arm) => what.matches(arm.req.user_data, arm.req.def.code, arm.fd()),
            Pending::Futex(req) => what.matches(req.user_data, req.def.code, -1),
            Pending::Timer(t) => {
                t.kind == TimerKind::Timeout && what.matches(t.req.user_data, t.req.def.code, -1)
            }
        };
        let mut keys = Vec::new();
        for kind in Kind::ALL {
            if what.names_data() {
                let most = if what.wants_all() { usize::MAX } else { CANDIDATES };
                keys.extend(st.pending.with_data(kind, what.user_data, hit).take(most));
            } else {
                keys.extend(st.pending.keys_where(|p| p.kind() == kind && hit(p)));
            }
        }
        keys
    }

    /// Cancels one request or all that match. 0 or a count; ENOENT, or EALREADY if the one is running in a worker. For a listed
    /// wait the count is told even of one.
    pub fn cancel(self: &Arc<Ring>, st: &mut State, what: &Criteria) -> Result<u32, Errno> {
        let mut cancelled = Vec::new();
        let mut running = 0;
        let mut lists = Vec::new();
        for key in self.matching(st, what) {
            let list = st.pending.get(key).and_then(|p| p.list());
            match self.take_for_cancel(st, key) {
                Found::Taken(req) => cancelled.push(req),
                Found::Running => running += 1,
                Found::Gone => continue,
            }
            lists.extend(list);
            if !what.wants_all() {
                break;
            }
        }
        let count = cancelled.len() as u32;
        for req in cancelled {
            // Posted after the cancel's own CQE, as the kernel's task work does.
            self.push_task_work(
                st,
                super::state::TaskWork::Complete(req, Errno::CANCELED.res(), 0),
            );
        }
        match (what.wants_all(), count, running) {
            (true, n, r) => {
                // All of one list count as one.
                let listed = lists.len() as u32;
                lists.sort_unstable();
                lists.dedup();
                Ok(n + r - listed + lists.len() as u32)
            }
            (false, _, _) if !lists.is_empty() => Ok(1),
            (false, 0, 0) => Err(Errno::NOENT),
            (false, 0, _) => Err(Errno::ALREADY),
            (false, _, _) => Ok(0),
        }
    }

    /// Cancels whatever waits: the ring goes away. Nothing is posted.
    pub fn cancel_everything(self: &Arc<Ring>, st: &mut State) {
        let mut dropped = Vec::new();
        for key in st.pending.keys_where(|_| true) {
            if let Found::Taken(req) = self.take_for_cancel(st, key) {
                dropped.push(req);
            }
        }
        st.tw.clear();
        st.drain.clear();
        st.chain.clear();
        st.spare.clear();
    }
}
