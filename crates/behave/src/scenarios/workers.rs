//! io-wq: limits, numbers of workers, blocked work, hashing, exit; MSG_RING and
//! personalities, which are asked here since they concern other rings and credentials.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(iowq_max_workers, "IOWQ_MAX_WORKERS: values, limits, refusals"),
    scenario!(iowq_affinity, "IOWQ_AFF: refusals"),
    scenario!(iowq_max_workers_hold, "no more workers than IOWQ_MAX_WORKERS says"),
    scenario!(iowq_affinity_holds, "workers are named, and run where IOWQ_AFF says"),
    scenario!(iowq_affinity_number, "setting the workers' affinity does not multiply them"),
    scenario!(iowq_async_recvs, "1,000 receives with ASYNC on sockets need few threads", 20),
    scenario!(iowq_async_writes, "depth 8 of ASYNC writes: few threads"),
    scenario!(iowq_blocked_opens, "blocked work does not hold up other work"),
    scenario!(iowq_when_seen, "when the completion of a request for a worker can be seen"),
    scenario!(iowq_no_threads, "inline work starts no thread"),
    scenario!(iowq_exit_while_writing, "a process that ends while workers still write"),
    scenario!(teardown_buffers, "after a ring is gone, nothing writes into its buffers"),
    scenario!(msg_ring, "MSG_RING: data, flags, self, refusals"),
    scenario!(msg_ring_fd, "MSG_RING passes a registered file"),
    scenario!(
        msg_ring_targets,
        "MSG_RING to full, deferred and disabled rings, and without a ring"
    ),
    scenario!(personality, "personalities: register, use, refusals"),
];

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |d| d.count())
}

fn iowq_max_workers(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let set = |bounded: u32, unbounded: u32| {
        let v = leak([bounded, unbounded]);
        let s = r.reg(register::IOWQ_MAX_WORKERS, v, 2);
        // SAFETY: leaked above.
        (s, unsafe { *(v as *const [u32; 2]) })
    };
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get()) as u32;
    let (s, old) = set(0, 0);
    cx.say(
        "ask",
        format!("{} bounded is min(entries, 4 x CPUs) {}", res(s), old[0] == 8.min(4 * cpus)),
    );
    cx.say("set 2, 3", res(set(2, 3).0));
    cx.say("ask", format!("{:?}", set(0, 0).1));
    cx.say("set only the second", format!("{:?}", set(0, 5).1));
    cx.say("ask", format!("{:?}", set(0, 0).1));
    cx.say("too many", res(set(u32::MAX, 1).0));
    cx.say("nr 1", res(r.reg(register::IOWQ_MAX_WORKERS, leak([1u32, 1]), 1)));
    cx.say("NULL", res(r.reg(register::IOWQ_MAX_WORKERS, 0, 2)));
    cx.say("unmapped", res(r.reg(register::IOWQ_MAX_WORKERS, mem::BAD, 2)));
}

fn iowq_affinity(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let mask = leak([1u64; 4]);
    cx.say("CPU 0", res(r.reg(register::IOWQ_AFF, mask, 8)));
    cx.say("a byte of mask", res(r.reg(register::IOWQ_AFF, mask, 1)));
    cx.say("a long mask", res(r.reg(register::IOWQ_AFF, mask, 32)));
    cx.say("length 0", res(r.reg(register::IOWQ_AFF, mask, 0)));
    cx.say("NULL", res(r.reg(register::IOWQ_AFF, 0, 8)));
    cx.say("unmapped", res(r.reg(register::IOWQ_AFF, mem::BAD, 8)));
    cx.say("unregister", res(r.reg(register::UNREGISTER_IOWQ_AFF, 0, 0)));
    cx.say("unregister with nr", res(r.reg(register::UNREGISTER_IOWQ_AFF, 0, 1)));
}

/// The CPUs that each worker may use.
fn workers() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let status = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("status")).ok());
    let named = status.filter(|s| s.starts_with("Name:\tiou-wrk-"));
    let allowed = |l: &str| l.strip_prefix("Cpus_allowed_list:\t").map(str::to_owned);
    named.filter_map(|s| s.lines().find_map(allowed)).collect()
}

