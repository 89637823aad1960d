//! Links, hard links and CQE_SKIP_SUCCESS: what breaks a chain, and who posts a CQE.

use crate::prelude::*;
use anyring_uapi::setup::SUBMIT_ALL;
use std::net::Shutdown;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(link_bad_opcode, "a bad opcode as head, middle or end of a chain"),
    scenario!(link_fail, "a read of a closed number in soft and hard chains"),
    scenario!(link_short_file, "short reads and writes of files break a chain"),
    scenario!(link_short_pipe, "short reads of a pipe break a chain"),
    scenario!(link_short_recv, "short receives break a chain only with MSG_WAITALL"),
    scenario!(link_unterminated, "LINK on the last SQE of a submission ends there"),
    scenario!(link_prep_failure, "a failure at prep kills hard chains too"),
    scenario!(link_order, "members of a chain run in order, on workers too"),
    scenario!(link_files, "open into a slot, write, read, close in one chain"),
    scenario!(link_long, "a chain as long as the ring"),
    scenario!(link_cancel_member, "a member that has not started is not found by a cancel"),
    scenario!(link_failed_cancel, "a cancel that finds nothing breaks its own chain"),
    scenario!(link_splice_short, "a short splice breaks a chain"),
    scenario!(skip_success, "CQE_SKIP_SUCCESS alone"),
    scenario!(skip_chain, "CQE_SKIP_SUCCESS in failing chains"),
    scenario!(skip_drain, "CQE_SKIP_SUCCESS and DRAIN exclude each other on a ring"),
    scenario!(skip_refused, "CQE_SKIP_SUCCESS on a multishot poll"),
];

fn link_bad_opcode(cx: &mut Cx) {
    // The cancelled tail comes through task work, so a later request may be before it:
    // ordered by user_data.
    for (name, flags) in [("plain", 0), ("SUBMIT_ALL", SUBMIT_ALL)] {
        cx.both_setups(|cx, kind| {
            let bad = |ud| q(200).ud(ud);
            let chains = [
                ("middle", vec![nop(1).flags(IO_LINK), bad(2).flags(IO_LINK), nop(3), nop(4)]),
                ("end", vec![nop(1).flags(IO_LINK), nop(2).flags(IO_LINK), bad(3), nop(4)]),
                ("head", vec![bad(1).flags(IO_LINK), nop(2), nop(3)]),
                (
                    "hard middle",
                    vec![nop(1).flags(IO_HARDLINK), bad(2).flags(IO_HARDLINK), nop(3), nop(4)],
                ),
            ];
            for (what, chain) in chains {
                let r = Ring::new(8, flags | kind);
                r.push_all(&chain);
                let s = r.enter(chain.len() as u32, 0, 0);
                r.wait(s as u32, 2000);
                cx.say(&format!("{name}, {what}"), format!("{} {}", res(s), r.cqes_sorted()));
            }
        });
    }
}

fn link_fail(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        for (name, l) in [("soft", IO_LINK), ("hard", IO_HARDLINK), ("both", IO_LINK | IO_HARDLINK)]
        {
            let r = Ring::new(8, kind);
            r.push_all(&[nop(1).flags(l), bad_read(2).flags(l), nop(3).flags(l), nop(4)]);
            cx.say(name, r.go(4));
            r.push_all(&[bad_read(1).flags(l), nop(2).flags(l), bad_read(3).flags(l), nop(4)]);
            cx.say(&format!("{name}, two failures"), r.go(4));
        }
    });
}

fn link_short_file(cx: &mut Cx) {
    let (dir, b) = (Dir::new(), at(buf(200)));
    let f = dir.file("f", b"xxxxxxxxxx");
    let fd = f.as_raw_fd();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for (name, l) in [("soft", IO_LINK), ("hard", IO_HARDLINK)] {
            r.push_all(&[read(fd, b, 100, 1).flags(l), nop(2)]);
            cx.say(&format!("10 of 100, {name}"), r.go(2));
            r.push_all(&[read(fd, b, 100, 1).off(10).flags(l), nop(2)]);
            cx.say(&format!("at the end, {name}"), r.go(2));
        }
        r.push_all(&[read(fd, b, 10, 1).flags(IO_LINK), nop(2)]);
        cx.say("all of it", r.go(2));
        r.push_all(&[read(fd, b, 0, 1).flags(IO_LINK), nop(2)]);
        cx.say("0 of 0", r.go(2));
        let v = mem::iovecs(&[(b, 6), (b + 10, 6)]);
        r.push_all(&[q(op::READV).fd(fd).addr(v).len(2).ud(1).flags(IO_LINK), nop(2)]);
        cx.say("readv 10 of 12", r.go(2));
    });
}

