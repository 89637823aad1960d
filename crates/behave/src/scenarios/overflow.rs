//! CQ overflow: nothing is lost, the order is kept.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(overflow_flush, "six NOPs into a CQ of two, flushed by GETEVENTS"),
    scenario!(overflow_submit_only, "submitting without GETEVENTS does not flush"),
    scenario!(overflow_multishot_poll, "a multishot poll ends when the CQ is full"),
    scenario!(overflow_order, "new CQEs queue behind the backlog, though the CQ has room"),
    scenario!(overflow_many, "1,000,000 NOPs through an SQ of 4 without looking at the CQ", 30),
    scenario!(overflow_refilled, "the backlog drains while the CQ is refilled"),
    scenario!(overflow_async, "overflow from completions that come later"),
    scenario!(overflow_wait, "waiting for more CQEs than the CQ holds"),
    scenario!(overflow_poll_fd, "poll(2) sees a backlog"),
];

fn round(r: &Ring, ids: [u64; 2]) -> String {
    r.push_all(&[nop(ids[0]), nop(ids[1])]);
    let s = r.enter(2, 0, 0);
    format!("{} flags {} overflow {}", res(s), r.sq_flags(), r.overflow())
}

fn flush(r: &Ring) -> String {
    let s = r.enter(0, 0, enter::GETEVENTS);
    format!("{} {} flags {}", res(s), r.cqes(), r.sq_flags())
}

fn overflow_flush(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::sized(2, 2, kind);
        for i in [1, 3, 5] {
            cx.say("submit 2", round(&r, [i, i + 1]));
        }
        cx.say("CQ", r.cqes());
        cx.say("GETEVENTS", flush(&r));
        cx.say("GETEVENTS", flush(&r));
        cx.say("GETEVENTS", flush(&r));
    });
}

fn overflow_submit_only(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::sized(2, 2, kind);
        for i in [1, 3, 5] {
            round(&r, [i, i + 1]);
        }
        r.take();
        r.push(nop(7));
        cx.say(
            "submit with a backlog and an empty CQ",
            format!("{} {}", res(r.enter(1, 0, 0)), r.cqes()),
        );
        cx.say("wait for 3", format!("{} {}", res(r.enter(0, 3, enter::GETEVENTS)), r.cqes()));
        cx.say("GETEVENTS", flush(&r));
        cx.say("GETEVENTS", flush(&r));
    });
}

fn overflow_multishot_poll(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::sized(2, 2, kind);
        r.push(poll(*p, 1, 1).len(1));
        r.submit();
        for _ in 0..4 {
            sys::write(*w, b"x");
            r.enter(0, 0, enter::GETEVENTS);
            sys::sleep_ms(5);
        }
        cx.say("CQ", format!("{} flags {}", r.cqes(), r.sq_flags()));
        cx.say("GETEVENTS", flush(&r));
        sys::write(*w, b"x");
        sys::sleep_ms(5);
        cx.say("the poll is gone", flush(&r));
    });
}

fn overflow_order(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::sized(4, 4, kind);
        for i in [1, 3, 5] {
            round(&r, [i, i + 1]);
        }
        cx.say("CQ", r.cqes());
        r.push(nop(7));
        r.enter(1, 0, 0);
        cx.say("CQ has room, the new one waits", r.cqes());
        cx.say("GETEVENTS", flush(&r));
    });
}

fn overflow_many(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(4, kind);
        let total = 1_000_000u64;
        for i in 0..total / 4 {
            for k in 0..4 {
                r.push(nop(i * 4 + k));
            }
            assert_eq!(r.enter(4, 0, 0), 4, "submit");
        }
        cx.say("overflow flag", r.sq_flags() & 2);
        let (mut next, mut ordered) = (0, true);
        loop {
            let cqes = r.take();
            if cqes.is_empty() && r.sq_flags() & 2 == 0 {
                break;
            }
            for c in cqes {
                ordered &= c.user_data == next;
                next += 1;
            }
            r.enter(0, 0, enter::GETEVENTS);
        }
        cx.say("delivered", next);
        cx.say("in order", ordered);
        cx.say("lost", r.overflow());
        cx.say("flag afterwards", r.sq_flags() & 2);
    });
}

fn overflow_refilled(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(4, kind);
        let (mut next, mut pushed, mut ordered) = (0, 0, true);
        for _ in 0..2000 {
            for _ in 0..4 {
                r.push(nop(pushed));
                pushed += 1;
            }
            r.enter(4, 0, enter::GETEVENTS);
            // Reap less than what comes for the first half.
            let reap = if pushed < 4000 { 3 } else { 8 };
            let head = r.load(r.p.cq_off.head);
            for k in 0..reap.min(r.ready()) {
                ordered &= r.cqe_at(head.wrapping_add(k)).user_data == next;
                next += 1;
                r.store(r.p.cq_off.head, head.wrapping_add(k + 1));
            }
        }
        while next < pushed {
            r.enter(0, 1, enter::GETEVENTS);
            for c in r.take() {
                ordered &= c.user_data == next;
                next += 1;
            }
        }
        cx.say("all in order", format!("{} {ordered}", next == pushed));
    });
}

fn overflow_async(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::sized(8, 8, kind);
        for i in 0..8 {
            r.push(poll(*p, 1, i));
        }
        r.submit();
        for i in 8..16 {
            r.push(poll(*p, 1, i));
        }
        r.submit();
        sys::write(*w, b"x");
        let mut ids: Vec<u64> = r.collect(16).iter().map(|c| c.user_data).collect();
        ids.sort_unstable();
        cx.say("16 polls into a CQ of 8, all", ids == (0..16).collect::<Vec<_>>());
        cx.say("lost", r.overflow());
    });
}

fn overflow_wait(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::sized(2, 2, kind);
        round(&r, [1, 2]);
        cx.say("wait for 100, CQ of 2 is full", format!("{} {}", res(r.wait(100, 100)), r.cqes()));
        cx.say("wait for 100, CQ empty", format!("{} {}", res(r.wait(100, 20)), r.cqes()));
    });
}

fn overflow_poll_fd(cx: &mut Cx) {
    let r = Ring::sized(2, 2, 0);
    round(&r, [1, 2]);
    round(&r, [3, 4]);
    r.take();
    cx.say("CQ empty, backlog", sys::poll_now(r.fd, POLLIN));
    cx.say("GETEVENTS", flush(&r));
    cx.say("all reaped", sys::poll_now(r.fd, POLLIN));
}
