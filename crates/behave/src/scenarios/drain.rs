//! DRAIN: a request waits for all before it, and all after it wait for it.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(drain_timeout, "a pending timeout holds a drain and what follows"),
    scenario!(drain_poll, "a pending poll holds a drain and what follows"),
    scenario!(drain_multishot, "a multishot poll holds a drain until it ends"),
    scenario!(drain_in_link, "DRAIN inside a chain moves to its head"),
    scenario!(drain_cancel, "a cancel behind a drain waits too"),
    scenario!(drain_alone, "DRAIN with nothing before"),
    scenario!(drain_many, "several drains in a row"),
    scenario!(drain_worker, "a drain waits for work on a worker"),
    scenario!(drain_failed_prep, "a drain that cannot be prepared"),
];

fn drain_timeout(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[timeout(mem::ms(30), 0, 1), nop(2).flags(IO_DRAIN), nop(3)]);
        cx.say("at once", format!("{} {}", r.submit(), r.cqes()));
        cx.say("later", show(&r.collect(3)));
    });
}

fn drain_poll(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[poll(*p, 1, 1), nop(2).flags(IO_DRAIN), nop(3)]);
        cx.say("at once", r.brief(1));
        sys::write(*w, b"x");
        r.wait(3, 2000);
        cx.say("after the event", r.cqes());
    });
}

fn drain_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[poll(*p, 1, 1).len(1), nop(2).flags(IO_DRAIN)]);
        sys::write(*w, b"x");
        cx.say("an event", r.brief(2));
        r.push(nop(3));
        cx.say("another request", r.brief(1));
    });
}

fn drain_in_link(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(16, kind);
        r.push_all(&[
            poll(*p, 1, 1),
            nop(2).flags(IO_LINK),
            nop(3).flags(IO_LINK | IO_DRAIN),
            nop(4),
            nop(5),
            nop(6),
        ]);
        cx.say("at once", r.brief(1));
        sys::write(*w, b"x");
        r.wait(6, 2000);
        cx.say("after the event", r.cqes());
    });
}

fn drain_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[poll(*p, 1, 1), nop(2).flags(IO_DRAIN)]);
        r.submit();
        r.push(cancel(1, 9));
        cx.say("cancel of the first", r.brief(1));
        sys::write(*w, b"x");
        r.wait(3, 2000);
        cx.say("after the event", r.cqes());
    });
}

fn drain_alone(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("first request of a ring", r.one(nop(1).flags(IO_DRAIN)));
        r.push_all(&[nop(2), nop(3).flags(IO_DRAIN), nop(4)]);
        cx.say("after a NOP", r.go(3));
    });
}

fn drain_many(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(16, kind);
        r.push(poll(*p, 1, 1));
        for i in 2..8 {
            r.push(nop(i).flags(IO_DRAIN));
        }
        cx.say("at once", r.brief(1));
        sys::write(*w, b"x");
        r.wait(7, 2000);
        cx.say("after the event", r.cqes());
    });
}

fn drain_worker(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", &[1; 65536]);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(16, kind);
        let b = at(buf(65536));
        for i in 1..5 {
            r.push(read(f.as_raw_fd(), b, 65536, i).flags(ASYNC));
        }
        r.push_all(&[nop(5).flags(IO_DRAIN), nop(6)]);
        r.submit();
        r.wait(6, 2000);
        let ids: Vec<u64> = r.take().iter().map(|c| c.user_data).collect();
        cx.say("last two", format!("{:?} of {}", &ids[ids.len().saturating_sub(2)..], ids.len()));
    });
}

fn drain_failed_prep(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[poll(*p, 1, 1), q(200).ud(2).flags(IO_DRAIN)]);
        cx.say("bad opcode", r.brief(1));
        sys::write(*w, b"x");
        r.push(nop(3));
        r.submit();
        r.wait(3, 200);
        cx.say("after the event", r.cqes_sorted());
    });
}
