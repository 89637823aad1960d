//! Starting a request: its file, the first attempt, and where it waits if it could not finish.

use super::pending::{Pending, TimerKind};
use super::state::State;
use super::Ring;
use crate::host::poll;
use crate::host::thread;
use crate::limits::SHOTS_MAX;
use crate::ops::{Ctx, FileUse, Issue, Op};
use crate::req::{FileRef, Key, Req, Via};
use crate::task::Task;
use crate::Errno;
use anyring_uapi::{op, sqe};
use std::sync::Arc;

/// Attempts after readiness was reported before a request goes to a worker: a file may
/// report readiness that its non-blocking form does not see.
const SPURIOUS_MAX: u32 = 32;

/// The SIGPIPE of an attempt is the submitter's, whoever made the attempt for it. From a worker, where a forced-async
/// request belongs, none reaches the program.
fn redirect_sigpipe(task: &Task, req: &Req) {
    let by_worker = req.via == Via::Inline && req.has(sqe::ASYNC);
    let by_other = req.via == Via::Polled && thread::gettid() != task.tid;
    let taken_back = (by_worker || by_other) && thread::take_back_sigpipe();
    if taken_back && by_other {
        let _ = thread::tgkill(task.tid, thread::SIGPIPE);
    }
}

impl Ring {
    /// Starts a request whose turn has come.
    pub fn start(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Box<Req>) {
        let outcome = self.begin(st, task, &mut req);
        self.settle(st, task, req, outcome);
    }

    /// As [`Ring::start`]; the request moves to memory of its own only if it has to wait. Whether its path could be
    /// copied, where that was left for later.
    pub fn start_here(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Req) -> bool {
        let mut outcome = self.begin(st, task, &mut req);
        let copied = match outcome {
            _ if req.op.borrowed().is_none() => Ok(()),
            // Any error may stand for the path's own, which its copying would have met.
            Issue::Done(0.., _) => Ok(()),
            _ => req.op.capture(),
        };
        if let Err(e) = copied {
            req.failed = true;
            outcome = Issue::err(e);
        }
        match outcome {
            Issue::Done(res, flags) => self.end(st, &mut req, res, flags),
            outcome => self.settle(st, task, Box::new(req), outcome),
        }
        copied.is_ok()
    }

    /// Looks its file up and tries.
    fn begin(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, req: &mut Req) -> Issue {
        req.started = true;
        if let Some(res) = req.early {
            return Issue::Done(res, 0);
        }
        if let Err(e) = self.resolve_file(st, req) {
            return Issue::err(e);
        }
        self.submit_before(st, req);
        self.first_attempt(st, task, req)
    }

    /// A non-blocking attempt; a multishot request goes on until it has to wait, or to let others have a turn.
    pub fn attempt(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, req: &mut Req) -> Issue {
        st.turn.interrupt();
        req.tried = true;
        for _ in 0..SHOTS_MAX {
            let mut ctx = Ctx { ring: self, st: Some(st), blocking: None, bold: false, task };
            match (req.def.issue)(req, &mut ctx) {
                Issue::More(res, flags) => {
                    if let Err(last) = self.post_more(st, req, res, flags) {
                        return last;
                    }
                }
                Issue::Done(res, flags) if res == Errno::PIPE.res() => {
                    redirect_sigpipe(task, req);
                    return Issue::Done(res, flags);
                }
                Issue::MoreThenPoll(res, flags, events) => {
                    return match self.post_more(st, req, res, flags) {
                        Ok(()) => Issue::Poll(events),
                        Err(last) => last,
                    };
                }
                outcome => return outcome,
            }
        }
        Issue::Yield(if req.op.sends() { poll::OUT } else { poll::IN })
    }

    /// Posts a result that is not the last; without room it is, and its CQE goes to the backlog.
    fn post_more(&self, st: &mut State, req: &mut Req, res: i32, flags: u32) -> Result<(), Issue> {
        let flags = flags | self.put_buffer_away(st, req, res);
        if self.post_shot(st, req, res, flags) {
            Ok(())
        } else {
            Err(Issue::Done(res, flags))
        }
    }

    /// Acts on an attempt's outcome.
    pub fn settle(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        req: Box<Req>,
        outcome: Issue,
    ) {
        match outcome {
            Issue::Done(res, flags) => self.complete(st, req, res, flags),
            Issue::Poll(events) => self.arm_retry(st, task, req, events),
            Issue::Yield(events) => {
                self.arm_retry(st, task, req, events);
                st.fresh_multishot |= !self.defers();
            }
            // Only `attempt` issues what may post more.
            Issue::More(..) | Issue::MoreThenPoll(..) => {
                self.complete(st, req, Errno::INVAL.res(), 0)
            }
            Issue::Worker => self.send_to_worker(st, task, req),
            Issue::Aio => self.send_to_aio(st, task, req),
            Issue::ArmPoll => self.arm_poll_request(st, task, req),
            Issue::ArmFutex => self.arm_futex(st, task, req),
            Issue::ArmTimer => self.arm_timer(st, req, TimerKind::Timeout),
        }
    }