/// Opens of a FIFO for writing, each in a worker until there is a reader.
fn blocked_opens(r: &Ring, dir: &Dir, count: u64) {
    for i in 0..count {
        let open =
            q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("fifo")).opf(libc::O_WRONLY as u32);
        r.push(open.ud(i).flags(ASYNC));
    }
    r.submit();
    sys::sleep_ms(50);
}

fn iowq_max_workers_hold(cx: &mut Cx) {
    let dir = Dir::new();
    dir.fifo("fifo");
    let r = Ring::new(8, 0);
    cx.say("set 2", res(r.reg(register::IOWQ_MAX_WORKERS, leak([2u32, 2]), 2)));
    blocked_opens(&r, &dir, 5);
    cx.say("workers of five opens", workers().len());
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(dir.join("fifo"));
    let reader = open().expect("open");
    cx.say("opened", r.collect(5).iter().filter(|c| c.res >= 0).count());
    drop(reader);
}

fn iowq_affinity_holds(cx: &mut Cx) {
    let dir = Dir::new();
    dir.fifo("fifo");
    let r = Ring::new(8, 0);
    blocked_opens(&r, &dir, 1);
    cx.say("set to CPU 0", res(r.reg(register::IOWQ_AFF, leak(1u64), 8)));
    blocked_opens(&r, &dir, 1);
    let on_cpu_0 = workers().iter().filter(|cpus| *cpus == "0").count();
    cx.say("workers", workers().len());
    cx.say("of these on CPU 0 alone", on_cpu_0);
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(dir.join("fifo"));
    let reader = open().expect("open");
    cx.say("opened", r.collect(2).iter().filter(|c| c.res >= 0).count());
    drop(reader);
}

fn iowq_affinity_number(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", &[1; 4096]);
    let r = Ring::new(32, 0);
    cx.say("set", res(r.reg(register::IOWQ_AFF, leak(1u64), 8)));
    for i in 0..200u64 {
        r.push(q(op::FSYNC).fd(f.as_raw_fd()).ud(i).flags(ASYNC));
        r.submit();
        r.collect(1);
    }
    cx.say("threads after 200 single requests are few", threads() <= 6);
}

fn iowq_async_recvs(cx: &mut Cx) {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit structure of this process.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        l.rlim_cur = l.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &l);
    }
    let r = Ring::new(1024, 0);
    let pairs: Vec<_> = (0..400).map(|_| UnixStream::pair().expect("socketpair")).collect();
    for i in 0..1000u64 {
        let (a, _) = &pairs[i as usize % 400];
        r.push(recv(a.as_raw_fd(), at(buf(8)), 8, i).flags(ASYNC));
    }
    cx.say("submit", r.submit());
    let mut most = 0;
    for _ in 0..20 {
        most = most.max(threads());
        sys::sleep_ms(5);
    }
    cx.say("threads stay below 64", most < 64);
    for (_, c) in &pairs {
        sys::write(c.as_raw_fd(), b"12345678");
    }
    let first = r.collect(400);
    cx.say(
        "completed, all with data",
        format!("{} {}", first.len(), first.iter().all(|c| c.res == 8)),
    );
}

fn iowq_async_writes(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"");
    let r = Ring::new(8, 0);
    let block = at(buf(4096));
    let (mut most, mut good) = (0, 0);
    for round in 0..200u64 {
        for i in 0..8 {
            r.push(write(f.as_raw_fd(), block, 4096, i).off((round * 8 + i) * 4096).flags(ASYNC));
        }
        r.submit();
        good += r.collect(8).iter().filter(|c| c.res == 4096).count();
        most = most.max(threads());
    }
    cx.say("good", good);
    cx.say("at most 8 workers beside us", most <= 10);
}

