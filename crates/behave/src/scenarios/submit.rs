//! What a submission counts, where it stops, and what the SQ array and indices may hold.

use crate::prelude::*;
use anyring_uapi::setup::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(submit_bad_opcode, "a bad opcode in the middle, without and with SUBMIT_ALL"),
    scenario!(
        submit_bad_opcode_wait,
        "a bad opcode in the middle, waiting for all: returns short at once"
    ),
    scenario!(submit_more_than_there, "to_submit beyond what is queued"),
    scenario!(submit_wraps, "indices far beyond the ring's size"),
    scenario!(submit_tail_too_far, "an SQ tail more than a ring ahead of the head"),
    scenario!(submit_tail_backwards, "an SQ tail behind the head"),
    scenario!(sq_array_invalid, "an SQ array index out of range"),
    scenario!(sq_array_permuted, "an SQ array in another order"),
    scenario!(no_sqarray, "NO_SQARRAY rings take SQEs in order"),
    scenario!(sqe128, "SQE128: every second 64 bytes"),
    scenario!(cqe32, "CQE32: NOPs with extra words"),
    scenario!(cqe_mixed, "CQE_MIXED: both sizes, and the filler at the end of the ring"),
    scenario!(sqe_stable, "what SQEs point to may be reused after submit"),
    scenario!(submit_wait_one_call, "submit and wait in one call, both wait flavours"),
    scenario!(nop_flags, "NOP's own flags"),
    scenario!(user_data_kept, "user_data comes back bit for bit"),
    scenario!(scribble_sq, "a program that scribbles on the SQ ring's words"),
    scenario!(scribble_cq, "a program that scribbles on the CQ ring's words"),
    scenario!(no_mmap_ring, "NO_MMAP: the program's own memory"),
    scenario!(no_mmap_errors, "NO_MMAP with bad addresses"),
    scenario!(registered_fd_only, "REGISTERED_FD_ONLY: the result is a registered index"),
    scenario!(many_nops, "4096 NOPs through an SQ of 8, all flavours"),
];

fn submit_bad_opcode(cx: &mut Cx) {
    for (name, flags) in [("plain", 0), ("SUBMIT_ALL", SUBMIT_ALL)] {
        cx.both_setups(|cx, kind| {
            let r = Ring::new(8, flags | kind);
            r.push_all(&[nop(1), q(200).ud(2), nop(3)]);
            let s = r.enter(3, 0, 0);
            cx.say(
                name,
                format!("{} {} head {} tail {}", res(s), r.cqes(), r.sq_head(), r.sq_tail()),
            );
            let s = r.enter(1, 0, 0);
            cx.say(
                &format!("{name}, the rest"),
                format!("{} {} head {}", res(s), r.cqes(), r.sq_head()),
            );
        });
    }
}

fn submit_bad_opcode_wait(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[nop(1), q(200).ud(2), nop(3)]);
        let s = r.enter(3, 3, enter::GETEVENTS);
        cx.say("enter(3, 3, GETEVENTS)", format!("{} {}", res(s), r.cqes()));
    });
}

fn submit_more_than_there(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("5 of 0", res(r.enter(5, 0, 0)));
        cx.say("5 of 0, wait for 1", res(r.enter(5, 1, enter::GETEVENTS)));
        r.push(nop(1));
        cx.say("5 of 1", format!("{} {}", res(r.enter(5, 0, 0)), r.cqes()));
        r.push(nop(1));
        cx.say(
            "5 of 1, wait for 2",
            format!("{} {}", res(r.enter(5, 2, enter::GETEVENTS)), r.cqes()),
        );
        r.push_all(&[nop(1), nop(2), nop(3)]);
        cx.say("1 of 3", format!("{} {}", res(r.enter(1, 0, 0)), r.cqes()));
        cx.say("0 of 2", format!("{} {}", res(r.enter(0, 0, 0)), r.cqes()));
        cx.say("2 of 2", format!("{} {}", res(r.enter(2, 0, 0)), r.cqes()));
    });
}

