//! Multishot accepts, receives and reads: when each posts, with which flags, and when it ends.

use std::net::{TcpListener, TcpStream, UdpSocket};

use anyring_uapi::{cqe, Cqe};

use super::kbufs::{provide, select, PbufRing, PBUF_INC};
use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(recv_number_reused, "a number means another file while a RECV waits"),
    scenario!(accept_multishot, "multishot ACCEPT on a blocking and a non-blocking listener"),
    scenario!(accept_multishot_ends, "what ends a multishot ACCEPT"),
    scenario!(accept_multishot_direct, "multishot ACCEPT into the file table, until it is full"),
    scenario!(accept_plain, "ACCEPT: wait first, do not wait, no listener"),
    scenario!(recv_multishot_limits, "a multishot RECV's length and total"),
    scenario!(recv_multishot_runs_out, "a multishot RECV takes its last buffer"),
    scenario!(recv_multishot_overflow, "a multishot RECV when the CQ is full"),
    scenario!(recv_multishot_many, "a multishot RECV with more than 32 messages waiting"),
    scenario!(
        recv_multishot_forms,
        "a multishot RECV with ASYNC, DONTWAIT, POLL_FIRST, CQE_SKIP, in a chain"
    ),
    scenario!(recv_multishot_closed, "the sender or the receiver goes away"),
    scenario!(
        recvmsg_multishot,
        "multishot RECVMSG of datagrams: header, name, control, truncation"
    ),
    scenario!(recvmsg_multishot_stream, "multishot RECVMSG of a stream"),
    scenario!(read_multishot, "READ_MULTISHOT of a pipe"),
    scenario!(read_multishot_files, "READ_MULTISHOT of other files"),
    scenario!(read_multishot_incremental, "READ_MULTISHOT and a ring consumed in pieces"),
    scenario!(read_select_ends, "a provided buffer at end of file, and with bad memory"),
];

const MULTISHOT: u16 = 2;
const ACCEPT_MULTISHOT: u16 = 1;
const DONTWAIT: u16 = 2;
const POLL_FIRST: u16 = 4;

/// CQEs of accepts: descriptors are not told.
fn accepted(cqes: &[Cqe]) -> String {
    let hide = |c: &Cqe| Cqe { res: if c.res > 0 { 1 } else { c.res }, ..*c };
    show(&cqes.iter().map(hide).collect::<Vec<_>>())
}

fn listener(nonblocking: bool) -> TcpListener {
    let l = TcpListener::bind("127.0.0.1:0").expect("listen");
    l.set_nonblocking(nonblocking).expect("mode");
    l
}

fn connect(l: &TcpListener) -> TcpStream {
    TcpStream::connect(l.local_addr().expect("address")).expect("connect")
}

fn accept(l: &TcpListener, ud: u64) -> Q {
    q(op::ACCEPT).fd(l.as_raw_fd()).ud(ud)
}

fn accept_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        for nonblocking in [false, true] {
            let (r, l) = (Ring::new(8, kind), listener(nonblocking));
            r.push(accept(&l, 1).prio(ACCEPT_MULTISHOT));
            cx.say("nobody", r.brief(1));
            let _first = connect(&l);
            cx.say("one", accepted(&r.collect(1)));
            let _second = connect(&l);
            cx.say("another", accepted(&r.collect(1)));
            r.push(cancel(1, 2));
            cx.say("cancelled", r.go_sorted(2));
            let _waiting = [connect(&l), connect(&l)];
            r.push(accept(&l, 3).prio(ACCEPT_MULTISHOT));
            r.submit();
            cx.say("two wait already", accepted(&r.collect(2)));
            r.push(accept(&l, 4).prio(ACCEPT_MULTISHOT).flags(ASYNC));
            r.submit();
            r.push(cancel(3, 5));
            cx.say("the first goes", r.go_sorted(2));
            let _last = connect(&l);
            cx.say("one for the second", accepted(&r.collect(1)));
        }
    });
}

