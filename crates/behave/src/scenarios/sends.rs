//! Bundles, zero-copy sends, messages between rings, commands to sockets.

use std::net::{TcpListener, TcpStream, UdpSocket};

use super::kbufs::{provide, select, PbufRing, PBUF_INC};
use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(bundle_recv, "RECV of a bundle"),
    scenario!(bundle_recv_multishot, "multishot RECV of bundles"),
    scenario!(bundle_send, "SEND of a bundle"),
    scenario!(bundle_without_select, "a bundle without BUFFER_SELECT"),
    scenario!(send_select, "SEND takes a provided buffer"),
    scenario!(recv_waitall_select, "RECV of a whole provided buffer in pieces"),
    scenario!(send_zc, "SEND_ZC: result and notification"),
    scenario!(send_zc_fixed, "SEND_ZC from a registered buffer"),
    scenario!(send_zc_linked, "SEND_ZC in a chain, cancelled, waiting"),
    scenario!(sendmsg_zc, "SENDMSG_ZC"),
    scenario!(send_vectorized, "SEND of vectors"),
    scenario!(message_data, "MSG_RING with data"),
    scenario!(message_states, "MSG_RING to disabled, full and foreign targets"),
    scenario!(message_fd, "MSG_RING with a registered file"),
    scenario!(message_register, "IORING_REGISTER_SEND_MSG_RING"),
    scenario!(socket_commands, "URING_CMD on sockets"),
];

const MULTISHOT: u16 = 2;
const FIXED: u16 = 4;
const REPORT: u16 = 8;
const BUNDLE: u16 = 16;
const VECTORIZED: u16 = 32;

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("socketpair")
}

fn tcp() -> (TcpStream, TcpStream) {
    let l = TcpListener::bind("127.0.0.1:0").expect("listen");
    let c = TcpStream::connect(l.local_addr().expect("address")).expect("connect");
    (c, l.accept().expect("accept").0)
}

fn ring_of(r: &Ring, flags: u16, b: &'static [u8], len: u32, n: u16) -> PbufRing {
    let ring = PbufRing::register(r, 8, 7, flags);
    for id in 0..n {
        ring.add(at(b) + usize::from(id) * 16, len, 10 + id);
    }
    ring
}

fn head(r: &Ring) -> u32 {
    let s = leak([7u32, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    r.reg(register::PBUF_STATUS, s, 1);
    // SAFETY: leaked above.
    unsafe { (s as *const u32).add(1).read() }
}

/// Receives bundles until `want` bytes came: how many, and the bytes in the order of the buffers. How they are
/// divided among CQEs is not a promise.
fn gathered(r: &Ring, again: impl Fn() -> Option<Q>, b: &[u8], want: usize) -> String {
    let (mut text, mut next) = (String::new(), None);
    while text.len() < want {
        if let Some(q) = again() {
            r.push(q);
            r.submit();
        }
        for c in r.collect(1) {
            if c.res <= 0 {
                return format!("{text} {}", res(c.res));
            }
            let first = (c.flags >> 16) as usize;
            if next.is_some_and(|n| n != first) {
                return format!("{text} then buffer {first}, not {next:?}");
            }
            let used = (c.res as usize).div_ceil(8);
            for i in 0..c.res as usize {
                text.push(b[(first - 10 + i / 8) * 16 + i % 8] as char);
            }
            next = Some(first + used);
        }
    }
    text
}

fn bundle_recv(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(8, kind), buf(256), pair());
        let take = |len| select(recv(a.as_raw_fd(), 0, len, 1).prio(BUNDLE), 7);
        let _ring = ring_of(&r, 0, b, 8, 8);
        sys::write(c.as_raw_fd(), b"abcdefghijklmnopqrst");
        cx.say("20 bytes, buffers of 8", gathered(&r, || Some(take(0)), b, 20));
        cx.say("head", head(&r));
        sys::write(c.as_raw_fd(), b"abcdefghijklmnopqrst");
        cx.say("length 5", r.one(take(5)));
        cx.say("head", head(&r));
        cx.say("length 10", r.one(take(10)));
        cx.say("head", head(&r));
        sys::read(a.as_raw_fd(), 7).ok();
        r.push(take(0));
        cx.say("waits", r.brief(1));
        sys::write(c.as_raw_fd(), b"xyz");
        cx.say("data", r.go(1));
        cx.say("head", head(&r));
        let (r, (a, c)) = (Ring::new(8, kind), pair());
        r.one(provide(at(buf(64)), 8, 4, 0, 7));
        sys::write(c.as_raw_fd(), b"abcdef");
        cx.say("legacy buffers", r.one(select(recv(a.as_raw_fd(), 0, 0, 1).prio(BUNDLE), 7)));
        let (r, b) = (Ring::new(8, kind), buf(256));
        let _ring = ring_of(&r, PBUF_INC, b, 8, 6);
        sys::write(c.as_raw_fd(), b"abcdefghijklmnopqrst");
        let take = |len| select(recv(a.as_raw_fd(), 0, len, 1).prio(BUNDLE), 7);
        cx.say("in pieces", r.one(take(0)));
        cx.say("head", head(&r));
    });
}

