//! What a worker holds of finished requests, and for how long; who is woken and started. Each case is driven with a
//! ring of an engine in this process. Nothing here measures speed: what is asked is what is held while a
//! worker is known to be in a call, at rest, or at another ring.

use super::batch::{Batch, Finished};
use super::*;
use crate::host::{nr, syscall};
use crate::req::Key;
use crate::ring::Ring;
use crate::{Caller, Config, Engine, FdLayout};
use anyring_uapi::{op, setup, sqe, Cqe, Params, Sqe};
use core::sync::atomic::AtomicU32;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// A ring of an engine of its own, as a program would use it.
struct Client {
    engine: Arc<Engine>,
    fd: i32,
    p: Params,
    rings: usize,
    sqes: usize,
}

fn caller() -> Caller {
    Caller { tid: thread::gettid(), mask: None }
}

fn engine(policy: &str) -> Arc<Engine> {
    let fds = FdLayout { ring_base: 600, ring_end: 800, private_min: 800 };
    let policy = Policy::parse(format!("inline=never,{policy}").as_bytes()).expect("a policy");
    let config = Config { fds, policy, raw_threads: false, interrupt_signal: 0 };
    Arc::new(Engine::new(config))
}

impl Client {
    fn new(policy: &str) -> Client {
        Client::of(&engine(policy))
    }

    fn of(engine: &Arc<Engine>) -> Client {
        let mut p = Params::default();
        let fd = engine.setup(&caller(), 32, &raw mut p as usize).expect("a ring") as i32;
        let (prot, shared) = (nr::PROT_READ | nr::PROT_WRITE, nr::MAP_SHARED);
        let map = |len, at| engine.mmap(fd, 0, len, prot, shared, at).expect("a mapping");
        let rings = map(p.cq_off.cqes as usize + 64 * 16, setup::OFF_SQ_RING);
        let sqes = map(32 * 64, setup::OFF_SQES);
        Client { engine: engine.clone(), fd, p, rings, sqes }
    }

    fn word(&self, at: u32) -> &AtomicU32 {
        // SAFETY: offsets come from setup and lie inside the mapping, which is never unmapped.
        unsafe { AtomicU32::from_ptr((self.rings + at as usize) as *mut u32) }
    }

    fn submit(&self, list: &[Sqe]) {
        let tail = self.word(self.p.sq_off.tail);
        for sqe in list {
            let slot = tail.load(Relaxed) % 32;
            self.word(self.p.sq_off.array + 4 * slot).store(slot, Relaxed);
            // SAFETY: the slot is inside the mapping, and free: no test has more than 32 in flight.
            unsafe { ((self.sqes + 64 * slot as usize) as *mut Sqe).write_volatile(*sqe) };
            tail.store(tail.load(Relaxed) + 1, SeqCst);
        }
        let n = list.len() as u32;
        assert_eq!(self.engine.enter(&caller(), self.fd as u32, n, 0, 0, 0, 0), Ok(n));
    }

    /// The next CQEs: user_data and result.
    fn reap(&self, count: u32) -> Vec<(u64, i32)> {
        let head = self.word(self.p.cq_off.head);
        let from = head.load(SeqCst);
        until("completions", || self.word(self.p.cq_off.tail).load(SeqCst) - from >= count);
        let cqe = |n: u32| {
            let at = self.rings + self.p.cq_off.cqes as usize + 16 * (n % 64) as usize;
            // SAFETY: inside the mapping.
            let cqe = unsafe { (at as *const Cqe).read_volatile() };
            (cqe.user_data, cqe.res)
        };
        let mut got: Vec<_> = (from..from + count).map(cqe).collect();
        head.store(from + count, SeqCst);
        got.sort_unstable();
        got
    }

    fn ring(&self) -> Arc<Ring> {
        self.engine.inner.ring(self.fd).expect("the ring")
    }

    fn pool(&self) -> Arc<Pool> {
        self.ring().task.pool.clone()
    }

    /// Requests that the ring knows.
    fn known(&self) -> usize {
        self.ring().state.lock().pending.keys_where(|_| true).len()
    }
}

fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "no {what} after 20 s");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn nop(user_data: u64) -> Sqe {
    Sqe { opcode: op::NOP, flags: sqe::ASYNC, fd: -1, user_data, ..Sqe::default() }
}

