//! ASYNC_CANCEL and SYNC_CANCEL: by every key, of every kind of waiting request.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(cancel_by_user_data, "a pipe read by user_data; one of several; all of them"),
    scenario!(cancel_by_fd, "by descriptor, by a duplicate of it, by a registered slot"),
    scenario!(cancel_by_op, "by opcode, with user_data, with descriptor"),
    scenario!(cancel_any, "any request, and when there is none"),
    scenario!(cancel_bad, "what ASYNC_CANCEL refuses"),
    scenario!(cancel_kinds, "each kind of waiting request"),
    scenario!(cancel_async, "requests that were forced to a worker"),
    scenario!(cancel_running_open, "an open that blocks on a FIFO's worker"),
    scenario!(cancel_chain, "cancelling the head of a chain cancels the chain"),
    scenario!(cancel_after_close, "closing a descriptor cancels nothing"),
    scenario!(cancel_other_thread, "a cancel from another thread: one CQE for the target"),
    scenario!(cancel_race, "cancel against completion, 500 times: one CQE each"),
    scenario!(sync_cancel, "SYNC_CANCEL of waiting, missing and all requests"),
    scenario!(sync_cancel_bad, "what SYNC_CANCEL refuses"),
];

const ALL: u32 = 1;
const FD: u32 = 2;
const ANY: u32 = 4;
const FD_FIXED: u32 = 8;
const USERDATA: u32 = 16;
const OP: u32 = 32;

fn blocked_read(p: i32, ud: u64) -> Q {
    read(p, at(buf(10)), 10, ud)
}

fn by(flags: u32) -> Q {
    q(op::ASYNC_CANCEL).opf(flags).ud(9)
}

fn submit(r: &Ring, qs: &[Q]) {
    r.push_all(qs);
    r.submit();
}

fn cancel_by_user_data(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(16, kind);
        submit(&r, &[blocked_read(*p, 1)]);
        r.push(cancel(1, 9));
        cx.say("one", r.go_sorted(2));
        let three = [blocked_read(*p, 7), blocked_read(*p, 7), blocked_read(*p, 7)];
        submit(&r, &three);
        r.push(cancel(7, 9).opf(ALL));
        cx.say("ALL of three", r.go_sorted(4));
        submit(&r, &three);
        r.push(cancel(7, 9));
        cx.say("one of three", r.go_sorted(2));
        r.push(cancel(7, 9));
        cx.say("another", r.go_sorted(2));
        r.push(cancel(7, 9));
        cx.say("the last", r.go_sorted(2));
        cx.say("no more", r.one(cancel(7, 9)));
        cx.say("ALL of none", r.one(cancel(7, 9).opf(ALL)));
    });
}

fn cancel_by_fd(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let (p2, _w2) = pipe();
        let r = Ring::new(16, kind);
        submit(
            &r,
            &[blocked_read(*p, 1), blocked_read(*p, 2), poll(*p, 1, 3), blocked_read(*p2, 4)],
        );
        r.push(by(ALL | FD).fd(*p));
        cx.say("ALL on a pipe", r.go_sorted(4));
        let same = Fd(sys::dup(*p2));
        r.push(by(FD).fd(*same));
        cx.say("by a duplicate", r.go_sorted(2));
        r.reg(register::FILES, leak([*p, -1]), 2);
        submit(&r, &[blocked_read(0, 5).flags(FIXED_FILE)]);
        r.push(by(FD | FD_FIXED).fd(0));
        cx.say("by slot", r.go_sorted(2));
        submit(&r, &[blocked_read(0, 5).flags(FIXED_FILE)]);
        r.push(by(FD).fd(*p));
        cx.say("a slot's request by descriptor", r.go_sorted(2));
        cx.say("empty slot", r.one(by(FD | FD_FIXED).fd(1)));
        cx.say("slot out of range", r.one(by(FD | FD_FIXED).fd(7)));
        cx.say("closed number", r.one(by(FD).fd(999)));
        cx.say("nothing on it", r.one(by(FD).fd(*p)));
        submit(&r, &[timeout(mem::ms(60_000), 0, 6)]);
        cx.say("ALL leaves timeouts alone", r.one(by(FD | ALL).fd(*p)));
    });
}