fn bundle_recv_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(8, kind), buf(256), pair());
        let _ring = ring_of(&r, 0, b, 8, 8);
        r.push(select(recv(a.as_raw_fd(), 0, 0, 1).prio(BUNDLE | MULTISHOT), 7));
        r.submit();
        sys::write(c.as_raw_fd(), b"abcdefghijklmnopqrst");
        cx.say("20 bytes", gathered(&r, || None, b, 20));
        cx.say("head", head(&r));
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("3 bytes", show(&r.collect(1)));
        sys::write(c.as_raw_fd(), &[b'x'; 32]);
        cx.say("all that is left", gathered(&r, || None, b, 32));
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("no buffers", r.brief(1));
    });
}

fn bundle_send(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        for flags in [0, PBUF_INC] {
            let (r, b, (a, c)) = (Ring::new(8, kind), buf(256), pair());
            b.iter_mut().enumerate().for_each(|(i, b)| *b = b'a' + (i % 16) as u8);
            let give = |len| select(send(a.as_raw_fd(), 0, len, 1).prio(BUNDLE), 7);
            let ring = ring_of(&r, flags, b, 8, 3);
            r.push(give(0));
            cx.say("three of 8", r.brief(2));
            cx.say("head", head(&r));
            cx.say("sent", mem::text(&sys::read(c.as_raw_fd(), 100).unwrap_or_default()));
            r.push(give(0));
            cx.say("empty", r.brief(1));
            for id in 0..3 {
                ring.add(at(b), 8, 20 + id);
            }
            r.push(give(10));
            cx.say("length 10 of 24", r.brief(2));
            cx.say("head", head(&r));
        }
        let (r, (a, _c)) = (Ring::new(8, kind), pair());
        r.one(provide(at(buf(64)), 8, 2, 0, 7));
        r.push(select(send(a.as_raw_fd(), 0, 0, 1).prio(BUNDLE), 7));
        cx.say("legacy buffers", r.brief(2));
    });
}

fn bundle_without_select(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(8, kind), buf(64), pair());
        r.push(send(a.as_raw_fd(), at(b), 8, 1).prio(BUNDLE));
        cx.say("SEND", r.brief(2));
        r.push(recv(c.as_raw_fd(), at(b), 8, 2).prio(BUNDLE));
        cx.say("RECV", r.brief(2));
        r.push(q(op::SENDMSG).fd(a.as_raw_fd()).addr(mem::msghdr(0, 0)).prio(BUNDLE).ud(3));
        cx.say("SENDMSG", r.brief(1));
        r.push(q(op::RECVMSG).fd(a.as_raw_fd()).addr(mem::msghdr(0, 0)).prio(BUNDLE).ud(4));
        cx.say("RECVMSG", r.brief(1));
    });
}

fn send_select(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        for flags in [0, PBUF_INC] {
            let (r, b, (a, c)) = (Ring::new(8, kind), buf(256), pair());
            b.iter_mut().enumerate().for_each(|(i, b)| *b = b'a' + (i % 16) as u8);
            let _ring = ring_of(&r, flags, b, 8, 3);
            for len in [0, 3, 20] {
                cx.say(&format!("length {len}"), r.one(select(send(a.as_raw_fd(), 0, len, 1), 7)));
            }
            cx.say("sent", mem::text(&sys::read(c.as_raw_fd(), 100).unwrap_or_default()));
            cx.say("head", head(&r));
        }
    });
}

