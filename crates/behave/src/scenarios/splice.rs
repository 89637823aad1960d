//! SPLICE, TEE and EPOLL_CTL.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(splice_op, "SPLICE between pipes, files and sockets"),
    scenario!(splice_waits, "SPLICE from an empty pipe does not hold up others"),
    scenario!(splice_fixed, "SPLICE with registered files on either side"),
    scenario!(splice_bad, "what SPLICE and TEE refuse"),
    scenario!(tee_op, "TEE copies without taking"),
    scenario!(epoll_ctl_op, "EPOLL_CTL: add, modify, delete, refusals"),
    scenario!(epoll_ctl_works, "an epoll set changed through the ring works"),
];

const FIXED_IN: u32 = 1 << 31;

fn splice(input: i32, in_off: i64, output: i32, out_off: i64, len: u32) -> Q {
    q(op::SPLICE)
        .fd(output)
        .off(out_off as u64)
        .fi(input as u32)
        .addr(in_off as usize)
        .len(len)
        .ud(1)
}

fn take(fd: i32) -> String {
    if sys::poll_now(fd, POLLIN) == 0 {
        return "nothing".into();
    }
    sys::read(fd, 64).map_or_else(res, |b| mem::text(&b))
}

fn splice_op(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let ((p, w), (p2, w2)) = (pipe(), pipe());
        let r = Ring::new(8, kind);
        sys::write(*w, b"abcdef");
        cx.say(
            "pipe to pipe, 4 of 6",
            format!("{} {}", r.one(splice(*p, -1, *w2, -1, 4)), take(*p2)),
        );
        cx.say(
            "the rest, 10 wanted",
            format!("{} {}", r.one(splice(*p, -1, *w2, -1, 10)), take(*p2)),
        );
        cx.say("length 0", r.one(splice(*p, -1, *w2, -1, 0)));
        cx.say(
            "file to pipe at 3",
            format!("{} {}", r.one(splice(f.as_raw_fd(), 3, *w2, -1, 4)), take(*p2)),
        );
        cx.say("file to pipe at the end", r.one(splice(f.as_raw_fd(), 10, *w2, -1, 4)));
        let out = dir.file("out", b"");
        sys::write(*w, b"written");
        cx.say("pipe to file at 2", r.one(splice(*p, -1, out.as_raw_fd(), 2, 7)));
        cx.say("file", mem::text(&std::fs::read(dir.join("out")).expect("content")));
        let (a, c) = UnixStream::pair().expect("socketpair");
        sys::write(*w, b"net");
        cx.say(
            "pipe to socket",
            format!("{} {}", r.one(splice(*p, -1, a.as_raw_fd(), -1, 3)), take(c.as_raw_fd())),
        );
        sys::write(c.as_raw_fd(), b"back");
        cx.say(
            "socket to pipe",
            format!("{} {}", r.one(splice(a.as_raw_fd(), -1, *w2, -1, 4)), take(*p2)),
        );
        drop(w);
        cx.say("writer gone", r.one(splice(*p, -1, *w2, -1, 4)));
    });
}

fn splice_waits(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let ((p, w), (p2, w2)) = (pipe(), pipe());
        let r = Ring::new(8, kind);
        r.push_all(&[splice(*p, -1, *w2, -1, 4), nop(2)]);
        cx.say("a NOP passes", r.brief(2));
        sys::write(*w, b"abcd");
        cx.say("data", format!("{} {}", r.go(1), take(*p2)));
        cx.say("SPLICE_F_NONBLOCK, empty", r.one(splice(*p, -1, *w2, -1, 4).opf(2)));
    });
}

fn splice_fixed(cx: &mut Cx) {
    let ((p, w), (p2, w2)) = (pipe(), pipe());
    let r = Ring::new(8, 0);
    r.reg(register::FILES, leak([*p, *w2]), 2);
    sys::write(*w, b"abcdefgh");
    cx.say(
        "input by slot",
        format!("{} {}", r.one(splice(0, -1, *w2, -1, 2).opf(FIXED_IN)), take(*p2)),
    );
    cx.say(
        "output by slot",
        format!("{} {}", r.one(splice(*p, -1, 1, -1, 2).flags(FIXED_FILE)), take(*p2)),
    );
    cx.say(
        "both",
        format!("{} {}", r.one(splice(0, -1, 1, -1, 2).flags(FIXED_FILE).opf(FIXED_IN)), take(*p2)),
    );
    cx.say("bad input slot", r.one(splice(7, -1, *w2, -1, 2).opf(FIXED_IN)));
    cx.say("bad output slot", r.one(splice(*p, -1, 7, -1, 2).flags(FIXED_FILE)));
}

