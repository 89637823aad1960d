//! LINK_TIMEOUT: every way its head and it can end.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(
        ltimeout_fires,
        "a link timeout cancels a pipe read, a poll, a timeout, a worker's read"
    ),
    scenario!(ltimeout_head_first, "the head completes or fails first"),
    scenario!(ltimeout_chained, "a link timeout with a further member behind it"),
    scenario!(ltimeout_misplaced, "a link timeout without a head, doubled, third in a chain"),
    scenario!(ltimeout_skip, "CQE_SKIP_SUCCESS on a link timeout"),
    scenario!(ltimeout_update, "updating a link timeout"),
    scenario!(ltimeout_remove, "removing or cancelling a link timeout or its head"),
    scenario!(ltimeout_bad, "what a link timeout refuses"),
    scenario!(ltimeout_nop_1ns, "a NOP with a timeout of 1 ns: never lost"),
    scenario!(ltimeout_write_bucket, "a write after one that a link timeout cancelled completes"),
];

/// A read that never ends by itself, linked to a timeout of `ms`.
fn blocked(p: &Fd, flags: u8, ms: i64) -> [Q; 2] {
    [read(**p, at(buf(10)), 10, 1).flags(IO_LINK | flags), link_timeout(mem::ms(ms), 2)]
}

fn ltimeout_fires(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&blocked(&p, 0, 20));
        cx.say("read", r.go(2));
        r.push_all(&blocked(&p, ASYNC, 20));
        cx.say("ASYNC read", r.go(2));
        r.push_all(&[poll(*p, 1, 1).flags(IO_LINK), link_timeout(mem::ms(20), 2)]);
        cx.say("poll", r.go(2));
        r.push_all(&[timeout(mem::ms(5000), 0, 1).flags(IO_LINK), link_timeout(mem::ms(20), 2)]);
        cx.say("timeout", r.go(2));
        let (a, _b) = UnixStream::pair().expect("socketpair");
        r.push_all(&[
            recv(a.as_raw_fd(), at(buf(8)), 8, 1).flags(IO_LINK),
            link_timeout(mem::ms(20), 2),
        ]);
        cx.say("recv", r.go(2));
    });
}

fn ltimeout_head_first(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[nop(1).flags(IO_LINK), link_timeout(mem::ms(500), 2)]);
        cx.say("NOP", r.go(2));
        r.push_all(&[bad_read(1).flags(IO_LINK), link_timeout(mem::ms(500), 2)]);
        cx.say("failing read", r.go(2));
        let (p, w) = pipe();
        r.push_all(&blocked(&p, 0, 5000));
        r.submit();
        sys::write(*w, b"1234567890");
        r.wait(2, 2000);
        cx.say("read with data later", r.cqes());
        r.push_all(&blocked(&p, 0, 5000));
        r.submit();
        sys::write(*w, b"123");
        r.wait(2, 2000);
        cx.say("short read", r.cqes());
    });
}

fn ltimeout_chained(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        for (name, l) in [("soft", IO_LINK), ("hard", IO_HARDLINK)] {
            let lt = |ms| link_timeout(mem::ms(ms), 2).flags(l);
            r.push_all(&[read(*p, at(buf(10)), 10, 1).flags(l), lt(20), nop(3)]);
            cx.say(&format!("fires, {name}"), r.go(3));
            r.push_all(&[nop(1).flags(l), lt(500), nop(3)]);
            cx.say(&format!("head completes, {name}"), r.go(3));
            r.push_all(&[bad_read(1).flags(l), lt(500), nop(3)]);
            cx.say(&format!("head fails, {name}"), r.go(3));
        }
        r.push_all(&[
            nop(1).flags(IO_LINK),
            nop(2).flags(IO_LINK),
            link_timeout(mem::ms(500), 3).flags(IO_LINK),
            nop(4),
        ]);
        cx.say("belongs to the one before", r.go(4));
    });
}