fn recv_waitall_select(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b, (a, c)) = (Ring::new(8, kind), buf(256), pair());
        let _ring = ring_of(&r, 0, b, 8, 3);
        r.push(select(recv(a.as_raw_fd(), 0, 0, 1).opf(libc::MSG_WAITALL as u32), 7));
        r.submit();
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("3 of 8", r.brief(1));
        sys::write(c.as_raw_fd(), b"defgh");
        cx.say("the rest", r.go(1));
        cx.say("head", head(&r));
        cx.say("memory", mem::text(&b[..8]));
        r.push(select(recv(a.as_raw_fd(), 0, 0, 2).opf(libc::MSG_WAITALL as u32), 7));
        r.submit();
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("3 of 8", r.brief(1));
        drop(c);
        cx.say("the end", r.go(1));
        cx.say("head", head(&r));
    });
}

fn zc(fd: i32, addr: usize, len: u32, ud: u64) -> Q {
    q(op::SEND_ZC).fd(fd).addr(addr).len(len).ud(ud)
}

fn drained(s: &TcpStream) -> String {
    mem::text(&sys::read(s.as_raw_fd(), 200).unwrap_or_default())
}

fn send_zc(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), tcp());
        let data = mem::bytes(b"0123456789");
        let fd = a.as_raw_fd();
        let ask = |cx: &mut Cx, what: &str, q: Q| {
            r.push(q);
            r.submit();
            r.wait(1, 500);
            sys::sleep_ms(5);
            if sys::poll_now(c.as_raw_fd(), POLLIN) != 0 {
                let got = drained(&c);
                cx.say("sent", got);
            }
            let mut cqes = r.take();
            if cqes.iter().any(|c| c.flags & 2 != 0) && cqes.len() < 2 {
                cqes.extend(r.collect(1));
            }
            cx.say(what, show(&cqes));
        };
        ask(cx, "plain", zc(fd, data, 10, 1));
        ask(cx, "usage reported", zc(fd, data, 10, 2).prio(REPORT));
        ask(cx, "poll first", zc(fd, data, 10, 3).prio(1));
        ask(cx, "ASYNC", zc(fd, data, 10, 4).flags(ASYNC));
        ask(cx, "bundle", zc(fd, data, 10, 5).prio(BUNDLE));
        ask(cx, "unknown bit", zc(fd, data, 10, 6).prio(64));
        ask(cx, "multishot bit", zc(fd, data, 10, 7).prio(MULTISHOT));
        ask(cx, "addr3", zc(fd, data, 10, 8).addr3(1));
        ask(cx, "CQE_SKIP", zc(fd, data, 10, 9).flags(CQE_SKIP_SUCCESS));
        ask(cx, "BUFFER_SELECT", zc(fd, data, 10, 10).flags(BUFFER_SELECT));
        ask(cx, "bad memory", zc(fd, mem::BAD, 10, 11));
        ask(cx, "bad memory, reported", zc(fd, mem::BAD, 10, 12).prio(REPORT));
        ask(cx, "bad descriptor", zc(999, data, 10, 13));
        ask(cx, "bad descriptor, reported", zc(999, data, 10, 14).prio(REPORT));
        ask(cx, "length 0", zc(fd, data, 0, 15));
        ask(
            cx,
            "vectors",
            zc(fd, mem::iovecs(&[(data, 3), (data + 5, 4)]), 2, 16).prio(VECTORIZED),
        );
        ask(cx, "bad vectors", zc(fd, mem::BAD, 2, 17).prio(VECTORIZED));
        let (u, _v) = pair();
        ask(cx, "unix", zc(u.as_raw_fd(), data, 10, 18));
        let (p, _w) = pipe();
        ask(cx, "a pipe", zc(*p, data, 10, 19));
        ask(cx, "bad address", zc(fd, data, 10, 20).off(mem::BAD as u64).fi(16));
        ask(cx, "address length pad", zc(fd, data, 10, 21).fi(1 << 16));
        drop(c);
        let x = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let y = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let to = super::matrix_base::loopback(y.local_addr().expect("address").port());
        r.push(zc(x.as_raw_fd(), data, 10, 22).off(to as u64).fi(16).prio(REPORT));
        r.submit();
        let mut b = [0; 20];
        cx.say(
            "to an address",
            y.recv(&mut b).map_or_else(|e| e.to_string(), |n| mem::text(&b[..n])),
        );
        cx.say("CQEs", show(&r.collect(2)));
    });
}