/// An open for writing: waits in a worker until somebody reads.
fn open_fifo(path: &std::ffi::CStr, user_data: u64) -> Sqe {
    const AT_FDCWD: i32 = -100;
    Sqe {
        opcode: op::OPENAT,
        flags: sqe::ASYNC,
        fd: AT_FDCWD,
        addr: path.as_ptr() as u64,
        op_flags: nr::O_WRONLY,
        user_data,
        ..Sqe::default()
    }
}

/// From one pipe to another: waits while the first is empty.
fn splice(from: i32, to: i32, user_data: u64) -> Sqe {
    Sqe {
        opcode: op::SPLICE,
        fd: to,
        off: u64::MAX,
        addr: u64::MAX,
        len: 1,
        file_index: from as u32,
        user_data,
        ..Sqe::default()
    }
}

/// A named pipe in a folder of its own.
struct Fifo {
    dir: std::path::PathBuf,
    path: std::ffi::CString,
}

impl Fifo {
    fn new(name: &str) -> Fifo {
        let dir = std::env::temp_dir().join(format!("anyring-wq-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let path = std::ffi::CString::new(format!("{}/fifo", dir.display())).expect("a path");
        const AT_FDCWD: isize = -100;
        const FIFO_0600: usize = 0o010_600;
        let args = [AT_FDCWD as usize, path.as_ptr() as usize, FIFO_0600, 0, 0, 0];
        // SAFETY: a NUL-terminated path.
        unsafe { syscall(nr::__NR_mknodat, args) }.expect("a fifo");
        Fifo { dir, path }
    }
    /// Lets those go who wait to open it for writing.
    fn read(&self) -> std::fs::File {
        let path = self.path.to_str().expect("a path");
        std::fs::OpenOptions::new().read(true).write(true).open(path).expect("the fifo")
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The worker of an account that has one.
fn worker_of(account: &Account) -> Arc<slot::Slot> {
    let slots = account.slots();
    assert_eq!(slots.len(), 1);
    slots[0].clone()
}

fn holds(slot: &slot::Slot) -> bool {
    !slot.batch.lock().is_empty()
}

#[test]
fn nothing_is_held_over_a_call_that_waits() {
    let client = Client::new("wq_free_max_delay_us=1000000,wq_linger=off");
    client.pool().set_max(1, 1);
    let (gate_in, mut gate) = std::io::pipe().expect("a pipe");
    let (in_1, mut out_1) = std::io::pipe().expect("a pipe");
    let (in_2, mut out_2) = std::io::pipe().expect("a pipe");
    let (_sink, sink) = std::io::pipe().expect("a pipe");
    out_1.write_all(b"x").expect("room");
    // The worker waits in the first; the second then finishes at once, and the third waits.
    let to = sink.as_raw_fd();
    client.submit(&[splice(gate_in.as_raw_fd(), to, 1)]);
    until("worker in its call", || client.pool().unbound.crew.counts().workers == 1);
    client.submit(&[splice(in_1.as_raw_fd(), to, 2), splice(in_2.as_raw_fd(), to, 3)]);
    gate.write_all(b"x").expect("room");
    assert_eq!(client.reap(2), [(1, 1), (2, 1)]);
    let slot = worker_of(&client.pool().unbound);
    until("return", || !holds(&slot) && client.known() == 1);
    assert!(slot.is_in_call(), "it waits for the third");
    out_2.write_all(b"x").expect("room");
    assert_eq!(client.reap(1), [(3, 1)]);
    let counts = client.pool().counts();
    assert_eq!((counts.returned, counts.batches), (3, 3));
}

#[test]
fn nothing_is_held_over_an_empty_queue() {
    let client = Client::new("wq_free_max_delay_us=1000000,wq_free_batch=1024");
    for round in 0..20 {
        client.submit(&[nop(round), nop(round + 100)]);
        assert_eq!(client.reap(2), [(round, 0), (round + 100, 0)]);
        until("rest", || client.pool().bound.crew.counts().active == 0);
        assert!(!holds(&worker_of(&client.pool().bound)));
        assert_eq!(client.known(), 0);
    }
    assert_eq!(client.pool().counts().returned, 40);
}

#[test]
fn a_worker_that_got_stuck_is_relieved() {
    let (gate, stuck) = (Fifo::new("gate"), Fifo::new("stuck"));
    let delay = Duration::from_millis(20);
    let client = Client::new("wq_free_max_delay_us=20000,wq_linger=off");
    client.pool().set_max(1, 1);
    client.submit(&[open_fifo(&gate.path, 1)]);
    until("worker in its call", || client.pool().bound.slots().iter().any(|s| s.is_in_call()));
    client.submit(&[nop(2), nop(3), open_fifo(&stuck.path, 4)]);
    let reader = gate.read();
    let done = client.reap(3);
    assert_eq!((done[1], done[2]), ((2, 0), (3, 0)));
    let slot = worker_of(&client.pool().bound);
    until("return", || !holds(&slot) && client.known() == 1);
    assert!(slot.is_in_call(), "it waits for a reader of the other one");
    let counts = client.pool().counts();
    assert_eq!(counts.returned, 3);
    assert!(counts.held_max_ns >= delay.as_nanos() as u64, "{counts:?}");
    drop((stuck.read(), reader));
    assert_eq!(client.reap(1)[0].0, 4);
}

/// Finished requests for a batch, from no worker.
fn finished(client: &Client) -> Finished {
    let mut req = crate::ring::submit::new_request(&Sqe { fd: -1, ..Sqe::default() });
    req.via = crate::req::Via::Worker;
    let key = client.ring().state.lock().pending.reserve();
    (key, Box::new(req))
}

fn batch(most: u32, delay_us: u32) -> (Batch, Arc<Returns>) {
    let returns: Arc<Returns> = Arc::default();
    (Batch::new(most, delay_us, returns.clone()), returns)
}

#[test]
fn nothing_is_held_over_a_change_of_ring() {
    let engine = engine("");
    let (one, other) = (Client::of(&engine), Client::of(&engine));
    let (mut batch, returns) = batch(8, 1_000_000);
    assert!(batch.add(&one.ring(), finished(&one), true, || 0).iter().all(Option::is_none));
    let [before, after] = batch.add(&other.ring(), finished(&other), true, || 0);
    assert!(after.is_none());
    before.expect("the first ring's").give_back();
    assert_eq!((one.known(), returns.requests.load(Relaxed)), (0, 1));
    assert!(!batch.is_empty());
}

#[test]
fn nothing_is_held_longer_than_the_delay_nor_beyond_the_number() {
    let client = Client::new("");
    let ring = client.ring();
    let (mut batch, _) = batch(3, 50);
    let mut add = |now| batch.add(&ring, finished(&client), false, || now)[1].is_some();
    assert_eq!([add(1000), add(50_999), add(51_000)], [false, false, true]);
    assert_eq!([add(60_000), add(60_001), add(60_002)], [false, false, true]);
    assert_eq!([add(70_000), add(120_000)], [false, true]);
    assert!(batch.take_old(u64::MAX).is_none(), "nothing is left");
}

#[test]
fn many_items_wake_one_worker_and_take_few_locks() {
    let client = Client::new("wq_linger=off");
    for round in 0..50u64 {
        let many: Vec<_> = (0..32).map(|n| nop(32 * round + n)).collect();
        client.submit(&many);
        client.reap(32);
    }
    let (pool, items) = (client.pool(), 50 * 32);
    assert_eq!(pool.bound.crew.counts().workers, 1, "none of them waits");
    let counts = pool.counts();
    // One a piece, and one more each time that the worker finds nothing.
    assert!(counts.locks <= items + items / 4, "{counts:?}");
    assert!(counts.wakeups <= items / 4, "{counts:?}");
}

#[test]
fn coarse_locking_does_the_same_work() {
    let client = Client::new("wq_locking=coarse,wq_free_batch=1");
    for round in 0..20u64 {
        let many: Vec<_> = (0..32).map(|n| nop(32 * round + n)).collect();
        client.submit(&many);
        assert_eq!(client.reap(32).len(), 32);
    }
    let counts = client.pool().counts();
    assert!(counts.locks >= 4 * 20 * 32, "{counts:?}");
    assert_eq!(counts.returned, 0);
}

#[test]
fn a_blocked_worker_is_replaced_while_work_waits_and_no_longer() {
    let fifo = Fifo::new("blocked");
    let client = Client::new("");
    client.submit(&[open_fifo(&fifo.path, 1), nop(2), nop(3)]);
    assert_eq!(client.reap(2), [(2, 0), (3, 0)]);
    assert_eq!(client.pool().bound.crew.counts().workers, 2);
    client.submit(&[nop(4)]);
    assert_eq!(client.reap(1), [(4, 0)]);
    assert_eq!(client.pool().bound.crew.counts().workers, 2);
    drop(fifo.read());
    assert_eq!(client.reap(1)[0].0, 1);
}

#[test]
fn a_chain_goes_on_in_the_same_worker() {
    let client = Client::new("wq_linger=off");
    let (input, mut out) = std::io::pipe().expect("a pipe");
    let (_sink, sink) = std::io::pipe().expect("a pipe");
    out.write_all(b"abcd").expect("room");
    let one = |n, flags| Sqe { flags, ..splice(input.as_raw_fd(), sink.as_raw_fd(), n) };
    client.submit(&[one(0, 0)]);
    client.reap(1);
    let rest = || until("rest", || client.pool().unbound.crew.counts().active == 0);
    rest();
    let before = client.pool().counts();
    client.submit(&[one(1, sqe::IO_LINK), one(2, sqe::IO_LINK), one(3, 0)]);
    assert_eq!(client.reap(3), [(1, 1), (2, 1), (3, 1)]);
    rest();
    let after = client.pool().counts();
    assert_eq!(after.wakeups - before.wakeups, 1);
    assert_eq!(
        after.locks - before.locks,
        2,
        "to take the first, and to find that there is no other"
    );
}

/// Only its identity counts here.
fn item(client: &Client, hash: Option<u64>) -> Arc<WorkItem> {
    let req = Box::new(crate::ring::submit::new_request(&Sqe { fd: -1, ..Sqe::default() }));
    let ring = client.ring();
    let task = ring.task.clone();
    let mut item = WorkItem::new(ring, Key(0), req, task);
    item.hash = hash;
    Arc::new(item)
}

#[test]
fn a_stalled_hash_stops_no_other() {
    let client = Client::new("");
    let mut queue = queue::Queue::default();
    let new = |hash| item(&client, hash);
    let (a1, a2, a3, b1, free) =
        (new(Some(1)), new(Some(1)), new(Some(1)), new(Some(2)), new(None));
    for i in [&a1, &a2, &a3, &b1, &free] {
        queue.push(i.clone());
    }
    let take = |queue: &mut queue::Queue| queue.take(false).map(|i| i.id());
    assert_eq!(take(&mut queue), Some(a1.id()));
    assert_eq!(take(&mut queue), Some(b1.id()));
    assert_eq!(take(&mut queue), Some(free.id()));
    assert_eq!(take(&mut queue), None, "the others wait for the first");
    queue.remove(&a2);
    queue.push(new(Some(1)));
    queue.release(1);
    assert_eq!(take(&mut queue), Some(a3.id()), "in order, without the one that was cancelled");
    assert_eq!(take(&mut queue), None);
    queue.release(2);
    queue.release(1);
    assert_eq!(queue.drain().len(), 1);
    queue.push(new(Some(1)));
    assert!(queue.take(false).is_some(), "a drained hash is free again");
}

#[test]
fn started_reads_are_their_readers_and_the_last_of_all_others() {
    let client = Client::new("");
    let (a, b, c, other) =
        (item(&client, None), item(&client, None), item(&client, None), item(&client, Some(1)));
    let mut queue = queue::Queue::default();
    for i in [&a, &b, &c, &other] {
        queue.push(i.clone());
    }
    let run = queue.start_while(8, |_| true);
    assert_eq!(run.iter().map(|i| i.id()).collect::<Vec<_>>(), [a.id(), b.id(), c.id()]);
    queue.remove(&b);
    assert_eq!((queue.started(), queue.ready()), (2, 1));
    let mut take = |reading| queue.take(reading).map(|i| i.id());
    assert_eq!(take(true), Some(a.id()));
    assert_eq!(take(false), Some(other.id()));
    assert_eq!(take(false), Some(c.id()));
    assert_eq!(take(true), None);
}

#[test]
fn interrupts_reach_the_item_they_are_meant_for() {
    let (batch, _) = batch(1, 1000);
    let slot = slot::Slot::new(thread::gettid(), 0, batch);
    assert!(!slot.interrupt(None, 0), "it runs nothing");
    slot.begin(64);
    assert!(!slot.interrupt(Some(128), 0), "it runs another");
    assert!(slot.interrupt(Some(64), 0) && slot.is_stopped());
    assert!(slot.finish() && !slot.is_stopped());
    slot.begin(128);
    assert!(!slot.finish(), "the next one was not told");
}
