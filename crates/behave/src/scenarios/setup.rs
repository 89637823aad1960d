//! io_uring_setup, the layout of the shared memory, mmap, probe and query.

use crate::prelude::*;
use anyring_uapi::setup::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(setup_params, "what setup fills in: sizes, offsets, features"),
    scenario!(setup_sizes, "entries, CQSIZE, CLAMP and their limits"),
    scenario!(setup_flags_single, "each setup flag alone"),
    scenario!(setup_flags_combined, "setup flags that need or exclude one another"),
    scenario!(setup_sqpoll_affinity, "SQ_AFF with a CPU that does not exist"),
    scenario!(setup_attach_wq, "ATTACH_WQ to nothing, to a file, to rings"),
    scenario!(setup_layout, "offsets with larger CQEs, larger SQEs, no SQ array"),
    scenario!(setup_bad_params, "bad parameter addresses and reserved words"),
    scenario!(setup_fd, "the ring's descriptor: close-on-exec, access mode, not readable"),
    scenario!(ring_mmap, "mmap of each offset, of too much, privately"),
    scenario!(ring_words, "what the shared words say on a fresh ring"),
    scenario!(probe_ops, "which opcodes the probe calls supported"),
    scenario!(probe_args, "probe with odd arguments"),
    scenario!(query_opcodes, "REGISTER_QUERY 0: the limits of this io_uring"),
    scenario!(query_unknown, "REGISTER_QUERY of unknown queries and bad headers"),
    scenario!(register_null, "each register operation with a NULL argument"),
    scenario!(register_bad_fd, "register on files that are no rings"),
];

const FLAG_NAMES: &[(&str, u32)] = &[
    ("IOPOLL", IOPOLL),
    ("SQPOLL", SQPOLL),
    ("SQ_AFF", SQ_AFF),
    ("CQSIZE", CQSIZE),
    ("CLAMP", CLAMP),
    ("ATTACH_WQ", ATTACH_WQ),
    ("R_DISABLED", R_DISABLED),
    ("SUBMIT_ALL", SUBMIT_ALL),
    ("COOP_TASKRUN", COOP_TASKRUN),
    ("TASKRUN_FLAG", TASKRUN_FLAG),
    ("SQE128", SQE128),
    ("CQE32", CQE32),
    ("SINGLE_ISSUER", SINGLE_ISSUER),
    ("DEFER_TASKRUN", DEFER_TASKRUN),
    ("NO_MMAP", NO_MMAP),
    ("REGISTERED_FD_ONLY", REGISTERED_FD_ONLY),
    ("NO_SQARRAY", NO_SQARRAY),
    ("HYBRID_IOPOLL", HYBRID_IOPOLL),
    ("CQE_MIXED", CQE_MIXED),
    ("bit 19", 1 << 19),
    ("bit 20", 1 << 20),
    ("bit 31", 1 << 31),
];

/// Sets up and closes again; `ok sq cq` or the error, with the sizes as left behind.
fn try_setup(entries: u32, p: Params) -> String {
    let (fd, p) = raw_setup(entries, p);
    if fd < 0 {
        return res(fd);
    }
    sys::close(fd as i32);
    format!("ok {} {}", p.sq_entries, p.cq_entries)
}

fn setup_params(cx: &mut Cx) {
    let r = Ring::new(5, 0);
    let (s, c) = (r.p.sq_off, r.p.cq_off);
    cx.say("sizes", format!("{} {}", r.p.sq_entries, r.p.cq_entries));
    cx.say("flags", format!("{:#x}", r.p.flags));
    cx.say("features", format!("{:#x}", r.p.features));
    cx.say(
        "sq_off",
        format!(
            "{:?}",
            [s.head, s.tail, s.ring_mask, s.ring_entries, s.flags, s.dropped, s.array, s.resv1]
        ),
    );
    cx.say(
        "cq_off",
        format!(
            "{:?}",
            [c.head, c.tail, c.ring_mask, c.ring_entries, c.overflow, c.cqes, c.flags, c.resv1]
        ),
    );
    cx.say("user_addr", format!("{} {}", s.user_addr, c.user_addr));
}