fn accept_multishot_ends(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, l) = (Ring::sized(2, 2, kind), listener(false));
        r.push(accept(&l, 1).prio(ACCEPT_MULTISHOT).fi(1));
        cx.say("explicit slot", r.go(1));
        r.push(accept(&l, 1).prio(ACCEPT_MULTISHOT).opf(1));
        cx.say("bad flags", r.go(1));
        let _c: Vec<_> = (0..4).map(|_| connect(&l)).collect();
        r.push(accept(&l, 2).prio(ACCEPT_MULTISHOT));
        r.submit();
        r.wait(2, 200);
        let mut all = r.take();
        r.wait(1, 200);
        all.extend(r.take());
        cx.say("four, room for two", accepted(&all));
        let more = connect(&l);
        cx.say("one more", r.brief(1));
        drop(more);
        let r = Ring::new(4, kind);
        let l = listener(true);
        r.push(accept(&l, 3).prio(ACCEPT_MULTISHOT | DONTWAIT));
        cx.say("do not wait, nobody", r.go(1));
        let _one = connect(&l);
        r.push(accept(&l, 4).prio(ACCEPT_MULTISHOT | DONTWAIT));
        r.submit();
        cx.say("do not wait, one", accepted(&r.collect(2)));
        r.push(accept(&l, 5).prio(ACCEPT_MULTISHOT | POLL_FIRST));
        r.submit();
        // SAFETY: no memory involved.
        unsafe { libc::shutdown(l.as_raw_fd(), libc::SHUT_RD) };
        cx.say("listener shut down", r.go(1));
    });
}

fn accept_multishot_direct(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, l) = (Ring::new(8, kind), listener(false));
        let any = accept(&l, 1).prio(ACCEPT_MULTISHOT).fi(u32::MAX);
        let _c: Vec<_> = (0..3).map(|_| connect(&l)).collect();
        cx.say("no table", {
            r.push(any);
            r.go(1)
        });
        r.reg(register::FILES, leak([-1, -1]), 2);
        r.push(any);
        r.submit();
        cx.say("table of two", show(&r.collect(2)));
        let _d = connect(&l);
        cx.say("full", show(&r.collect(1)));
    });
}

fn accept_plain(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, l) = (Ring::new(8, kind), listener(false));
        cx.say("DONTWAIT, nobody", r.one(accept(&l, 1).prio(DONTWAIT)));
        r.push(accept(&l, 2).prio(POLL_FIRST));
        cx.say("POLL_FIRST, nobody", r.brief(1));
        let _c = connect(&l);
        cx.say("one comes", accepted(&r.collect(1)));
        let _d = [connect(&l), connect(&l)];
        for ud in 3..5 {
            r.push(accept(&l, ud));
            r.submit();
            cx.say("one of two", accepted(&r.collect(1)));
        }
        let (a, _b) = UnixStream::pair().expect("socketpair");
        cx.say("no listener", r.one(q(op::ACCEPT).fd(a.as_raw_fd()).ud(4)));
        cx.say(
            "no listener, multishot",
            r.one(q(op::ACCEPT).fd(a.as_raw_fd()).prio(ACCEPT_MULTISHOT).ud(5)),
        );
        let (p, _w) = pipe();
        cx.say("no socket", r.one(q(op::ACCEPT).fd(*p).ud(6)));
    });
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("socketpair")
}

fn shot(fd: i32, ud: u64) -> Q {
    select(recv(fd, 0, 0, ud).prio(MULTISHOT), 7)
}

fn buffers(r: &Ring, len: u32, n: i32) {
    r.one(provide(at(buf(len as usize * n as usize)), len, n, 0, 7));
}

fn recv_multishot_limits(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(16, kind), pair());
        buffers(&r, 16, 20);
        sys::write(c.as_raw_fd(), &[b'x'; 20]);
        r.push(shot(a.as_raw_fd(), 1).len(6));
        r.submit();
        cx.say("length 6 of 20 bytes", show(&r.collect(4)));
        r.push(cancel(1, 9));
        cx.say("cancelled", r.go_sorted(2));
        sys::write(c.as_raw_fd(), &[b'x'; 20]);
        r.push(shot(a.as_raw_fd(), 2).len(6).fi(10));
        r.submit();
        cx.say("total 10", show(&r.collect(2)));
        r.push(shot(a.as_raw_fd(), 3).fi(1));
        r.submit();
        cx.say("total 1 of the rest", show(&r.collect(1)));
        r.push(shot(a.as_raw_fd(), 4).fi(1 << 31));
        r.submit();
        cx.say("total with the top bit", r.brief(1));
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("data", r.brief(1));
    });
}

