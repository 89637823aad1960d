//! Submission: SQEs are copied out of the shared memory, checked in the kernel's order,
//! and started, chained or held back. Runs under the state lock.

use super::shared::Bare;
use super::state::State;
use super::Ring;
use crate::ops::net::zerocopy;
use crate::ops::{table, FileUse, Op, OpDef};
use crate::policy::Inline as Mode;
use crate::req::{FileRef, Req, Via};
use crate::task::Task;
use crate::Errno;
use anyring_uapi::setup::{IOPOLL, SUBMIT_ALL};
use anyring_uapi::{op, sqe, Cqe, Sqe};
use std::sync::Arc;

impl Ring {
    /// Takes at most `to_submit` SQEs; returns how many were consumed as submitted.
    pub fn submit(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, to_submit: u32) -> u32 {
        let available = self.mem.sq_tail().wrapping_sub(st.sq_head);
        let count = to_submit.min(available).min(self.mem.geometry().sq_entries);
        let mut submitted = 0;
        st.quiet.open();
        while submitted < count {
            let bare = self.submit_bare(st, count - submitted);
            submitted += bare;
            if bare > 0 {
                continue;
            }
            let index = self.mem.sq_index(st.sq_head);
            st.sq_head = st.sq_head.wrapping_add(1);
            if index >= self.mem.geometry().sq_entries {
                self.mem.count_dropped();
                break;
            }
            let sqe = self.mem.sqe(index);
            submitted += 1;
            if sqe.opcode == op::READ && self.read_at_once(st, &sqe) {
                continue;
            }
            if !self.submit_one(st, task, &sqe) {
                break;
            }
        }
        // With SQPOLL the program may close a file once it sees that its request was taken.
        self.submit_aio(st);
        self.mem.set_sq_head(st.sq_head);
        if !st.chain.is_empty() {
            self.close_chain(st, task);
        }
        st.quiet.close();
        submitted
    }

    /// NOPs that ask for nothing and have nothing around them that concerns them, one after the other: what makes
    /// them a measure is that they are over at once. Returns how many there were, at most `most`.
    #[inline]
    fn submit_bare(&self, st: &mut State, most: u32) -> u32 {
        if !st.is_plain() || self.has(IOPOLL) {
            return 0;
        }
        let ignored = if self.inline.mode == Mode::Never { 0 } else { sqe::ASYNC };
        let (from, wanted) = (st.sq_head, Bare { opcode: op::NOP, ignored });
        let end =
            self.mem.take_bare(from, from.wrapping_add(most), wanted, |user_data, offloaded| {
                self.post_at_its_place(st, Cqe { user_data, res: 0, flags: 0 }, offloaded);
            });
        st.sq_head = end;
        let taken = end.wrapping_sub(from);
        st.counts[op::NOP as usize].over_at_once(taken);
        taken
    }

    /// Returns whether to go on with the next SQE.
    fn submit_one(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, sqe: &Sqe) -> bool {
        let mut req = new_request(sqe);
        st.counts[req.def.code as usize].submitted += 1;
        let failure = self.init_request(st, &mut req, sqe).err();
        if let Some(e) = failure {
            req.fail(e.res());
        }
        let go_on = failure.is_none() || self.has(SUBMIT_ALL);
        if !st.chain.is_empty() || req.links() {
            return self.collect(st, task, req) || go_on;
        }
        if st.drain_next || !st.drain.is_empty() || req.has(sqe::IO_DRAIN) {
            self.queue(st, task, Box::new(req));
        } else {
            st.outstanding += 1;
            return self.start_here(st, task, req) && go_on || self.has(SUBMIT_ALL);
        }
        go_on
    }

    /// The checks common to all opcodes, in the kernel's order, then the opcode's own.
    fn init_request(&self, st: &mut State, req: &mut Req, sqe: &Sqe) -> Result<(), Errno> {
        let def = table::supported(sqe.opcode).ok_or(Errno::INVAL)?;
        if sqe.flags & !sqe::VALID_FLAGS != 0 {
            return Err(Errno::INVAL);
        }
        if sqe.flags & sqe::BUFFER_SELECT != 0 && !def.buffer_select {
            return Err(Errno::OPNOTSUPP);
        }
        self.check_drain(st, sqe)?;
        st.restrictions.check_sqe(sqe)?;
        if sqe.ioprio != 0 && !def.ioprio {
            return Err(Errno::INVAL);
        }
        if self.has(IOPOLL) && !def.iopoll {
            return Err(Errno::INVAL);
        }
        if sqe.personality != 0 {
            req.creds = Some(st.personalities.get(sqe.personality).ok_or(Errno::INVAL)?);
        }
        if let FileUse::Refused(errno) | FileUse::Directory(errno) = def.file {
            if sqe.flags & sqe::FIXED_FILE != 0 {
                return Err(errno);
            }
        }
        req.notification = zerocopy::notification(sqe);
        req.op = (def.prep)(sqe)?;
        match req.op.borrowed() {
            // The system calls have a meaning of their own for a null pointer.
            Some(addr) if addr == 0 || !self.may_borrow(st, req) => req.op.capture()?,
            _ => {}
        }
        req.multishot = req.op.is_multishot();
        check_link_timeout(st, def)
    }

    fn check_drain(&self, st: &mut State, sqe: &Sqe) -> Result<(), Errno> {
        if sqe.flags & sqe::CQE_SKIP_SUCCESS != 0 {
            st.drain_disabled = true;
        }
        if sqe.flags & sqe::IO_DRAIN != 0 && st.drain_disabled {
            return Err(Errno::OPNOTSUPP);
        }
        Ok(())
    }

    /// Starts a request (with its chain), or holds it back behind a drain.
    pub fn queue(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut head: Box<Req>) {
        if st.drain_next && !head.failed {
            st.drain_next = false;
            head.flags |= sqe::IO_DRAIN;
        }
        // What failed to prepare ends at once, drain or not.
        let held_back = !head.failed
            && (!st.drain.is_empty() || (head.has(sqe::IO_DRAIN) && st.outstanding > 0));
        if held_back {
            head.task = Some(task.clone());
            st.drain.push_back(head);
            self.cq.lock().exact = true;
            return;
        }
        st.outstanding += head.chain_len();
        self.start(st, task, head);
    }
}

/// A LINK_TIMEOUT must follow a request that it can watch.
fn check_link_timeout(st: &State, def: &OpDef) -> Result<(), Errno> {
    if def.code != op::LINK_TIMEOUT {
        return Ok(());
    }
    match st.chain.last() {
        Some(head) if head.def.code != op::LINK_TIMEOUT => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

pub(crate) fn new_request(sqe: &Sqe) -> Req {
    Req {
        user_data: sqe.user_data,
        // An unknown opcode is cleaned up like a NOP.
        def: table::OPS.get(sqe.opcode as usize).unwrap_or(&table::OPS[0]),
        flags: sqe.flags,
        fd: sqe.fd,
        buf: sqe.buf_index,
        op: Op::None,
        file: FileRef::None,
        selected: None,
        failed: false,
        early: None,
        next: None,
        link_timeout: None,
        via: Via::Inline,
        stubborn: false,
        creds: None,
        multishot: false,
        woken_by: 0,
        started: false,
        notification: None,
        pace: None,
        tried: false,
        task: None,
    }
}
