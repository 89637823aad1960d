//! Plays one sequence on a ring and tells what came, normalised.

use std::collections::{HashMap, HashSet};

use anyring_uapi::cqe::F_SOCK_NONEMPTY;
use anyring_uapi::sqe::{CQE_SKIP_SUCCESS, IO_DRAIN, IO_HARDLINK, IO_LINK};
use anyring_uapi::{op, setup, Cqe};

use super::generate::{item, Item};
use super::rng::Rng;
use super::world::{Thing, World};
use crate::errno_name::res;
use crate::mem;
use crate::ring::Ring;
use crate::scenarios::op_name;
use crate::sqe::{link_timeout, q};
use crate::sys;

/// Steps of one sequence.
const STEPS: usize = 6;
/// Milliseconds to wait for requests that may rightly wait for ever.
const PATIENCE_MS: i64 = 60;
/// Milliseconds to wait for requests that must answer.
const MUST_MS: i64 = 2000;

/// user_data of the cancel that ends a sequence.
const LAST: u64 = 9999;

struct Player {
    rng: Rng,
    world: World,
    ring: Ring,
    next: u64,
    outstanding: HashMap<u64, Item>,
    makes_fd: HashSet<u64>,
    cancels: HashSet<u64>,
    /// A drain may be waiting for something that never ends: then nothing must answer.
    drained: bool,
    /// After a drain the kernel runs what follows on workers, where a cancel by descriptor
    /// finds itself: no more cancels then.
    had_drain: bool,
}

/// Plays the sequence of `seed`; its answers as lines.
pub fn play(seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let extra = rng.pick(&[0, 0, setup::SUBMIT_ALL, setup::COOP_TASKRUN, setup::NO_SQARRAY]);
    let kind = rng.pick(&[0, setup::DEFER_TASKRUN | setup::SINGLE_ISSUER]);
    let world = World::new();
    let ring = Ring::new(16, kind | extra);
    world.register(&ring);
    let mut p = Player {
        rng,
        world,
        ring,
        next: 1,
        outstanding: HashMap::new(),
        makes_fd: HashSet::new(),
        cancels: HashSet::from([LAST]),
        drained: false,
        had_drain: false,
    };
    let mut lines = vec![format!("setup flags {:#x}", kind | extra)];
    for step in 0..STEPS {
        p.step(step, &mut lines);
    }
    p.finish(&mut lines);
    lines
}

impl Player {
    fn step(&mut self, step: usize, lines: &mut Vec<String>) {
        let group = if self.rng.chance(50) { self.chain() } else { self.independent() };
        for i in &group {
            self.drained |= i.q.0.flags & IO_DRAIN != 0;
            self.had_drain |= self.drained;
            lines.push(format!("  step {step}: {}", describe(i)));
            self.ring.push(i.q);
            self.outstanding.insert(i.q.0.user_data, *i);
            if i.q.0.opcode == op::ASYNC_CANCEL {
                self.cancels.insert(i.q.0.user_data);
            }
            if makes_fd(i) {
                self.makes_fd.insert(i.q.0.user_data);
            }
        }
        let counts = self.submit_all();
        lines.push(format!("  step {step}: submitted {counts:?}"));
        self.settle(lines, step);
    }

    /// Without SUBMIT_ALL a bad SQE ends a submission: go on until the SQ is empty.
    fn submit_all(&self) -> Vec<i64> {
        let mut counts = Vec::new();
        while self.ring.sq_tail() != self.ring.sq_head() && counts.len() < 20 {
            counts.push(self.ring.submit());
        }
        counts
    }

    /// One to four linked requests, perhaps with a timeout behind the first.
    fn chain(&mut self) -> Vec<Item> {
        let (n, hard) = (1 + self.rng.below(4), self.rng.chance(30));
        let link = if hard { IO_HARDLINK } else { IO_LINK };
        let mut chain: Vec<Item> = (0..n).filter_map(|_| self.free_item(&[])).collect();
        if chain.len() > 1 && self.rng.chance(15) {
            let lt =
                Item { q: link_timeout(mem::ms(60_000), 0), thing: Thing::Nothing, may_wait: true };
            chain.insert(1, lt);
        }
        let last = chain.len().saturating_sub(1);
        // What one member waits for holds up all, and one that posts nothing may keep all
        // from posting.
        let waits = chain.iter().any(|i| i.may_wait || i.q.0.flags & CQE_SKIP_SUCCESS != 0);
        for (i, member) in chain.iter_mut().enumerate() {
            // A drain whose chain fails at prep holds up what follows in the kernel: the
            // scenarios ask about drains in chains one by one.
            member.q.0.flags &= !IO_DRAIN;
            member.q.0.flags |= if i < last { link } else { 0 };
            member.may_wait = waits;
            self.name(member);
        }
        chain
    }

