//! Who may use a ring: disabled rings, single issuers, restrictions, registered ring
//! descriptors, forks, threads, closes and duplicates.

use crate::prelude::*;
use anyring_uapi::enter::{GETEVENTS, REGISTERED_RING};
use anyring_uapi::setup::{DEFER_TASKRUN, R_DISABLED, SINGLE_ISSUER};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(disabled, "a disabled ring, and enabling it"),
    scenario!(disabled_registers, "what may be registered while disabled"),
    scenario!(single_issuer, "SINGLE_ISSUER and another thread"),
    scenario!(single_issuer_defer, "DEFER_TASKRUN and another thread"),
    scenario!(single_issuer_enabled_elsewhere, "the thread that enables a ring becomes its issuer"),
    scenario!(plain_other_thread, "a plain ring takes submissions from every thread"),
    scenario!(restrict_ops, "restrictions of SQE opcodes and flags"),
    scenario!(restrict_registers, "restrictions of register operations"),
    scenario!(restrict_bad, "restrictions that are refused"),
    scenario!(ring_fds_register, "registering ring descriptors"),
    scenario!(ring_fds_bad, "registering ring descriptors: refusals"),
    scenario!(ring_fds_closed, "a registered ring lives on after its descriptor is closed"),
    scenario!(ring_dup, "a duplicate of a ring's descriptor is the same ring"),
    scenario!(ring_close_mapped, "a closed ring's memory stays mapped"),
    scenario!(ring_reuse_number, "a closed ring's number used by another file"),
    scenario!(ring_close_pending, "closing a ring drops what is pending, files included"),
    scenario!(ring_1000, "1,000 rings under a small memlock limit", 30),
    scenario!(ring_256_threads, "256 threads, each with its ring", 30),
    scenario!(fork_child_own_ring, "a forked child makes a ring of its own"),
    scenario!(
        fork_parent_unharmed,
        "a forked child that touches the parent's ring leaves the parent unharmed"
    ),
    scenario!(exec_closes_ring, "a ring's descriptor is closed on exec"),
    scenario!(thread_exit_timer, "a thread that submitted a timeout ends: the timeout fires"),
    scenario!(thread_exit_read, "a thread that submitted a pipe read ends: the read ends, once"),
    scenario!(scm_rights_refused, "a ring's descriptor over a unix socket"),
];

fn disabled(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, R_DISABLED | kind);
        r.push(nop(1));
        cx.say("submit", res(r.enter(1, 0, 0)));
        cx.say("GETEVENTS", res(r.enter(0, 0, GETEVENTS)));
        cx.say("enable", res(r.reg(register::ENABLE_RINGS, 0, 0)));
        cx.say("enable again", res(r.reg(register::ENABLE_RINGS, 0, 0)));
        cx.say("submit", r.go(1));
    });
    let r = Ring::new(8, 0);
    cx.say("enable a ring that is not disabled", res(r.reg(register::ENABLE_RINGS, 0, 0)));
    let r = Ring::new(8, R_DISABLED);
    cx.say("enable with an argument", res(r.reg(register::ENABLE_RINGS, mem::BAD, 0)));
    cx.say("enable with nr 1", res(r.reg(register::ENABLE_RINGS, 0, 1)));
}

fn disabled_registers(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, R_DISABLED);
    cx.say("files", res(r.reg(register::FILES, leak([*p]), 1)));
    cx.say(
        "buffers",
        res(r.reg(register::BUFFERS, mem::iovecs(&[(sys::pages(4096) as usize, 4096)]), 1)),
    );
    cx.say("eventfd", res(r.reg(register::EVENTFD, leak(*crate::fixture::eventfd(0)), 1)));
    cx.say("probe", res(r.reg(register::PROBE, at(buf(16 + 8 * 64)), 64)));
    r.reg(register::ENABLE_RINGS, 0, 0);
    cx.say("file used", r.one(nop(1).opf(2 | 4).fd(0)));
}

fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| s.spawn(f).join()).unwrap_or_else(|_| panic!("thread failed"))
}

fn from_other_thread(r: &Ring) -> String {
    r.push(nop(1));
    elsewhere(|| {
        let b = buf(16 + 8 * 64);
        format!(
            "submit {} GETEVENTS {} nothing {} register {}",
            res(r.enter(1, 0, 0)),
            res(r.enter(0, 0, GETEVENTS)),
            res(r.enter(0, 0, 0)),
            res(r.reg(register::PROBE, at(b), 64))
        )
    })
}

fn single_issuer(cx: &mut Cx) {
    let r = Ring::new(8, SINGLE_ISSUER);
    cx.say("other thread", from_other_thread(&r));
    cx.say("owner", r.go(1));
}

fn single_issuer_defer(cx: &mut Cx) {
    let r = Ring::new(8, SINGLE_ISSUER | DEFER_TASKRUN);
    cx.say("other thread", from_other_thread(&r));
    cx.say("owner", r.go(1));
}

fn single_issuer_enabled_elsewhere(cx: &mut Cx) {
    for (name, flags) in [("single", SINGLE_ISSUER), ("defer", SINGLE_ISSUER | DEFER_TASKRUN)] {
        let r = Ring::new(8, flags | R_DISABLED);
        r.push(nop(1));
        let there = elsewhere(|| {
            format!(
                "enable {} submit {}",
                res(r.reg(register::ENABLE_RINGS, 0, 0)),
                res(r.enter(1, 0, 0))
            )
        });
        cx.say(&format!("{name}, other thread"), there);
        r.push(nop(2));
        cx.say(&format!("{name}, creator submits"), res(r.enter(1, 0, 0)));
    }
}

fn plain_other_thread(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    cx.say("other thread", from_other_thread(&r));
    cx.say("CQ", r.cqes());
    r.push(nop(2));
    cx.say("submit and wait there", elsewhere(|| r.go_plain(1)));
    let (p, w) = pipe();
    r.push(read(*p, at(buf(4)), 4, 3));
    r.submit();
    elsewhere(|| sys::write(*w, b"x"));
    cx.say("wait there for what was submitted here", elsewhere(|| r.go(1)));
}

fn restriction(kind: u16, value: u8) -> register::Restriction {
    register::Restriction { opcode: kind, value, ..Default::default() }
}

fn restricted(list: &[register::Restriction]) -> (Ring, String) {
    let r = Ring::new(8, R_DISABLED);
    let v = r.reg(register::RESTRICTIONS, at(Vec::leak(list.to_vec())), list.len() as u32);
    r.reg(register::ENABLE_RINGS, 0, 0);
    (r, res(v))
}

const REGISTER_OP: u16 = 0;
const SQE_OP: u16 = 1;
const FLAGS_ALLOWED: u16 = 2;
const FLAGS_REQUIRED: u16 = 3;

fn restrict_ops(cx: &mut Cx) {
    let (r, v) = restricted(&[restriction(SQE_OP, op::NOP)]);
    cx.say("register", v);
    cx.say("allowed opcode", r.one(nop(1)));
    cx.say("other opcode", r.one(bad_read(2)));
    cx.say("a flag", r.one(nop(3).flags(ASYNC)));
    let (r, _) = restricted(&[
        restriction(SQE_OP, op::NOP),
        restriction(FLAGS_ALLOWED, ASYNC),
        restriction(FLAGS_REQUIRED, IO_HARDLINK),
    ]);
    cx.say("required flag missing", r.one(nop(1)));
    cx.say("required flag", r.one(nop(1).flags(IO_HARDLINK)));
    cx.say("required and allowed", r.one(nop(1).flags(IO_HARDLINK | ASYNC)));
    cx.say("neither", r.one(nop(1).flags(IO_HARDLINK | IO_DRAIN)));
}