fn cancel_by_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(16, kind);
        submit(&r, &[blocked_read(*p, 1), poll(*p, 1, 2)]);
        r.push(by(OP | ALL).len(op::POLL_ADD.into()));
        cx.say("ALL polls", r.go_sorted(2));
        r.push(by(OP).len(op::READ.into()));
        cx.say("one read", r.go_sorted(2));
        submit(&r, &[blocked_read(*p, 1)]);
        cx.say(
            "opcode and another user_data",
            r.one(by(OP | USERDATA).len(op::READ.into()).addr(5)),
        );
        cx.say(
            "another opcode and user_data",
            r.one(by(OP | USERDATA).len(op::RECV.into()).addr(1)),
        );
        cx.say("opcode without a match", r.one(by(OP).len(op::RECV.into())));
        r.push(by(OP | USERDATA | FD).len(op::READ.into()).addr(1).fd(*p));
        cx.say("all three keys", r.go_sorted(2));
        submit(&r, &[blocked_read(*p, 1), blocked_read(*p, 2)]);
        r.push(by(FD | USERDATA).addr(2).fd(*p));
        cx.say("descriptor and user_data", r.go_sorted(2));
        r.push(by(FD).addr(77).fd(*p));
        cx.say("descriptor, user_data without its flag", r.go_sorted(2));
    });
}

fn cancel_any(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(16, kind);
        submit(&r, &[blocked_read(*p, 1), poll(*p, 1, 2), timeout(mem::ms(60_000), 0, 3)]);
        r.push(by(ANY));
        cx.say("three kinds", r.go_sorted(4));
        cx.say("none", r.one(by(ANY)));
        submit(&r, &[blocked_read(*p, 1)]);
        r.push(by(ANY | ALL));
        cx.say("with ALL", r.go_sorted(2));
    });
}

fn cancel_bad(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    cx.say("ANY|FD", r.one(by(ANY | FD).fd(*p)));
    cx.say("ANY|OP", r.one(by(ANY | OP)));
    cx.say("FD_FIXED without a table", r.one(by(FD | FD_FIXED).fd(0)));
    cx.say("unknown bit", r.one(by(64)));
    cx.say("FIXED_FILE flag", r.one(by(0).flags(FIXED_FILE)));
    cx.say("nothing pending", r.one(by(0).addr(1)));
}

fn cancel_kinds(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let (a, _b) = UnixStream::pair().expect("socketpair");
        let sock = a.as_raw_fd();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
        let event = crate::fixture::eventfd(0);
        let iov = mem::iovecs(&[(at(buf(8)), 8)]);
        let r = Ring::new(16, kind);
        // Fill the pipe so that writes wait.
        // SAFETY: no memory involved.
        unsafe { libc::fcntl(*w, libc::F_SETPIPE_SZ, 4096) };
        sys::write(*w, &[0; 4096]);
        let (p2, _w2) = pipe();
        let kinds = [
            ("READ", blocked_read(*p2, 1)),
            ("READV", q(op::READV).fd(*p2).addr(iov).len(1).ud(1)),
            ("WRITE", write(*w, at(buf(8)), 8, 1)),
            ("READ of an eventfd", read(*event, at(buf(8)), 8, 1)),
            ("RECV", recv(sock, at(buf(8)), 8, 1)),
            ("RECVMSG", q(op::RECVMSG).fd(sock).addr(mem::msghdr(iov, 1)).ud(1)),
            ("ACCEPT", q(op::ACCEPT).fd(listener.as_raw_fd()).ud(1)),
            ("POLL_ADD", poll(*p2, 1, 1)),
            ("POLL_ADD multishot", poll(*p2, 1, 1).len(1)),
            ("TIMEOUT", timeout(mem::ms(60_000), 0, 1)),
        ];
        for (name, request) in kinds {
            submit(&r, &[request]);
            r.push(cancel(1, 9));
            cx.say(name, r.go_sorted(2));
        }
        drop(p);
    });
}