fn submit_wraps(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let mut bad = 0;
    for i in 0..1000u64 {
        r.push_all(&[nop(2 * i), nop(2 * i + 1)]);
        let s = r.enter(2, 2, enter::GETEVENTS);
        let ids: Vec<u64> = r.take().iter().map(|c| c.user_data).collect();
        bad += usize::from(s != 2 || ids != [2 * i, 2 * i + 1]);
    }
    cx.say("wrong rounds of 1000", bad);
    cx.say("head, tail", format!("{} {}", r.sq_head(), r.sq_tail()));
}

fn submit_tail_too_far(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    for i in 0..4 {
        r.push(nop(i));
    }
    r.store(r.p.sq_off.tail, 10);
    cx.say(
        "tail 10 on a ring of 4",
        format!("{} {} head {}", res(r.enter(10, 0, 0)), r.cqes(), r.sq_head()),
    );
}

fn submit_tail_backwards(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    r.push_all(&[nop(1), nop(2)]);
    r.submit();
    r.take();
    r.store(r.p.sq_off.tail, 1);
    cx.say("tail behind head", format!("{} {}", res(r.enter(1, 0, 0)), r.take().len()));
}

fn sq_array_invalid(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    r.push_all(&[nop(1), nop(2)]);
    r.store(r.p.sq_off.array, 77);
    let s = r.enter(2, 0, 0);
    cx.say(
        "first index 77",
        format!("{} {} dropped {} head {}", res(s), r.cqes(), r.dropped(), r.sq_head()),
    );
    let s = r.enter(1, 0, 0);
    cx.say("the next", format!("{} {} head {}", res(s), r.cqes(), r.sq_head()));
}

fn sq_array_permuted(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    r.push_all(&[nop(1), nop(2), nop(3)]);
    for (slot, sqe) in [(0, 2), (1, 0), (2, 0)] {
        r.store(r.p.sq_off.array + 4 * slot, sqe);
    }
    cx.say("array 2 0 0", r.go(3));
}

fn no_sqarray(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(4, NO_SQARRAY | kind);
        for round in 0..3u64 {
            r.push_all(&[nop(round), nop(round + 10), nop(round + 20)]);
            cx.say("round", r.go(3));
        }
    });
}

fn sqe128(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(4, SQE128 | kind);
        for round in 0..3u64 {
            r.push_all(&[nop(round), nop(round + 10), nop(round + 20)]);
            cx.say("round", r.go(3));
        }
    });
}

/// NOP flags: the last asks for a 32-byte CQE.
const NOP_INJECT: u32 = 1;
const NOP_FILE: u32 = 2;
const NOP_FIXED_FILE: u32 = 4;
const NOP_FIXED_BUFFER: u32 = 8;
const NOP_TW: u32 = 16;
const NOP_CQE32: u32 = 32;

fn extra(r: &Ring, index: u32, stride: usize) -> [u64; 2] {
    let at = r.p.cq_off.cqes as usize + index as usize * stride + 16;
    // SAFETY: the index is inside the CQ and its CQE has 32 bytes.
    unsafe { r.base.add(at).cast::<[u64; 2]>().read_volatile() }
}

fn cqe32(cx: &mut Cx) {
    let r = Ring::new(4, CQE32);
    r.push_all(&[nop(1), nop(2).opf(NOP_CQE32).off(55).addr(66), nop(3)]);
    r.submit();
    cx.say("extra words of 1 and 2", format!("{:?} {:?}", extra(&r, 0, 32), extra(&r, 1, 32)));
    cx.say("cqes", r.cqes());
    let plain = Ring::new(4, 0);
    cx.say("NOP with CQE32 on a plain ring", plain.one(nop(1).opf(NOP_CQE32)));
}

