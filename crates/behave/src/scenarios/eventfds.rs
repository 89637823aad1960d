//! A registered eventfd: one signal per flush, only for workers, switched off.

use crate::fixture::{eventfd, eventfd_value};
use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(eventfd_register, "registering and unregistering an eventfd"),
    scenario!(eventfd_signals, "when a registered eventfd is signalled"),
    scenario!(eventfd_async, "EVENTFD_ASYNC: only for completions that were not inline"),
    scenario!(eventfd_disabled, "the CQ flag that switches signals off"),
    scenario!(eventfd_wakes, "poll(2) on the eventfd wakes when a CQE comes"),
    scenario!(eventfd_closed, "the eventfd's number is closed after registering"),
    scenario!(eventfd_overflow, "a CQE that overflows signals too"),
];

fn register(r: &Ring, op: u32, fd: i32) -> i64 {
    r.reg(op, leak(fd), 1)
}

fn eventfd_register(cx: &mut Cx) {
    let (r, e) = (Ring::new(8, 0), eventfd(0));
    let (p, _w) = pipe();
    cx.say("unregister none", res(r.reg(register::UNREGISTER_EVENTFD, 0, 0)));
    cx.say("closed number", res(register(&r, register::EVENTFD, 999)));
    cx.say("a pipe", res(register(&r, register::EVENTFD, *p)));
    cx.say("nr 0", res(r.reg(register::EVENTFD, leak(*e), 0)));
    cx.say("nr 2", res(r.reg(register::EVENTFD, leak(*e), 2)));
    cx.say("unmapped", res(r.reg(register::EVENTFD, mem::BAD, 1)));
    cx.say("good", res(register(&r, register::EVENTFD, *e)));
    cx.say("twice", res(register(&r, register::EVENTFD, *e)));
    cx.say("twice, ASYNC", res(register(&r, register::EVENTFD_ASYNC, *e)));
    cx.say("unregister", res(r.reg(register::UNREGISTER_EVENTFD, 0, 0)));
    r.push(nop(1));
    r.submit();
    cx.say("no signal any more", eventfd_value(*e));
    cx.say("again", res(register(&r, register::EVENTFD_ASYNC, *e)));
}

fn eventfd_signals(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, e) = (Ring::new(8, kind), eventfd(0));
        register(&r, register::EVENTFD, *e);
        cx.say("nothing", eventfd_value(*e));
        r.push(nop(1));
        r.submit();
        cx.say("a NOP", eventfd_value(*e));
        r.push_all(&[nop(1), nop(2)]);
        r.submit();
        cx.say("two NOPs in one submission", eventfd_value(*e));
        r.enter(0, 0, enter::GETEVENTS);
        cx.say("GETEVENTS alone", eventfd_value(*e));
        r.take();
        let (p, w) = pipe();
        r.push(read(*p, at(buf(8)), 8, 3));
        r.submit();
        cx.say("a read waits", eventfd_value(*e));
        sys::write(*w, b"x");
        sys::sleep_ms(20);
        cx.say("data came", eventfd_value(*e) > 0);
        r.wait(1, 2000);
        cx.say("CQE", r.cqes());
        eventfd_value(*e);
        r.push(timeout(mem::ms(10), 0, 4));
        r.submit();
        sys::sleep_ms(60);
        cx.say("a timeout fired", eventfd_value(*e) > 0);
        r.wait(1, 2000);
        cx.say("CQE", r.cqes());
    });
}

fn eventfd_async(cx: &mut Cx) {
    let (r, e) = (Ring::new(8, 0), eventfd(0));
    let dir = Dir::new();
    let f = dir.file("f", b"data");
    register(&r, register::EVENTFD_ASYNC, *e);
    r.push_all(&[nop(1), nop(2)]);
    r.submit();
    cx.say("inline", eventfd_value(*e));
    cx.say(
        "on a worker",
        format!("{} signals {}", r.brief(2), {
            r.push(q(op::FSYNC).fd(f.as_raw_fd()).ud(3).flags(ASYNC));
            r.submit();
            r.wait(1, 2000);
            sys::sleep_ms(10);
            eventfd_value(*e)
        }),
    );
    cx.say("CQE", r.cqes());
    let st = buf(256);
    for (name, request) in [
        ("NOP", nop(4).flags(ASYNC)),
        ("STATX", q(op::STATX).fd(libc::AT_FDCWD).addr(dir.cpath("f")).off(at(st) as u64).ud(4)),
        (
            "STATX of no file",
            q(op::STATX).fd(libc::AT_FDCWD).addr(dir.cpath("g")).off(at(st) as u64).ud(4),
        ),
        ("READ", read(f.as_raw_fd(), at(buf(8)), 4, 4).off(0).flags(ASYNC)),
        (
            "OPENAT that creates",
            q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("h")).opf(0o102).ud(4),
        ),
    ] {
        // By the third at the latest the file's data and names are in memory.
        let signals = (0..3).map(|_| {
            r.push(request);
            r.submit();
            r.wait(1, 2000);
            sys::sleep_ms(10);
            r.take();
            eventfd_value(*e)
        });
        cx.say(name, format!("{:?}", signals.collect::<Vec<_>>()));
    }
}

fn eventfd_disabled(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, e) = (Ring::new(8, kind), eventfd(0));
        register(&r, register::EVENTFD, *e);
        r.store(r.p.cq_off.flags, anyring_uapi::cqe::CQ_EVENTFD_DISABLED);
        r.push(nop(1));
        r.submit();
        cx.say("off", eventfd_value(*e));
        r.store(r.p.cq_off.flags, 0);
        r.push(nop(2));
        r.submit();
        cx.say("on", eventfd_value(*e));
    });
}

fn eventfd_wakes(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, e) = (Ring::new(8, kind), eventfd(0));
        register(&r, register::EVENTFD, *e);
        let (p, w) = pipe();
        r.push(read(*p, at(buf(8)), 8, 3));
        r.submit();
        let t = std::thread::spawn(move || {
            sys::sleep_ms(30);
            sys::write(*w, b"abc");
            w
        });
        cx.say("woken", sys::poll_for(*e, POLLIN, 3000));
        let _w = t.join();
        cx.say("CQE", r.go(1));
    });
}

fn eventfd_closed(cx: &mut Cx) {
    let (r, e) = (Ring::new(8, 0), eventfd(0));
    let copy = Fd(sys::dup(*e));
    register(&r, register::EVENTFD, *e);
    drop(e);
    r.push(nop(1));
    r.submit();
    cx.say("signal through a duplicate", eventfd_value(*copy));
}

fn eventfd_overflow(cx: &mut Cx) {
    let (r, e) = (Ring::sized(2, 2, 0), eventfd(0));
    register(&r, register::EVENTFD, *e);
    r.push_all(&[nop(1), nop(2)]);
    r.submit();
    cx.say("CQ filled", eventfd_value(*e));
    r.push_all(&[nop(3), nop(4)]);
    r.submit();
    cx.say("overflow", eventfd_value(*e) > 0);
}