fn cancel_async(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let (a, _b) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(16, kind);
        let kinds = [
            ("READ", blocked_read(*p, 1)),
            ("RECV", recv(a.as_raw_fd(), at(buf(8)), 8, 1)),
            ("POLL_ADD", poll(*p, 1, 1)),
            ("TIMEOUT", timeout(mem::ms(60_000), 0, 1)),
        ];
        for (name, request) in kinds {
            submit(&r, &[request.flags(ASYNC)]);
            sys::sleep_ms(60);
            r.push(cancel(1, 9));
            cx.say(name, r.go_sorted(2));
        }
    });
}

fn cancel_running_open(cx: &mut Cx) {
    // On a worker the open may either open the FIFO at once (it was tried inline) or block until it is interrupted; the kernel's -512 is a leak of an internal
    // number. All of these are one answer: the request ends, exactly once.
    let dir = Dir::new();
    dir.fifo("fifo");
    let path = dir.cpath("fifo");
    let ended = |c: &[anyring_uapi::Cqe]| {
        let target: Vec<i32> = c.iter().filter(|c| c.user_data == 1).map(|c| c.res).collect();
        let fine = matches!(target[..], [n] if n >= 0 || [-4, -125, -512].contains(&n));
        if fine {
            "ended once".to_owned()
        } else {
            show(c)
        }
    };
    let r = Ring::new(8, 0);
    submit(&r, &[q(op::OPENAT).fd(libc::AT_FDCWD).addr(path).ud(1)]);
    sys::sleep_ms(30);
    r.push(cancel(1, 9));
    r.submit();
    cx.say("cancel", ended(&r.collect(2)));
    submit(&r, &[q(op::OPENAT).fd(libc::AT_FDCWD).addr(path).ud(1).flags(ASYNC)]);
    sys::sleep_ms(30);
    r.push(cancel(1, 9));
    r.submit();
    cx.say("cancel, ASYNC", ended(&r.collect(2)));
}

fn cancel_chain(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[blocked_read(*p, 1).flags(IO_LINK), nop(2).flags(IO_LINK), nop(3)]);
        r.push(cancel(1, 9));
        cx.say("soft", r.go_sorted(4));
        submit(&r, &[blocked_read(*p, 1).flags(IO_HARDLINK), nop(2).flags(IO_HARDLINK), nop(3)]);
        r.push(cancel(1, 9));
        cx.say("hard", r.go_sorted(4));
        submit(&r, &[blocked_read(*p, 1).flags(IO_LINK), link_timeout(mem::ms(60_000), 2)]);
        r.push(cancel(1, 9));
        cx.say("with a link timeout", r.go_sorted(3));
    });
}

fn cancel_after_close(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[q(op::ACCEPT).fd(listener.as_raw_fd()).ud(1), blocked_read(*p, 2)]);
        drop(listener);
        drop(p);
        cx.say("after closing both", r.brief(1));
        sys::write(*w, b"hi");
        cx.say("data for the read", r.go(1));
        r.push(cancel(1, 9));
        cx.say("the accept", r.go_sorted(2));
    });
}

fn cancel_other_thread(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    submit(&r, &[blocked_read(*p, 1)]);
    let text = std::thread::scope(|s| {
        let t = s.spawn(|| {
            r.push(cancel(1, 9));
            r.submit()
        });
        t.join().map(res).unwrap_or_default()
    });
    cx.say("submitted there", text);
    r.wait(2, 2000);
    cx.say("seen here", r.cqes_sorted());
}

