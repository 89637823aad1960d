//! SQPOLL: a thread that submits for the program.
//!
//! The thread spins over its rings until it found nothing for their idle time, then sets NEED_WAKEUP in each ring's SQ
//! flags, fences, looks at the tails once more, and sleeps on `bell`. The program stores its tail, fences, reads the
//! flags and enters with SQ_WAKEUP: one of the two sees the other.

use crate::engine::Inner;
use crate::host::{thread, time};
use crate::limits::{EVENTS_BATCH, SQPOLL_IDLE_MS};
use crate::park::Bell;
use crate::ring::Ring;
use crate::sync::Lock;
use crate::task::Task;
use crate::Errno;
use anyring_uapi::setup::{IOPOLL, SQ_NEED_WAKEUP};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// SQEs taken from one ring a turn when several share the thread.
const FAIR_SHARE: u32 = 8;
/// Turns without work before the thread gives its time slice away.
const SPINS_BEFORE_YIELD: u32 = 64;

/// A poll thread and the rings it serves.
pub struct SqPoll {
    rings: Lock<Vec<Arc<Ring>>>,
    bell: Bell,
    /// Programs wait here for room in an SQ.
    room: AtomicU32,
    idle_ns: AtomicU64,
    dead: AtomicBool,
    /// Thread id, 0 until it runs.
    pub tid: AtomicU32,
    /// The thread as a task of its own.
    pub task: Arc<Task>,
    affinity: Option<u32>,
}

impl SqPoll {
    /// Starts a thread, pinned to a CPU if given.
    pub fn start(
        engine: &Arc<Inner>,
        task: Arc<Task>,
        cpu: Option<u32>,
    ) -> Result<Arc<SqPoll>, Errno> {
        let sqpoll = Arc::new(SqPoll {
            rings: Lock::new(Vec::new()),
            bell: Bell::default(),
            room: AtomicU32::new(0),
            idle_ns: AtomicU64::new(0),
            dead: AtomicBool::new(false),
            tid: AtomicU32::new(0),
            task,
            affinity: cpu,
        });
        let (me, weak) = (sqpoll.clone(), Arc::downgrade(engine));
        engine.spawn(Box::new(move || me.run(&weak)))?;
        Ok(sqpoll)
    }

    /// Adds a ring with its idle time in milliseconds; the longest one holds for all.
    pub fn attach(&self, ring: Arc<Ring>, idle_ms: u32) {
        let ms = if idle_ms == 0 { SQPOLL_IDLE_MS } else { idle_ms };
        self.idle_ns.fetch_max(ms as u64 * 1_000_000, Ordering::Relaxed);
        self.rings.lock().push(ring);
        self.wake();
    }

    /// Removes a ring; the thread ends with the last.
    pub fn detach(&self, ring: &Arc<Ring>) {
        let mut rings = self.rings.lock();
        rings.retain(|r| !Arc::ptr_eq(r, ring));
        if rings.is_empty() {
            self.dead.store(true, Ordering::Release);
        }
        drop(rings);
        self.wake();
    }

    /// The thread has ended or is about to.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Wakes the thread if it sleeps.
    pub fn wake(&self) {
        self.bell.ring();
    }

    /// Blocks until a ring's SQ has room (SQ_WAIT). EINTR by a signal.
    pub fn wait_for_room(&self, ring: &Ring) -> Result<(), Errno> {
        loop {
            let seen = self.room.load(Ordering::SeqCst);
            let full = {
                let st = ring.state.lock();
                ring.mem.sq_tail().wrapping_sub(st.sq_head) >= ring.mem.geometry().sq_entries
            };
            if !full || self.is_dead() {
                return Ok(());
            }
            self.wake();
            if time::futex_wait(&self.room, seen, Some(10_000_000)) == Err(Errno::INTR) {
                return Err(Errno::INTR);
            }
        }
    }

    fn run(self: &Arc<SqPoll>, engine: &Weak<Inner>) {
        self.tid.store(thread::gettid() as u32, Ordering::Release);
        thread::set_name(&format!("iou-sqp-{}", thread::getpid()));
        if let Some(cpu) = self.affinity {
            let mut mask = vec![0u8; 128];
            mask[cpu as usize / 8] |= 1 << (cpu % 8);
            let _ = thread::set_affinity(0, &mask);
        }
        let mut last_work = time::now_ns(time::Clock::Monotonic);
        let mut idle_turns = 0u32;
        while !self.is_dead() && engine.strong_count() > 0 {
            if self.turn() {
                last_work = time::now_ns(time::Clock::Monotonic);
                idle_turns = 0;
                continue;
            }
            idle_turns += 1;
            if idle_turns < SPINS_BEFORE_YIELD {
                core::hint::spin_loop();
                continue;
            }
            let now = time::now_ns(time::Clock::Monotonic);
            if now.saturating_sub(last_work) < self.idle_ns.load(Ordering::Relaxed) {
                thread::yield_now();
                continue;
            }
            self.sleep();
            last_work = time::now_ns(time::Clock::Monotonic);
            idle_turns = 0;
        }
        self.dead.store(true, Ordering::Release);
        self.task.exit();
    }

    /// One pass over the rings; whether anything was done.
    fn turn(&self) -> bool {
        let rings = self.rings.lock().clone();
        let most = if rings.len() > 1 { FAIR_SHARE } else { u32::MAX };
        let mut worked = false;
        for ring in &rings {
            let mut st = ring.state.lock();
            if !st.enabled || st.closed {
                continue;
            }
            let submitted = ring.submit(&mut st, &self.task, most);
            let polled = if ring.has_armed() { ring.poll_now(&mut st, EVENTS_BATCH) } else { 0 };
            let landed = if ring.has_flying() { ring.reap_aio(&mut st, usize::MAX) } else { 0 };
            if submitted > 0 || polled > 0 || landed > 0 {
                worked = true;
                ring.finish_turn(&mut st);
            }
            drop(st);
            if submitted > 0 {
                self.room.fetch_add(1, Ordering::SeqCst);
                time::futex_wake(&self.room, i32::MAX as u32);
            }
        }
        worked
    }

    fn sleep(&self) {
        let rings = self.rings.lock().clone();
        let pending = |r: &Arc<Ring>| {
            let st = r.state.lock();
            // Nobody else looks for the completions of a polled ring.
            let polls = r.has(IOPOLL) && r.has_flying();
            st.enabled && !st.closed && (polls || r.mem.sq_tail_fenced() != st.sq_head)
        };
        self.bell.sleep_unless(|| {
            for ring in &rings {
                ring.mem.set_sq_flags(SQ_NEED_WAKEUP);
            }
            // A ring that was attached in the meantime has not been told that the thread sleeps.
            let changed = self.rings.lock().len() != rings.len();
            let found = changed || rings.iter().any(pending) || self.is_dead();
            if !found {
                rings.iter().for_each(Ring::attend);
            }
            found
        });
        for ring in &rings {
            ring.mem.clear_sq_flags(SQ_NEED_WAKEUP);
        }
    }
}