fn cqe_mixed(cx: &mut Cx) {
    let r = Ring::sized(4, 4, CQE_MIXED);
    let big = |ud| nop(ud).opf(NOP_CQE32).off(ud * 10).addr(66);
    r.push_all(&[nop(1), big(2)]);
    r.submit();
    cx.say("one of each", format!("ready {} extra {:?}", r.ready(), extra(&r, 1, 16)));
    cx.say("flags of the two", format!("{:#x} {:#x}", r.cqe_at(0).flags, r.cqe_at(1).flags));
    r.store(r.p.cq_off.head, 3);
    r.push(big(4));
    r.submit();
    let (filler, next) = (r.cqe_at(3), r.cqe_at(4));
    cx.say("a big one with one slot before the wrap", format!("ready {}", r.ready()));
    cx.say("filler", show(&[filler]));
    cx.say("then", show(&[next]));
    r.store(r.p.cq_off.head, 6);
    r.push_all(&[big(5), big(6), nop(7)]);
    r.submit();
    cx.say("overflowing", format!("ready {} sq flags {}", r.ready(), r.sq_flags()));
}

fn sqe_stable(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("a", b"AAAA");
    dir.file("b", b"BBBB");
    let path: &mut [u8] = Vec::leak(format!("{}\0", dir.join("a").display()).into_bytes());
    let data = buf(8);
    let vec: &mut [(usize, usize)] = Vec::leak(vec![(at(data), 4)]);
    let (p, w) = pipe();
    let time: &mut [i64] = Vec::leak(vec![0, 20_000_000]);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let n = path.len();
        path[n - 2] = b'a';
        (vec[0], time[0]) = ((at(data), 4), 0);
        r.push(q(op::OPENAT).fd(libc::AT_FDCWD).addr(at(path)).ud(1).flags(ASYNC));
        r.push(q(op::READV).fd(*p).addr(at(vec)).len(1).ud(2));
        r.push(timeout(at(time), 0, 3));
        cx.say("submit", res(r.submit()));
        path[n - 2] = b'b';
        vec[0] = (mem::BAD, 0);
        time[0] = 5000;
        sys::write(*w, b"1234");
        r.wait(3, 2000);
        let cqes = r.take();
        let opened = cqes.iter().find(|c| c.user_data == 1).map_or(-1, |c| c.res);
        cx.say("opened", sys::read(opened, 4).map_or_else(res, |b| mem::text(&b)));
        sys::close(opened);
        let rest: Vec<_> = cqes.into_iter().filter(|c| c.user_data != 1).collect();
        cx.say("others", show_sorted(rest));
    });
}

fn submit_wait_one_call(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[nop(1), nop(2), timeout(mem::ms(5), 0, 3)]);
        cx.say("plain", r.go_plain(3));
        r.push_all(&[nop(1), nop(2), timeout(mem::ms(5), 0, 3)]);
        let arg = leak(GeteventsArg { ts: mem::ms(2000) as u64, ..Default::default() });
        let s = r.enter_arg(3, 3, enter::GETEVENTS | enter::EXT_ARG, arg, 24);
        cx.say("EXT_ARG", format!("{} {}", res(s), r.cqes()));
        r.push_all(&[nop(1), nop(2)]);
        let arg = leak(GeteventsArg { ts: mem::ms(20) as u64, ..Default::default() });
        let s = r.enter_arg(2, 3, enter::GETEVENTS | enter::EXT_ARG, arg, 24);
        cx.say("EXT_ARG, one too few", format!("{} {}", res(s), r.cqes()));
        let s = r.enter_arg(0, 0, enter::GETEVENTS | enter::NO_IOWAIT, 0, 0);
        cx.say("NO_IOWAIT", res(s));
    });
}

