//! POLL_ADD, POLL_REMOVE and its updates, and polling the ring's own descriptor.

use crate::prelude::*;
use std::time::{Duration, Instant};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(poll_once, "one event, ready or later, on pipes and sockets"),
    scenario!(poll_remove, "removing polls"),
    scenario!(poll_update_events, "new events for a pending poll"),
    scenario!(poll_update_user_data, "a new user_data for a pending poll"),
    scenario!(poll_multishot, "a multishot poll is edge-like"),
    scenario!(poll_multishot_update, "updating a multishot poll"),
    scenario!(poll_multishot_hup, "a multishot poll and the other end closing"),
    scenario!(poll_odd_files, "regular files, /dev/null, closed numbers"),
    scenario!(poll_bad, "what POLL_ADD and POLL_REMOVE refuse"),
    scenario!(poll_hup_always, "error and hang-up are always watched"),
    scenario!(poll_only_polls, "POLL_REMOVE finds only POLL_ADD requests"),
    scenario!(poll_many_one_pipe, "50 polls on one pipe all complete"),
    scenario!(poll_async, "POLL_ADD with ASYNC"),
    scenario!(poll_out_full, "POLLOUT on a full pipe"),
    scenario!(poll_then_read, "a poll linked to a read"),
    scenario!(poll_ring_fd, "POLL_ADD of another ring's descriptor"),
    scenario!(poll_ring_self, "a ring that polls itself"),
    scenario!(ring_fd_poll, "poll(2) of a ring's descriptor"),
    scenario!(ring_fd_poll_wakes, "poll(2) of a ring's descriptor wakes when a CQE comes"),
    scenario!(ring_fd_poll_deferred, "poll(2) of a DEFER_TASKRUN ring whose work waits for enter"),
    scenario!(ring_fd_epoll, "epoll of a ring's descriptor: level-triggered, no spin once drained"),
    scenario!(ring_fd_epoll_edge, "epoll of a ring's descriptor, edge-triggered"),
    scenario!(ring_fd_select, "select(2) of a ring's descriptor"),
];

fn submit(r: &Ring, qs: &[Q]) {
    r.push_all(qs);
    r.submit();
}

fn remove(target: u64, ud: u64) -> Q {
    q(op::POLL_REMOVE).addr(target as usize).ud(ud)
}

const MULTI: u32 = 1;
const UPDATE_EVENTS: u32 = 2;
const UPDATE_USER_DATA: u32 = 4;

fn poll_once(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        sys::write(*w, b"x");
        cx.say("ready", r.one(poll(*p, 1, 1)));
        let _ = sys::read(*p, 1);
        r.push(poll(*p, 1, 1));
        cx.say("not ready", r.brief(1));
        sys::write(*w, b"x");
        cx.say("later", r.go(1));
        cx.say("only once", r.brief(1));
        cx.say("write end", r.one(poll(*w, 4, 1)));
        let (a, b) = UnixStream::pair().expect("socketpair");
        r.push(poll(a.as_raw_fd(), 1, 1));
        r.submit();
        sys::write(b.as_raw_fd(), b"x");
        cx.say("socket", r.go(1));
        cx.say("socket, IN|OUT", r.one(poll(a.as_raw_fd(), 5, 1)));
        drop(b);
        cx.say("socket, peer closed", r.one(poll(a.as_raw_fd(), 1 | 0x2000, 1)));
        let e = crate::fixture::eventfd(0);
        r.push(poll(*e, 1, 1));
        r.submit();
        sys::write(*e, &1u64.to_ne_bytes());
        cx.say("eventfd", r.go(1));
    });
}

fn poll_remove(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 1)]);
        r.push(remove(1, 2));
        cx.say("pending", r.go_sorted(2));
        cx.say("missing", r.one(remove(1, 2)));
        submit(&r, &[poll(*p, 1, 1), poll(*p, 1, 1)]);
        r.push(remove(1, 2));
        cx.say("one of two", r.go_sorted(2));
        r.push(remove(1, 2));
        cx.say("the other", r.go_sorted(2));
    });
}

