//! Requests whose submitter or whose other side is gone: SIGPIPE, threads that ended; and ASYNC receives that come too early
//! for their buffers.

use crate::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(sigpipe_inline, "SIGPIPE of a write that fails at once"),
    scenario!(sigpipe_waiting, "SIGPIPE of a write that waited, its thread in enter"),
    scenario!(sigpipe_elsewhere, "SIGPIPE of a write that waited, its thread elsewhere"),
    scenario!(thread_exit_polled, "what a thread left waiting for readiness is cancelled by it"),
    scenario!(recv_multishot_async, "multishot RECV with ASYNC and no buffers yet"),
];

static SIGPIPES: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_sigpipe(_: i32) {
    SIGPIPES.fetch_add(1, Ordering::SeqCst);
}

fn count_sigpipes() {
    let handler = on_sigpipe as extern "C" fn(i32) as usize;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGPIPE, handler) };
}

/// SIGPIPEs since the last call.
fn sigpipes() -> String {
    sys::sleep_ms(2);
    format!(", {} SIGPIPE", SIGPIPES.swap(0, Ordering::SeqCst))
}

fn sigpipe_inline(cx: &mut Cx) {
    count_sigpipes();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        drop(p);
        cx.say("pipe", r.one(write(*w, at(buf(4)), 4, 1)) + &sigpipes());
        let (a, b) = UnixStream::pair().expect("socketpair");
        drop(a);
        cx.say("write to a socket", r.one(write(b.as_raw_fd(), at(buf(4)), 4, 2)) + &sigpipes());
        cx.say("send to a socket", r.one(send(b.as_raw_fd(), at(buf(4)), 4, 3)) + &sigpipes());
    });
}

/// A write that has to wait, submitted.
fn full_pipe(r: &Ring, user_data: u64) -> (Fd, Fd) {
    let (p, w) = pipe();
    // SAFETY: no memory involved.
    unsafe { libc::fcntl(*w, libc::F_SETPIPE_SZ, 4096) };
    sys::write(*w, &[0; 4096]);
    r.push(write(*w, at(buf(4)), 4, user_data));
    r.submit();
    (p, w)
}

fn full_socket(r: &Ring, user_data: u64) -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().expect("socketpair");
    b.set_nonblocking(true).expect("fcntl");
    while sys::write(b.as_raw_fd(), &[0; 4096]) > 0 {}
    r.push(write(b.as_raw_fd(), at(buf(4)), 4, user_data));
    r.submit();
    (a, b)
}

fn sigpipe_waiting(cx: &mut Cx) {
    count_sigpipes();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = full_pipe(&r, 1);
        std::thread::scope(|s| {
            s.spawn(move || {
                sys::sleep_ms(20);
                drop(p);
            });
            cx.say("pipe", r.go(1) + &sigpipes());
        });
        drop(w);
        let (a, b) = full_socket(&r, 2);
        std::thread::scope(|s| {
            s.spawn(move || {
                sys::sleep_ms(20);
                drop(a);
            });
            cx.say("socket", r.go(1) + &sigpipes());
        });
        drop(b);
    });
}

fn sigpipe_elsewhere(cx: &mut Cx) {
    count_sigpipes();
    let r = Ring::new(8, 0);
    let (p, _w) = full_pipe(&r, 1);
    drop(p);
    sys::sleep_ms(50);
    cx.say("pipe", format!("{}{}", r.cqes(), sigpipes()));
    let (a, _b) = full_socket(&r, 2);
    drop(a);
    sys::sleep_ms(50);
    cx.say("socket", format!("{}{}", r.cqes(), sigpipes()));
}

fn thread_exit_polled(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (p, w) = pipe();
    let (a, b) = UnixStream::pair().expect("socketpair");
    std::thread::scope(|s| {
        s.spawn(|| {
            r.push(read(*p, at(buf(8)), 8, 1));
            r.push(poll(*p, libc::POLLIN as u32, 2));
            r.push(recv(a.as_raw_fd(), at(buf(8)), 8, 3));
            r.submit();
        });
    });
    sys::sleep_ms(20);
    cx.say("at once", r.cqes_sorted());
    sys::write(*w, b"x");
    sys::write(b.as_raw_fd(), b"x");
    let mut ended = r.collect(3);
    ended.sort_by_key(|c| c.user_data);
    cx.say("ready", crate::ring::show(&ended));
    cx.say("not read", format!("{:?}", sys::read(*p, 8)));
}

fn recv_multishot_async(cx: &mut Cx) {
    const GROUP: u16 = 3;
    for (name, kind) in [
        ("nothing there", 0),
        ("nothing there, DEFER_TASKRUN", MODERN),
        ("nothing there, COOP_TASKRUN", setup::COOP_TASKRUN),
    ] {
        let r = Ring::new(8, kind);
        let (a, b) = UnixStream::pair().expect("socketpair");
        let provide = |count: i32| {
            q(op::PROVIDE_BUFFERS).fd(count).addr(at(buf(64))).len(16).buf(GROUP).ud(9)
        };
        cx.say("a group", r.one(provide(1)));
        cx.say("emptied", r.one(q(op::REMOVE_BUFFERS).fd(1).buf(GROUP).ud(8)));
        let shot = recv(a.as_raw_fd(), 0, 0, 1).prio(2).flags(BUFFER_SELECT | ASYNC);
        r.push(shot.buf(GROUP));
        cx.say(name, r.brief(1));
        cx.say("buffers", r.one(provide(2)));
        sys::write(b.as_raw_fd(), b"hello");
        cx.say("data", r.go(1));
        sys::write(b.as_raw_fd(), b"again");
        cx.say("more", r.go(1));
        sys::write(b.as_raw_fd(), b"third");
        cx.say("no buffer left", r.go(1));
    }
}

const MODERN: u32 = setup::SINGLE_ISSUER | setup::DEFER_TASKRUN;
