//! Many requests that wait for one file.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(crowd_polls, "700 polls of one file"),
    scenario!(crowd_reads, "700 reads of one pipe, a byte each"),
    scenario!(crowd_recvs, "700 receives of one socket, and its end"),
    scenario!(crowd_cancels, "700 requests on one file, cancelled one by one"),
    scenario!(crowd_events, "requests that wait for different events of one socket"),
    scenario!(crowd_number_reused, "a number means another file while several wait"),
    scenario!(crowd_updates, "updating one poll of several"),
];

const MANY: usize = 700;

fn submit_many(r: &Ring, request: impl Fn(u64) -> Q) {
    for first in (0..MANY).step_by(50) {
        (first..first + 50).for_each(|i| r.push(request(i as u64)));
        r.submit();
    }
}

/// How many CQEs, the different results among them.
fn summary(r: &Ring, n: usize) -> String {
    let cqes = r.collect(n);
    let mut users: Vec<u64> = cqes.iter().map(|c| c.user_data).collect();
    users.sort_unstable();
    users.dedup();
    let mut results: Vec<String> = cqes.iter().map(|c| res(c.res)).collect();
    results.sort_unstable();
    results.dedup();
    format!("{} CQEs of {} requests: {}", cqes.len(), users.len(), results.join(" "))
}

fn ring(kind: u32) -> Ring {
    Ring::sized(64, 2048, kind)
}

fn crowd_polls(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, ev) = (ring(kind), crate::fixture::eventfd(0));
        submit_many(&r, |i| poll(*ev, POLLIN as u32, i));
        cx.say("before", r.cqes());
        sys::write(*ev, &1u64.to_ne_bytes());
        cx.say("ready", summary(&r, MANY));
        cx.say("once", r.brief(1));
    });
}

fn crowd_reads(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (p, w)) = (ring(kind), pipe());
        submit_many(&r, |i| read(*p, at(buf(1)), 1, i));
        cx.say("before", r.cqes());
        sys::write(*w, b"x");
        cx.say("one byte", summary(&r, 1));
        sys::write(*w, &[b'y'; 200]);
        cx.say("200 bytes", summary(&r, 200));
        drop(w);
        cx.say("the end", summary(&r, MANY - 201));
    });
}

fn crowd_recvs(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, b)) = (ring(kind), UnixStream::pair().expect("socketpair"));
        submit_many(&r, |i| recv(a.as_raw_fd(), at(buf(4)), 4, i));
        sys::write(b.as_raw_fd(), &[b'x'; 40]);
        cx.say("40 bytes", summary(&r, 10));
        drop(b);
        cx.say("the end", summary(&r, MANY - 10));
    });
}

fn crowd_cancels(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, b)) = (ring(kind), UnixStream::pair().expect("socketpair"));
        submit_many(&r, |i| match i % 2 {
            0 => recv(a.as_raw_fd(), at(buf(4)), 4, i),
            _ => poll(a.as_raw_fd(), POLLIN as u32, i),
        });
        let mut ended = 0;
        for i in 0..MANY as u64 - 1 {
            r.push(cancel(i, 10_000));
            r.submit();
            ended += r.collect(2).iter().filter(|c| c.res == -libc::ECANCELED).count();
        }
        cx.say("cancelled", ended);
        sys::write(b.as_raw_fd(), b"x");
        cx.say("the last", r.go(1));
    });
}

fn crowd_events(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, b)) = (ring(kind), UnixStream::pair().expect("socketpair"));
        a.set_nonblocking(true).expect("fcntl");
        b.set_nonblocking(true).expect("fcntl");
        while sys::write(a.as_raw_fd(), &[0; 4096]) > 0 {}
        let fd = a.as_raw_fd();
        r.push_all(&[
            poll(fd, POLLOUT as u32, 1),
            poll(fd, POLLIN as u32, 2),
            recv(fd, at(buf(4)), 4, 3),
            poll(fd, libc::POLLRDHUP as u32, 4),
        ]);
        cx.say("nothing", r.brief(1));
        while sys::read(b.as_raw_fd(), 4096).is_ok_and(|n| n.len() == 4096) {}
        cx.say("room", r.go(1));
        sys::write(b.as_raw_fd(), b"data");
        r.wait(2, 500);
        cx.say("data", r.cqes_sorted());
        drop(b);
        cx.say("the end", r.go(1));
    });
}

fn crowd_number_reused(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, pair) = (ring(kind), || UnixStream::pair().expect("socketpair"));
        let ((a, b), (c, d)) = (pair(), pair());
        let number = a.as_raw_fd();
        let bufs: Vec<&mut [u8]> = (0..4).map(|_| buf(1)).collect();
        let request = |i: usize| recv(number, at(bufs[i]), 1, i as u64);
        r.push_all(&[request(0), request(1)]);
        r.submit();
        // SAFETY: no memory involved.
        unsafe { libc::dup2(c.as_raw_fd(), number) };
        r.push_all(&[request(2), request(3)]);
        r.submit();
        sys::write(d.as_raw_fd(), b"d");
        sys::write(b.as_raw_fd(), b"b");
        sys::write(d.as_raw_fd(), b"d");
        sys::write(b.as_raw_fd(), b"b");
        let n = r.collect(4).len();
        cx.say(
            "received",
            format!("{n} {}", bufs.iter().map(|b| mem::text(b)).collect::<String>()),
        );
        drop((a, b));
    });
}

fn crowd_updates(cx: &mut Cx) {
    const UPDATE_EVENTS: u32 = 2;
    cx.both_setups(|cx, kind| {
        let (r, (a, _b)) = (ring(kind), UnixStream::pair().expect("socketpair"));
        (1..4).for_each(|i| r.push(poll(a.as_raw_fd(), POLLIN as u32, i)));
        cx.say("nothing", r.brief(1));
        r.push(q(op::POLL_REMOVE).addr(2).len(UPDATE_EVENTS).opf(POLLOUT as u32).ud(9));
        cx.say("one for room", r.go_sorted(2));
        r.push(cancel(1, 10));
        cx.say("cancel another", r.go_sorted(2));
        r.push(q(op::POLL_REMOVE).addr(3).ud(11));
        cx.say("remove the last", r.go_sorted(2));
    });
}