fn link_short_pipe(cx: &mut Cx) {
    let b = at(buf(200));
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        for (name, l) in [("soft", IO_LINK), ("hard", IO_HARDLINK)] {
            sys::write(*w, b"ab");
            r.push_all(&[read(*p, b, 10, 1).flags(l), nop(2)]);
            cx.say(&format!("2 of 10, {name}"), r.go(2));
        }
        r.push_all(&[read(*p, b, 10, 1).flags(IO_LINK), nop(2)]);
        r.submit();
        sys::write(*w, b"ab");
        r.wait(2, 2000);
        cx.say("2 of 10, later", r.cqes());
    });
}

fn link_short_recv(cx: &mut Cx) {
    let b = at(buf(200));
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let fd = a.as_raw_fd();
        let r = Ring::new(8, kind);
        sys::write(c.as_raw_fd(), b"abc");
        r.push_all(&[recv(fd, b, 100, 1).flags(IO_LINK), nop(2)]);
        cx.say("3 of 100", r.go(2));
        r.push_all(&[recv(fd, b, 100, 1).opf(libc::MSG_WAITALL as u32).flags(IO_LINK), nop(2)]);
        sys::write(c.as_raw_fd(), b"abc");
        c.shutdown(Shutdown::Write).expect("shutdown");
        cx.say("3 of 100 with MSG_WAITALL, then the end", r.go(2));
        r.push_all(&[recv(fd, b, 100, 1).flags(IO_LINK), nop(2)]);
        cx.say("0 at the end", r.go(2));
        r.push_all(&[read(fd, b, 100, 1).flags(IO_LINK), nop(2)]);
        cx.say("READ of 0 at the end", r.go(2));
    });
}

fn link_unterminated(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for (name, q) in [("nop", nop(1)), ("failing read", bad_read(1))] {
            cx.say(name, r.one(q.flags(IO_LINK)));
            cx.say("the next submission", r.one(nop(2)));
        }
    });
}

fn link_prep_failure(cx: &mut Cx) {
    let (p, _w) = pipe();
    let fault = |ud| q(op::READV).fd(*p).addr(mem::BAD).len(1).ud(ud);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[fault(1).flags(IO_HARDLINK), nop(2)]);
        cx.say("hard, head", r.go_sorted(2));
        r.push_all(&[nop(1).flags(IO_HARDLINK), fault(2).flags(IO_HARDLINK), nop(3)]);
        cx.say("hard, middle", r.go_sorted(3));
        r.push_all(&[nop(1).flags(IO_LINK), fault(2)]);
        cx.say("soft, end", r.go_sorted(2));
    });
}

fn link_order(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        for (name, extra) in [("inline", 0), ("ASYNC", ASYNC)] {
            let f = dir.file("f", b"");
            let (fd, a, b) = (f.as_raw_fd(), mem::bytes(b"first"), mem::bytes(b"other"));
            let out = buf(20);
            let r = Ring::new(8, kind);
            let l = IO_LINK | extra;
            r.push_all(&[
                write(fd, a, 5, 1).flags(l),
                write(fd, b, 5, 2).off(5).flags(l),
                q(op::FSYNC).fd(fd).ud(3).flags(l),
                read(fd, at(out), 10, 4).flags(extra),
            ]);
            cx.say(name, format!("{} {}", r.go(4), mem::text(&out[..10])));
            r.push_all(&[
                nop(0).flags(l),
                nop(1).flags(l),
                nop(2).flags(l),
                nop(3).flags(l),
                nop(4).flags(extra),
            ]);
            cx.say(&format!("{name}, NOPs"), r.go(5));
        }
    });
}

fn link_files(cx: &mut Cx) {
    let dir = Dir::new();
    let path = dir.cpath("new");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.reg(register::FILES, leak([-1i32; 4]), 4);
        let out = buf(5);
        let fixed = IO_LINK | FIXED_FILE;
        let create = (libc::O_CREAT | libc::O_RDWR) as u32;
        r.push_all(&[
            q(op::OPENAT)
                .fd(libc::AT_FDCWD)
                .addr(path)
                .opf(create)
                .len(0o600)
                .fi(2)
                .ud(1)
                .flags(IO_LINK),
            write(1, mem::bytes(b"hello"), 5, 2).flags(fixed),
            read(1, at(out), 5, 3).flags(fixed),
            q(op::CLOSE).fd(0).fi(2).ud(4).flags(IO_LINK),
            read(1, at(out), 5, 5).flags(FIXED_FILE),
        ]);
        cx.say("chain", format!("{} {}", r.go(5), mem::text(out)));
    });
}