fn send_zc_fixed(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), tcp());
        let page = sys::pages(4096) as usize;
        let fd = a.as_raw_fd();
        let ask = |cx: &mut Cx, what: &str, q: Q| {
            r.push(q);
            r.submit();
            let first = r.collect(1);
            if sys::poll_for(c.as_raw_fd(), POLLIN, 20) != 0 {
                drained(&c);
            }
            let rest =
                if first[0].flags & 2 != 0 && first.len() < 2 { r.collect(1) } else { Vec::new() };
            cx.say(what, show(&[first, rest].concat()));
        };
        ask(cx, "no table", zc(fd, page, 8, 1).prio(FIXED));
        r.reg(register::BUFFERS, mem::iovecs(&[(page, 4096)]), 1);
        ask(cx, "inside", zc(fd, page + 10, 8, 2).prio(FIXED));
        ask(cx, "the whole", zc(fd, page, 4096, 3).prio(FIXED));
        ask(cx, "beyond", zc(fd, page + 4090, 8, 4).prio(FIXED));
        ask(cx, "before", zc(fd, page - 4, 8, 5).prio(FIXED));
        ask(cx, "index 1", zc(fd, page, 8, 6).prio(FIXED).buf(1));
        ask(cx, "index without FIXED", zc(fd, page, 8, 7).buf(1));
        let two = mem::iovecs(&[(page, 3), (page + 100, 4)]);
        ask(cx, "vectors", zc(fd, two, 2, 8).prio(FIXED | VECTORIZED));
        let out = mem::iovecs(&[(page, 3), (page + 4095, 4)]);
        ask(cx, "vectors, one beyond", zc(fd, out, 2, 9).prio(FIXED | VECTORIZED));
        let msg = q(op::SENDMSG_ZC).fd(fd).prio(FIXED);
        ask(cx, "a message", msg.addr(mem::msghdr(two, 2)).ud(10));
        ask(cx, "a message, one beyond", msg.addr(mem::msghdr(out, 2)).ud(11));
    });
}

fn send_zc_linked(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), tcp());
        let data = mem::bytes(b"0123456789");
        let fd = a.as_raw_fd();
        r.push_all(&[zc(fd, data, 10, 1).flags(IO_LINK), nop(2)]);
        r.submit();
        sys::sleep_ms(5);
        drained(&c);
        cx.say("then a NOP", show_sorted(r.collect(3)));
        r.push_all(&[bad_read(3).flags(IO_LINK), zc(fd, data, 10, 4)]);
        r.submit();
        cx.say("after a failure", show_sorted(r.collect(3)));
        r.push_all(&[zc(fd, mem::BAD, 10, 5).flags(IO_LINK), nop(6)]);
        r.submit();
        cx.say("failing", show_sorted(r.collect(3)));
        a.set_nonblocking(true).expect("mode");
        while sys::write(fd, &[0; 65536]) > 0 {}
        r.push(zc(fd, data, 10, 7));
        cx.say("no room", r.brief(1));
        r.push(cancel(7, 8));
        r.submit();
        cx.say("cancelled", show_sorted(r.collect(3)));
    });
}

fn sendmsg_zc(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), tcp());
        let data = mem::bytes(b"0123456789");
        let msg = mem::msghdr(mem::iovecs(&[(data, 3), (data + 5, 4)]), 2);
        let q = q(op::SENDMSG_ZC).fd(a.as_raw_fd());
        for (what, q) in [
            ("plain", q.addr(msg)),
            ("reported", q.addr(msg).prio(REPORT)),
            ("bad header", q.addr(mem::BAD)),
            ("off", q.addr(msg).off(1)),
            ("file_index", q.addr(msg).fi(1)),
            ("unknown bit", q.addr(msg).prio(64)),
            ("bundle", q.addr(msg).prio(BUNDLE)),
            ("addr3", q.addr(msg).addr3(1)),
            ("VECTORIZED", q.addr(msg).prio(VECTORIZED)),
        ] {
            r.push(q.ud(1));
            r.submit();
            let first = r.collect(1);
            if sys::poll_for(c.as_raw_fd(), POLLIN, 20) != 0 {
                cx.say("sent", drained(&c));
            }
            let rest =
                if first[0].flags & 2 != 0 && first.len() < 2 { r.collect(1) } else { Vec::new() };
            cx.say(what, show(&[first, rest].concat()));
        }
    });
}

