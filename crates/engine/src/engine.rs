//! The process-wide part: rings by descriptor, tasks by thread, threads, counters.

use crate::aio::model::Model;
use crate::aio::pool::Contexts;
use crate::aio::queue::Queue;
use crate::fds::Fds;
use crate::futex::Futexes;
use crate::host::guard::Guards;
use crate::host::{barrier, fd, thread};
use crate::inline::Inline;
use crate::reactor::Reactor;
use crate::ring::enter::Enter;
use crate::ring::state::OpCount;
use crate::ring::Ring;
use crate::sync::Lock;
use crate::task::Task;
use crate::wq::{Counts, Pool, Watch};
use crate::{Caller, Config, Errno, OpStats, Stats};
use anyring_uapi::op;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module's description.
pub struct Inner {
    /// The front door's decisions.
    pub config: Config,
    /// Descriptors.
    pub fds: Fds,
    /// Background thread.
    pub reactor: Reactor,
    /// Bounds for calls that must not wait.
    pub guards: Guards,
    /// What may run in the submitting call although it could wait.
    pub inline: Arc<Inline>,
    /// Futex waits.
    pub futexes: Futexes,
    /// Looks after workers.
    pub watch: Watch,
    rings: Lock<BTreeMap<i32, Arc<Ring>>>,
    tasks: Lock<BTreeMap<i32, Arc<Task>>>,
    /// Rings to look after when the program waits elsewhere: watched ones, and those with TASKRUN_FLAG.
    pub watched: AtomicU32,
    /// Kernel AIO contexts of closed rings.
    pub aio_contexts: Contexts,
    /// Direct transfers that kernel AIO did not take.
    pub aio_refused: AtomicU64,
    /// Stands in for kernel AIO.
    pub model: Option<Arc<Model>>,
    next_id: AtomicU64,
    workers: AtomicU32,
    workers_max: AtomicU32,
    retired: Lock<Retired>,
}

/// Counters of rings and tasks that are gone, and the number of all rings.
struct Retired {
    rings: u64,
    overflow: u64,
    wakeups: u64,
    /// Of ring states and CQs.
    locks: u64,
    wq: Counts,
    ops: Box<[OpCount; op::COUNT]>,
}

impl Inner {
    /// Nothing is opened or started yet.
    pub fn new(config: Config) -> Inner {
        Inner {
            fds: Fds::new(config.fds),
            inline: Arc::new(Inline::new(config.policy.inline)),
            config,
            reactor: Reactor::idle(),
            guards: Guards::new(),
            futexes: Futexes::default(),
            watch: Watch::default(),
            rings: Lock::new(BTreeMap::new()),
            tasks: Lock::new(BTreeMap::new()),
            watched: AtomicU32::new(0),
            aio_contexts: Contexts::default(),
            aio_refused: AtomicU64::new(0),
            model: None,
            next_id: AtomicU64::new(1),
            workers: AtomicU32::new(0),
            workers_max: AtomicU32::new(0),
            retired: Lock::new(Retired {
                rings: 0,
                overflow: 0,
                wakeups: 0,
                locks: 0,
                wq: Counts::default(),
                ops: Box::new([OpCount::default(); op::COUNT]),
            }),
        }
    }

    /// With a model in the place of kernel AIO.
    pub fn with_model(self, model: Arc<Model>) -> Inner {
        Inner { model: Some(model), ..self }
    }

    /// Where a ring's direct transfers go.
    pub fn aio_queue(&self, slots: u32) -> Result<Arc<Queue>, Errno> {
        match &self.model {
            Some(model) if model.refuses() => Err(Errno::NOSYS),
            Some(model) => Ok(Arc::new(Queue::Model(model.clone()))),
            None => self.aio_contexts.get(&self.fds, slots),
        }
    }

    /// Whether locks may favour a thread: worth it where a call costs little, see [`crate::bias`].
    pub fn favours(&self) -> bool {
        !self.config.raw_threads && self.config.policy.bias && barrier::is_available()
    }