fn poll_update_events(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 1)]);
        r.push(remove(1, 2).len(UPDATE_EVENTS).opf(4));
        cx.say("to POLLOUT on a read end", r.go(1));
        sys::write(*w, b"a");
        cx.say("data", r.brief(1));
        r.push(remove(1, 4).len(UPDATE_EVENTS).opf(1));
        cx.say("back to POLLIN", r.go_sorted(2));
        cx.say("of nothing", r.one(remove(1, 4).len(UPDATE_EVENTS).opf(1)));
    });
}

fn poll_update_user_data(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 1)]);
        cx.say("1 becomes 33", r.one(remove(1, 3).len(UPDATE_USER_DATA).off(33)));
        cx.say("1 is gone", r.one(remove(1, 3)));
        sys::write(*w, b"a");
        cx.say("event", r.go(1));
        let _ = sys::read(*p, 1);
        submit(&r, &[poll(*p, 4, 1)]);
        sys::write(*w, b"a");
        r.push(remove(1, 3).len(UPDATE_USER_DATA | UPDATE_EVENTS).off(44).opf(1));
        cx.say("both updates, event there", r.go_sorted(2));
    });
}

fn poll_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 5).len(MULTI)]);
        sys::write(*w, b"a");
        cx.say("first", r.go(1));
        cx.say("nothing new", r.brief(1));
        sys::write(*w, b"a");
        cx.say("second, first not read", r.go(1));
        let _ = sys::read(*p, 10);
        cx.say("drained", r.brief(1));
        sys::write(*w, b"a");
        cx.say("third", r.go(1));
        r.push(remove(5, 7));
        cx.say("removed", r.go_sorted(2));
        r.push(poll(*p, 1, 6).len(MULTI));
        cx.say("ready when armed", r.go(1));
        r.push(cancel(6, 7));
        cx.say("cancelled", r.go_sorted(2));
    });
}

fn poll_multishot_update(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 5).len(MULTI)]);
        cx.say("events, MULTI", r.one(remove(5, 6).len(UPDATE_EVENTS | MULTI).opf(1)));
        sys::write(*w, b"a");
        cx.say("event", r.go(1));
        r.push(remove(5, 6).len(UPDATE_EVENTS).opf(1));
        cx.say("events without MULTI, data there", r.go_sorted(2));
        let _ = sys::read(*p, 10);
        r.push(remove(5, 7));
        cx.say("removed", r.go_sorted(2));
    });
}

fn poll_multishot_hup(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 1, 5).len(MULTI)]);
        sys::write(*w, b"a");
        cx.say("data", r.go(1));
        drop(w);
        cx.say("closed", r.go(1));
        cx.say("afterwards", r.brief(1));
        r.push(remove(5, 7));
        cx.say("removed", r.go_sorted(2));
    });
}

fn poll_odd_files(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"x");
    let null = std::fs::File::open("/dev/null").expect("/dev/null");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("regular file", r.one(poll(f.as_raw_fd(), 1, 1)));
        cx.say("regular file, multishot", r.one(poll(f.as_raw_fd(), 1, 1).len(MULTI)));
        cx.say("regular file, no events", r.one(poll(f.as_raw_fd(), 0, 1)));
        cx.say("/dev/null", r.one(poll(null.as_raw_fd(), 1, 1)));
        cx.say("closed number", r.one(poll(999, 1, 1)));
    });
}

fn poll_bad(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    cx.say("LEVEL", r.one(poll(*p, 1, 8).len(8)));
    cx.say("LEVEL|MULTI", r.one(poll(*p, 1, 8).len(9)));
    cx.say("update bits on POLL_ADD", r.one(poll(*p, 1, 8).len(UPDATE_EVENTS)));
    cx.say("POLL_REMOVE with only MULTI", r.one(remove(8, 9).len(MULTI)));
    cx.say("POLL_REMOVE with LEVEL", r.one(remove(8, 9).len(8)));
    cx.say("POLL_REMOVE with off but no update", r.one(remove(8, 9).off(5)));
    cx.say("POLL_REMOVE with events but no update", r.one(remove(8, 9).opf(5)));
}

fn poll_hup_always(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[poll(*p, 0, 3)]);
        drop(w);
        cx.say("read end, writer gone", r.go(1));
        let (p, w) = pipe();
        submit(&r, &[poll(*w, 0, 3)]);
        drop(p);
        cx.say("write end, reader gone", r.go(1));
    });
}