fn send_vectorized(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), pair());
        let data = mem::bytes(b"0123456789");
        let fd = a.as_raw_fd();
        let vecs = mem::iovecs(&[(data, 3), (data + 5, 4)]);
        cx.say("two", r.one(send(fd, vecs, 2, 1).prio(VECTORIZED)));
        cx.say("sent", mem::text(&sys::read(c.as_raw_fd(), 100).unwrap_or_default()));
        cx.say("none", r.one(send(fd, vecs, 0, 1).prio(VECTORIZED)));
        cx.say("bad", r.one(send(fd, mem::BAD, 1, 1).prio(VECTORIZED)));
        cx.say("1025", r.one(send(fd, vecs, 1025, 1).prio(VECTORIZED)));
    });
}

fn message(target: i32, ud: u64, res: u32) -> Q {
    q(op::MSG_RING).fd(target).off(ud).len(res).ud(1)
}

fn message_data(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, t) = (Ring::new(8, 0), Ring::new(8, kind));
        cx.say("sender", r.one(message(t.fd, 77, 5)));
        cx.say("there before entering", t.ready());
        cx.say("target", t.go(1));
        cx.say("negative", r.one(message(t.fd, 78, -7i32 as u32)));
        cx.say("target", t.go(1));
        cx.say("flags passed", r.one(message(t.fd, 79, 1).opf(2).fi(0x1234)));
        cx.say("target", t.go(1));
        cx.say("flags not passed", r.one(message(t.fd, 79, 1).fi(0x1234)));
        cx.say("CQE_SKIP flag", r.one(message(t.fd, 79, 1).opf(1)));
        cx.say("unknown flag", r.one(message(t.fd, 79, 1).opf(4)));
        cx.say("addr3", r.one(message(t.fd, 79, 1).addr3(1)));
        cx.say("unknown command", r.one(message(t.fd, 79, 1).addr(2)));
        cx.say("ASYNC", r.one(message(t.fd, 80, 1).flags(ASYNC)));
        cx.say("target", t.go(1));
        r.push(message(t.fd, 81, 1).flags(CQE_SKIP_SUCCESS));
        cx.say("sender skips", r.brief(1));
        cx.say("target", t.go(1));
        t.push(message(t.fd, 82, 9));
        cx.say("to itself", t.go_sorted(2));
        let e = crate::fixture::eventfd(libc::EFD_NONBLOCK);
        t.reg(register::EVENTFD, leak(*e), 1);
        r.one(message(t.fd, 83, 9));
        cx.say("eventfd", crate::fixture::eventfd_value(*e));
        let fd = t.fd;
        let waiter = std::thread::spawn(move || {
            let r = Ring::new(8, 0);
            sys::sleep_ms(30);
            r.one(message(fd, 84, 9))
        });
        cx.say("a waiting target", t.go(2));
        cx.say("its sender", waiter.join().unwrap_or_default());
    });
}

fn message_states(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, t) = (Ring::new(8, 0), Ring::sized(2, 2, kind));
        let off = Ring::new(8, kind | setup::R_DISABLED);
        cx.say("disabled", r.one(message(off.fd, 1, 1)));
        off.reg(register::ENABLE_RINGS, 0, 0);
        cx.say("enabled", r.one(message(off.fd, 1, 1)));
        let (p, _w) = pipe();
        cx.say("a pipe", r.one(message(*p, 1, 1)));
        cx.say("no descriptor", r.one(message(999, 1, 1)));
        cx.say("a registered slot", r.one(message(0, 1, 1).flags(FIXED_FILE)));
        for n in 0..4 {
            cx.say("send", r.one(message(t.fd, n, 1)));
        }
        cx.say("target", t.go(2));
        cx.say("the rest", t.go(2));
    });
}

fn message_fd(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, t) = (Ring::new(8, kind), Ring::new(8, kind));
        let (p, w) = pipe();
        r.reg(register::FILES, leak([*p, -1]), 2);
        let give = |source: u64, slot: u32| message(t.fd, 55, 0).addr(1).addr3(source).fi(slot);
        cx.say("no table there", r.one(give(0, 1)));
        cx.say("no table there, any", r.one(give(0, u32::MAX)));
        t.reg(register::FILES, leak([-1, -1]), 2);
        cx.say("slot 0 to slot 1", r.one(give(0, 2)));
        cx.say("target", t.go(1));
        sys::write(*w, b"hello");
        cx.say("usable", t.one(read(1, at(buf(8)), 8, 2).flags(FIXED_FILE)));
        cx.say("any slot", r.one(give(0, u32::MAX)));
        cx.say("target", t.go(1));
        cx.say("any slot, full", r.one(give(0, u32::MAX)));
        cx.say("replacing", r.one(give(0, 1)));
        cx.say("target", t.go(1));
        cx.say("no CQE", r.one(give(0, 1).opf(1)));
        cx.say("target", t.brief(1));
        cx.say("empty source", r.one(give(1, 1)));
        cx.say("source beyond", r.one(give(9, 1)));
        cx.say("target beyond", r.one(give(0, 9)));
        cx.say("slot none", r.one(give(0, 0)));
        cx.say("length", r.one(give(0, 1).len(1)));
        cx.say("itself", r.one(message(r.fd, 55, 0).addr(1).fi(1)));
        cx.say("flags passed", r.one(give(0, 1).opf(2)));
        cx.say("target", t.brief(1));
        cx.say("ASYNC", r.one(give(0, 1).flags(ASYNC)));
        cx.say("target", t.go(1));
    });
}

