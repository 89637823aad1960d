//! TIMEOUT: pure, counted, multishot, removed, updated.

use crate::prelude::*;
use std::time::Instant;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(timeout_pure, "a timeout fires"),
    scenario!(timeout_count, "a timeout that a number of completions ends"),
    scenario!(timeout_count_order, "several counts are released in order of their targets"),
    scenario!(timeout_count_timeouts, "timeouts do not count as completions"),
    scenario!(timeout_link, "what a timeout in a chain does, with ETIME_SUCCESS too"),
    scenario!(timeout_multishot, "multishot timeouts, counted and endless"),
    scenario!(timeout_bad, "what a timeout refuses"),
    scenario!(timeout_clocks, "absolute times and the three clocks"),
    scenario!(timeout_remove, "removing a timeout"),
    scenario!(timeout_update, "giving a timeout a new time"),
    scenario!(timeout_cancel, "cancelling a timeout"),
    scenario!(timeout_ends_wait, "one fired timeout ends a wait for ten"),
    scenario!(timeout_many, "200 timeouts, all fire"),
];

const ABS: u32 = 1;
const UPDATE: u32 = 2;
const BOOTTIME: u32 = 4;
const REALTIME: u32 = 8;
const ETIME_SUCCESS: u32 = 32;
const MULTISHOT: u32 = 64;

fn remove(target: u64, ud: u64) -> Q {
    q(op::TIMEOUT_REMOVE).addr(target as usize).ud(ud)
}

fn timeout_pure(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let start = Instant::now();
        cx.say("20 ms", r.one(timeout(mem::ms(20), 0, 1)));
        let waited = start.elapsed().as_millis();
        cx.say("not early", waited >= 20);
        r.push(timeout(mem::ms(20), 0, 1));
        cx.say("waited for without EXT_ARG", r.go_plain(1));
        cx.say("0 ms", r.one(timeout(mem::ms(0), 0, 1)));
        cx.say("ASYNC", r.one(timeout(mem::ms(5), 0, 1).flags(ASYNC)));
    });
}

fn timeout_count(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[timeout(mem::ms(5000), 2, 1), nop(2)]);
        cx.say("count 2, one NOP", r.go(1));
        r.push(nop(3));
        cx.say("another NOP", r.go(2));
        let r = Ring::new(8, kind);
        r.push_all(&[timeout(mem::ms(5000), 1, 1), nop(2)]);
        cx.say("count 1 and a NOP in one submission", r.go(2));
        let r = Ring::new(8, kind);
        r.push_all(&[nop(5), timeout(mem::ms(60), 1, 1)]);
        cx.say("a NOP before a count of 1", r.go(2));
    });
}

fn timeout_count_order(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[timeout(mem::ms(5000), 2, 1), timeout(mem::ms(5000), 1, 2)]);
        r.submit();
        r.push(nop(3));
        cx.say("first NOP", r.go(2));
        r.push(nop(4));
        cx.say("second NOP", r.go(2));
    });
}

fn timeout_count_timeouts(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(timeout(mem::ms(5000), 3, 1));
        r.submit();
        r.push(timeout(mem::ms(20), 0, 2));
        r.submit();
        r.push(nop(3));
        r.submit();
        r.wait(2, 2000);
        cx.say("a timeout and a NOP", r.cqes());
        r.push(nop(4));
        cx.say("second NOP", r.brief(2));
        r.push(nop(5));
        cx.say("third NOP", r.go(2));
    });
}

fn timeout_link(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let t = |ud| timeout(mem::ms(10), 0, ud).flags(IO_LINK);
        r.push_all(&[t(1).opf(ETIME_SUCCESS), nop(2)]);
        cx.say("ETIME_SUCCESS", r.gather(2));
        r.push_all(&[t(1), nop(2)]);
        cx.say("without", r.gather(2));
        r.push_all(&[timeout(mem::ms(10), 0, 1).flags(IO_HARDLINK), nop(2)]);
        cx.say("hard", r.gather(2));
        r.push_all(&[timeout(mem::ms(5000), 1, 1).flags(IO_LINK), nop(2), nop(3)]);
        cx.say("count reached", r.go(3));
    });
}

fn timeout_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(timeout(mem::ms(5), 3, 1).opf(MULTISHOT));
        cx.say("3 times", r.gather(3));
        cx.say("then nothing", r.brief(1));
        r.push(timeout(mem::ms(5), 0, 1).opf(MULTISHOT));
        r.submit();
        for _ in 0..4 {
            r.wait(1, 2000);
            let c = r.take();
            cx.say("endless", format!("{} flags {}", res(c[0].res), c[0].flags));
        }
        r.push(remove(1, 2));
        r.submit();
        let mut last = r.collect(2);
        // A last firing may come in between.
        last.retain(|c| c.flags == 0);
        cx.say("removed", show_sorted(last));
        cx.say("ABS", r.one(timeout(mem::ms(5), 0, 1).opf(MULTISHOT | ABS)));
    });
}