fn setup_sizes(cx: &mut Cx) {
    for entries in [1, 0, 3, 32768, 32769, u32::MAX] {
        cx.say(&format!("{entries} entries"), try_setup(entries, Params::default()));
        cx.say(
            &format!("{entries} entries, CLAMP"),
            try_setup(entries, Params { flags: CLAMP, ..Params::default() }),
        );
    }
    for cq in [0, 3, 4, 5, 65536, 65537] {
        let p = Params { flags: CQSIZE, cq_entries: cq, ..Params::default() };
        cx.say(&format!("4 entries, CQSIZE {cq}"), try_setup(4, p));
        let p = Params { flags: CQSIZE | CLAMP, cq_entries: cq, ..Params::default() };
        cx.say(&format!("4 entries, CQSIZE|CLAMP {cq}"), try_setup(4, p));
    }
    let p = Params { cq_entries: 7, ..Params::default() };
    cx.say("cq_entries without CQSIZE", try_setup(4, p));
    let p = Params { flags: CQSIZE, cq_entries: 7, ..Params::default() };
    cx.say("8 entries, CQSIZE 7", try_setup(8, p));
    let p = Params { flags: CQSIZE, cq_entries: 4, ..Params::default() };
    cx.say("8 entries, CQSIZE 4", try_setup(8, p));
    for cq in [1, 2] {
        let p = Params { flags: CQSIZE | CQE_MIXED, cq_entries: cq, ..Params::default() };
        cx.say(&format!("CQE_MIXED with {cq} CQEs"), try_setup(1, p));
    }
}

fn setup_flags_single(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    for (name, flag) in FLAG_NAMES {
        let p = Params { flags: *flag, wq_fd: r.fd as u32, cq_entries: 8, ..Params::default() };
        cx.say(name, try_setup(4, p));
    }
}

fn setup_flags_combined(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let combos = [
        ("SQPOLL|COOP", SQPOLL | COOP_TASKRUN),
        ("SQPOLL|DEFER|SINGLE", SQPOLL | DEFER_TASKRUN | SINGLE_ISSUER),
        ("SQPOLL|TASKRUN", SQPOLL | TASKRUN_FLAG),
        ("TASKRUN|COOP", TASKRUN_FLAG | COOP_TASKRUN),
        ("TASKRUN|DEFER|SINGLE", TASKRUN_FLAG | DEFER_TASKRUN | SINGLE_ISSUER),
        ("DEFER|SINGLE", DEFER_TASKRUN | SINGLE_ISSUER),
        ("DEFER|SINGLE|COOP", DEFER_TASKRUN | SINGLE_ISSUER | COOP_TASKRUN),
        ("HYBRID|IOPOLL", HYBRID_IOPOLL | IOPOLL),
        ("CQE32|CQE_MIXED", CQE32 | CQE_MIXED),
        ("SQPOLL|SQ_AFF", SQPOLL | SQ_AFF),
        ("IOPOLL|DEFER|SINGLE", IOPOLL | DEFER_TASKRUN | SINGLE_ISSUER),
        ("IOPOLL|SQPOLL", IOPOLL | SQPOLL),
        ("REGISTERED_FD_ONLY|NO_MMAP", REGISTERED_FD_ONLY | NO_MMAP),
        ("NO_SQARRAY|SQE128", NO_SQARRAY | SQE128),
        ("SQPOLL|SINGLE", SQPOLL | SINGLE_ISSUER),
        ("R_DISABLED|SINGLE", R_DISABLED | SINGLE_ISSUER),
        ("SQPOLL|ATTACH_WQ to a plain ring", SQPOLL | ATTACH_WQ),
        ("CLAMP|SUBMIT_ALL|SQE128|CQE32", CLAMP | SUBMIT_ALL | SQE128 | CQE32),
    ];
    for (name, flags) in combos {
        let p = Params { flags, wq_fd: r.fd as u32, cq_entries: 8, ..Params::default() };
        cx.say(name, try_setup(4, p));
    }
}

fn setup_sqpoll_affinity(cx: &mut Cx) {
    for cpu in [0, 999, u32::MAX] {
        let p = Params { flags: SQPOLL | SQ_AFF, sq_thread_cpu: cpu, ..Params::default() };
        cx.say(&format!("cpu {cpu}"), try_setup(4, p));
    }
    let p = Params { flags: SQPOLL, sq_thread_cpu: 999, ..Params::default() };
    cx.say("cpu 999 without SQ_AFF", try_setup(4, p));
}

fn setup_attach_wq(cx: &mut Cx) {
    let plain = Ring::new(4, 0);
    let polled = Ring::with(4, Params { flags: SQPOLL, sq_thread_idle: 10, ..Params::default() })
        .expect("SQPOLL ring");
    let (file, _w) = pipe();
    let targets = [
        ("nothing", 999),
        ("a pipe", file.0),
        ("a plain ring", plain.fd),
        ("an SQPOLL ring", polled.fd),
    ];
    for (name, fd) in targets {
        for (kind, flags) in [("ATTACH_WQ", ATTACH_WQ), ("ATTACH_WQ|SQPOLL", ATTACH_WQ | SQPOLL)] {
            let p = Params { flags, wq_fd: fd as u32, ..Params::default() };
            cx.say(&format!("{kind} to {name}"), try_setup(4, p));
        }
    }
    cx.say("wq_fd without ATTACH_WQ", try_setup(4, Params { wq_fd: 999, ..Params::default() }));
}