fn restrict_registers(cx: &mut Cx) {
    let b = buf(16 + 8 * 64);
    let (r, v) = restricted(&[restriction(REGISTER_OP, register::FILES as u8)]);
    cx.say("register", v);
    let (p, _w) = pipe();
    cx.say("allowed", res(r.reg(register::FILES, leak([*p]), 1)));
    cx.say("other", res(r.reg(register::PROBE, at(b), 64)));
    cx.say("an SQE", r.one(nop(1)));
    let (r, v) = restricted(&[restriction(SQE_OP, op::NOP)]);
    cx.say(
        "only SQE restrictions, then register",
        format!("{v} {}", res(r.reg(register::PROBE, at(b), 64))),
    );
    let r = Ring::new(8, R_DISABLED);
    cx.say("empty list", res(r.reg(register::RESTRICTIONS, 0, 0)));
}

fn restrict_bad(cx: &mut Cx) {
    let one = |k, v| leak(restriction(k, v));
    let fresh = || Ring::new(8, R_DISABLED);
    cx.say("unknown kind", res(fresh().reg(register::RESTRICTIONS, one(4, 0), 1)));
    cx.say("unknown opcode", res(fresh().reg(register::RESTRICTIONS, one(SQE_OP, 200), 1)));
    cx.say(
        "unknown register operation",
        res(fresh().reg(register::RESTRICTIONS, one(REGISTER_OP, 200), 1)),
    );
    cx.say("unmapped", res(fresh().reg(register::RESTRICTIONS, mem::BAD, 1)));
    let r = fresh();
    cx.say("once", res(r.reg(register::RESTRICTIONS, one(SQE_OP, 0), 1)));
    cx.say("twice", res(r.reg(register::RESTRICTIONS, one(SQE_OP, 0), 1)));
    cx.say(
        "on an enabled ring",
        res(Ring::new(8, 0).reg(register::RESTRICTIONS, one(SQE_OP, 0), 1)),
    );
    cx.say("5000 entries", res(fresh().reg(register::RESTRICTIONS, one(SQE_OP, 0), 5000)));
}

/// One entry of RING_FDS: offset, reserved, descriptor.
fn slot(offset: u32, resv: u32, fd: i64) -> [u64; 2] {
    [u64::from(offset) | u64::from(resv) << 32, fd as u64]
}

fn ring_fds_register(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let e = leak([slot(u32::MAX, 0, r.fd.into())]);
    cx.say("pick", res(r.reg(register::RING_FDS, e, 1)));
    // SAFETY: leaked above.
    let index = unsafe { (e as *const u32).read() };
    cx.say("index", index);
    r.push(nop(1));
    let v = sys::enter(index as i32, 1, 1, GETEVENTS | REGISTERED_RING, 0, 8);
    cx.say("enter", format!("{} {}", res(v), r.cqes()));
    let b = buf(16 + 8 * 64);
    cx.say(
        "register",
        res(sys::register(
            index as i32,
            register::PROBE | register::USE_REGISTERED_RING,
            at(b),
            64,
        )),
    );
    cx.say("slot 5", res(r.reg(register::RING_FDS, leak([slot(5, 0, r.fd.into())]), 1)));
    cx.say("slot 5 again", res(r.reg(register::RING_FDS, leak([slot(5, 0, r.fd.into())]), 1)));
    r.push(nop(2));
    let v = sys::enter(5, 1, 1, GETEVENTS | REGISTERED_RING, 0, 8);
    cx.say("enter 5", format!("{} {}", res(v), r.cqes()));
    let other = elsewhere(|| res(sys::enter(5, 0, 0, REGISTERED_RING, 0, 8)));
    cx.say(
        "index 5 in another thread",
        if other == "-EBADF" || other == "-EINVAL" { "refused".into() } else { other },
    );
    cx.say("unregister 5", res(r.reg(register::UNREGISTER_RING_FDS, leak([slot(5, 0, 0)]), 1)));
    cx.say("enter 5", res(sys::enter(5, 0, 0, REGISTERED_RING, 0, 8)));
    cx.say(
        "unregister 5 again",
        res(r.reg(register::UNREGISTER_RING_FDS, leak([slot(5, 0, 0)]), 1)),
    );
    let many: Vec<[u64; 2]> = (0..16).map(|_| slot(u32::MAX, 0, r.fd.into())).collect();
    cx.say("16 more with 15 free", res(r.reg(register::RING_FDS, at(Vec::leak(many)), 16)));
}