fn timeout_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let t = |ts| timeout(ts, 0, 1);
    cx.say("two clocks", r.one(t(mem::ms(10)).opf(BOOTTIME | REALTIME)));
    cx.say("len 2", r.one(t(mem::ms(10)).len(2)));
    cx.say("len 0", r.one(t(mem::ms(10)).len(0)));
    cx.say("NULL", r.one(t(0)));
    cx.say("unmapped", r.one(t(mem::BAD)));
    cx.say("UPDATE flag", r.one(t(mem::ms(10)).opf(UPDATE)));
    for (s, n) in [(-1, 0), (0, -1), (i64::MIN, 0), (0, i64::MIN)] {
        cx.say(&format!("{s} s {n} ns"), r.one(t(mem::ts(s, n))));
    }
    for n in [1_000_000_000, 2_000_000_000] {
        r.push(t(mem::ts(0, n)));
        cx.say(&format!("{n} ns is taken"), r.brief(1));
    }
    r.push(t(mem::ts(i64::MAX, 999_999_999)));
    cx.say("the longest time", r.brief(1));
}

fn now(clock: libc::clockid_t, plus_ms: i64) -> usize {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(clock, &mut t) };
    let ns = t.tv_nsec + plus_ms * 1_000_000;
    mem::ts(t.tv_sec + ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
}

fn timeout_clocks(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let t = |ts, flags| timeout(ts, 0, 1).opf(flags);
    cx.say("absolute, long past", r.one(t(mem::ts(1, 0), ABS)));
    let clocks = [
        ("monotonic", libc::CLOCK_MONOTONIC, 0),
        ("boottime", libc::CLOCK_BOOTTIME, BOOTTIME),
        ("realtime", libc::CLOCK_REALTIME, REALTIME),
    ];
    for (name, clock, flag) in clocks {
        let start = Instant::now();
        cx.say(&format!("{name}, absolute in 30 ms"), r.one(t(now(clock, 30), ABS | flag)));
        cx.say("not early", start.elapsed().as_millis() >= 29);
        cx.say(&format!("{name}, relative"), r.one(t(mem::ms(5), flag)));
        cx.say(&format!("{name}, absolute past"), r.one(t(now(clock, -500), ABS | flag)));
    }
}

fn timeout_remove(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(timeout(mem::ms(5000), 0, 1));
        r.submit();
        r.push(remove(1, 2));
        cx.say("pending", r.go_sorted(2));
        cx.say("missing", r.one(remove(1, 2)));
        r.push_all(&[timeout(mem::ms(5000), 0, 1), timeout(mem::ms(5000), 0, 1)]);
        r.submit();
        r.push(remove(1, 2));
        cx.say("two of one user_data", r.go_sorted(2));
        r.push(remove(1, 2));
        cx.say("the other", r.go_sorted(2));
        cx.say("with ABS but no update", r.one(remove(1, 2).off(mem::ms(20) as u64).opf(ABS)));
        let (p, _w) = pipe();
        r.push_all(&[read(*p, at(buf(4)), 4, 3), poll(*p, 1, 4)]);
        r.submit();
        cx.say("a read", r.one(remove(3, 9)));
        cx.say("a poll", r.one(remove(4, 9)));
    });
}

fn timeout_update(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let update = |ts: usize, flags| remove(1, 2).off(ts as u64).opf(UPDATE | flags);
        r.push(timeout(mem::ms(60_000), 0, 1));
        r.submit();
        cx.say("with a clock bit", r.one(update(mem::ms(20), BOOTTIME)));
        cx.say("bad address", r.one(update(mem::BAD, 0)));
        cx.say("negative", r.one(update(mem::ts(-1, 0), 0)));
        r.push(update(mem::ms(20), 0));
        cx.say("to 20 ms", r.go(1));
        r.wait(1, 2000);
        cx.say("fires", r.cqes());
        r.push(timeout(mem::ms(60_000), 0, 1));
        r.submit();
        r.push(update(now(libc::CLOCK_MONOTONIC, 20), ABS));
        cx.say("to an absolute time", r.go(1));
        r.wait(1, 2000);
        cx.say("fires", r.cqes());
        cx.say("missing", r.one(update(mem::ms(20), 0)));
        r.push(timeout(mem::ms(60_000), 2, 1));
        r.submit();
        cx.say("a counted one", r.one(update(mem::ms(60_000), 0)));
        r.push_all(&[nop(5), nop(6)]);
        cx.say("counts no more", r.brief(3));
    });
}

fn timeout_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let pending = || {
            r.push(timeout(mem::ms(60_000), 0, 1));
            r.submit();
        };
        pending();
        r.push(cancel(1, 2));
        cx.say("by user_data", r.go_sorted(2));
        pending();
        r.push(q(op::ASYNC_CANCEL).opf(32).len(u32::from(op::TIMEOUT)).ud(2));
        cx.say("by opcode", r.go_sorted(2));
        pending();
        r.push(q(op::ASYNC_CANCEL).opf(4).ud(2));
        cx.say("any", r.go_sorted(2));
        pending();
        cx.say("by POLL_REMOVE", r.one(q(op::POLL_REMOVE).addr(1).ud(2)));
    });
}

fn timeout_ends_wait(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(timeout(mem::ms(20), 0, 1));
        cx.say("wait for 10", r.go(10));
        r.push(timeout(mem::ms(20), 0, 1));
        cx.say("without EXT_ARG", r.go_plain(10));
    });
}

fn timeout_many(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(256, kind);
        for i in 0..200 {
            r.push(timeout(mem::ms(i as i64 % 20), 0, i));
        }
        cx.say("submit", r.submit());
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 200 && r.wait(1, 2000) == 0 {
            seen.extend(r.take().iter().filter(|c| c.res == -libc::ETIME).map(|c| c.user_data));
        }
        cx.say("fired", seen.len());
    });
}