    /// One to four requests that share nothing.
    fn independent(&mut self) -> Vec<Item> {
        let mut group: Vec<Item> = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            let used: Vec<Thing> = group.iter().map(|i| i.thing).collect();
            if let Some(mut i) = self.free_item(&used) {
                self.name(&mut i);
                group.push(i);
            }
        }
        // A cancel beside its target is a race, and so is a drained request.
        let races = |i: &Item| {
            matches!(i.q.0.opcode, op::ASYNC_CANCEL | op::POLL_REMOVE | op::TIMEOUT_REMOVE)
        };
        if group.iter().any(races) {
            group.truncate(1);
        }
        group
    }

    fn name(&mut self, i: &mut Item) {
        i.q.0.user_data = self.next;
        self.next += 1;
    }

    /// A request on something that no outstanding request and none of `used` has.
    fn free_item(&mut self, used: &[Thing]) -> Option<Item> {
        let mut pending: Vec<u64> = self.outstanding.keys().copied().collect();
        pending.sort_unstable();
        for _ in 0..20 {
            let i = item(&mut self.rng, &self.world, &pending);
            if self.had_drain && i.q.0.opcode == op::ASYNC_CANCEL {
                continue;
            }
            let taken = |t: Thing| t != Thing::Nothing && t != Thing::Closed && t == i.thing;
            let busy = self.outstanding.values().any(|o| conflict(o.thing, i.thing));
            if !busy && !used.iter().any(|t| taken(*t) || conflict(*t, i.thing)) {
                return Some(i);
            }
        }
        None
    }

    /// Waits until what must answer has answered, then tells the step's CQEs in the
    /// order of their user_data.
    fn settle(&mut self, lines: &mut Vec<String>, step: usize) {
        let mut got: Vec<Cqe> = Vec::new();
        loop {
            let answers = |i: &Item| !i.may_wait && i.q.0.flags & CQE_SKIP_SUCCESS == 0;
            let must = !self.drained && self.outstanding.values().any(answers);
            if self.outstanding.is_empty() {
                self.drained = false;
                break;
            }
            let w = self.ring.wait(1, if must { MUST_MS } else { PATIENCE_MS });
            let new = self.ring.take();
            if new.is_empty() && w != 0 {
                if must {
                    lines.push(format!("  step {step}: some that must answer did not"));
                    self.outstanding.retain(|_, i| i.may_wait);
                }
                break;
            }
            for c in new {
                got.push(c);
                self.done(c.user_data);
            }
        }
        // Successful requests that post nothing are over too; failed ones have told.
        let drained = self.drained;
        self.outstanding
            .retain(|_, i| drained || i.q.0.flags & CQE_SKIP_SUCCESS == 0 || i.may_wait);
        got.sort_by_key(|c| (c.user_data, c.res));
        lines.extend(got.iter().map(|c| format!("  step {step}: -> {}", self.normal(c))));
    }

    fn done(&mut self, ud: u64) {
        self.outstanding.remove(&ud);
    }

    /// A CQE as text, without what may legally differ: descriptors, the hint that a
    /// socket has more, and the several ways of having been interrupted on a worker.
    fn normal(&self, c: &Cqe) -> String {
        let result = match c.res {
            n if [-libc::EINTR, -libc::ECANCELED, -512].contains(&n) => "canceled".into(),
            // A target that runs on a worker is signalled, and not counted.
            n if self.cancels.contains(&c.user_data) && (n >= 0 || n == -libc::EALREADY) => {
                "done".into()
            }
            n if n >= 0 && self.makes_fd.contains(&c.user_data) => {
                sys::close(n);
                "fd".into()
            }
            n => res(n),
        };
        format!("{} {result} {:#x}", c.user_data, c.flags & !F_SOCK_NONEMPTY)
    }

    /// Cancels what is left.
    fn finish(&mut self, lines: &mut Vec<String>) {
        self.ring.push(q(op::ASYNC_CANCEL).opf(4).ud(LAST));
        self.ring.submit();
        let mut got = Vec::new();
        while self.ring.wait(1, if got.is_empty() { MUST_MS } else { PATIENCE_MS }) == 0 {
            got.extend(self.ring.take());
        }
        got.sort_by_key(|c: &Cqe| (c.user_data, c.res));
        lines.extend(got.iter().map(|c| format!("  end: -> {}", self.normal(c))));
    }
}

/// Whether success is a descriptor's number.
fn makes_fd(i: &Item) -> bool {
    i.q.0.file_index == 0
        && matches!(i.q.0.opcode, op::OPENAT | op::OPENAT2 | op::ACCEPT | op::SOCKET)
}

/// Whether requests on both could take each other's data.
fn conflict(a: Thing, b: Thing) -> bool {
    let shared =
        |t: Thing| matches!(t, Thing::File | Thing::ReadOnly | Thing::Paths | Thing::Tables);
    let alone = |t: Thing| t == Thing::Nothing || t == Thing::Closed;
    !alone(a)
        && !alone(b)
        && (a == b || (shared(a) && shared(b)) || a == Thing::Tables || b == Thing::Tables)
}

fn describe(i: &Item) -> String {
    let s = &i.q.0;
    // Addresses and descriptors differ from run to run: only whether they are set.
    format!(
        "ud {} {} flags {:#x} ioprio {} off {} len {} opf {:#x} buf {} pers {} on {:?}",
        s.user_data,
        op_name(s.opcode),
        s.flags,
        s.ioprio,
        if s.off < 1 << 20 || s.off > 1 << 60 { s.off as i64 } else { -7 },
        s.len as i32,
        s.op_flags,
        s.buf_index,
        s.personality,
        i.thing
    )
}
