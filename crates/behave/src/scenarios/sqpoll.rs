//! SQPOLL: a thread that submits.

use crate::prelude::*;
use anyring_uapi::enter::{GETEVENTS, SQ_WAIT, SQ_WAKEUP};
use anyring_uapi::setup::{ATTACH_WQ, SQPOLL};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(sqpoll_submits, "the thread submits without enter; enter returns what it was asked"),
    scenario!(
        sqpoll_need_wakeup,
        "NEED_WAKEUP appears when the thread sleeps, and goes on wake-up"
    ),
    scenario!(sqpoll_sq_wait, "SQ_WAIT returns once the SQ has room"),
    scenario!(sqpoll_bad_sqe, "the thread goes on past a bad SQE"),
    scenario!(sqpoll_files, "plain and registered files"),
    scenario!(sqpoll_reads, "reads of files, pipes and sockets"),
    scenario!(sqpoll_links, "links and drains"),
    scenario!(sqpoll_attach, "two rings on one thread"),
    scenario!(sqpoll_idle_race, "submitting exactly as the thread goes idle: none lost", 40),
    scenario!(sqpoll_other_thread, "SINGLE_ISSUER with SQPOLL: anyone may enter"),
    scenario!(sqpoll_close, "closing an SQPOLL ring with requests pending"),
    scenario!(sqpoll_fork_exit, "an SQPOLL ring in a process that exits"),
];

fn polled(idle_ms: u32, extra: u32) -> Ring {
    let p = Params { flags: SQPOLL | extra, sq_thread_idle: idle_ms, ..Params::default() };
    Ring::with(8, p).unwrap_or_else(|e| panic!("SQPOLL ring: {}", res(e)))
}

const NEED_WAKEUP: u32 = setup::SQ_NEED_WAKEUP;

/// Wakes the thread if it asked for it, as a library does.
fn kick(r: &Ring) {
    std::sync::atomic::fence(Ordering::SeqCst);
    if r.sq_flags() & NEED_WAKEUP != 0 {
        r.enter(0, 0, SQ_WAKEUP);
    }
}

fn collect(r: &Ring, n: usize) -> Vec<anyring_uapi::Cqe> {
    kick(r);
    r.collect(n)
}

fn ask(r: &Ring, q: Q) -> String {
    r.push(q);
    show(&collect(r, 1))
}

/// Whether `f` becomes true within two seconds.
fn soon(f: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !f() {
        if start.elapsed() > Duration::from_secs(2) {
            return false;
        }
        sys::sleep_ms(1);
    }
    true
}

fn sqpoll_submits(cx: &mut Cx) {
    let r = polled(2000, 0);
    // A thread that finds nothing on its very first pass may sleep at once.
    ask(&r, nop(0));
    r.push_all(&[nop(1), nop(2)]);
    cx.say("CQEs without enter", soon(|| r.ready() == 2));
    cx.say("CQ", r.cqes());
    cx.say("SQ head moved", r.sq_head());
    cx.say("enter(7)", res(r.enter(7, 0, 0)));
    r.push(nop(3));
    cx.say("enter(1, 1, GETEVENTS)", res(r.enter(1, 1, GETEVENTS)));
    cx.say("CQ", r.cqes());
}

fn sqpoll_need_wakeup(cx: &mut Cx) {
    let r = polled(20, 0);
    cx.say("asleep in the end", soon(|| r.sq_flags() & NEED_WAKEUP != 0));
    r.push(nop(1));
    sys::sleep_ms(30);
    cx.say("nothing happens without a wake-up", r.ready());
    cx.say("enter with WAKEUP", res(r.enter(1, 0, SQ_WAKEUP)));
    cx.say("CQE", soon(|| r.ready() == 1));
    r.take();
    cx.say("asleep again", soon(|| r.sq_flags() & NEED_WAKEUP != 0));
    r.push(nop(2));
    cx.say("enter without WAKEUP", res(r.enter(1, 0, 0)));
    sys::sleep_ms(30);
    cx.say("still nothing", r.ready());
    cx.say("wait with WAKEUP", res(r.enter(1, 1, SQ_WAKEUP | GETEVENTS)));
    cx.say("CQ", r.cqes());
}

fn sqpoll_sq_wait(cx: &mut Cx) {
    let r = polled(20, 0);
    soon(|| r.sq_flags() & NEED_WAKEUP != 0);
    for i in 0..8 {
        r.push(nop(i));
    }
    cx.say("SQ full", r.sq_tail().wrapping_sub(r.sq_head()));
    cx.say("enter with WAKEUP|SQ_WAIT", res(r.enter(8, 0, SQ_WAKEUP | SQ_WAIT)));
    cx.say("room afterwards", r.sq_tail().wrapping_sub(r.sq_head()) < 8);
    cx.say("CQEs", collect(&r, 8).len());
    cx.say("SQ_WAIT with room", res(r.enter(0, 0, SQ_WAIT)));
}

fn sqpoll_bad_sqe(cx: &mut Cx) {
    let r = polled(200, 0);
    r.push_all(&[nop(1), q(200).ud(2), nop(3), nop(4)]);
    cx.say("CQ", show_sorted(collect(&r, 4)));
}

