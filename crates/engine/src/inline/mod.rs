//! Running in the submitting call what has no non-blocking form but in practice does not wait: statx of an open local
//! file, close, fsync of a clean file, unlink.
//!
//! Two questions are asked, in this order.
//! - *May it?* ([`mounts`]) Only on filesystems that are known to be local, and only by paths from a place where no
//!   other kind is mounted: a FUSE or network server may never answer, and may be the submitter itself.
//! - *Does it pay?* ([`history`]) Yes until a call took longer than a worker would have cost; then workers do it, and
//!   when several of their calls in a row were quick, the next is inline again. So a slow filesystem holds the
//!   submitter once, and is never probed at the submitter's cost.
//!
//! `inline=never` asks nothing, and sends these to workers; `inline=always` does not ask the second question.
//!
//! Mounts are remembered of one namespace at a time. Where threads of different ones submit in turns, what was learned is
//! lost at each turn, and a slow filesystem may hold its submitter again.
//!
//! What the first question cannot see: a symbolic link that leads through another process's /proc/PID/root, and a
//! descriptor that is closed while it stands for a file of a mount that this process has never seen.

pub mod buffered;
pub mod clock;
pub mod history;
pub mod mounts;

use crate::fds::Fds;
use crate::host::fd;
use crate::host::thread::{self, Switches};
use crate::ops::open::dirfd;
use crate::ops::Waits;
use crate::policy::Inline as Mode;
use crate::req::{FileRef, Req};
use crate::sync::Lock;
use clock::{Clock, Ticks};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use history::{Cell, History};
use mounts::Mounts;

/// What is known about a thread's surroundings, good for one submitting call: a program that mounts a filesystem, and
/// then submits, finds that we know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    fresh: bool,
    /// Paths meet no remote filesystem, but for the usual automount.
    paths: bool,
    /// Nor that.
    anywhere: bool,
    here: Option<bool>,
    switches: Switches,
    /// When the last measured call ended, if nothing but the engine's own work has been done since.
    last: Option<Ticks>,
}

impl Turn {
    /// Something is done that is not measured.
    #[inline]
    pub fn interrupt(&mut self) {
        self.last = None;
    }
    /// Whether a path that only the program has seen may be walked.
    pub fn any_path_is_local(&self) -> bool {
        self.anywhere
    }
    /// Whether it has been filled in.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// A measurement that is under way: when it began, and how often the thread had stopped running by then or earlier.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    began: Ticks,
    before: Switches,
}

/// The engine's state of the two questions. `mounts` is a leaf of the lock order.
pub struct Inline {
    /// The policy.
    pub mode: Mode,
    clock: Clock,
    history: History,
    mounts: Lock<Mounts>,
    /// A hint: remote filesystems were mounted when somebody looked.
    remote: AtomicBool,
}

impl Inline {
    /// Nothing is opened or read yet.
    pub fn new(mode: Mode) -> Inline {
        Inline {
            mode,
            clock: Clock::new(),
            history: History::new(),
            mounts: Lock::new(Mounts::default()),
            remote: AtomicBool::new(false),
        }
    }

    /// Whether a request may run inline, and where its history is kept. `turn` is fresh.
    pub fn admit(&self, turn: &mut Turn, req: &Req) -> Option<Cell> {
        const PATHS: u64 = 0;
        const DESCRIPTORS: u64 = 1;
        let place = match req.def.waits {
            Waits::Unknown => None,
            Waits::Memory => req.op.is_quick_advice().then_some(DESCRIPTORS),
            Waits::File => self.local_mount(req.file.raw()),
            // The operation looks by itself.
            Waits::Path if req.op.walks_nowhere() => Some(DESCRIPTORS),
            Waits::Path => self.paths_are_local(turn, req).then_some(PATHS),
            Waits::Close => (turn.paths || self.closes_quickly(req.fd)).then_some(DESCRIPTORS),
        }?;
        Some(self.history.cell(req.def.code, place, req.def.starts_slow))
    }