fn poll_only_polls(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        submit(&r, &[read(*p, at(buf(4)), 4, 1), timeout(mem::ms(60_000), 0, 2)]);
        cx.say("a waiting read", r.one(remove(1, 9)));
        cx.say("a timeout", r.one(remove(2, 9)));
    });
}

fn poll_many_one_pipe(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(64, kind);
        for i in 0..50 {
            r.push(poll(*p, 1, i));
        }
        r.submit();
        sys::write(*w, b"x");
        // Newest-armed first in the kernel, which is nobody's promise: ordered here.
        let mut ids: Vec<u64> =
            r.collect(50).iter().filter(|c| c.res == 1).map(|c| c.user_data).collect();
        ids.sort_unstable();
        cx.say("all 50 once", ids == (0..50).collect::<Vec<_>>());
    });
}

fn poll_async(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push(poll(*p, 1, 1).flags(ASYNC));
        cx.say("not ready", r.brief(1));
        sys::write(*w, b"x");
        cx.say("ready", r.go(1));
        cx.say("ready before", r.one(poll(*p, 1, 1).flags(ASYNC)));
    });
}

fn poll_out_full(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        // SAFETY: no memory involved.
        unsafe { libc::fcntl(*w, libc::F_SETPIPE_SZ, 4096) };
        sys::write(*w, &[0; 4096]);
        let r = Ring::new(8, kind);
        r.push(poll(*w, 4, 1));
        cx.say("full", r.brief(1));
        let _ = sys::read(*p, 4096);
        cx.say("emptied", r.go(1));
    });
}

fn poll_then_read(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let (r, b) = (Ring::new(8, kind), buf(8));
        submit(&r, &[poll(*p, 1, 1).flags(IO_LINK), read(*p, at(b), 4, 2)]);
        sys::write(*w, b"data");
        r.wait(2, 2000);
        cx.say("chain", format!("{} {}", r.cqes(), mem::text(&b[..4])));
    });
}

fn poll_ring_fd(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, other) = (Ring::new(8, kind), Ring::new(8, 0));
        r.push(poll(other.fd, 1, 4));
        cx.say("empty", r.brief(1));
        submit(&other, &[nop(1)]);
        cx.say("after a NOP there", r.go(1));
        cx.say("IN|OUT", r.one(poll(other.fd, 5, 4)));
    });
}

fn poll_ring_self(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    submit(&r, &[poll(r.fd, 1, 4).len(MULTI)]);
    r.push(nop(5));
    r.submit();
    r.wait(3, 50);
    cx.say("multishot", r.cqes());
    cx.say("afterwards", r.brief(1));
}

fn ring_fd_poll(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let events =
        |r: &Ring| format!("{:#x}", sys::poll_now(r.fd, 0x1f | 0x40 | 0x80 | 0x100 | 0x200));
    cx.say("idle", events(&r));
    r.push_all(&[nop(1), nop(2), nop(3), nop(4)]);
    cx.say("SQ full", events(&r));
    r.submit();
    cx.say("CQEs ready", events(&r));
    r.take();
    cx.say("drained", events(&r));
}

fn ring_fd_poll_wakes(cx: &mut Cx) {
    let (p, w) = pipe();
    let r = Ring::new(4, 0);
    cx.say("nothing in 30 ms", sys::poll_for(r.fd, POLLIN, 30));
    submit(&r, &[read(*p, at(buf(8)), 8, 1)]);
    let t = std::thread::spawn(move || {
        sys::sleep_ms(30);
        sys::write(*w, b"x");
        w
    });
    cx.say("a read completes", woken(&r));
    cx.say("its CQE", r.go(1));
    let _w = t.join();
    submit(&r, &[timeout(mem::ms(30), 0, 2)]);
    cx.say("a timeout fires", woken(&r));
    cx.say("its CQE", r.go(1));
    cx.say("drained", sys::poll_now(r.fd, POLLIN));
}

/// poll(2) for input, and whether it was woken rather than timed out.
fn woken(r: &Ring) -> String {
    let start = Instant::now();
    let events = sys::poll_for(r.fd, POLLIN, 3000);
    format!("{events:#x} woken {}", start.elapsed() < Duration::from_secs(2))
}