    /// A number no other ring has.
    pub fn new_id(&self) -> u64 {
        self.retired.lock().rings += 1;
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts one of the engine's threads.
    pub fn spawn(&self, entry: Box<dyn FnOnce() + Send>) -> Result<(), Errno> {
        thread::spawn(self.config.raw_threads, self.config.interrupt_signal, entry)
    }

    /// Workers come and go.
    pub fn count_worker(&self, by: i32) {
        let now = self.workers.fetch_add(by as u32, Ordering::Relaxed).wrapping_add(by as u32);
        if by > 0 {
            self.workers_max.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// The ring behind a descriptor.
    #[inline]
    pub fn ring(&self, fd: i32) -> Option<Arc<Ring>> {
        self.rings.lock().get(&fd).cloned()
    }
    /// EBADF for a number that is not open, EOPNOTSUPP for another kind of file.
    pub fn ring_or_error(&self, fd: i32) -> Result<Arc<Ring>, Errno> {
        match self.ring(fd) {
            Some(ring) => Ok(ring),
            None if fd::is_open(fd) => Err(self.foreign(fd)),
            None => Err(Errno::BADF),
        }
    }
    /// A descriptor of the ring range that is open but not ours was inherited over fork: the ring belongs to the parent.
    fn foreign(&self, fd: i32) -> Errno {
        let l = self.config.fds;
        if (l.ring_base..l.ring_end).contains(&fd) && fd::is_eventfd(fd) == Ok(true) {
            Errno::EXIST
        } else {
            Errno::OPNOTSUPP
        }
    }
    /// A ring by its id.
    pub fn ring_by_id(&self, id: u64) -> Option<Arc<Ring>> {
        self.rings.lock().values().find(|r| r.id == id).cloned()
    }
    /// All open rings, each once per descriptor.
    pub fn all_rings(&self) -> Vec<Arc<Ring>> {
        self.rings.lock().values().cloned().collect()
    }
    /// Adds a descriptor of a ring.
    pub fn insert_ring(&self, fd: i32, ring: Arc<Ring>) {
        let old = self.rings.lock().insert(fd, ring);
        // The number was free, so the ring that had it was closed without our being told.
        old.into_iter().for_each(abandon);
    }
    /// A call on a ring found a descriptor gone: if the ring's own is closed, the program closed it behind our back
    /// (with all others, as daemons do), and the ring is no more.
    pub fn notice_closed(&self, fd: i32) {
        if !fd::is_open(fd) {
            let gone = self.rings.lock().remove(&fd);
            gone.into_iter().for_each(abandon);
        }
    }
    /// Removes a descriptor; the ring ends with its last reference.
    pub fn remove_ring(&self, fd: i32) -> Option<Arc<Ring>> {
        let ring = self.rings.lock().remove(&fd)?;
        self.release(&ring);
        Some(ring)
    }

    /// `io_uring_enter(2)` on a ring that was named by `fd`.
    pub fn enter(
        self: &Arc<Inner>,
        caller: &Caller,
        ring: &Arc<Ring>,
        fd: i32,
        call: &Enter,
    ) -> Result<u32, Errno> {
        let result = ring.enter(self, caller, call);
        if result == Err(Errno::BADF) {
            self.notice_closed(fd);
        }
        if ring.watched.load(Ordering::Relaxed) {
            self.serve_watchers(ring);
        }
        result
    }

    /// One reference (descriptor or registered index) fewer.
    pub fn release(&self, ring: &Arc<Ring>) {
        if ring.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut visitors = ring.visitors.lock();
            visitors.forget_own_gone();
            let empty = visitors.is_empty();
            drop(visitors);
            if empty {
                self.tear_down(ring);
            }
        }
    }

    /// A thread leaves enter; the last one closes a ring that lost its descriptors meanwhile.
    pub fn leave(&self, ring: &Arc<Ring>, tid: i32, stack: usize) {
        let mut visitors = ring.visitors.lock();
        visitors.leave(tid, stack);
        let last = visitors.is_empty() && ring.refs.load(Ordering::Acquire) == 0;
        drop(visitors);
        if last {
            self.tear_down(ring);
        }
    }

    /// Cancels what is in flight and drops what the ring holds.
    fn tear_down(&self, ring: &Arc<Ring>) {
        {
            let mut st = ring.state.lock();
            // Who came in since closes it when he leaves.
            if st.closed || !ring.visitors.lock().is_empty() {
                return;
            }
            st.closed = true;
            ring.gone.store(true, Ordering::SeqCst);
            ring.drop_deferred();
        }
        let sqpoll = ring.sqpoll.lock().take();
        if let Some(sqpoll) = sqpoll {
            sqpoll.detach(ring);
        }
        if ring.is_looked_after() {
            self.watched.fetch_sub(1, Ordering::Relaxed);
        }
        let mut st = ring.state.lock();
        ring.cancel_everything(&mut st);
        let flying = ring.abandon_aio(&mut st);
        let held = (flying, core::mem::take(&mut st.files), core::mem::take(&mut st.buffers));
        let mut retired = self.retired.lock();
        for (sum, one) in retired.ops.iter_mut().zip(st.counts.iter()) {
            add(sum, one);
        }
        let mut cq = ring.cq.lock();
        add_early(&mut retired.ops, &cq.early);
        retired.overflow += cq.overflowed;
        retired.wakeups += ring.wakeups.load(Ordering::Relaxed);
        retired.locks += ring.state.acquisitions() + ring.cq.acquisitions();
        let eventfd = cq.eventfd.take();
        drop((cq, retired, st));
        drop((held, eventfd));
        ring.close_descriptors();
    }

    /// The task of a thread, made at first need; `sq_entries` bounds its workers.
    pub fn task(self: &Arc<Inner>, tid: i32, sq_entries: u32) -> Arc<Task> {
        let mut tasks = self.tasks.lock();
        if let Some(task) = tasks.get(&tid) {
            return task.clone();
        }
        let pool = Arc::new(Pool::new(tid, sq_entries, Arc::downgrade(self)));
        let task = Arc::new(Task::new(tid, pool));
        tasks.insert(tid, task.clone());
        task
    }
    /// The task of a thread that has used a ring before.
    #[inline]
    pub fn existing_task(&self, tid: i32) -> Option<Arc<Task>> {
        self.tasks.lock().get(&tid).cloned()
    }
    /// The thread ends.
    pub fn end_task(&self, tid: i32) {
        let task = self.tasks.lock().remove(&tid);
        if let Some(task) = task {
            let held = core::mem::take(&mut *task.ring_fds.lock());
            for ring in held.into_iter().flatten() {
                self.release(&ring);
            }
            task.exit();
            self.retired.lock().wq += task.pool.counts();
            self.guards.forget(tid);
        }
    }
    /// New credentials: workers with the old ones leave.
    pub fn replace_workers(self: &Arc<Inner>) {
        self.watch.replace(self);
        for task in self.tasks.lock().values() {
            task.pool.replace_workers();
        }
    }

    /// Rings whose completions have all been taken are not ready any more. Takes no ring's state lock.
    pub fn drop_stale_readiness(&self) {
        if self.watched.load(Ordering::Relaxed) == 0 {
            return;
        }
        let watched = |ring: &Arc<Ring>| ring.watched.load(Ordering::Relaxed);
        self.all_rings().into_iter().filter(watched).for_each(|ring| ring.refresh_readiness());
    }

    /// Marks a ring as part of a poll set; takes no ring's state lock.
    pub fn watch(&self, fd: i32) -> Option<Arc<Ring>> {
        let ring = self.ring(fd)?;
        let before = ring.is_looked_after();
        ring.watched.store(true, Ordering::Release);
        if !before {
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        ring.refresh_readiness();
        ring.show_ready();
        ring.attend();
        Some(ring)
    }

    /// Rings that poll a ring's descriptor learn of its CQEs before the call returns, as they do from the kernel.
    pub fn serve_watchers(&self, watched: &Arc<Ring>) {
        for ring in self.all_rings() {
            if !Arc::ptr_eq(&ring, watched) && !ring.defers() && ring.has_armed() {
                ring.look_for_work();
            }
        }
    }

    /// See [`crate::Engine::stats`].
    pub fn stats(&self) -> Stats {
        let mut sums = [OpCount::default(); op::COUNT];
        let mut stats = Stats {
            workers_max: self.workers_max.load(Ordering::Relaxed) as u64,
            aio_refused: self.aio_refused.load(Ordering::Relaxed),
            ..Stats::default()
        };
        let mut seen = Vec::new();
        for ring in self.all_rings() {
            if seen.contains(&ring.id) {
                continue;
            }
            seen.push(ring.id);
            let st = ring.state.lock();
            sums.iter_mut().zip(st.counts.iter()).for_each(|(sum, one)| add(sum, one));
            let cq = ring.cq.lock();
            add_early(&mut sums, &cq.early);
            stats.overflow += cq.overflowed;
            drop(cq);
            stats.wakeups += ring.wakeups.load(Ordering::Relaxed);
            stats.lock_acquisitions += ring.state.acquisitions() + ring.cq.acquisitions();
        }
        let mut wq = Counts::default();
        self.tasks.lock().values().for_each(|task| wq += task.pool.counts());
        let retired = self.retired.lock();
        sums.iter_mut().zip(retired.ops.iter()).for_each(|(sum, one)| add(sum, one));
        stats.rings = retired.rings;
        stats.overflow += retired.overflow;
        stats.wakeups += retired.wakeups;
        wq += retired.wq;
        stats.lock_acquisitions += retired.locks + wq.locks;
        (stats.wq_lock_acquisitions, stats.wq_wakeups) = (wq.locks, wq.wakeups);
        stats.wq_lingers = [wq.linger_hits, wq.linger_misses];
        (stats.wq_returned, stats.wq_return_batches) = (wq.returned, wq.batches);
        stats.wq_held_max_ns = wq.held_max_ns;
        stats.ops = named(&sums);
        stats
    }
}

/// Never drops a ring whose descriptors may be closed already: their numbers may be somebody else's by now.
fn abandon(ring: Arc<Ring>) {
    core::mem::forget(ring);
}

fn add(sum: &mut OpCount, one: &OpCount) {
    sum.submitted += one.submitted;
    sum.posted += one.posted;
    sum.inline += one.inline;
    sum.polled += one.polled;
    sum.worker += one.worker;
    sum.aio += one.aio;
}

/// CQEs of workers that were posted without the ring's state.
fn add_early(sums: &mut [OpCount; op::COUNT], early: &[u64; op::COUNT]) {
    for (sum, n) in sums.iter_mut().zip(early) {
        sum.posted += n;
        sum.worker += n;
    }
}

fn named(sums: &[OpCount; op::COUNT]) -> Vec<OpStats> {
    let rows = crate::ops::table::OPS.iter().zip(sums);
    rows.filter(|(_, c)| c.submitted + c.posted > 0)
        .map(|(def, c)| OpStats {
            name: def.name,
            submitted: c.submitted,
            posted: c.posted,
            inline: c.inline,
            polled: c.polled,
            worker: c.worker,
            aio: c.aio,
        })
        .collect()
}
