//! What a ring's lock guards: the submission side, the requests that wait, the registered resources.

use super::crowd::Crowds;
use super::pending::Table;
use super::staged::Staged;
use super::standing::Standing;
use super::timers::Timers;
use crate::aio::Aio;
use crate::inline::Turn;
use crate::ops::net::leftover::Leftover;
use crate::registered::buffers::Buffers;
use crate::registered::creds::Personalities;
use crate::registered::files::Files;
use crate::registered::groups::Groups;
use crate::registered::region::Region;
use crate::registered::restrictions::Restrictions;
use crate::req::Req;
use crate::wq::{Hand, Quiet, Spare};
use anyring_uapi::{op, Cqe};
use std::collections::VecDeque;
use std::sync::Arc;

/// Work that waits for a turn of the thread that may run it. On a DEFER_TASKRUN ring that is the
/// owner inside enter(GETEVENTS); on others whoever produced it, at the end of what it does.
pub enum TaskWork {
    /// Start the next request of a chain.
    Start(Box<Req>),
    /// Complete the rest of a chain as cancelled; `silent` if the failed member had CQE_SKIP_SUCCESS.
    FailChain(Box<Req>, bool),
    /// Post the CQE of a request that is over.
    Post(Cqe),
    /// Complete a request that finished elsewhere: result and CQE flags.
    Complete(Box<Req>, i32, u32),
}

/// Counters of one opcode on one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OpCount {
    pub submitted: u64,
    pub posted: u64,
    pub inline: u64,
    pub polled: u64,
    pub worker: u64,
    pub aio: u64,
}

impl OpCount {
    /// Requests that were over when their SQEs were taken.
    #[inline]
    pub fn over_at_once(&mut self, requests: u32) {
        self.submitted += u64::from(requests);
        self.inline += u64::from(requests);
        self.posted += u64::from(requests);
    }
}

/// See the module's description.
pub struct State {
    /// The thread that holds the lock, in a call that said so; 0 in all others. Never left behind.
    pub holder: i32,
    /// False until ENABLE_RINGS with R_DISABLED.
    pub enabled: bool,
    /// The one task that may submit, with SINGLE_ISSUER.
    pub owner: Option<i32>,
    /// The ring's last descriptor was closed.
    pub closed: bool,
    /// How far the SQ was consumed.
    pub sq_head: u32,
    /// The chain being collected.
    pub chain: Vec<Req>,
    /// Chain heads that wait for earlier requests.
    pub drain: VecDeque<Box<Req>>,
    /// The next request drains too: it follows a chain with a draining member.
    pub drain_next: bool,
    /// CQE_SKIP_SUCCESS was used: no more drain.
    pub drain_disabled: bool,
    /// Requests started and not completed.
    pub outstanding: usize,
    /// CQEs that counted when the current turn began: a counted timeout counts from there.
    pub count_base: u32,
    /// Requests that wait for a file, a timer or a worker.
    pub pending: Table,
    /// Files that stay registered.
    pub standing: Standing,
    /// Requests that wait for the same file.
    pub crowds: Crowds,
    /// Deadlines of the timers among them.
    pub timers: Timers,
    /// See [`TaskWork`].
    pub tw: VecDeque<TaskWork>,
    /// CQEs of this turn.
    pub staged: Staged,
    /// A multishot poll was armed in this call: look at its file before returning.
    pub fresh_multishot: bool,
    /// Direct transfers in kernel AIO.
    pub aio: Aio,
    /// Registered files.
    pub files: Files,
    /// Registered buffers.
    pub buffers: Buffers,
    /// Provided buffers.
    pub groups: Groups,
    /// Whether sockets are asked what is left in them.
    pub leftover: Leftover,
    /// Registered credentials.
    pub personalities: Personalities,
    /// Restrictions in force.
    pub restrictions: Restrictions,
    /// Registered memory region.
    pub region: Option<Arc<Region>>,
    /// Clock of ABS_TIMER waits is BOOTTIME.
    pub boottime: bool,
    /// What this turn has learnt of its thread's surroundings.
    pub turn: Turn,
    /// A worker completes a request now and would go on with what follows.
    pub hand: Option<Hand>,
    /// Work items to use again.
    pub spare: Spare,
    /// What a submission puts off to its end.
    pub quiet: Quiet,
    /// Counters.
    pub counts: Box<[OpCount; op::COUNT]>,
}

impl State {
    /// No SQE before the next one holds it back or takes it into its chain.
    #[inline]
    pub fn is_unattached(&self) -> bool {
        self.chain.is_empty() && self.drain.is_empty() && !self.drain_next
    }

    /// An SQE without flags is not affected by the ones before it, nor restricted.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_unattached() && !self.restrictions.is_active()
    }

    /// A fresh ring's.
    pub fn new(enabled: bool, owner: Option<i32>, leftover: Leftover) -> State {
        State {
            holder: 0,
            enabled,
            owner,
            closed: false,
            sq_head: 0,
            chain: Vec::new(),
            drain: VecDeque::new(),
            drain_next: false,
            drain_disabled: false,
            outstanding: 0,
            count_base: 0,
            pending: Table::default(),
            standing: Standing::default(),
            crowds: Crowds::default(),
            timers: Timers::default(),
            tw: VecDeque::new(),
            staged: Staged::default(),
            fresh_multishot: false,
            aio: Aio::new(false),
            files: Files::default(),
            buffers: Buffers::default(),
            groups: Groups::default(),
            leftover,
            personalities: Personalities::default(),
            restrictions: Restrictions::default(),
            region: None,
            boottime: false,
            turn: Turn::default(),
            hand: None,
            spare: Spare::default(),
            quiet: Quiet::default(),
            counts: Box::new([OpCount::default(); op::COUNT]),
        }
    }
}