fn ltimeout_misplaced(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let lt = |ud| link_timeout(mem::ms(20), ud);
        let r = Ring::new(8, kind);
        cx.say("no head", r.one(lt(2)));
        r.push_all(&[nop(1), lt(2)]);
        let s = r.submit();
        r.wait(2, 500);
        cx.say("after an unlinked request", format!("{s} {}", r.cqes_sorted()));
        r.push_all(&[nop(1).flags(IO_LINK), lt(2).flags(IO_LINK), lt(3)]);
        cx.say("doubled", r.go_sorted(3));
        r.push_all(&[nop(1).flags(IO_LINK), nop(2).flags(IO_LINK), lt(3)]);
        cx.say("third", r.go(3));
        r.push_all(&[lt(1).flags(IO_LINK), nop(2)]);
        cx.say("as head", r.go_sorted(2));
    });
}

fn ltimeout_skip(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        let [head, lt] = blocked(&p, 0, 20);
        r.push_all(&[head, lt.flags(CQE_SKIP_SUCCESS)]);
        r.submit();
        r.wait(1, 2000);
        r.wait(2, 50);
        cx.say("fires", r.cqes());
        r.push_all(&[nop(1).flags(IO_LINK), link_timeout(mem::ms(20), 2).flags(CQE_SKIP_SUCCESS)]);
        r.submit();
        r.wait(2, 50);
        cx.say("head completes", r.cqes());
    });
}

fn ltimeout_update(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        let update = |flags| q(op::TIMEOUT_REMOVE).addr(2).off(mem::ms(20) as u64).opf(flags).ud(9);
        r.push_all(&blocked(&p, 0, 60_000));
        r.submit();
        cx.say("flag 16 alone", r.one(update(16)));
        cx.say("flag 2 alone", r.one(update(2)));
        cx.say("flags 2|16", r.one(update(18)));
        r.wait(2, 2000);
        cx.say("fires", r.cqes());
        cx.say("2|16 on nothing", r.one(update(18)));
    });
}

fn ltimeout_remove(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&blocked(&p, 0, 60_000));
        r.submit();
        cx.say("TIMEOUT_REMOVE of it", r.one(q(op::TIMEOUT_REMOVE).addr(2).ud(9)));
        cx.say("ASYNC_CANCEL of it", r.one(cancel(2, 9)));
        r.push(cancel(1, 9));
        cx.say("ASYNC_CANCEL of its head", r.go_sorted(3));
    });
}

fn ltimeout_bad(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let mut ask = |name: &str, lt: Q| {
            r.push_all(&[nop(1).flags(IO_LINK), lt]);
            cx.say(name, r.go_sorted(2));
        };
        ask("NULL", link_timeout(0, 2));
        ask("negative", link_timeout(mem::ts(-1, 0), 2));
        ask("a count", link_timeout(mem::ms(20), 2).off(1));
        ask("len 2", link_timeout(mem::ms(20), 2).len(2));
        ask("two clocks", link_timeout(mem::ms(20), 2).opf(4 | 8));
    });
}

fn ltimeout_nop_1ns(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (mut complete, mut odd) = (0, 0);
        for _ in 0..200 {
            r.push_all(&[nop(1).flags(IO_LINK), link_timeout(mem::ts(0, 1), 2)]);
            r.submit();
            r.wait(2, 1000);
            let mut c = r.take();
            c.sort_by_key(|c| c.user_data);
            complete += usize::from(c.len() == 2);
            // -ENOENT or -EALREADY if it fired just when the NOP was done.
            let fine = |c: &anyring_uapi::Cqe| {
                [-libc::ECANCELED, -libc::ENOENT, -libc::EALREADY].contains(&c.res)
            };
            odd += usize::from(c.len() != 2 || c[0].res != 0 || !fine(&c[1]));
        }
        cx.say("pairs of 200", complete);
        cx.say("odd results", odd);
    });
}

fn ltimeout_write_bucket(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let big = sys::pages(1 << 20) as usize;
        r.push_all(&[
            write(f.as_raw_fd(), big, 1 << 20, 1).flags(IO_LINK | ASYNC),
            link_timeout(mem::ts(0, 1), 2),
        ]);
        r.push(write(f.as_raw_fd(), big, 4096, 3).flags(ASYNC));
        r.submit();
        r.wait(3, 2000);
        r.wait(3, 2000);
        let c = r.take();
        // Whether the timeout wins is chance; that all three end is not.
        cx.say("CQEs", c.len());
        cx.say(
            "second write",
            c.iter().find(|c| c.user_data == 3).map_or("lost".into(), |c| res(c.res)),
        );
    });
}