fn cancel_race(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        let (mut wrong, mut lost) = (0, 0);
        for _ in 0..500 {
            submit(&r, &[blocked_read(*p, 1)]);
            sys::write(*w, b"0123456789");
            submit(&r, &[cancel(1, 9)]);
            let cqes = r.collect(2);
            lost += usize::from(cqes.len() != 2);
            for c in cqes {
                let fine: &[i32] = if c.user_data == 1 {
                    &[10, -libc::ECANCELED]
                } else {
                    &[0, -libc::ENOENT, -libc::EALREADY]
                };
                wrong += usize::from(!fine.contains(&c.res));
            }
            if sys::poll_now(*p, POLLIN) != 0 {
                let _ = sys::read(*p, 10);
            }
        }
        cx.say("lost, wrong", format!("{lost} {wrong}"));
        cx.say("left over", r.brief(1));
    });
}

fn sync(addr: u64, fd: i32, flags: u32, ms: i64) -> register::SyncCancel {
    let timeout = if ms < 0 {
        Timespec { sec: -1, nsec: -1 }
    } else {
        Timespec { sec: 0, nsec: ms * 1_000_000 }
    };
    register::SyncCancel { addr, fd, flags, timeout, ..Default::default() }
}

fn sync_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        let run = |s: register::SyncCancel| res(r.reg(register::SYNC_CANCEL, leak(s), 1));
        cx.say("none", run(sync(55, 0, 0, 50)));
        cx.say("none, ANY, for ever", run(sync(55, 0, ANY, -1)));
        cx.say("none, ALL", run(sync(55, 0, ALL, 50)));
        submit(&r, &[blocked_read(*p, 1)]);
        cx.say("a read", run(sync(1, 0, 0, 1000)));
        r.wait(1, 500);
        cx.say("its CQE", r.cqes());
        submit(&r, &[blocked_read(*p, 1), poll(*p, 1, 2)]);
        cx.say("ALL on a descriptor", run(sync(0, *p, ALL | FD, -1)));
        r.wait(2, 500);
        cx.say("their CQEs", r.cqes_sorted());
        submit(&r, &[timeout(mem::ms(60_000), 0, 1), poll(*p, 1, 2)]);
        cx.say("ANY", run(sync(0, 0, ANY, -1)));
        r.wait(2, 500);
        cx.say("their CQEs", r.cqes_sorted());
        submit(&r, &[poll(*p, 1, 2), blocked_read(*p, 1)]);
        let by_op = register::SyncCancel { opcode: op::POLL_ADD, ..sync(0, 0, OP, 1000) };
        cx.say("by opcode", run(by_op));
        r.wait(1, 500);
        cx.say("its CQE", r.cqes());
    });
}

fn sync_cancel_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let s = leak(sync(1, 0, 0, 10));
    cx.say("nr 0", res(r.reg(register::SYNC_CANCEL, s, 0)));
    cx.say("nr 2", res(r.reg(register::SYNC_CANCEL, s, 2)));
    cx.say("NULL", res(r.reg(register::SYNC_CANCEL, 0, 1)));
    cx.say("unmapped", res(r.reg(register::SYNC_CANCEL, mem::BAD, 1)));
    cx.say("unknown bit", res(r.reg(register::SYNC_CANCEL, leak(sync(1, 0, 64, 10)), 1)));
    cx.say("bad descriptor", res(r.reg(register::SYNC_CANCEL, leak(sync(1, 999, FD, 10)), 1)));
    let padded = register::SyncCancel { pad: [1; 7], ..sync(1, 0, 0, 10) };
    cx.say("padding", res(r.reg(register::SYNC_CANCEL, leak(padded), 1)));
    let padded = register::SyncCancel { pad2: [0, 1, 0], ..sync(1, 0, 0, 10) };
    cx.say("more padding", res(r.reg(register::SYNC_CANCEL, leak(padded), 1)));
}