fn nop_flags(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    cx.say("inject 5", r.one(nop(1).opf(NOP_INJECT).len(5)));
    cx.say("inject -22", r.one(nop(1).opf(NOP_INJECT).len(-22i32 as u32)));
    r.push_all(&[nop(1).opf(NOP_INJECT).len(-5i32 as u32).flags(IO_LINK), nop(2)]);
    cx.say("inject -5 in a link", r.go(2));
    cx.say("file", r.one(nop(1).opf(NOP_FILE).fd(*p)));
    cx.say("bad file", r.one(nop(1).opf(NOP_FILE).fd(999)));
    cx.say("fixed file, no table", r.one(nop(1).opf(NOP_FILE | NOP_FIXED_FILE).fd(0)));
    r.reg(register::FILES, leak([*p, -1]), 2);
    cx.say("fixed file", r.one(nop(1).opf(NOP_FILE | NOP_FIXED_FILE).fd(0)));
    cx.say("fixed file, empty slot", r.one(nop(1).opf(NOP_FILE | NOP_FIXED_FILE).fd(1)));
    cx.say("fixed file without FILE", r.one(nop(1).opf(NOP_FIXED_FILE).fd(9)));
    cx.say("fixed buffer, none", r.one(nop(1).opf(NOP_FIXED_BUFFER).buf(0)));
    r.reg(register::BUFFERS, mem::iovecs(&[(sys::pages(4096) as usize, 4096)]), 1);
    cx.say("fixed buffer", r.one(nop(1).opf(NOP_FIXED_BUFFER).buf(0)));
    cx.say("fixed buffer out of range", r.one(nop(1).opf(NOP_FIXED_BUFFER).buf(1)));
    cx.say("by task work", r.one(nop(1).opf(NOP_TW)));
    cx.say("unknown flag", r.one(nop(1).opf(64)));
}

fn user_data_kept(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    for ud in [0, 1 << 63, u64::MAX, 0x0123_4567_89ab_cdef] {
        r.push(nop(ud));
        r.submit();
        cx.say(&format!("{ud:#x}"), format!("{:#x}", r.take()[0].user_data));
    }
}

fn scribble_sq(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let o = r.p.sq_off;
    r.push(nop(1));
    r.store(o.head, 0x1234_5678);
    cx.say(
        "head overwritten",
        format!("{} {} head {}", res(r.enter(1, 0, 0)), r.cqes(), r.sq_head()),
    );
    r.store(o.ring_mask, 0xffff_ffff);
    r.store(o.ring_entries, 0xffff_ffff);
    r.store(r.p.cq_off.ring_mask, 0xffff_ffff);
    r.store(r.p.cq_off.ring_entries, 0xffff_ffff);
    r.push_all(&[nop(2), nop(3)]);
    cx.say("masks and sizes overwritten", format!("{} {}", res(r.enter(2, 0, 0)), r.cqes()));
    r.store(o.dropped, 99);
    r.store(o.flags, 0xffff_fff0);
    r.push(nop(4));
    cx.say("flags and dropped overwritten", format!("{} {}", res(r.enter(1, 0, 0)), r.cqes()));
    r.store(o.tail, r.sq_head().wrapping_add(0x8000_0000));
    let n = r.enter(8, 0, 0);
    cx.say("tail half the number space ahead", format!("{} at most 8: {}", ok(n), n <= 8));
    cx.say("still alive", res(r.enter(0, 0, enter::GETEVENTS)));
}

fn scribble_cq(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let o = r.p.cq_off;
    r.store(o.tail, 0x7777_7777);
    r.push(nop(1));
    let s = r.enter(1, 0, 0);
    cx.say("tail overwritten", format!("{} tail {}", res(s), r.load(o.tail)));
    let r = Ring::new(4, 0);
    r.store(o.head, 0x8000_0000);
    r.push_all(&[nop(1), nop(2)]);
    let s = r.enter(2, 0, 0);
    cx.say(
        "head overwritten",
        format!("{} survives {}", res(s), ok(r.enter(0, 0, enter::GETEVENTS))),
    );
    r.store(o.head, 0);
    r.store(o.overflow, 1234);
    r.store(o.flags, 0xffff_fffe);
    r.push(nop(3));
    cx.say("flags overwritten", res(r.enter(1, 0, 0)));
}

