//! The watcher: one background thread that notices workers which wait in calls that usually do not, and for which there is no
//! form that does not wait: open, stat, rename and the like.
//!
//! While work waits behind such a call, or finished requests are held, it looks once a tick. A worker that it finds in the same call twice is not
//! counted as active any more, so that another takes over, and what it holds is returned. Where workers get on, but are
//! mostly off the CPU, one more is added a tick. It also starts the workers that an old one, whose credentials are out
//! of date, may not start. It is started when first needed, and sleeps when there is nothing to watch.
//!
//! No look is lost when the ticking stops: a worker shows its call before it asks whether the watcher ticks, and
//! the watcher looks once more after it said that it stops.

use super::account::Account;
use super::crew::Activated;
use super::Pool;
use crate::engine::Inner;
use crate::host::thread;
use crate::host::time::{self, now_ns, thread_cpu_ns, Clock};
use crate::sync::Lock;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Nanoseconds between two looks.
const TICK_NS: u64 = 500_000;
/// Looks after which a cold read that still waits gets help for those behind it.
const STUCK_LOOKS: u32 = 100;
/// Looks without anything to watch until there are no more.
const IDLE_TICKS: u32 = 8;

/// An engine's.
#[derive(Default)]
pub struct Watch {
    pools: Lock<Vec<Weak<Pool>>>,
    /// The thread of this number is the watcher; odd: it runs.
    thread: Lock<Thread>,
    ticking: AtomicBool,
    /// It sleeps on this.
    bell: AtomicU32,
}

#[derive(Default)]
struct Thread {
    generation: u32,
    runs: bool,
}

/// What was seen at the last look.
#[derive(Default)]
struct Seen {
    /// When.
    at: u64,
    /// Workers in calls.
    workers: BTreeMap<i32, Look>,
}

/// One worker: its turn, its CPU time, and how often it was seen in this turn before.
#[derive(Clone, Copy)]
struct Look {
    turn: u32,
    cpu: u64,
    looks: u32,
}

impl Seen {
    /// A look that starts now, after `before`.
    fn now() -> Seen {
        Seen { at: now_ns(Clock::Monotonic), workers: BTreeMap::new() }
    }
    /// Whether a worker was off the CPU for most of the time since. Not known if the watcher itself came late: then the
    /// CPUs are busy, and whoever is off them is not for that reason waiting.
    fn was_off_cpu(&self, now: &Seen, old_cpu: u64, cpu: u64) -> bool {
        let elapsed = now.at.saturating_sub(self.at);
        elapsed < 2 * TICK_NS && cpu.saturating_sub(old_cpu) < elapsed / 4
    }
}