fn recv_multishot_runs_out(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(16, kind), pair());
        buffers(&r, 16, 1);
        sys::write(c.as_raw_fd(), b"hello");
        r.push(shot(a.as_raw_fd(), 1));
        cx.say("stream, the last buffer", r.brief(2));
        sys::write(c.as_raw_fd(), b"more");
        cx.say("more data", r.brief(1));
        let (u, v) = UnixDatagram::pair().expect("socketpair");
        buffers(&r, 16, 1);
        v.send(b"hello").expect("send");
        r.push(shot(u.as_raw_fd(), 2));
        cx.say("datagram, the last buffer", r.brief(2));
        let (x, y) = pair();
        buffers(&r, 16, 1);
        sys::write(y.as_raw_fd(), b"last");
        drop(y);
        r.push(shot(x.as_raw_fd(), 3));
        cx.say("stream, the last buffer and the end", r.brief(2));
        let (x, y) = pair();
        buffers(&r, 4, 1);
        sys::write(y.as_raw_fd(), b"last");
        r.push(shot(x.as_raw_fd(), 4));
        cx.say("stream, exactly the last buffer", r.brief(2));
    });
}

fn recv_multishot_overflow(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::sized(2, 2, kind), pair());
        let ring = PbufRing::register(&r, 8, 7, 0);
        for id in 0..8 {
            ring.add(at(buf(4)), 4, id);
        }
        sys::write(c.as_raw_fd(), &[b'x'; 16]);
        r.push(shot(a.as_raw_fd(), 1));
        r.submit();
        r.wait(2, 200);
        let flags = r.sq_flags() & 2;
        let mut all = r.take();
        r.wait(1, 200);
        all.extend(r.take());
        cx.say("16 bytes into buffers of 4", show(&all));
        cx.say("overflow flag", flags);
        cx.say("nothing more", r.brief(1));
    });
}

fn recv_multishot_many(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (u, v)) = (Ring::sized(8, 256, kind), UnixDatagram::pair().expect("socketpair"));
        let (a, c) = pair();
        buffers(&r, 4, 200);
        r.push(shot(a.as_raw_fd(), 2));
        r.submit();
        v.set_nonblocking(true).expect("mode");
        let sent = (0..80).take_while(|_| v.send(b"m").is_ok()).count();
        r.push(shot(u.as_raw_fd(), 1));
        r.submit();
        sys::write(c.as_raw_fd(), b"other");
        let got = r.collect(sent + 1);
        let of = |ud| got.iter().filter(|c| c.user_data == ud).count();
        let all_more = got.iter().all(|c| c.flags & cqe::F_MORE != 0);
        cx.say("all messages", of(1) == sent && sent > 0);
        cx.say("and the other's", of(2));
        cx.say("all with more", all_more);
    });
}