/// Memory for a NO_MMAP ring of 8: rings, SQEs.
fn own_memory() -> (*mut u8, *mut u8) {
    (sys::pages(8192), sys::pages(4096))
}

fn no_mmap_params(flags: u32, rings: usize, sqes: usize) -> Params {
    let mut p = Params { flags: NO_MMAP | flags, ..Params::default() };
    p.cq_off.user_addr = rings as u64;
    p.sq_off.user_addr = sqes as u64;
    p
}

fn no_mmap_ring(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (rings, sqes) = own_memory();
        let (fd, p) = raw_setup(8, no_mmap_params(kind, rings as usize, sqes as usize));
        cx.say("setup", format!("{} {} {}", ok(fd), p.sq_entries, p.cq_entries));
        cx.say(
            "user_addr kept",
            p.cq_off.user_addr == rings as u64 && p.sq_off.user_addr == sqes as u64,
        );
        let r = Ring::in_memory(fd as i32, p, rings, sqes);
        for i in 0..3 {
            r.push_all(&[nop(i), nop(i + 10)]);
            cx.say("round", r.go(2));
        }
        let m = sys::mmap(r.fd, 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, 0);
        cx.say("mmap of its descriptor", m.map_or_else(res, |_| "ok".into()));
    });
}

fn no_mmap_errors(cx: &mut Cx) {
    let (rings, sqes) = own_memory();
    let (rings, sqes) = (rings as usize, sqes as usize);
    let mut ask = |name: &str, rings, sqes| {
        let (fd, _) = raw_setup(8, no_mmap_params(0, rings, sqes));
        cx.say(name, ok(fd));
        if fd >= 0 {
            sys::close(fd as i32);
        }
    };
    ask("good", rings, sqes);
    ask("rings unaligned", rings + 64, sqes);
    ask("SQEs unaligned", rings, sqes + 64);
    ask("rings NULL", 0, sqes);
    ask("SQEs NULL", rings, 0);
    ask("rings unmapped", 0x1000, sqes);
    ask("SQEs unmapped", rings, 0x1000);
    ask(
        "rings read-only",
        {
            sys::mmap(-1, 8192, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
                .expect("memory") as usize
        },
        sqes,
    );
}

fn registered_fd_only(cx: &mut Cx) {
    let (rings, sqes) = own_memory();
    let (index, p) =
        raw_setup(8, no_mmap_params(REGISTERED_FD_ONLY, rings as usize, sqes as usize));
    cx.say("setup", res(index));
    let r = Ring::in_memory(-1, p, rings, sqes);
    r.push(nop(5));
    let s = sys::enter(index as i32, 1, 1, enter::GETEVENTS | enter::REGISTERED_RING, 0, 8);
    cx.say("enter by index", format!("{} {}", res(s), r.cqes()));
    let b = buf(16 + 8 * 64);
    let s = sys::register(index as i32, register::PROBE | register::USE_REGISTERED_RING, at(b), 64);
    cx.say("register by index", res(s));
    let (second, _) = raw_setup(
        8,
        no_mmap_params(REGISTERED_FD_ONLY, own_memory().0 as usize, own_memory().1 as usize),
    );
    cx.say("a second one", res(second));
}

fn many_nops(cx: &mut Cx) {
    for (name, flags) in [
        ("plain", 0),
        ("defer", DEFER_TASKRUN | SINGLE_ISSUER),
        ("coop", COOP_TASKRUN),
        ("no array", NO_SQARRAY),
    ] {
        let r = Ring::new(8, flags);
        let (mut got, mut ordered) = (0u64, true);
        for i in 0..512 {
            for k in 0..8 {
                r.push(nop(i * 8 + k));
            }
            r.enter(8, 8, enter::GETEVENTS);
            for c in r.take() {
                ordered &= c.user_data == got;
                got += 1;
            }
        }
        cx.say(name, format!("{got} in order {ordered}"));
    }
}