fn ring_fd_poll_deferred(cx: &mut Cx) {
    // Whether deferred work wakes a sleeper in poll(2) is not asked: the kernel does not.
    let (p, w) = pipe();
    let r = Ring::new(4, setup::DEFER_TASKRUN | setup::SINGLE_ISSUER);
    submit(&r, &[read(*p, at(buf(8)), 8, 1)]);
    cx.say("waiting", sys::poll_now(r.fd, POLLIN));
    sys::write(*w, b"x");
    cx.say("data there, work deferred", sys::poll_now(r.fd, POLLIN));
    cx.say("CQEs", r.cqes());
    cx.say("entered", r.go(1));
    cx.say("drained", sys::poll_now(r.fd, POLLIN));
}

struct Epoll(Fd);

impl Epoll {
    fn of(fd: i32, events: i32) -> Epoll {
        // SAFETY: no memory involved.
        let ep = Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        let mut e = libc::epoll_event { events: events as u32, u64: 7 };
        // SAFETY: a valid event.
        let added = unsafe { libc::epoll_ctl(*ep, libc::EPOLL_CTL_ADD, fd, &mut e) };
        assert_eq!(added, 0, "epoll_ctl");
        Epoll(ep)
    }
    fn wait(&self, ms: i32) -> String {
        let mut e = [libc::epoll_event { events: 0, u64: 0 }; 4];
        // SAFETY: room for four events.
        let mut n = unsafe { libc::epoll_wait(*self.0, e.as_mut_ptr(), 4, ms) };
        if n < 0 {
            // Closing an earlier ring interrupts the kernel's wait once.
            // SAFETY: as above.
            n = unsafe { libc::epoll_wait(*self.0, e.as_mut_ptr(), 4, ms) };
        }
        let first = e[0];
        if n < 1 {
            n.to_string()
        } else {
            format!("{n} {:#x} {}", { first.events }, { first.u64 })
        }
    }
}

fn ring_fd_epoll(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let ep = Epoll::of(r.fd, libc::EPOLLIN);
    cx.say("idle", ep.wait(20));
    submit(&r, &[nop(1)]);
    cx.say("CQE ready", ep.wait(1000));
    cx.say("still ready", ep.wait(1000));
    r.take();
    let start = Instant::now();
    cx.say("drained", ep.wait(50));
    cx.say("did not spin", start.elapsed() >= Duration::from_millis(45));
    let (p, w) = pipe();
    submit(&r, &[read(*p, at(buf(8)), 8, 2)]);
    cx.say("a read waits", ep.wait(20));
    sys::write(*w, b"x");
    cx.say("it completes", ep.wait(3000));
    cx.say("CQE", r.go(1));
    let mut turns = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        turns += 1;
        ep.wait(20);
    }
    cx.say("waits in 100 ms of nothing are few", turns <= 8);
}

fn ring_fd_epoll_edge(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let ep = Epoll::of(r.fd, libc::EPOLLIN | libc::EPOLLET);
    submit(&r, &[nop(1)]);
    cx.say("first CQE", ep.wait(1000));
    cx.say("no new edge", ep.wait(20));
    submit(&r, &[nop(2)]);
    cx.say("second CQE", ep.wait(1000));
    r.take();
    cx.say("drained", ep.wait(20));
}

fn ring_fd_select(cx: &mut Cx) {
    let r = Ring::new(4, 0);
    let ready = |r: &Ring, ms: i64| {
        // SAFETY: fd_set is plain data; the descriptor is below FD_SETSIZE or the answer says so.
        unsafe {
            if r.fd as usize >= libc::FD_SETSIZE {
                return i32::from(sys::poll_for(r.fd, POLLIN, ms as i32) != 0);
            }
            let mut set: libc::fd_set = std::mem::zeroed();
            libc::FD_SET(r.fd, &mut set);
            let mut tv = libc::timeval { tv_sec: 0, tv_usec: ms * 1000 };
            libc::select(r.fd + 1, &mut set, std::ptr::null_mut(), std::ptr::null_mut(), &mut tv)
        }
    };
    cx.say("idle", ready(&r, 20));
    submit(&r, &[nop(1)]);
    cx.say("CQE ready", ready(&r, 1000));
    r.take();
    cx.say("drained", ready(&r, 20));
}