fn ring_fds_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (p, _w) = pipe();
    let reg = |e: [u64; 2], n| res(r.reg(register::RING_FDS, leak([e]), n));
    cx.say("offset 16", reg(slot(16, 0, r.fd.into()), 1));
    cx.say("reserved", reg(slot(0, 1, r.fd.into()), 1));
    cx.say("closed number", reg(slot(0, 0, 999), 1));
    cx.say("a pipe", reg(slot(0, 0, (*p).into()), 1));
    cx.say("0 entries", reg(slot(0, 0, r.fd.into()), 0));
    cx.say("17 entries", reg(slot(0, 0, r.fd.into()), 17));
    cx.say("unmapped", res(r.reg(register::RING_FDS, mem::BAD, 1)));
    let un = |e: [u64; 2], n| res(r.reg(register::UNREGISTER_RING_FDS, leak([e]), n));
    cx.say("unregister offset 16", un(slot(16, 0, 0), 1));
    cx.say("unregister with a descriptor", un(slot(0, 0, 3), 1));
    cx.say("unregister with reserved", un(slot(0, 1, 0), 1));
    cx.say("unregister an empty slot", un(slot(3, 0, 0), 1));
}

fn ring_fds_closed(cx: &mut Cx) {
    let mut r = Ring::new(8, 0);
    r.reg(register::RING_FDS, leak([slot(0, 0, r.fd.into())]), 1);
    sys::close(r.fd);
    r.fd = -1;
    for i in 0..3 {
        r.push(nop(i));
        let v = sys::enter(0, 1, 1, GETEVENTS | REGISTERED_RING, 0, 8);
        cx.say("enter by index", format!("{} {}", res(v), r.cqes()));
    }
    let (p, w) = pipe();
    r.push(read(*p, at(buf(4)), 4, 7));
    sys::enter(0, 1, 0, REGISTERED_RING, 0, 8);
    sys::write(*w, b"x");
    let v = sys::enter(0, 0, 1, GETEVENTS | REGISTERED_RING, 0, 8);
    cx.say("a read that waits", format!("{} {}", res(v), r.cqes()));
}

fn ring_dup(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let mut r = Ring::new(8, kind);
        let copy = sys::dup(r.fd);
        cx.say("dup", ok(copy));
        r.push(nop(1));
        cx.say(
            "enter by the copy",
            format!("{} {}", res(sys::enter(copy, 1, 1, GETEVENTS, 0, 8)), r.cqes()),
        );
        sys::close(r.fd);
        r.fd = copy;
        r.push(nop(2));
        cx.say("original closed", r.go(1));
        // SAFETY: no memory involved.
        let high = unsafe { libc::fcntl(r.fd, libc::F_DUPFD_CLOEXEC, 700) };
        cx.say("F_DUPFD_CLOEXEC above 700", high >= 700);
        r.push(nop(3));
        cx.say(
            "enter by it",
            format!("{} {}", res(sys::enter(high, 1, 1, GETEVENTS, 0, 8)), r.cqes()),
        );
        let (p, _w) = pipe();
        let number = *p;
        // SAFETY: no memory involved.
        cx.say("dup2 over a pipe", unsafe { libc::dup2(r.fd, number) } == number);
        r.push(nop(4));
        cx.say(
            "enter by it",
            format!("{} {}", res(sys::enter(number, 1, 1, GETEVENTS, 0, 8)), r.cqes()),
        );
        let m = sys::mmap(high, 4096, libc::PROT_READ, libc::MAP_SHARED, 0);
        cx.say("mmap by a copy", m.map_or_else(res, |_| "ok".into()));
        sys::close(high);
        r.push(nop(5));
        cx.say("one copy closed", r.go(1));
    });
}