    /// Looks the file up. A plain number is used as it is while the submitting call lasts.
    fn resolve_file(&self, st: &State, req: &mut Req) -> Result<(), Errno> {
        if !matches!(req.file, FileRef::None) {
            return Ok(());
        }
        match req.def.file {
            FileUse::Needed => {}
            FileUse::Directory(_) if req.fd >= 0 => {
                req.file = FileRef::Plain(req.fd);
                return Ok(());
            }
            _ => return Ok(()),
        }
        req.file = if req.has(sqe::FIXED_FILE) {
            FileRef::Fixed(st.files.get(req.fd as u32).ok_or(Errno::BADF)?)
        } else if req.fd < 0 {
            return Err(Errno::BADF);
        } else {
            FileRef::Plain(req.fd)
        };
        if let Op::Splice(s) = &mut req.op {
            s.input_file = if s.input_fixed {
                FileRef::Fixed(st.files.get(s.input as u32).ok_or(Errno::BADF)?)
            } else if s.input < 0 {
                return Err(Errno::BADF);
            } else {
                FileRef::Plain(s.input)
            };
        }
        Ok(())
    }

    /// Makes the request independent of the program's descriptor number.
    pub fn keep_file(&self, req: &mut Req) -> Result<(), Errno> {
        if let FileRef::Plain(number) = req.file {
            req.file = match self.duplicate(number) {
                Ok(fd) => FileRef::Owned(fd),
                // An absolute path needs no directory: the call itself will tell.
                Err(_) if req.def.file != FileUse::Needed => FileRef::None,
                Err(e) => return Err(e),
            };
        }
        match &mut req.op {
            Op::Splice(s) => {
                if let FileRef::Plain(number) = s.input_file {
                    s.input_file = FileRef::Owned(self.duplicate(number)?);
                }
            }
            Op::Path(p) => {
                if let (Some(number), FileRef::None) = (p.second_dir(), &p.second_file) {
                    p.second_file = self.duplicate(number).map_or(FileRef::None, FileRef::Owned);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Hands a request to its task's io-wq.
    pub fn send_to_worker(self: &Arc<Ring>, st: &mut State, task: &Arc<Task>, mut req: Box<Req>) {
        if let Err(e) = self.keep_file(&mut req) {
            return self.complete(st, req, e.res(), 0);
        }
        let key = st.pending.reserve();
        self.arm_link_timeout(st, &mut req, key);
        req.via = Via::Worker;
        let item = st.spare.wrap(self, key, req, task);
        st.pending.fill(key, Pending::Work(item.clone()));
        if st.hand.as_mut().is_some_and(|hand| hand.offer(&item)) {
            return;
        }
        let quiet = st.quiet.covers(task, item.bound, st.sq_head);
        let queued = if quiet { task.pool.insert(&item) } else { task.pool.enqueue(&item) };
        if let Err(e) = queued {
            st.pending.take(key);
            if let Some(req) = item.take_request() {
                self.complete(st, req, e.res(), 0);
            }
        }
    }

    /// Arms the LINK_TIMEOUT that follows a request which now waits at `key`.
    pub fn arm_link_timeout(self: &Arc<Ring>, st: &mut State, req: &mut Req, key: Key) {
        if let Some(timer) = req.link_timeout {
            // Armed before; the request has only moved.
            self.retarget_link_timeout(st, timer, key);
            return;
        }
        if req.next.as_ref().is_none_or(|n| n.def.code != op::LINK_TIMEOUT) {
            return;
        }
        let Some(mut timeout) = req.next.take() else { return };
        req.next = timeout.next.take();
        req.link_timeout = self.add_timer(st, timeout, TimerKind::Link(key));
    }

    /// Issues a request again after its file became ready for the `tries`th time.
    pub fn retry(
        self: &Arc<Ring>,
        st: &mut State,
        task: &Arc<Task>,
        req: &mut Req,
        tries: u32,
    ) -> Issue {
        req.via = Via::Polled;
        if tries > SPURIOUS_MAX && !req.multishot {
            req.stubborn = true;
            return Issue::Worker;
        }
        if self.is_for_worker(req) {
            req.tried = false;
            return Issue::Worker;
        }
        self.attempt(st, task, req)
    }
}