fn iowq_blocked_opens(cx: &mut Cx) {
    let dir = Dir::new();
    dir.fifo("fifo");
    let f = dir.file("f", &[3; 4096]);
    let r = Ring::new(32, 0);
    // ASYNC opens of a FIFO for writing wait on a worker for a reader.
    for i in 0..3u64 {
        let open =
            q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("fifo")).opf(libc::O_WRONLY as u32);
        r.push(open.ud(i).flags(ASYNC));
    }
    r.submit();
    sys::sleep_ms(20);
    for i in 10..20u64 {
        r.push(read(f.as_raw_fd(), at(buf(4096)), 4096, i).flags(ASYNC));
    }
    r.submit();
    let done = r.collect(10);
    cx.say("ten reads meanwhile", done.iter().filter(|c| c.res == 4096).count());
    let reader =
        std::fs::OpenOptions::new().read(true).write(true).open(dir.join("fifo")).expect("open");
    let opened = r.collect(3);
    cx.say("the opens, once there is a reader", opened.iter().filter(|c| c.res >= 0).count());
    drop(reader);
}

fn iowq_when_seen(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"data");
    cx.both_setups(|cx, kind| {
        let requests = || {
            [
                ("NOP", nop(1).flags(ASYNC)),
                ("READ", read(f.as_raw_fd(), at(buf(8)), 4, 1).off(0).flags(ASYNC)),
                (
                    "STATX",
                    q(op::STATX)
                        .fd(libc::AT_FDCWD)
                        .addr(dir.cpath("f"))
                        .off(at(buf(256)) as u64)
                        .ud(1),
                ),
            ]
        };
        // What is cached, or has been quick before, may take another way from the second time on.
        for (name, request) in requests().into_iter().chain(requests()) {
            let r = Ring::new(8, kind);
            r.push(request);
            r.submit();
            sys::sleep_ms(20);
            cx.say(name, format!("{} seen after the call", r.ready()));
            r.wait(1, 2000);
            cx.say("CQE", r.cqes());
            r.push_all(&[request, nop(2)]);
            r.submit();
            sys::sleep_ms(20);
            cx.say("and a NOP", format!("{} seen after the call", r.ready()));
            r.wait(2, 2000);
            cx.say("CQEs", if kind == 0 { r.cqes_sorted() } else { r.cqes() });
        }
    });
}

fn iowq_no_threads(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", &[3; 4096]);
    let before = threads();
    let r = Ring::new(32, 0);
    for i in 0..10u64 {
        r.push_all(&[nop(i), read(f.as_raw_fd(), at(buf(64)), 64, i)]);
    }
    r.submit();
    cx.say("done", r.collect(20).len());
    cx.say("threads added", threads() - before);
}

