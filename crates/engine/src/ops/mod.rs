//! Operations. Each opcode is one row ([`OpDef`]) in the file of its family; [`table`] puts the rows
//! in the order of their numbers. Probe answers, counters' names and docs/COMPAT.md all come
//! from that table.
//!
//! `prep` reads each SQE field once from a private copy, refuses what the kernel refuses, captures what the
//! program may free after submit, and has no side effects. `issue` tries the operation and never panics on the
//! program's input. In the submitting call it must not wait; in a worker (`Ctx::blocking`) it may.

pub mod cancel;
pub mod epoll;
pub mod fd_install;
pub mod files_update;
pub mod futex;
pub mod kbuf;
pub mod msg_ring;
pub mod net;
pub mod nop;
pub mod open;
pub mod path;
pub mod pipe;
pub mod poll;
pub mod read_multishot;
pub mod rw;
pub mod splice;
pub mod sync;
pub mod table;
pub mod timeout;
pub mod waitid;
pub mod xattr;

use crate::host;
use crate::req::Req;
use crate::ring::state::State;
use crate::ring::Ring;
use crate::task::Task;
use crate::Errno;
use anyring_uapi::Sqe;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

/// What prep captured, by family.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Op {
    None,
    Nop(nop::Nop),
    Rw(rw::Rw),
    Sync(sync::Range),
    Advise(sync::Advise),
    Open(open::Open),
    Close(open::Close),
    Path(path::PathOp),
    Truncate(u64),
    Splice(splice::Splice),
    Accept(net::Accept),
    Connect(net::Connect),
    Transfer(net::Transfer),
    Msg(Box<net::Msg>),
    Shutdown(u32),
    Bind(net::Bind),
    Listen(u32),
    Socket(net::Socket),
    Epoll(epoll::Ctl),
    EpollWait(epoll::Wait),
    FdInstall { cloexec: bool },
    Pipe(pipe::Pipe),
    Xattr(xattr::Xattr),
    Waitid(waitid::Waitid),
    FutexWait(futex::Wait),
    FutexWake(futex::Wake),
    FilesUpdate(files_update::Update),
    Provide(kbuf::Provide),
    Remove(kbuf::Remove),
    MsgRing(msg_ring::Message),
    Command(net::command::Command),
    Poll(poll::Add),
    PollRemove(poll::Remove),
    Timeout(timeout::Timeout),
    TimeoutRemove(timeout::Remove),
    Cancel(cancel::Cancel),
}

impl Op {
    /// Posts CQEs until it ends. A multishot poll or timeout is its own affair and not meant.
    pub fn is_multishot(&self) -> bool {
        match self {
            Op::Accept(accept) => accept.multishot,
            Op::Transfer(transfer) => transfer.multishot(),
            Op::Msg(msg) => msg.multishot(),
            Op::Rw(rw) => rw.multishot(),
            _ => false,
        }
    }
    /// Where it walks.
    pub fn walks(&self) -> [Option<Walk<'_>>; 2] {
        match self {
            Op::Open(open) => [Some(Walk { dir: None, path: open.path().bytes() }), None],
            Op::Path(op) => op.walks(),
            Op::Xattr(x) => [x.path().map(|path| Walk { dir: None, path: Some(path) }), None],
            _ => [None, None],
        }
    }
    /// Copies what still is the program's memory: from here on the program may change it. The errors are prep's.
    pub fn capture(&mut self) -> Result<(), Errno> {
        match self {
            Op::Open(open) => open.capture(),
            Op::Path(op) => op.capture(),
            _ => Ok(()),
        }
    }
    /// The path that is not captured yet.
    pub fn borrowed(&self) -> Option<usize> {
        match self {
            Op::Open(open) => open.path().borrowed(),
            Op::Path(op) => op.borrowed(),
            _ => None,
        }
    }
    /// Looks at an open file in spite of being one of those with a path.
    pub fn walks_nowhere(&self) -> bool {
        matches!(self, Op::Path(op) if op.is_of_descriptor())
    }
    /// Advice about memory that takes no time.
    pub fn is_quick_advice(&self) -> bool {
        matches!(self, Op::Advise(advice) if advice.is_quick())
    }
    /// Makes a file.
    pub fn creates(&self) -> bool {
        matches!(self, Op::Open(open) if open.creates())
    }
    /// Closes a registered file, not a descriptor.
    pub fn closes_slot(&self) -> bool {
        matches!(self, Op::Close(close) if close.is_slot())
    }
    /// Bytes to transfer.
    pub fn bytes(&self) -> usize {
        match self {
            Op::Rw(rw) => rw.bytes(),
            _ => 0,
        }
    }
    /// Waits for room rather than for data.
    pub fn sends(&self) -> bool {
        match self {
            Op::Transfer(transfer) => transfer.sends(),
            Op::Msg(msg) => msg.sends(),
            _ => false,
        }
    }
}