fn recv_multishot_forms(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(16, kind), pair());
        buffers(&r, 8, 20);
        let fd = a.as_raw_fd();
        r.push(shot(fd, 1).opf(libc::MSG_DONTWAIT as u32));
        cx.say("DONTWAIT, nothing there", r.brief(1));
        sys::write(c.as_raw_fd(), b"x");
        r.push(shot(fd, 2).opf(libc::MSG_DONTWAIT as u32));
        cx.say("DONTWAIT, data", r.brief(2));
        r.push(shot(fd, 3).flags(BUFFER_SELECT | ASYNC));
        r.submit();
        sys::sleep_ms(20);
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("ASYNC", show(&r.collect(1)));
        sys::write(c.as_raw_fd(), b"def");
        cx.say("ASYNC again", show(&r.collect(1)));
        r.push(cancel(3, 9));
        cx.say("cancelled", r.go_sorted(2));
        sys::write(c.as_raw_fd(), b"ghi");
        r.push(shot(fd, 4).prio(MULTISHOT | 1));
        cx.say("POLL_FIRST", r.brief(1));
        r.push(cancel(4, 9));
        r.go_sorted(2);
        r.push(shot(fd, 5).flags(BUFFER_SELECT | CQE_SKIP_SUCCESS));
        r.submit();
        sys::write(c.as_raw_fd(), b"j");
        cx.say("CQE_SKIP", r.brief(1));
        r.push(cancel(5, 9));
        cx.say("cancelled", r.go_sorted(2));
        r.push(shot(fd, 6).flags(BUFFER_SELECT | IO_LINK).fi(2));
        r.push(nop(7));
        r.submit();
        sys::write(c.as_raw_fd(), b"kl");
        cx.say("in a chain, to its total", show(&r.collect(2)));
        r.push(shot(fd, 8).flags(BUFFER_SELECT | IO_LINK));
        r.push(link_timeout(mem::ms(30), 9));
        r.submit();
        sys::write(c.as_raw_fd(), b"m");
        cx.say("with a link timeout", show_sorted(r.collect(3)));
    });
}

fn recv_multishot_closed(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener(false);
        let (r, client) = (Ring::new(16, kind), connect(&l));
        let (server, _) = l.accept().expect("accept");
        buffers(&r, 8, 20);
        r.push(shot(server.as_raw_fd(), 1));
        r.submit();
        sys::write(client.as_raw_fd(), b"abc");
        cx.say("data", show(&r.collect(1)));
        drop(client);
        cx.say("the end", show(&r.collect(1)));
        let client = connect(&l);
        let (server, _) = l.accept().expect("accept");
        r.push(shot(server.as_raw_fd(), 2));
        r.submit();
        drop(server);
        sys::write(client.as_raw_fd(), b"abc");
        cx.say("descriptor closed, data", show(&r.collect(1)));
        // SAFETY: no memory involved.
        unsafe { libc::shutdown(client.as_raw_fd(), libc::SHUT_WR) };
        cx.say("the end", show(&r.collect(1)));
    });
}

/// A msghdr that reserves `name` and `control` bytes.
fn reserve(name: u64, control: u64) -> usize {
    leak([0u64, name, 0, 0, 0, control, 0])
}

fn header(b: &[u8]) -> String {
    let word = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
    format!("name {} control {} payload {} flags {:#x}", word(0), word(4), word(8), word(12))
}

fn recvmsg_shot(fd: i32, msg: usize, ud: u64) -> Q {
    select(q(op::RECVMSG).fd(fd).addr(msg).prio(MULTISHOT).ud(ud), 7)
}

fn recvmsg_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(16, kind), buf(640));
        let u = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let v = UdpSocket::bind("127.0.0.1:0").expect("bind");
        v.connect(u.local_addr().expect("address")).expect("connect");
        let fd = u.as_raw_fd();
        let on = 1i32;
        // SAFETY: the option is a local integer.
        unsafe {
            libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, (&raw const on).cast(), 4)
        };
        let ask = |cx: &mut Cx, what: &str, size: u32, msg: usize, opf: u32, data: &[u8]| {
            r.one(provide(at(b), size, 1, 3, 7));
            v.send(data).expect("send");
            r.push(recvmsg_shot(fd, msg, 1).opf(opf));
            r.submit();
            let got = r.collect(2);
            cx.say(what, show(&got));
            cx.say("header", header(b));
            r.one(q(op::REMOVE_BUFFERS).fd(9).buf(7).ud(98));
            u.set_nonblocking(true).expect("mode");
            while u.recv(&mut [0; 100]).is_ok() {}
            u.set_nonblocking(false).expect("mode");
        };
        ask(cx, "nothing reserved", 64, reserve(0, 0), 0, b"hello");
        ask(cx, "name", 64, reserve(16, 0), 0, b"hello");
        cx.say("family", b[16]);
        cx.say("payload", mem::text(&b[32..37]));
        ask(cx, "half a name", 64, reserve(8, 0), 0, b"hello");
        ask(cx, "name and control", 128, reserve(16, 64), 0, b"hello");
        cx.say("payload", mem::text(&b[96..101]));
        ask(cx, "little control", 128, reserve(16, 8), 0, b"hello");
        ask(cx, "cut short", 18, reserve(0, 0), 0, b"hello");
        ask(cx, "cut short, MSG_TRUNC", 18, reserve(0, 0), libc::MSG_TRUNC as u32, b"hello");
        ask(cx, "no room for payload", 16, reserve(0, 0), 0, b"hello");
        ask(cx, "too small", 15, reserve(0, 0), 0, b"hello");
        ask(cx, "empty datagram", 64, reserve(0, 0), 0, b"");
        ask(cx, "peek at it", 64, reserve(0, 0), libc::MSG_PEEK as u32, b"hello");
        r.one(provide(at(b), 64, 4, 0, 7));
        r.push(recvmsg_shot(fd, leak([0u64, 0, mem::iovecs(&[(0, 20)]) as u64, 1, 0, 0, 0]), 2));
        r.submit();
        v.send(b"a longer message").expect("send");
        cx.say("a vector of 20", show(&r.collect(1)));
        v.send(b"next").expect("send");
        cx.say("next", show(&r.collect(1)));
        r.push(cancel(2, 9));
        cx.say("cancelled", r.go_sorted(2));
    });
}