fn iowq_exit_while_writing(cx: &mut Cx) {
    let dir = Dir::new();
    // SAFETY: the child submits and leaves.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        sys::alarm(5);
        let f = dir.file("f", b"");
        let r = Ring::new(64, 0);
        let block = sys::pages(1 << 20) as usize;
        for i in 0..32u64 {
            r.push(write(f.as_raw_fd(), block, 1 << 20, i).off(i << 20).flags(ASYNC));
        }
        let s = r.submit();
        // SAFETY: leaves at once.
        unsafe { libc::_exit(i32::from(s != 32)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    cx.say("child's status", status);
}

fn teardown_buffers(cx: &mut Cx) {
    let mut changed = 0;
    for _ in 0..20 {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let b = buf(64);
        let r = Ring::new(8, 0);
        r.push(recv(a.as_raw_fd(), at(b), 64, 1));
        r.submit();
        drop(a);
        drop(r);
        sys::poll_for(c.as_raw_fd(), POLLIN, 2000);
        sys::write(c.as_raw_fd(), &[0xee; 64]);
        sys::sleep_ms(2);
        // SAFETY: the buffer is leaked memory of ours.
        changed += usize::from(unsafe { std::ptr::read_volatile(b.as_ptr()) } != 0);
    }
    cx.say("buffers written after the ring was gone", changed);
}

fn to(ring: &Ring, ud: u64, len: i32) -> Q {
    q(op::MSG_RING).fd(ring.fd).off(ud).len(len as u32).ud(1)
}

fn msg_ring(cx: &mut Cx) {
    let (r, t) = (Ring::new(8, 0), Ring::new(8, 0));
    let (p, _w) = pipe();
    cx.say("data", format!("{} {}", r.one(to(&t, 77, 55)), t.cqes()));
    cx.say("negative", format!("{} {}", r.one(to(&t, 77, -5)), t.cqes()));
    cx.say("FLAGS_PASS", format!("{} {}", r.one(to(&t, 77, 55).opf(2).fi(0x1234)), t.cqes()));
    cx.say("a pipe", r.one(to(&t, 1, 1).fd(*p)));
    r.push(to(&r, 77, 55));
    cx.say("self", r.go_sorted(2));
    cx.say("unknown command", r.one(to(&t, 1, 1).addr(5)));
    cx.say("CQE_SKIP with data", r.one(to(&t, 1, 1).opf(1)));
}

fn msg_ring_fd(cx: &mut Cx) {
    let (r, t) = (Ring::new(8, 0), Ring::new(8, 0));
    let (p, w) = pipe();
    sys::write(*w, b"hello");
    let pass = |src: u64, dst: u32| to(&t, 66, 0).addr(1).addr3(src).fi(dst);
    cx.say("no tables", r.one(pass(0, 1)));
    r.reg(register::FILES, leak([*p]), 1);
    t.reg(register::FILES, leak([-1i32; 4]), 4);
    cx.say("into slot 0", format!("{} {}", r.one(pass(0, 1)), t.cqes()));
    cx.say("picked", format!("{} {}", r.one(pass(0, u32::MAX)), t.cqes()));
    cx.say("bad source", format!("{} {}", r.one(pass(9, 1)), t.cqes()));
    cx.say("bad destination", format!("{} {}", r.one(pass(0, 100)), t.cqes()));
    cx.say("CQE_SKIP", format!("{} {}", r.one(pass(0, 1).opf(1)), t.cqes()));
    cx.say("self", r.one(pass(0, 1).fd(r.fd)));
    cx.say("with a length", r.one(pass(0, 1).len(3)));
    cx.say("it works there", t.one(read(0, at(buf(8)), 8, 5).flags(FIXED_FILE)));
}

fn msg_ring_targets(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let disabled = Ring::new(8, setup::R_DISABLED);
    cx.say("disabled", r.one(to(&disabled, 1, 1)));
    let small = Ring::sized(2, 2, 0);
    for i in 0..4 {
        r.push(to(&small, i, i as i32).ud(i));
    }
    cx.say("overflowing", format!("{} {} {}", r.go(4), small.cqes(), small.sq_flags()));
    small.enter(0, 0, enter::GETEVENTS);
    cx.say("flushed", small.cqes());
    let deferred = Ring::new(8, setup::DEFER_TASKRUN | setup::SINGLE_ISSUER);
    cx.say("deferred", format!("{} {}", r.one(to(&deferred, 77, 55)), deferred.cqes()));
    deferred.enter(0, 0, enter::GETEVENTS);
    cx.say("after entering", deferred.cqes());
    let sqe = leak(to(&small, 123, 9).ud(0).0);
    cx.say(
        "without a ring",
        format!("{} {}", res(sys::register(-1, register::SEND_MSG_RING, sqe, 1)), small.cqes()),
    );
    cx.say("the same through a ring", res(r.reg(register::SEND_MSG_RING, sqe, 1)));
}

fn personality(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"x");
    let r = Ring::new(8, 0);
    let id = r.reg(register::PERSONALITY, 0, 0);
    cx.say("register", res(id));
    cx.say("second", res(r.reg(register::PERSONALITY, 0, 0)));
    cx.say("used", r.one(nop(1).pers(id as u16)));
    cx.say("unknown", r.one(nop(1).pers(99)));
    let open = q(op::STATX)
        .fd(libc::AT_FDCWD)
        .addr(dir.cpath("f"))
        .len(0x7ff)
        .off(at(buf(256)) as u64)
        .ud(2);
    cx.say("statx", r.one(open.pers(id as u16)));
    cx.say("unregister", res(r.reg(register::UNREGISTER_PERSONALITY, 0, id as u32)));
    cx.say("unregister again", res(r.reg(register::UNREGISTER_PERSONALITY, 0, id as u32)));
    cx.say("used afterwards", r.one(nop(1).pers(id as u16)));
    cx.say("register with an argument", res(r.reg(register::PERSONALITY, mem::BAD, 0)));
    cx.say("register with nr", res(r.reg(register::PERSONALITY, 0, 1)));
}