/// A path of a request: the directory if it is not the request's own, and the path unless only the program has it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Walk<'a> {
    pub dir: Option<i32>,
    pub path: Option<&'a [u8]>,
}

/// What an attempt came to.
#[derive(Debug)]
pub enum Issue {
    /// Finished: result and CQE flags.
    Done(i32, u32),
    /// Wait until the file reports one of these poll events, then issue again.
    Poll(u32),
    /// A multishot request has a result that is not its last: to be posted, then issue again.
    More(i32, u32),
    /// As `More`, but the file is known to be empty: wait for these events then.
    MoreThenPoll(i32, u32, u32),
    /// Others get a turn; then, at once if the file is still ready for these events, issue again.
    Yield(u32),
    /// Issue again in a worker.
    Worker,
    /// A transfer for kernel AIO.
    Aio,
    /// A poll request: wait for its events.
    ArmPoll,
    /// A timer: wait.
    ArmTimer,
    /// A futex wait: wait for its words.
    ArmFutex,
}

impl Issue {
    /// Finished with a syscall's outcome.
    pub fn from_result(r: Result<usize, Errno>) -> Issue {
        match r {
            Ok(n) => Issue::Done(n as i32, 0),
            Err(e) => Issue::Done(e.res(), 0),
        }
    }
    /// Finished with an error.
    pub fn err(e: Errno) -> Issue {
        Issue::Done(e.res(), 0)
    }
}

/// Whether and how well an opcode works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// As in Linux 6.18.
    Full,
    /// Works, with a difference that the note names.
    Partial(&'static str),
    /// Answers EINVAL, as an older kernel would; not in the probe.
    None,
}

/// Which file an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// `fd` is no file, or a directory the operation looks up itself; FIXED_FILE is ignored.
    Ignored,
    /// `fd` is no file of the table: FIXED_FILE is refused with this error.
    Refused(Errno),
    /// `fd` is a directory to start from, or AT_FDCWD; FIXED_FILE is refused with this error.
    Directory(Errno),
    /// `fd` is the file.
    Needed,
}

/// What the blocking form of an operation may wait for, see [`crate::inline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Anything.
    Unknown,
    /// The filesystem of its file.
    File,
    /// The filesystems that its paths lead through.
    Path,
    /// The filesystem of the file that it closes.
    Close,
    /// The process's own memory.
    Memory,
}