fn setup_layout(cx: &mut Cx) {
    for (name, flags) in [
        ("plain", 0),
        ("CQE32", CQE32),
        ("NO_SQARRAY", NO_SQARRAY),
        ("SQE128", SQE128),
        ("CQE_MIXED", CQE_MIXED),
    ] {
        for entries in [1, 8, 64] {
            let r = Ring::new(entries, flags);
            cx.say(
                &format!("{name} {entries}"),
                format!("array {} cqes {}", r.p.sq_off.array, r.p.cq_off.cqes),
            );
        }
    }
}

fn setup_bad_params(cx: &mut Cx) {
    cx.say("NULL", res(sys::setup(4, 0)));
    cx.say("unmapped", res(sys::setup(4, mem::BAD)));
    let page = sys::pages(4096);
    sys::mmap(-1, 4096, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
        .map(|p| cx.say("read-only page", res(sys::setup(4, p as usize))))
        .expect("memory");
    cx.say("last bytes of a page, next unmapped", {
        let two = sys::pages(8192);
        // SAFETY: the second page is ours and unused.
        sys::munmap(unsafe { two.add(4096) }, 4096);
        res(sys::setup(4, two as usize + 4096 - 60))
    });
    sys::munmap(page, 4096);
    for i in 0..3 {
        let mut p = Params::default();
        p.resv[i] = 1;
        cx.say(&format!("resv[{i}] set"), try_setup(4, p));
    }
}

fn setup_fd(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    // SAFETY: no memory involved.
    let cloexec = unsafe { libc::fcntl(r.fd, libc::F_GETFD) };
    cx.say("F_GETFD", cloexec);
    cx.say("read", sys::read(r.fd, 8).err().map_or("ok".into(), res));
    cx.say("write", res(sys::write(r.fd, b"x")));
    // SAFETY: no memory involved.
    cx.say("lseek", res(sys::ret(unsafe { libc::lseek(r.fd, 0, libc::SEEK_SET) })));
}

fn ring_mmap(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let mut ask = |name: &str, len: usize, prot, flags, off| {
        let m = sys::mmap(r.fd, len, prot, flags, off);
        cx.say(
            name,
            m.map_or_else(res, |p| {
                sys::munmap(p, len);
                "ok".into()
            }),
        );
    };
    for off in [0, 0x800_0000, 0x1000_0000, 0x3000_0000, 0x8000_0000, 0x8001_0000u64] {
        ask(&format!("offset {off:#x}"), 4096, rw, libc::MAP_SHARED, off);
    }
    ask("read only", 4096, libc::PROT_READ, libc::MAP_SHARED, 0);
    ask("with MAP_POPULATE", 4096, rw, libc::MAP_SHARED | libc::MAP_POPULATE, 0);
    let a = sys::mmap(r.fd, 4096, rw, libc::MAP_SHARED, 0x800_0000).expect("CQ ring");
    // SAFETY: both mappings are at least a page, and the word is aligned.
    unsafe { r.base.add(r.p.cq_off.head as usize).cast::<u32>().write_volatile(77) };
    // SAFETY: as above.
    let seen = unsafe { a.add(r.p.cq_off.head as usize).cast::<u32>().read_volatile() };
    cx.say("both offsets are the same memory", seen == 77);
    sys::munmap(a, 4096);
}

fn ring_words(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (s, c) = (r.p.sq_off, r.p.cq_off);
    for (name, off) in [
        ("sq head", s.head),
        ("sq tail", s.tail),
        ("sq mask", s.ring_mask),
        ("sq entries", s.ring_entries),
        ("sq flags", s.flags),
        ("sq dropped", s.dropped),
        ("cq head", c.head),
        ("cq tail", c.tail),
        ("cq mask", c.ring_mask),
        ("cq entries", c.ring_entries),
        ("cq overflow", c.overflow),
        ("cq flags", c.flags),
    ] {
        cx.say(name, r.load(off));
    }
}

fn probe_ops(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let b = buf(16 + 8 * 256);
    cx.say("result", res(r.reg(register::PROBE, at(b), 256)));
    cx.say("last_op", b[0]);
    cx.say("ops_len", b[1]);
    for (i, name) in super::matrix::NAMES.iter().enumerate() {
        let e = &b[16 + 8 * i..];
        cx.say(name, format!("op {} flags {}", e[0], u16::from_ne_bytes([e[2], e[3]])));
    }
}

fn probe_args(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let b = buf(16 + 8 * 300);
    cx.say("257 entries", res(r.reg(register::PROBE, at(b), 257)));
    cx.say("NULL", res(r.reg(register::PROBE, 0, 16)));
    cx.say("unmapped", res(r.reg(register::PROBE, mem::BAD, 16)));
    cx.say("0 entries", res(r.reg(register::PROBE, at(b), 0)));
    b.fill(0);
    cx.say(
        "2 entries",
        format!(
            "{} ops_len {} untouched after {}",
            res(r.reg(register::PROBE, at(b), 2)),
            b[1],
            b[32..].iter().all(|x| *x == 0)
        ),
    );
    b.fill(1);
    cx.say("buffer not zeroed", res(r.reg(register::PROBE, at(b), 16)));
}

/// One REGISTER_QUERY header.
fn query_header(next: usize, data: usize, query: u32, size: u32) -> [u64; 5] {
    [next as u64, data as u64, u64::from(query) | u64::from(size) << 32, 0, 0]
}

fn query_opcodes(cx: &mut Cx) {
    let data = buf(64);
    let h = leak(query_header(0, at(data), 0, 64));
    cx.say("result", res(sys::register(-1, register::QUERY, h, 0)));
    // SAFETY: leaked above.
    let h = unsafe { *(h as *const [u64; 5]) };
    cx.say("header", format!("op {} size {} result {}", h[2] as u32, h[2] >> 32, h[3] as i32));
    let u32_at = |i: usize| u32::from_ne_bytes(data[i..i + 4].try_into().expect("4 bytes"));
    let u64_at = |i: usize| u64::from_ne_bytes(data[i..i + 8].try_into().expect("8 bytes"));
    cx.say("request opcodes", u32_at(0));
    cx.say("register opcodes", u32_at(4));
    cx.say("features", format!("{:#x}", u64_at(8)));
    cx.say("setup flags", format!("{:#x}", u64_at(16)));
    cx.say("enter flags", format!("{:#x}", u64_at(24)));
    cx.say("SQE flags", format!("{:#x}", u64_at(32)));
    cx.say("query opcodes", u32_at(40));
}

fn query_unknown(cx: &mut Cx) {
    let data = buf(64);
    for query in [1, 2, 3, u32::MAX] {
        data.fill(7);
        let h = leak(query_header(0, at(data), query, 64));
        let r = sys::register(-1, register::QUERY, h, 0);
        // SAFETY: leaked above.
        let v = unsafe { *(h as *const [u64; 5]) };
        cx.say(
            &format!("query {query}"),
            format!("{} size {} result {}", res(r), v[2] >> 32, res(v[3] as i32)),
        );
    }
    let h = leak(query_header(0, at(data), 0, 64));
    cx.say("nr_args 1", res(sys::register(-1, register::QUERY, h, 1)));
    cx.say("NULL header", res(sys::register(-1, register::QUERY, 0, 0)));
    cx.say("bad header", res(sys::register(-1, register::QUERY, mem::BAD, 0)));
    cx.say(
        "bad next",
        res(sys::register(-1, register::QUERY, leak(query_header(mem::BAD, at(data), 0, 64)), 0)),
    );
    let ring = Ring::new(4, 0);
    cx.say("through a ring", res(ring.reg(register::QUERY, h, 0)));
    let short = leak(query_header(0, at(data), 0, 8));
    data.fill(7);
    cx.say(
        "8 bytes of answer",
        format!("{} {:?}", res(ring.reg(register::QUERY, short, 0)), &data[..12]),
    );
}

fn register_null(cx: &mut Cx) {
    for op in 0..40 {
        // A ring of its own each: some operations change the ring.
        let r = Ring::new(4, 0);
        cx.say(&format!("op {op:2}"), res(r.reg(op, 0, 0)));
    }
}

fn register_bad_fd(cx: &mut Cx) {
    let (p, _w) = pipe();
    let b = buf(16 + 8 * 64);
    cx.say("a pipe", res(sys::register(p.0, register::PROBE, at(b), 16)));
    cx.say("closed number", res(sys::register(999, register::PROBE, at(b), 16)));
    cx.say("fd -1", res(sys::register(-1, register::PROBE, at(b), 16)));
    let r = Ring::new(4, 0);
    cx.say("operation 36", res(r.reg(36, 0, 0)));
    cx.say(
        "registered index with none registered",
        res(sys::register(0, register::PROBE | 1 << 31, at(b), 16)),
    );
    cx.say(
        "registered index out of range",
        res(sys::register(16, register::PROBE | 1 << 31, at(b), 16)),
    );
}