fn ring_close_mapped(cx: &mut Cx) {
    let mut r = Ring::new(8, 0);
    r.push(nop(1));
    r.submit();
    let fd = r.fd;
    sys::close(fd);
    r.fd = -1;
    cx.say("CQE readable", r.cqes());
    r.push(nop(2));
    cx.say("enter", res(sys::enter(fd, 1, 0, 0, 0, 8)));
    cx.say("register", res(sys::register(fd, register::ENABLE_RINGS, 0, 0)));
    cx.say("close again", res(sys::close(fd)));
}

fn ring_reuse_number(cx: &mut Cx) {
    let mut r = Ring::new(8, 0);
    let number = r.fd;
    let (p, _w) = pipe();
    // SAFETY: no memory involved.
    cx.say("dup2 over the ring", unsafe { libc::dup2(*p, number) } == number);
    cx.say("enter", res(sys::enter(number, 0, 0, 0, 0, 8)));
    r.fd = number;
    drop(r);
    let second = Ring::new(8, 0);
    cx.say("another ring works", second.one(nop(1)));
}

fn ring_close_pending(cx: &mut Cx) {
    let (a, b) = UnixStream::pair().expect("socketpair");
    let r = Ring::new(8, 0);
    r.push_all(&[recv(a.as_raw_fd(), at(buf(8)), 8, 1), timeout(mem::ms(60_000), 0, 2)]);
    r.submit();
    drop(a);
    cx.say("peer while the receive holds the socket", sys::poll_now(b.as_raw_fd(), POLLIN));
    drop(r);
    // Teardown is asynchronous.
    cx.say("peer sees the end", sys::poll_for(b.as_raw_fd(), POLLIN, 3000) & libc::POLLHUP);
    cx.say("read there", sys::read(b.as_raw_fd(), 8).map_or_else(res, |v| v.len().to_string()));
}

fn limit_memlock(bytes: u64) {
    let l = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: a valid limit; it holds for this process only.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &l) };
}

fn raise_nofile() {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit structure.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut l);
        l.rlim_cur = l.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &l);
    }
}

fn ring_1000(cx: &mut Cx) {
    // 8 MiB and 64 KiB, as `ulimit -l 8192` and `-l 64` give. The kernel charges
    // nothing to a privileged process, an engine in user space to nobody.
    raise_nofile();
    for limit in [8192u64 << 10, 64 << 10] {
        limit_memlock(limit);
        let rings: Vec<Result<Ring, i64>> =
            (0..1000).map(|_| Ring::with(8, Params::default())).collect();
        let made = rings.iter().filter(|r| r.is_ok()).count();
        cx.say(&format!("made under {limit} bytes"), made);
        let works = rings.iter().flatten().filter(|r| r.one(nop(5)) == "1 0 [5:0]").count();
        cx.say("they work", works);
    }
}

fn ring_256_threads(cx: &mut Cx) {
    raise_nofile();
    let gate = std::sync::Barrier::new(256);
    let good: usize = std::thread::scope(|s| {
        let all: Vec<_> = (0..256u64)
            .map(|i| {
                let gate = &gate;
                s.spawn(move || {
                    let ring = Ring::with(64, Params::default());
                    gate.wait();
                    ring.is_ok_and(|r| {
                        let (p, w) = pipe();
                        r.push_all(&[nop(i), read(*p, at(buf(4)), 4, i)]);
                        r.submit();
                        sys::write(*w, b"abcd");
                        r.collect(2).len() == 2
                    })
                })
            })
            .collect();
        all.into_iter().map(|t| usize::from(t.join().unwrap_or(false))).sum()
    });
    cx.say("threads whose ring works", good);
}