fn sqpoll_files(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let r = polled(200, 0);
    let b = buf(16);
    cx.say("plain", ask(&r, read(f.as_raw_fd(), at(b), 10, 1)));
    cx.say("register", res(r.reg(register::FILES, leak([f.as_raw_fd(), -1]), 2)));
    cx.say("slot", ask(&r, read(0, at(b), 10, 1).flags(FIXED_FILE)));
    cx.say("empty slot", ask(&r, read(1, at(b), 10, 1).flags(FIXED_FILE)));
    cx.say(
        "update",
        res(r.reg(register::FILES_UPDATE, leak([1u64, leak([f.as_raw_fd()]) as u64]), 1)),
    );
    cx.say("filled slot", ask(&r, read(1, at(b), 10, 1).flags(FIXED_FILE)));
}

fn sqpoll_reads(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"");
    let r = polled(200, 0);
    let b = buf(16);
    cx.say("write", ask(&r, write(f.as_raw_fd(), mem::bytes(b"hello"), 5, 1)));
    cx.say("fsync", ask(&r, q(op::FSYNC).fd(f.as_raw_fd()).ud(2)));
    cx.say(
        "read",
        format!("{} {}", ask(&r, read(f.as_raw_fd(), at(b), 16, 3)), mem::text(&b[..5])),
    );
    let (p, w) = pipe();
    r.push(read(*p, at(b), 8, 4));
    kick(&r);
    cx.say("empty pipe", res(r.wait(1, 50)));
    sys::write(*w, b"abc");
    cx.say("data", show(&r.collect(1)));
    let (a, c) = UnixStream::pair().expect("socketpair");
    r.push(recv(a.as_raw_fd(), at(b), 8, 5));
    kick(&r);
    sys::write(c.as_raw_fd(), b"sock");
    cx.say("socket", show(&r.collect(1)));
    cx.say("timeout", ask(&r, timeout(mem::ms(10), 0, 6)));
    r.push_all(&[poll(*p, 1, 7)]);
    kick(&r);
    r.push(cancel(7, 8));
    cx.say("cancel of a poll", show_sorted(collect(&r, 2)));
}

fn sqpoll_links(cx: &mut Cx) {
    let r = polled(200, 0);
    // The thread may take SQEs one at a time, and a chain ends where it stops: push a
    // whole chain before it can be seen.
    let tail = r.sq_tail();
    let publish = |qs: &[Q]| {
        r.push_all(qs);
        r.sq_tail()
    };
    soon(|| r.sq_flags() & NEED_WAKEUP != 0);
    publish(&[nop(1).flags(IO_LINK), bad_read(2).flags(IO_LINK), nop(3)]);
    cx.say("chain", show(&collect(&r, 3)));
    soon(|| r.sq_flags() & NEED_WAKEUP != 0);
    publish(&[timeout(mem::ms(20), 0, 4), nop(5).flags(IO_DRAIN), nop(6)]);
    cx.say("drain", show(&collect(&r, 3)));
    cx.say("taken", r.sq_head().wrapping_sub(tail));
}

fn sqpoll_attach(cx: &mut Cx) {
    let a = polled(200, 0);
    let p = Params {
        flags: SQPOLL | ATTACH_WQ,
        wq_fd: a.fd as u32,
        sq_thread_idle: 200,
        ..Params::default()
    };
    let b = Ring::with(8, p).expect("attach");
    for i in 0..3 {
        cx.say("first", ask(&a, nop(i)));
        cx.say("second", ask(&b, nop(i + 10)));
    }
    drop(a);
    cx.say("second, first closed", ask(&b, nop(20)));
}

fn sqpoll_idle_race(cx: &mut Cx) {
    // An idle time of 1 ms, and pauses around it: the thread goes to sleep over and over.
    let r = polled(1, 0);
    let mut lost = 0;
    for i in 0..3000u64 {
        r.push(nop(i));
        kick(&r);
        let start = Instant::now();
        while r.ready() == 0 {
            if start.elapsed() > Duration::from_secs(2) {
                lost += 1;
                r.enter(0, 0, SQ_WAKEUP);
                break;
            }
            std::thread::yield_now();
        }
        lost += usize::from(r.take().iter().any(|c| c.user_data != i));
        let pause = Duration::from_micros(900 + i % 200);
        let start = Instant::now();
        while i % 4 == 0 && start.elapsed() < pause {
            std::hint::spin_loop();
        }
        if lost > 3 {
            break;
        }
    }
    cx.say("lost of 3000", lost);
}

fn sqpoll_other_thread(cx: &mut Cx) {
    let r = polled(200, setup::SINGLE_ISSUER);
    r.push(nop(1));
    let v = std::thread::scope(|s| {
        s.spawn(|| {
            kick(&r);
            format!("{} {}", res(r.enter(1, 0, SQ_WAKEUP)), res(r.wait(1, 2000)))
        })
        .join()
        .unwrap_or_default()
    });
    cx.say("enter and wait elsewhere", v);
    cx.say("CQ", r.cqes());
}

fn sqpoll_close(cx: &mut Cx) {
    let (a, b) = UnixStream::pair().expect("socketpair");
    let r = polled(20, 0);
    r.push(recv(a.as_raw_fd(), at(buf(8)), 8, 1));
    kick(&r);
    cx.say("taken", soon(|| r.sq_head() == r.sq_tail()));
    drop(a);
    drop(r);
    cx.say("peer sees the end", sys::poll_for(b.as_raw_fd(), POLLIN, 3000) & libc::POLLHUP);
    let r = polled(20, 0);
    cx.say("a new ring works", ask(&r, nop(1)));
}

fn sqpoll_fork_exit(cx: &mut Cx) {
    // SAFETY: the child makes a ring and leaves.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        sys::alarm(5);
        let r = polled(1000, 0);
        let good = ask(&r, nop(1)) == "[1:0]";
        // SAFETY: leaves at once, with the thread spinning.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    cx.say("child's status", status);
}
