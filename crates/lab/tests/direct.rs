//! Direct transfers on the engine: with a model of a device in the place of kernel AIO, whose completions come in a seeded
//! order and with faults, and with the real one.

use anyring_engine::aio::model::{Device, Latency, Model};
use anyring_lab::reads::{Buffers, DirectFile, SMALL};
use anyring_lab::ring::{Backend, Ring, User, MODERN};
use anyring_lab::scratch::Scratch;
use anyring_uapi::{op, setup, Cqe, Sqe};
use std::path::Path;
use std::sync::Arc;

const MIXED: Latency = Latency::Uniform(10_000, 100_000);

struct Place {
    file: DirectFile,
    buffers: Buffers,
    _scratch: Scratch,
}

fn place() -> Place {
    let scratch = Scratch::new(Path::new("/var/tmp")).unwrap();
    let file = DirectFile::make(scratch.path(), 1 << 20).unwrap();
    Place { file, buffers: Buffers::new(64, SMALL), _scratch: scratch }
}

impl Place {
    fn read(&self, slot: u64) -> Sqe {
        Sqe {
            opcode: op::READ,
            fd: self.file.fd(),
            addr: self.buffers.get(slot as usize % 64) as u64,
            len: SMALL as u32,
            off: slot % 64 * SMALL as u64,
            user_data: slot,
            ..Sqe::default()
        }
    }
}

fn on(model: &Arc<Model>, policy: &str) -> Arc<User> {
    Arc::new(User::with_model(policy, model.clone()).unwrap())
}

fn ring(user: &Arc<User>, entries: u32, flags: u32) -> Ring {
    let backend: Arc<dyn Backend> = user.clone();
    Ring::new(&backend, entries, flags).unwrap()
}

/// Waits for `n` CQEs; user_data in the order they came.
fn collect(ring: &mut Ring, n: usize) -> Vec<u64> {
    let (mut out, mut cqes) = (Vec::new(), Vec::<Cqe>::new());
    while out.len() < n {
        ring.submit_and_wait((n - out.len()) as u32).unwrap();
        ring.reap(&mut cqes);
        for cqe in &cqes {
            assert_eq!(cqe.res, SMALL as i32, "{cqe:?}");
            out.push(cqe.user_data);
        }
    }
    out
}

fn sorted(mut v: Vec<u64>) -> Vec<u64> {
    v.sort_unstable();
    v
}