    /// Learns what has changed since the last turn.
    pub fn freshen(&self, fds: &Fds, turn: &mut Turn) {
        let mut mounts = self.mounts.lock();
        let known = mounts.refresh(fds);
        let (paths, anywhere) = (known && mounts.paths_are_local(), known && mounts.all_local());
        self.remote.store(known && !paths, Relaxed);
        *turn = Turn {
            fresh: true,
            paths,
            anywhere,
            here: None,
            switches: thread::switches(),
            last: None,
        };
    }

    /// Whether a cell's operation has been quick.
    pub fn pays(&self, cell: Cell) -> bool {
        self.mode == Mode::Always || self.history.is_quick(cell)
    }

    /// Starts to measure a call in a worker.
    pub fn watch(&self) -> Watch {
        Watch { before: thread::switches(), began: self.clock.now() }
    }

    /// Starts to measure a call in the submitter. `turn` is fresh.
    #[inline]
    pub fn watch_inline(&self, turn: &Turn) -> Watch {
        Watch { before: turn.switches, began: turn.last.unwrap_or_else(|| self.clock.now()) }
    }

    /// A call in the submitter has ended.
    #[inline]
    pub fn ended_inline(&self, turn: &mut Turn, cell: Cell, watch: Watch) {
        let now = self.clock.now();
        turn.last = Some(now);
        let slow = self.clock.is_slow(watch.began, now) && {
            turn.switches = thread::switches();
            was_slow(watch.before, turn.switches)
        };
        self.history.inline_call(cell, slow);
    }

    /// A call in a worker has ended.
    pub fn ended_in_worker(&self, cell: Cell, watch: Watch) {
        let slow = self.clock.is_slow(watch.began, self.clock.now())
            && was_slow(watch.before, thread::switches());
        self.history.worker_call(cell, slow);
    }

    /// Whether to close a request's own duplicate of its file may wait for a server.
    pub fn closing_waits(&self, file: &FileRef) -> bool {
        match file {
            FileRef::Owned(fd) => self.remote.load(Relaxed) && !self.closes_quickly(fd.raw()),
            _ => false,
        }
    }

    /// Whether a mount is one of a local filesystem.
    pub fn is_local(&self, mount: u64) -> bool {
        self.mounts.lock().class(mount) == Some(mounts::Class::Local)
    }

    /// The mount of a file, if it is a local one. The question itself never waits.
    fn local_mount(&self, file: i32) -> Option<u64> {
        let mount = fd::mount_of(file).ok()?.id?;
        self.is_local(mount).then_some(mount)
    }

    fn paths_are_local(&self, turn: &mut Turn, req: &Req) -> bool {
        turn.paths
            && req.op.walks().into_iter().flatten().all(|walk| match walk.path {
                Some(path) if !turn.anywhere && mounts::leads_to_automount(path) => false,
                Some([b'/', ..]) => true,
                _ => self.starts_local(turn, walk.dir.unwrap_or(dirfd(req))),
            })
    }

    fn starts_local(&self, turn: &mut Turn, dir: i32) -> bool {
        if dir >= 0 {
            return self.local_mount(dir).is_some();
        }
        *turn.here.get_or_insert_with(|| self.local_mount(dir).is_some())
    }

    /// Closing a file of a remote filesystem may write back and wait. What is on no mount that we know is a socket, a
    /// pipe or the like, or a file of which nothing is known.
    fn closes_quickly(&self, file: i32) -> bool {
        let Ok(at) = fd::mount_of(file) else { return true };
        match at.id.and_then(|id| self.mounts.lock().class(id)) {
            Some(class) => class != mounts::Class::Remote,
            None => !at.on_disk,
        }
    }
}

/// Whether a call that took long did so by itself: it waited, or it worked all the time. One that did not wait but was
/// interrupted by other threads says nothing.
fn was_slow(before: Switches, after: Switches) -> bool {
    after.voluntary != before.voluntary || after.involuntary == before.involuntary
}