fn recvmsg_multishot_stream(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(16, kind), buf(640), pair());
        r.one(provide(at(b), 64, 4, 0, 7));
        r.push(recvmsg_shot(a.as_raw_fd(), reserve(16, 0), 1));
        r.submit();
        sys::write(c.as_raw_fd(), b"hello");
        cx.say("data", show(&r.collect(1)));
        cx.say("header", header(b));
        sys::write(c.as_raw_fd(), &[b'x'; 50]);
        cx.say("more than a buffer", show(&r.collect(2)));
        drop(c);
        cx.say("the end", show(&r.collect(1)));
        cx.say("header", header(&b[192..]));
    });
}

fn read_shot(fd: i32, ud: u64) -> Q {
    select(q(op::READ_MULTISHOT).fd(fd).ud(ud), 7)
}

fn read_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (p, w)) = (Ring::new(16, kind), pipe());
        buffers(&r, 8, 6);
        r.push(read_shot(*p, 1));
        cx.say("nothing", r.brief(1));
        sys::write(*w, b"hello");
        cx.say("5 bytes", show(&r.collect(1)));
        sys::write(*w, &[b'x'; 20]);
        cx.say("20 bytes", show(&r.collect(3)));
        sys::write(*w, b"abcd");
        cx.say("4 bytes", r.brief(1));
        sys::write(*w, b"last");
        cx.say("the last buffer", r.brief(2));
        sys::write(*w, b"gone");
        cx.say("no buffer", r.brief(1));
        buffers(&r, 8, 6);
        r.push(read_shot(*p, 2).flags(BUFFER_SELECT | ASYNC));
        r.submit();
        cx.say("ASYNC", show(&r.collect(1)));
        drop(w);
        cx.say("the end", show(&r.collect(1)));
        cx.say("no BUFFER_SELECT", r.one(q(op::READ_MULTISHOT).fd(*p).ud(3)));
    });
}

fn read_multishot_files(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let null = std::fs::File::open("/dev/null").expect("open");
    let zero = std::fs::File::open("/dev/zero").expect("open");
    let here = std::fs::File::open(dir.join(".")).expect("open");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(16, kind);
        cx.say("a file, no group", r.one(read_shot(f.as_raw_fd(), 1)));
        buffers(&r, 8, 6);
        cx.say("a file", r.one(read_shot(f.as_raw_fd(), 1)));
        cx.say("null", r.one(read_shot(null.as_raw_fd(), 1)));
        cx.say("zero", r.one(read_shot(zero.as_raw_fd(), 1)));
        cx.say("a directory", r.one(read_shot(here.as_raw_fd(), 1)));
        let e = crate::fixture::eventfd(0);
        r.push(read_shot(*e, 2));
        cx.say("eventfd, nothing", r.brief(1));
        sys::write(*e, &5u64.to_ne_bytes());
        cx.say("eventfd", r.brief(1));
        sys::write(*e, &5u64.to_ne_bytes());
        cx.say("eventfd again", r.brief(1));
        r.push(cancel(2, 9));
        cx.say("cancelled", r.go_sorted(2));
    });
}