fn message_register(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let t = Ring::new(8, kind);
        let ask = |q: Q, nr| res(sys::register(-1, register::SEND_MSG_RING, leak(q.0), nr));
        cx.say("data", ask(message(t.fd, 5, 6), 1));
        cx.say("target", t.go(1));
        cx.say("nr 0", ask(message(t.fd, 5, 6), 0));
        cx.say("nr 2", ask(message(t.fd, 5, 6), 2));
        cx.say("a NOP", ask(nop(1), 1));
        cx.say("SQE flags", ask(message(t.fd, 5, 6).flags(ASYNC), 1));
        cx.say("a file", ask(message(t.fd, 5, 0).addr(1).fi(1), 1));
        cx.say("flags passed", ask(message(t.fd, 5, 6).opf(2).fi(64), 1));
        cx.say("target", t.go(1));
        cx.say("bad descriptor", ask(message(999, 5, 6), 1));
        let (p, _w) = pipe();
        cx.say("a pipe", ask(message(*p, 5, 6), 1));
        cx.say("on a ring", res(t.reg(register::SEND_MSG_RING, leak(message(t.fd, 5, 6).0), 1)));
    });
}

fn socket_commands(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, (a, c)) = (Ring::new(8, kind), tcp());
        let udp = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let (u, _v) = pair();
        let l = TcpListener::bind("127.0.0.1:0").expect("listen");
        sys::write(c.as_raw_fd(), b"hello");
        let (p, _w) = pipe();
        let zero = std::fs::File::open("/dev/zero").expect("open");
        for (name, fd) in [
            ("tcp", a.as_raw_fd()),
            ("udp", udp.as_raw_fd()),
            ("unix", u.as_raw_fd()),
            ("listener", l.as_raw_fd()),
            ("pipe", *p),
            ("zero", zero.as_raw_fd()),
        ] {
            for command in 0..6u64 {
                let value = leak(0u64);
                let get = q(op::URING_CMD)
                    .fd(fd)
                    .off(command)
                    .addr(1 | 3 << 32)
                    .fi(4)
                    .addr3(value as u64)
                    .ud(1);
                cx.say(&format!("{name} {command}"), r.one(get));
            }
        }
        let one = leak(1i32) as u64;
        let opt = |command: u64, level: usize, name: usize, len: u32| {
            q(op::URING_CMD)
                .fd(a.as_raw_fd())
                .off(command)
                .addr(level | name << 32)
                .fi(len)
                .addr3(one)
                .ud(2)
        };
        cx.say("set TCP_NODELAY", r.one(opt(3, 6, 1, 4)));
        cx.say("get TCP_NODELAY", r.one(opt(2, 6, 1, 4)));
        cx.say("set SO_KEEPALIVE", r.one(opt(3, 1, 9, 4)));
        cx.say("get SO_KEEPALIVE", r.one(opt(2, 1, 9, 4)));
        cx.say("get, length 2", r.one(opt(2, 1, 9, 2)));
        cx.say("get, length -1", r.one(opt(2, 1, 9, u32::MAX)));
        cx.say("get, unknown", r.one(opt(2, 1, 9999, 4)));
        cx.say("get, bad memory", r.one(opt(2, 1, 9, 4).addr3(mem::BAD as u64)));
        cx.say("MULTISHOT flag", r.one(opt(0, 0, 0, 0).opf(2)));
        cx.say("FIXED flag", r.one(opt(0, 0, 0, 0).opf(1)));
        cx.say("select alone", r.one(select(opt(0, 0, 0, 0), 7)));
        cx.say("ASYNC", r.one(opt(0, 0, 0, 0).flags(ASYNC)));
    });
}