impl Watch {
    /// A pool starts its first worker.
    pub fn add(&self, pool: &Arc<Pool>) {
        let mut pools = self.pools.lock();
        pools.retain(|p| p.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// There is something to watch.
    #[inline]
    pub fn tick(&self, engine: &Arc<Inner>) {
        if !self.ticking.load(SeqCst) {
            self.look_now(engine);
        }
    }

    /// There is something that is not to wait for the next tick.
    pub fn look_now(&self, engine: &Arc<Inner>) {
        self.ticking.store(true, SeqCst);
        self.ensure(engine);
        self.ring();
    }

    fn ring(&self) {
        self.bell.fetch_add(1, SeqCst);
        time::futex_wake(&self.bell, i32::MAX as u32);
    }

    /// The process changed its credentials: a watcher that starts threads must have the new ones.
    pub fn replace(&self, engine: &Arc<Inner>) {
        if self.pools.lock().is_empty() {
            return;
        }
        let mut thread = self.thread.lock();
        thread.generation += 1;
        thread.runs = false;
        drop(thread);
        self.look_now(engine);
    }

    fn ensure(&self, engine: &Arc<Inner>) {
        let mut thread = self.thread.lock();
        if thread.runs {
            return;
        }
        let (generation, weak) = (thread.generation, Arc::downgrade(engine));
        thread.runs = engine.spawn(Box::new(move || run(&weak, generation))).is_ok();
    }

    fn is_current(&self, generation: u32) -> bool {
        self.thread.lock().generation == generation
    }

    /// One look. Whether there was anything to watch.
    fn look(&self, seen: &mut Seen) -> bool {
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        let mut any = false;
        let mut now_seen = Seen::now();
        for pool in &pools {
            for bound in [true, false] {
                any |= look_at(pool, bound, seen, &mut now_seen);
            }
        }
        *seen = now_seen;
        any
    }
}

/// Looks at one account.
fn look_at(pool: &Arc<Pool>, bound: bool, before: &Seen, seen: &mut Seen) -> bool {
    let account = pool.account(bound);
    let owed = account.owed.swap(0, SeqCst);
    for _ in 0..owed {
        let _ = pool.start_worker(bound);
    }
    let reads_wait = account.has_readers() && account.reads_wait();
    if account.work_waits() && account.crew.counts().workers == 0 {
        // None could be started.
        add_worker(pool, account, bound, false);
        return true;
    }
    if !account.has_watched() && !reads_wait {
        return owed > 0;
    }
    let waits = account.work_waits();
    let (mut any, mut off_cpu, mut stuck) = (waits || reads_wait, 0, false);
    for slot in account.slots().iter().filter(|slot| slot.is_in_call()) {
        let held = {
            let mut batch = slot.batch.lock();
            any |= !batch.is_empty();
            batch.take_old(seen.at)
        };
        held.into_iter().for_each(|held| held.give_back());
        let (turn, cpu) = (slot.turn(), thread_cpu_ns(slot.tid));
        let last = before.workers.get(&slot.tid).filter(|last| last.turn == turn);
        let looks = last.map_or(0, |last| last.looks + 1);
        stuck |= looks > STUCK_LOOKS && looks % STUCK_LOOKS == 0;
        seen.workers.insert(slot.tid, Look { turn, cpu, looks });
        let Some(old_cpu) = before.workers.get(&slot.tid).map(|last| last.cpu) else { continue };
        if looks > 0 && slot.found_waiting() {
            account.crew.block();
        }
        if slot.is_watched() && before.was_off_cpu(seen, old_cpu, cpu) {
            off_cpu += 1;
        }
    }
    if waits || (reads_wait && stuck) {
        // One that is on its way counts as active, and is waited for.
        let another = stuck || (off_cpu > 0 && off_cpu >= account.crew.counts().active);
        add_worker(pool, account, bound, another);
    }
    any
}

/// Work waits: a worker if none is active, or another one.
fn add_worker(pool: &Arc<Pool>, account: &Account, bound: bool, another: bool) {
    let activated = if another { account.activate_another() } else { account.activate() };
    if activated == Activated::Start {
        let _ = pool.start_worker(bound);
    }
}

fn run(engine: &Weak<Inner>, generation: u32) {
    thread::set_name(&format!("iou-wch-{}", thread::getpid()));
    let mut seen = Seen::default();
    let mut idle = 0;
    while let Some(engine) = engine.upgrade() {
        let watch = &engine.watch;
        let bell = watch.bell.load(SeqCst);
        let any = watch.look(&mut seen);
        if !watch.is_current(generation) {
            return;
        }
        idle = if any { 0 } else { idle + 1 };
        if idle < IDLE_TICKS {
            let _ = time::futex_wait(&watch.bell, bell, Some(TICK_NS));
            continue;
        }
        idle = 0;
        watch.ticking.store(false, SeqCst);
        if watch.look(&mut seen) {
            watch.ticking.store(true, SeqCst);
            continue;
        }
        sleep(engine, bell);
    }
}

/// Sleeps until the bell rings.
fn sleep(engine: Arc<Inner>, bell: u32) {
    let _ = time::futex_wait(&engine.watch.bell, bell, None);
}