fn link_long(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(64, kind);
        for i in 0..64 {
            r.push(nop(i).flags(if i < 63 { IO_LINK } else { 0 }));
        }
        r.submit();
        r.wait(64, 2000);
        let ids: Vec<u64> = r.take().iter().map(|c| c.user_data).collect();
        cx.say("64 in order", ids == (0..64).collect::<Vec<_>>());
        for i in 0..64 {
            let q = if i == 20 { bad_read(i) } else { nop(i) };
            r.push(q.flags(if i < 63 { IO_LINK } else { 0 }));
        }
        r.submit();
        r.wait(64, 2000);
        let cqes = r.take();
        let count = |e: i32| cqes.iter().filter(|c| c.res == e).count();
        cx.say(
            "failing at 20: ok, EBADF, ECANCELED",
            format!("{} {} {}", count(0), count(-9), count(-125)),
        );
    });
}

fn link_cancel_member(cx: &mut Cx) {
    let b = at(buf(10));
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[read(*p, b, 10, 1).flags(IO_LINK), nop(2)]);
        r.submit();
        cx.say("the member", r.one(cancel(2, 9)));
        r.push(cancel(1, 9));
        cx.say("the head", r.go_sorted(3));
    });
}

fn link_failed_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[cancel(77, 1).flags(IO_LINK), nop(2)]);
        cx.say("cancel of nothing", r.go(2));
        r.push_all(&[q(op::POLL_REMOVE).addr(77).ud(1).flags(IO_LINK), nop(2)]);
        cx.say("POLL_REMOVE of nothing", r.go(2));
        r.push_all(&[q(op::TIMEOUT_REMOVE).addr(77).ud(1).flags(IO_LINK), nop(2)]);
        cx.say("TIMEOUT_REMOVE of nothing", r.go(2));
    });
}

fn link_splice_short(cx: &mut Cx) {
    let ((p, w), (p2, w2)) = (pipe(), pipe());
    sys::write(*w, b"ab");
    let r = Ring::new(8, 0);
    let splice =
        |len| q(op::SPLICE).fd(*w2).off(u64::MAX).addr(usize::MAX).len(len).fi(*p as u32).ud(1);
    r.push_all(&[splice(10).flags(IO_LINK), nop(2)]);
    cx.say("2 of 10", r.go(2));
    sys::write(*w, b"ab");
    r.push_all(&[splice(2).flags(IO_LINK), nop(2)]);
    cx.say("2 of 2", r.go(2));
    cx.say("moved", mem::text(&sys::read(*p2, 10).unwrap_or_default()));
}

fn skip_success(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(nop(1).flags(CQE_SKIP_SUCCESS));
        cx.say("success", r.brief(1));
        cx.say("failure", r.one(bad_read(1).flags(CQE_SKIP_SUCCESS)));
        cx.say("bad opcode", r.one(q(200).ud(1).flags(CQE_SKIP_SUCCESS)));
    });
}

fn skip_chain(cx: &mut Cx) {
    let (l, s) = (IO_LINK, CQE_SKIP_SUCCESS);
    let chains: [(&str, u32, [Q; 3]); 6] = [
        (
            "all skip, head fails",
            1,
            [bad_read(1).flags(s | l), nop(2).flags(s | l), nop(3).flags(s)],
        ),
        ("rest skips, head fails", 3, [bad_read(1).flags(l), nop(2).flags(s | l), nop(3).flags(s)]),
        ("head skips and fails", 1, [bad_read(1).flags(s | l), nop(2).flags(l), nop(3)]),
        ("middle fails", 2, [nop(1).flags(s | l), bad_read(2).flags(l), nop(3).flags(s)]),
        ("middle skips and fails", 2, [nop(1).flags(l), bad_read(2).flags(s | l), nop(3)]),
        ("only the last posts", 1, [nop(1).flags(s | l), nop(2).flags(s | l), nop(3)]),
    ];
    cx.both_setups(|cx, kind| {
        for (name, n, chain) in &chains {
            let r = Ring::new(8, kind);
            r.push_all(chain);
            r.submit();
            r.wait(*n, 2000);
            r.wait(n + 1, 20);
            cx.say(name, r.cqes());
        }
    });
}

fn skip_drain(cx: &mut Cx) {
    let (d, s) = (IO_DRAIN, CQE_SKIP_SUCCESS);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push_all(&[nop(1).flags(s), nop(2).flags(d)]);
        cx.say("drain after a skip", r.go(1));
        let r = Ring::new(8, kind);
        cx.say("both in one", r.one(nop(2).flags(d | s)));
        let r = Ring::new(8, kind);
        cx.say("drain first", r.one(nop(2).flags(d)));
        r.push(nop(1).flags(s));
        cx.say("then a skip", r.brief(1));
        cx.say("then a drain", r.one(nop(3).flags(d)));
    });
}

fn skip_refused(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    cx.say("multishot poll", r.one(poll(*p, 1, 1).len(1).flags(CQE_SKIP_SUCCESS)));
    r.push(q(op::PROVIDE_BUFFERS).fd(1).addr(at(buf(8))).len(8).ud(2).flags(CQE_SKIP_SUCCESS));
    cx.say("PROVIDE_BUFFERS", r.brief(1));
}