/// Runs `f` in a forked child; its answer comes back as text.
fn in_child(f: impl FnOnce() -> String) -> String {
    let (p, w) = pipe();
    // SAFETY: the child only runs `f`, writes and leaves.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        sys::alarm(5);
        sys::write(*w, f().as_bytes());
        // SAFETY: leaves without running destructors of the parent's state.
        unsafe { libc::_exit(0) };
    }
    drop(w);
    let mut text = Vec::new();
    while let Ok(b) = sys::read(*p, 512) {
        if b.is_empty() {
            break;
        }
        text.extend(b);
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    if status == 0 {
        mem::text(&text)
    } else {
        format!("{} died {status:#x}", mem::text(&text))
    }
}

fn fork_child_own_ring(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    cx.say("parent before", r.one(nop(1)));
    let (p, w) = pipe();
    r.push(read(*p, at(buf(8)), 8, 2));
    r.submit();
    let child = in_child(|| {
        let own = Ring::new(8, 0);
        let (p, w) = pipe();
        let f = std::fs::File::open("/proc/self/stat").expect("a file");
        own.push_all(&[
            read(*p, at(buf(8)), 8, 7),
            read(f.as_raw_fd(), at(buf(4)), 4, 8).flags(ASYNC),
        ]);
        own.submit();
        sys::write(*w, b"data");
        show_sorted(own.collect(2))
    });
    cx.say("child", child);
    sys::write(*w, b"x");
    cx.say("parent after", r.go(1));
}

fn fork_parent_unharmed(cx: &mut Cx) {
    // The kernel lets a child use an inherited ring; an engine in user space may refuse.
    // What must hold on both: a clear result, and the parent goes on.
    let r = Ring::new(8, 0);
    let (p, w) = pipe();
    r.push(read(*p, at(buf(8)), 8, 2));
    r.submit();
    let child = in_child(|| {
        let v = sys::enter(r.fd, 0, 0, GETEVENTS, 0, 8);
        if (-4095..=0).contains(&v) {
            "a clear result".into()
        } else {
            res(v)
        }
    });
    cx.say("child enters", child);
    cx.say("child closes it", in_child(|| res(sys::close(r.fd))));
    sys::write(*w, b"x");
    cx.say("parent's read", r.go(1));
    cx.say("parent's NOP", r.one(nop(3)));
}

fn exec_closes_ring(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let out = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("test -e /proc/self/fd/{} && echo open || echo closed", r.fd))
        .output();
    cx.say(
        "in a shell",
        out.map_or_else(
            |e| e.to_string(),
            |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
        ),
    );
    cx.say("here", r.one(nop(1)));
}

fn thread_exit_timer(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    r.push_all(&[timeout(mem::ms(60), 0, 8), nop(1)]);
    elsewhere(|| r.submit());
    cx.say("at once", r.cqes());
    cx.say("later", show(&r.collect(1)));
}

fn thread_exit_read(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (p, w) = pipe();
    r.push(read(*p, at(buf(8)), 8, 7));
    elsewhere(|| r.submit());
    cx.say("at once", r.cqes());
    sys::write(*w, b"x");
    // Its submitter is gone: with data, or cancelled.
    let c = r.collect(1);
    let fine = c.len() == 1 && [1, -libc::ECANCELED, -libc::EFAULT].contains(&c[0].res);
    cx.say("ended once", if fine { "true".into() } else { show(&c) });
    cx.say("ring works", r.one(nop(3)));
}

fn scm_rights_refused(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (a, _b) = UnixStream::pair().expect("socketpair");
    let mut byte = [0u8; 1];
    let mut iov = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0u64; 4];
    // SAFETY: message, vector and control buffer are valid for the call.
    let v = unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_iov = &mut iov;
        m.msg_iovlen = 1;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let c = libc::CMSG_FIRSTHDR(&m);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(c).cast::<i32>().write_unaligned(r.fd);
        libc::sendmsg(a.as_raw_fd(), &m, 0)
    };
    cx.say("sendmsg", res(sys::ret(v as i64)));
}