/// One row of the table.
pub struct OpDef {
    /// Name without prefix.
    pub name: &'static str,
    /// Number.
    pub code: u8,
    /// How well it works.
    pub support: Support,
    /// Its file.
    pub file: FileUse,
    /// `ioprio` may be non-zero (else EINVAL).
    pub ioprio: bool,
    /// IOSQE_BUFFER_SELECT is possible (else EOPNOTSUPP).
    pub buffer_select: bool,
    /// Possible on a ring with IOPOLL.
    pub iopoll: bool,
    /// Has no form that does not wait: goes to a worker.
    pub always_async: bool,
    /// What its blocking form may wait for: whether it can run in the submitting call all the same.
    pub waits: Waits,
    /// It often waits: workers show first that it does not.
    pub starts_slow: bool,
    /// Works on the ring's own state: never offloaded.
    pub on_ring: bool,
    /// Its worker account is the unbounded one unless the file is regular or a block device.
    pub unbound: bool,
    /// Serialised by inode when the file is regular.
    pub hashed: bool,
    /// An error of the operation itself breaks no chain, and with CQE_SKIP_SUCCESS posts no CQE: so
    /// Linux 6.18 treats what it always runs in a worker.
    pub lenient: bool,
    /// Captures the SQE.
    pub prep: fn(&Sqe) -> Result<Op, Errno>,
    /// Tries the operation.
    pub issue: fn(&mut Req, &mut Ctx<'_>) -> Issue,
}

impl OpDef {
    /// A row with the usual properties; rows change what differs.
    pub const fn new(
        name: &'static str,
        code: u8,
        prep: fn(&Sqe) -> Result<Op, Errno>,
        issue: fn(&mut Req, &mut Ctx<'_>) -> Issue,
    ) -> OpDef {
        OpDef {
            name,
            code,
            support: Support::Full,
            file: FileUse::Needed,
            ioprio: false,
            buffer_select: false,
            iopoll: false,
            always_async: false,
            waits: Waits::Unknown,
            starts_slow: false,
            on_ring: false,
            unbound: false,
            hashed: false,
            lenient: false,
            prep,
            issue,
        }
    }
    /// A row for an opcode that does not work here.
    pub const fn unsupported(name: &'static str, code: u8) -> OpDef {
        OpDef {
            support: Support::None,
            ..OpDef::new(name, code, |_| Err(Errno::INVAL), |_, _| Issue::err(Errno::INVAL))
        }
    }
}

impl OpDef {
    /// Whether a result is a failure, for the chain and for CQE_SKIP_SUCCESS. A file that was not
    /// there, or of the wrong kind, is one even for a lenient operation.
    pub fn is_failure(&self, res: i32) -> bool {
        let file_error = self.file == FileUse::Needed && res == Errno::BADF.res();
        let always = [Errno::CANCELED.res(), Errno::NOTSOCK.res()].contains(&res) || file_error;
        res < 0 && (!self.lenient || always)
    }
}

/// The surroundings of an attempt.
pub struct Ctx<'a> {
    /// The ring.
    pub ring: &'a Arc<Ring>,
    /// The ring's state; `None` in a worker.
    pub st: Option<&'a mut State>,
    /// In a worker: its cancel flag. Calls may wait and are interrupted through it.
    pub blocking: Option<&'a AtomicU32>,
    /// In the submitting call, for a row with [`OpDef::waits`]: calls may use their blocking form.
    pub bold: bool,
    /// Whose request it is.
    pub task: &'a Arc<Task>,
}

impl Ctx<'_> {
    /// Whether calls may wait.
    pub fn may_block(&self) -> bool {
        self.blocking.is_some() || self.bold
    }

    /// Whether a worker asks.
    pub fn is_worker(&self) -> bool {
        self.blocking.is_some()
    }

    /// A system call on behalf of a request; interruptible where it may wait.
    ///
    /// # Safety
    /// As for [`host::syscall`]: program pointers may be bad, the engine's must be good.
    pub unsafe fn call(&self, nr: host::Nr, args: [usize; 6]) -> Result<usize, Errno> {
        match self.blocking {
            // SAFETY: vouched for by the caller.
            Some(flag) => unsafe { host::interruptible(flag, nr, args) },
            // SAFETY: vouched for by the caller.
            None => unsafe { host::syscall(nr, args) },
        }
    }

    /// A system call that has no non-blocking form, where it must not wait: see [`host::guard`].
    ///
    /// # Safety
    /// As for [`host::syscall`].
    pub unsafe fn bounded_call(&self, nr: host::Nr, args: [usize; 6]) -> Result<usize, Errno> {
        let engine = self.ring.engine.upgrade().ok_or(Errno::BADFD)?;
        // SAFETY: vouched for by the caller.
        unsafe { engine.guards.call(engine.config.interrupt_signal, nr, args) }
    }

    /// Runs `f` on the ring's state, taking its lock in a worker.
    pub fn with_state<R>(&mut self, f: impl FnOnce(&mut State) -> R) -> R {
        match &mut self.st {
            Some(st) => f(st),
            None => f(&mut self.ring.state.lock()),
        }
    }
}

/// EINVAL unless all given fields are zero.
pub fn must_be_zero(fields: &[u64]) -> Result<(), Errno> {
    if fields.iter().any(|f| *f != 0) {
        Err(Errno::INVAL)
    } else {
        Ok(())
    }
}