#[test]
fn polled_reads_come_as_they_end_or_as_they_were_issued() {
    let place = place();
    for seed in 0..50 {
        let run = |policy: &str| {
            let model = Arc::new(Model::new(Device::new(MIXED), seed));
            let mut ring = ring(&on(&model, policy), 64, MODERN | setup::IOPOLL);
            (0..64).for_each(|i| ring.push(place.read(i)));
            let got = collect(&mut ring, 64);
            assert_eq!(model.counts().taken, 64, "seed {seed}");
            got
        };
        let each = run("iopoll_reap=each");
        assert_eq!(sorted(each.clone()), (0..64).collect::<Vec<_>>(), "seed {seed}");
        assert_ne!(each, sorted(each.clone()), "seed {seed}: nobody waited for the head");
        assert_eq!(run("iopoll_reap=ordered"), (0..64).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_polled_wait_takes_no_more_than_it_asked_for() {
    let place = place();
    let model = Arc::new(Model::new(Device::new(Latency::Fixed(1)), 1));
    let mut ring = ring(&on(&model, ""), 64, MODERN | setup::IOPOLL);
    let mut cqes = Vec::new();
    (0..32).for_each(|i| ring.push(place.read(i)));
    // By the time the last one is submitted all others have ended.
    for _ in 0..8 {
        ring.submit_and_wait(4).unwrap();
        ring.reap(&mut cqes);
        assert_eq!(cqes.len(), 4);
    }
    assert_eq!(model.counts().taken, 32);
}

#[test]
fn what_would_have_to_wait_goes_to_a_worker() {
    let place = place();
    for flags in [0, MODERN, MODERN | setup::IOPOLL] {
        let device = Device { again_every: 3, ..Device::new(MIXED) };
        let user = on(&Arc::new(Model::new(device, 1)), "");
        let mut ring = ring(&user, 64, flags);
        (0..60).for_each(|i| ring.push(place.read(i)));
        assert_eq!(sorted(collect(&mut ring, 60)), (0..60).collect::<Vec<_>>());
        let counts = user.stats();
        assert_eq!((counts.ops[0].aio, counts.ops[0].worker, counts.aio_refused), (40, 20, 0));
    }
}

#[test]
fn without_room_or_without_aio_workers_do_it_and_the_stats_say_so() {
    let place = place();
    for (slots, policy, aio, refused) in
        [(8, "", 8, 24), (0, "", 0, 32), (4096, "aio=off", 0, 0), (4096, "", 32, 0)]
    {
        let device = Device { slots, ..Device::new(MIXED) };
        let user = on(&Arc::new(Model::new(device, 1)), policy);
        let mut ring = ring(&user, 32, MODERN);
        (0..32).for_each(|i| ring.push(place.read(i)));
        assert_eq!(sorted(collect(&mut ring, 32)), (0..32).collect::<Vec<_>>());
        let stats = user.stats();
        assert_eq!((stats.ops[0].aio, stats.aio_refused), (aio, refused), "{slots} '{policy}'");
        assert_eq!(stats.ops[0].aio + stats.ops[0].worker, 32);
    }
}

/// A context is handed on from ring to ring: giving it back would take tens of milliseconds each time.
#[test]
fn rings_are_closed_with_reads_in_flight() {
    let place = place();
    let user = Arc::new(User::new("").unwrap());
    let start = std::time::Instant::now();
    for round in 0..100 {
        let mut ring = ring(&user, 32, MODERN);
        (0..32).for_each(|i| ring.push(place.read(i)));
        ring.submit_and_wait(0).unwrap();
        if round % 2 == 0 {
            let mut cqes = Vec::new();
            ring.reap(&mut cqes);
            collect(&mut ring, 32 - cqes.len());
        }
    }
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    let stats = user.stats();
    assert_eq!(stats.aio_refused, 0);
    assert!(stats.ops[0].aio >= 50 * 32, "{stats:?}");
}

/// The waiter sleeps for all its reads at once; what another thread posts fetches it all the same.
#[test]
fn another_threads_completion_ends_a_nap() {
    let place = place();
    let user = Arc::new(User::new("").unwrap());
    for round in 0..200u64 {
        let mut ring = ring(&user, 64, 0);
        let fd = ring.fd();
        (0..32).for_each(|i| ring.push(place.read(i)));
        let other = user.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let backend: Arc<dyn Backend> = other;
                let mut sender = Ring::new(&backend, 8, 0).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(round * 7 % 300));
                let message = Sqe { opcode: op::MSG_RING, fd, len: SMALL as u32, ..Sqe::default() };
                sender.push(Sqe { off: 999, ..message });
                sender.submit_and_wait(1).unwrap();
            });
            let got = collect(&mut ring, 33);
            assert!(got.contains(&999));
        });
    }
}

/// A ring whose thread used to wait, and now only watches the completion queue.
#[test]
fn a_program_that_only_watches_sees_its_completions() {
    let place = place();
    let mut ring = ring(&Arc::new(User::new("").unwrap()), 64, 0);
    for _ in 0..20 {
        (0..4).for_each(|i| ring.push(place.read(i)));
        collect(&mut ring, 4);
    }
    for _ in 0..20 {
        (0..4).for_each(|i| ring.push(place.read(i)));
        ring.submit_and_wait(0).unwrap();
        let (mut seen, mut cqes, start) = (0, Vec::new(), std::time::Instant::now());
        while seen < 4 {
            ring.reap(&mut cqes);
            seen += cqes.len();
            assert!(start.elapsed().as_secs() < 10, "{seen} of 4");
            std::thread::yield_now();
        }
    }
}