fn splice_bad(cx: &mut Cx) {
    let dir = Dir::new();
    let (f, g) = (dir.file("f", b"x"), dir.file("g", b"y"));
    let ((p, w), (_p2, w2)) = (pipe(), pipe());
    sys::write(*w, b"abc");
    let r = Ring::new(8, 0);
    cx.say("two files", r.one(splice(f.as_raw_fd(), 0, g.as_raw_fd(), 0, 1)));
    cx.say("closed input", r.one(splice(999, -1, *w2, -1, 1)));
    cx.say("closed output", r.one(splice(*p, -1, 999, -1, 1)));
    cx.say("closed input, length 0", r.one(splice(999, -1, *w2, -1, 0)));
    cx.say("unknown flag", r.one(splice(*p, -1, *w2, -1, 1).opf(16)));
    cx.say("offset on a pipe", r.one(splice(*p, 0, *w2, -1, 1)));
    cx.say("the same pipe", r.one(splice(*p, -1, *w, -1, 1)));
    cx.say("write end as input", r.one(splice(*w, -1, *w2, -1, 1)));
    let tee = |i: i32, o: i32| q(op::TEE).fd(o).fi(i as u32).len(1).ud(2);
    cx.say("TEE from a file", r.one(tee(f.as_raw_fd(), *w2)));
    cx.say("TEE, closed input", r.one(tee(999, *w2)));
    cx.say("TEE, closed output", r.one(tee(*p, 999)));
    cx.say("TEE on one pipe", r.one(tee(*p, *w)));
}

fn tee_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let ((p, w), (p2, w2)) = (pipe(), pipe());
        let r = Ring::new(8, kind);
        sys::write(*w, b"abcdef");
        let tee = |len| q(op::TEE).fd(*w2).fi(*p as u32).len(len).ud(1);
        cx.say("4", format!("{} {}", r.one(tee(4)), take(*p2)));
        cx.say("10 of 6", format!("{} {}", r.one(tee(10)), take(*p2)));
        cx.say("0", r.one(tee(0)));
        cx.say("still in the first", take(*p));
    });
}

fn event(events: i32, data: u64) -> usize {
    leak([events as u32, data as u32, (data >> 32) as u32])
}

fn epoll() -> Fd {
    // SAFETY: no memory involved.
    Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

fn ctl(ep: i32, what: i32, fd: i32, event: usize) -> Q {
    q(op::EPOLL_CTL).fd(ep).len(what as u32).off(fd as u64).addr(event).ud(1)
}

fn epoll_ctl_op(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"x");
    cx.both_setups(|cx, kind| {
        let (ep, (p, _w)) = (epoll(), pipe());
        let r = Ring::new(8, kind);
        let e = event(libc::EPOLLIN, 7);
        cx.say("modify what is not there", r.one(ctl(*ep, libc::EPOLL_CTL_MOD, *p, e)));
        cx.say("delete what is not there", r.one(ctl(*ep, libc::EPOLL_CTL_DEL, *p, 0)));
        cx.say("add", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, e)));
        cx.say("add again", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, e)));
        cx.say("modify", r.one(ctl(*ep, libc::EPOLL_CTL_MOD, *p, e)));
        cx.say("delete", r.one(ctl(*ep, libc::EPOLL_CTL_DEL, *p, 0)));
        cx.say("a regular file", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, f.as_raw_fd(), e)));
        cx.say("closed number", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, 999, e)));
        cx.say("no epoll", r.one(ctl(*p, libc::EPOLL_CTL_ADD, *p, e)));
        cx.say("closed epoll", r.one(ctl(999, libc::EPOLL_CTL_ADD, *p, e)));
        cx.say("itself", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *ep, e)));
        cx.say("NULL event", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, 0)));
        cx.say("unmapped event", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, mem::BAD)));
        cx.say("unknown operation", r.one(ctl(*ep, 9, *p, e)));
        cx.say("ASYNC", r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, e).flags(ASYNC)));
    });
}

fn epoll_ctl_works(cx: &mut Cx) {
    let (ep, (p, w)) = (epoll(), pipe());
    let r = Ring::new(8, 0);
    let wait = || {
        let mut e = [libc::epoll_event { events: 0, u64: 0 }; 2];
        // SAFETY: room for two events.
        let n = unsafe { libc::epoll_wait(*ep, e.as_mut_ptr(), 2, 50) };
        let (events, data) = (e[0].events, e[0].u64);
        format!("{n} {events:#x} {data:#x}")
    };
    r.one(ctl(*ep, libc::EPOLL_CTL_ADD, *p, event(libc::EPOLLIN, 0x1234_5678_9abc)));
    cx.say("nothing", wait());
    sys::write(*w, b"x");
    cx.say("data", wait());
    r.one(ctl(*ep, libc::EPOLL_CTL_DEL, *p, 0));
    cx.say("deleted", wait());
    r.one(ctl(*ep, libc::EPOLL_CTL_ADD, r.fd, event(libc::EPOLLIN, 5)));
    cx.say("the ring itself, empty", wait());
    r.push(nop(1));
    r.submit();
    cx.say("the ring itself, a CQE", wait());
    r.take();
    cx.say("drained", wait());
}