fn read_multishot_incremental(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (p, w)) = (Ring::new(16, kind), pipe());
        let ring = PbufRing::register(&r, 4, 7, PBUF_INC);
        ring.add(at(buf(16)), 10, 3);
        ring.add(at(buf(16)), 4, 4);
        r.push(read_shot(*p, 1));
        r.submit();
        for data in ["abc", "defg", "hij", "k"] {
            sys::write(*w, data.as_bytes());
            cx.say(data, show(&r.collect(1)));
        }
        sys::write(*w, b"lmnopq");
        cx.say("more than is left", show(&r.collect(2)));
    });
}

fn read_select_ends(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        for flags in [None, Some(0), Some(PBUF_INC)] {
            let r = Ring::new(16, kind);
            let ring = flags.map(|flags| PbufRing::register(&r, 8, 7, flags));
            let give = |addr: usize, id: u16| match &ring {
                Some(ring) => ring.add(addr, 8, id),
                None => drop(r.one(provide(addr, 8, 1, id.into(), 7))),
            };
            give(at(buf(8)), 1);
            give(at(buf(8)), 2);
            let read_at = |off: u64| select(read(f.as_raw_fd(), 0, 0, 1).off(off), 7);
            cx.say("at the end of a file", r.one(read_at(10)));
            cx.say("near it", r.one(read_at(7)));
            let (p, w) = pipe();
            drop(w);
            give(at(buf(8)), 3);
            cx.say("a pipe's end", r.one(select(read(*p, 0, 0, 1), 7)));
            let (a, c) = pair();
            drop(c);
            give(at(buf(8)), 4);
            cx.say("a socket's end", r.one(select(recv(a.as_raw_fd(), 0, 0, 1), 7)));
            let (a, c) = pair();
            sys::write(c.as_raw_fd(), b"abc");
            for id in 5..8 {
                give(at(buf(8)), id);
            }
            cx.say("data after it", r.one(select(recv(a.as_raw_fd(), 0, 0, 1), 7)));
            cx.say("a file after it", r.one(read_at(0)));
        }
    });
}

fn recv_number_reused(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(16, kind), at(buf(64)), pair());
        let number = sys::dup(a.as_raw_fd());
        let take = |ud| recv(number, b, 8, ud);
        r.push(take(1));
        r.submit();
        let (x, y) = pair();
        // SAFETY: no memory involved.
        unsafe { libc::dup2(x.as_raw_fd(), number) };
        r.push(take(2));
        r.submit();
        sys::write(c.as_raw_fd(), b"old");
        cx.say("the old file", show(&r.collect(1)));
        sys::write(y.as_raw_fd(), b"newer");
        cx.say("the new file", show(&r.collect(1)));
        r.push(take(3));
        cx.say("waits again", r.brief(1));
        r.push_all(&[cancel(3, 9), take(4), take(5)]);
        r.submit();
        cx.say("cancelled", show_sorted(r.collect(2)));
        sys::write(y.as_raw_fd(), b"x");
        cx.say("one of two", r.collect(1).len());
        sys::write(y.as_raw_fd(), b"x");
        cx.say("the other", r.collect(1).len());
        // SAFETY: as above.
        unsafe { libc::dup2(a.as_raw_fd(), number) };
        r.push(take(6));
        r.submit();
        sys::write(y.as_raw_fd(), b"not here");
        cx.say("data in the other file", r.brief(1));
        sys::write(c.as_raw_fd(), b"here");
        cx.say("data", show(&r.collect(1)));
        r.push(take(7));
        r.submit();
        sys::close(number);
        drop(a);
        cx.say("all closed", r.brief(1));
        drop(c);
        cx.say("the peer, too", show(&r.collect(1)));
    });
}
