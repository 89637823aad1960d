//! Sockets: accept, connect, send, receive, shut down.

use crate::prelude::*;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};

use super::matrix_base::loopback;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(accept_basic, "ACCEPT: ready, later, address, flags"),
    scenario!(accept_bad, "ACCEPT: refusals"),
    scenario!(accept_multishot, "multishot ACCEPT"),
    scenario!(accept_nonblock, "ACCEPT on a nonblocking listener, and DONTWAIT"),
    scenario!(connect_basic, "CONNECT: accepted, refused, already, bad"),
    scenario!(connect_unix, "CONNECT of unix sockets"),
    scenario!(send_recv, "SEND and RECV: short, MSG_PEEK, MSG_WAITALL, the end"),
    scenario!(send_big, "a SEND of more than the buffers hold"),
    scenario!(send_errors, "SEND: not connected, closed, no socket"),
    scenario!(send_to, "SEND with an address on a datagram socket"),
    scenario!(recv_poll_first, "RECVSEND_POLL_FIRST"),
    scenario!(recv_nonempty, "the SOCK_NONEMPTY flag"),
    scenario!(recv_order, "receives queued on one socket complete in order"),
    scenario!(sendmsg_recvmsg, "SENDMSG and RECVMSG: vectors, names"),
    scenario!(msg_control, "passing a descriptor with SENDMSG and RECVMSG"),
    scenario!(recvmsg_trunc, "RECVMSG: MSG_TRUNC on datagrams"),
    scenario!(datagrams, "datagrams: boundaries kept, empty ones"),
    scenario!(shutdown_op, "SHUTDOWN"),
    scenario!(socket_op, "SOCKET"),
    scenario!(recv_after_shutdown, "a waiting RECV when the peer shuts down"),
    scenario!(net_echo, "an echo server and 20 clients through one ring"),
    scenario!(net_fin, "closing a socket through the ring sends the FIN at once"),
];

fn addr_of(l: &TcpListener) -> usize {
    loopback(l.local_addr().expect("address").port())
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("listen")
}

fn tcp() -> OwnedFd {
    // SAFETY: no memory involved; the descriptor is fresh.
    unsafe {
        OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))
    }
}

fn accept(l: &TcpListener) -> Q {
    q(op::ACCEPT).fd(l.as_raw_fd()).ud(1)
}

/// Text of CQEs whose positive results are descriptors, which are closed.
fn fds(cqes: Vec<anyring_uapi::Cqe>) -> String {
    let one = |c: &anyring_uapi::Cqe| {
        if c.res >= 0 {
            sys::close(c.res);
        }
        format!("{}:{}/{:#x}", c.user_data, ok(c.res), c.flags)
    };
    cqes.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn one_fd(r: &Ring, q: Q) -> String {
    r.push(q);
    r.submit();
    fds(r.collect(1))
}

fn accept_basic(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        let here = l.local_addr().expect("address");
        let r = Ring::new(8, kind);
        let _c1 = TcpStream::connect(here).expect("connect");
        cx.say("ready", one_fd(&r, accept(&l)));
        r.push(accept(&l));
        cx.say("nobody", r.brief(1));
        let c2 = TcpStream::connect(here).expect("connect");
        cx.say("later", fds(r.collect(1)));
        let (name, len) = (buf(32), leak(32u32));
        let c3 = TcpStream::connect(here).expect("connect");
        cx.say("with an address", one_fd(&r, accept(&l).addr(at(name)).off(len as u64)));
        let port = u16::from_be_bytes([name[2], name[3]]);
        // SAFETY: leaked above.
        let got = unsafe { (len as *const u32).read() };
        cx.say(
            "address",
            format!(
                "{:?} len {got} port right {}",
                &name[4..8],
                port == c3.local_addr().expect("address").port()
            ),
        );
        let _c4 = TcpStream::connect(here).expect("connect");
        r.push(accept(&l).opf((libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32));
        r.submit();
        let fd = r.collect(1)[0].res;
        // SAFETY: no memory involved.
        let (cloexec, fl) =
            unsafe { (libc::fcntl(fd, libc::F_GETFD), libc::fcntl(fd, libc::F_GETFL)) };
        cx.say("CLOEXEC|NONBLOCK", format!("{cloexec} {}", fl & libc::O_NONBLOCK != 0));
        sys::close(fd);
        drop(c2);
    });
}

fn accept_bad(cx: &mut Cx) {
    let l = listener();
    let r = Ring::new(8, 0);
    let (p, _w) = pipe();
    cx.say("a pipe", r.one(accept(&l).fd(*p)));
    cx.say("closed number", r.one(accept(&l).fd(999)));
    cx.say("not listening", {
        let s = tcp();
        r.one(accept(&l).fd(s.as_raw_fd()))
    });
    cx.say("unknown flag", r.one(accept(&l).opf(1)));
    cx.say("unknown ioprio bit", r.one(accept(&l).prio(8)));
    cx.say("slot and CLOEXEC", r.one(accept(&l).fi(1).opf(libc::SOCK_CLOEXEC as u32)));
    cx.say("multishot and slot", r.one(accept(&l).fi(1).prio(1)));
    let here = l.local_addr().expect("address");
    let _c = TcpStream::connect(here).expect("connect");
    cx.say("bad address pointer", r.one(accept(&l).addr(mem::BAD).off(leak(16u32) as u64)));
    let _c = TcpStream::connect(here).expect("connect");
    cx.say("bad length pointer", r.one(accept(&l).addr(at(buf(16))).off(mem::BAD as u64)));
    let _c = TcpStream::connect(here).expect("connect");
    cx.say("address without length", r.one(accept(&l).addr(at(buf(16)))));
    let _c = TcpStream::connect(here).expect("connect");
    cx.say("negative length", r.one(accept(&l).addr(at(buf(16))).off(leak(-1i32) as u64)));
}

fn accept_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        let here = l.local_addr().expect("address");
        let r = Ring::new(8, kind);
        r.push(accept(&l).prio(1));
        r.submit();
        let clients: Vec<_> = (0..3)
            .map(|_| {
                let c = TcpStream::connect(here).expect("connect");
                // Whether more connections were waiting is timing: without that flag.
                r.wait(1, 500);
                let mut got = r.take();
                got.iter_mut().for_each(|c| c.flags &= !anyring_uapi::cqe::F_SOCK_NONEMPTY);
                cx.say("accepted", fds(got));
                c
            })
            .collect();
        r.push(cancel(1, 9));
        cx.say("cancelled", r.go_sorted(2));
        drop(clients);
        r.push(accept(&l).prio(1).fi(u32::MAX));
        cx.say("into slots, no table", {
            let _c = TcpStream::connect(here).expect("connect");
            r.submit();
            r.wait(1, 500);
            fds(r.take())
        });
    });
}

fn accept_nonblock(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        l.set_nonblocking(true).expect("nonblocking");
        let r = Ring::new(8, kind);
        cx.say("DONTWAIT", r.one(accept(&l).prio(2)));
        r.push(accept(&l));
        cx.say("waits all the same", r.brief(1));
        let _c = TcpStream::connect(l.local_addr().expect("address")).expect("connect");
        cx.say("later", fds(r.collect(1)));
        r.push(accept(&l).prio(4));
        cx.say("POLL_FIRST", r.brief(1));
        let _c = TcpStream::connect(l.local_addr().expect("address")).expect("connect");
        cx.say("later", fds(r.collect(1)));
    });
}

fn connect_basic(cx: &mut Cx) {
    let refused = {
        let l = listener();
        addr_of(&l)
    };
    cx.both_setups(|cx, kind| {
        let l = listener();
        let r = Ring::new(8, kind);
        let (s, t) = (tcp(), tcp());
        let connect = |s: &OwnedFd, a: usize, len: u64| {
            q(op::CONNECT).fd(s.as_raw_fd()).addr(a).off(len).ud(1)
        };
        cx.say("accepted", r.one(connect(&s, addr_of(&l), 16)));
        cx.say("again", r.one(connect(&s, addr_of(&l), 16)));
        cx.say("refused", r.one(connect(&t, refused, 16)));
        cx.say("NULL", r.one(connect(&t, 0, 16)));
        cx.say("unmapped", r.one(connect(&t, mem::BAD, 16)));
        cx.say("length 1", r.one(connect(&t, addr_of(&l), 1)));
        cx.say("length 1000", r.one(connect(&t, addr_of(&l), 1000)));
        let (p, _w) = pipe();
        cx.say("a pipe", r.one(q(op::CONNECT).fd(*p).addr(addr_of(&l)).off(16).ud(1)));
        let u = tcp();
        cx.say("ASYNC", r.one(connect(&u, addr_of(&l), 16).flags(ASYNC)));
        let v = tcp();
        // SAFETY: no memory involved.
        unsafe { libc::fcntl(v.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        cx.say("O_NONBLOCK socket", r.one(connect(&v, addr_of(&l), 16)));
        let (w, x) = (tcp(), mem::bytes(b"hi"));
        r.push_all(&[connect(&w, addr_of(&l), 16).flags(IO_LINK), send(w.as_raw_fd(), x, 2, 2)]);
        cx.say("linked to a send", r.go(2));
    });
}

fn connect_unix(cx: &mut Cx) {
    let dir = Dir::new();
    let path = dir.join("s");
    let _l = std::os::unix::net::UnixListener::bind(&path).expect("bind");
    let mut a = vec![1u8, 0];
    a.extend(path.to_string_lossy().bytes());
    a.push(0);
    let r = Ring::new(8, 0);
    let sock = || {
        // SAFETY: no memory involved; the descriptor is fresh.
        unsafe {
            OwnedFd::from_raw_fd(libc::socket(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                0,
            ))
        }
    };
    let (s, t) = (sock(), sock());
    cx.say(
        "listening",
        r.one(q(op::CONNECT).fd(s.as_raw_fd()).addr(mem::bytes(&a)).off(a.len() as u64).ud(1)),
    );
    let other = [&[1u8, 0][..], b"/nonexistent-socket\0"].concat();
    cx.say(
        "missing",
        r.one(
            q(op::CONNECT).fd(t.as_raw_fd()).addr(mem::bytes(&other)).off(other.len() as u64).ud(1),
        ),
    );
}

fn send_recv(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(32));
        let (x, y) = (a.as_raw_fd(), c.as_raw_fd());
        cx.say("SEND", r.one(send(x, mem::bytes(b"hello world"), 11, 1)));
        cx.say(
            "MSG_PEEK",
            format!(
                "{} {}",
                r.one(recv(y, at(b), 5, 2).opf(libc::MSG_PEEK as u32)),
                mem::text(&b[..5])
            ),
        );
        cx.say("5 of 11", r.one(recv(y, at(b), 5, 2)));
        cx.say("the rest", format!("{} {}", r.one(recv(y, at(b), 32, 2)), mem::text(&b[..6])));
        r.push(recv(y, at(b), 10, 3).opf(libc::MSG_WAITALL as u32));
        r.submit();
        sys::write(x, b"1234");
        cx.say("MSG_WAITALL, 4 of 10", r.brief(1));
        sys::write(x, b"567890");
        cx.say("MSG_WAITALL, all", format!("{} {}", r.go(1), mem::text(&b[..10])));
        cx.say("length 0 RECV", {
            sys::write(x, b"z");
            r.one(recv(y, at(b), 0, 4))
        });
        cx.say("SEND of 0", r.one(send(x, at(b), 0, 5)));
        let _ = sys::read(y, 10);
        drop(a);
        cx.say("the end", r.one(recv(y, at(b), 8, 6)));
        cx.say("SEND, peer gone", r.one(send(y, at(b), 8, 7)));
    });
}

fn send_big(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(8, kind);
        let size = 4u32 << 20;
        let data = sys::pages(size as usize) as usize;
        let reader = std::thread::spawn(move || {
            let mut total = 0;
            while total < size as usize {
                match sys::read(c.as_raw_fd(), 65536) {
                    Ok(b) if !b.is_empty() => total += b.len(),
                    _ => break,
                }
            }
            total
        });
        cx.say(
            "MSG_WAITALL",
            r.one(send(a.as_raw_fd(), data, size, 1).opf(libc::MSG_WAITALL as u32)),
        );
        cx.say("received", reader.join().unwrap_or(0));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.push(send(a.as_raw_fd(), data, size, 2));
        r.submit();
        r.wait(1, 1000);
        let v = r.take();
        // How much fits is the host's business; that a short send is a success is not.
        let short = matches!(v[..], [s] if s.res > 0 && s.res < size as i32);
        cx.say("without: short at once", short);
        r.push(send(a.as_raw_fd(), data, 10, 3));
        cx.say("full: waits", r.brief(1));
        while sys::poll_now(c.as_raw_fd(), POLLIN) != 0
            && sys::read(c.as_raw_fd(), 1 << 20).is_ok_and(|b| !b.is_empty())
        {}
        cx.say("drained: completes", r.go(1));
        cx.say(
            "MSG_DONTWAIT when there is room",
            r.one(send(a.as_raw_fd(), data, 10, 4).opf(libc::MSG_DONTWAIT as u32)),
        );
    });
}

fn send_errors(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        let s = tcp();
        let b = at(buf(8));
        cx.say("SEND on a pipe", r.one(send(*w, b, 4, 1)));
        cx.say("RECV on a pipe", r.one(recv(*p, b, 4, 1)));
        cx.say("SEND on a closed number", r.one(send(999, b, 4, 1)));
        cx.say("SEND, not connected", r.one(send(s.as_raw_fd(), b, 4, 1)));
        cx.say("RECV, not connected", r.one(recv(s.as_raw_fd(), b, 4, 1)));
        let (a, _c) = UnixStream::pair().expect("socketpair");
        cx.say("unknown ioprio bit", r.one(send(a.as_raw_fd(), b, 4, 1).prio(0x100)));
        cx.say(
            "RECV MSG_OOB on a unix socket",
            r.one(recv(a.as_raw_fd(), b, 4, 1).opf(libc::MSG_OOB as u32)),
        );
        cx.say("RECV MSG_ERRQUEUE, nothing", {
            r.push(recv(a.as_raw_fd(), b, 4, 1).opf(libc::MSG_ERRQUEUE as u32));
            let v = r.brief(1);
            r.push(q(op::ASYNC_CANCEL).opf(4).ud(9));
            r.submit();
            r.wait(1, 500);
            r.take();
            v
        });
    });
}

fn send_to(cx: &mut Cx) {
    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0").expect("bind"),
        UdpSocket::bind("127.0.0.1:0").expect("bind"),
    );
    let there = loopback(b.local_addr().expect("address").port());
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let data = mem::bytes(b"datagram");
        let to = |addr: usize, len: u32| send(a.as_raw_fd(), data, 8, 1).off(addr as u64).fi(len);
        cx.say("with an address", r.one(to(there, 16)));
        cx.say("arrived", sys::read(b.as_raw_fd(), 32).map_or_else(res, |v| mem::text(&v)));
        cx.say("without", r.one(to(0, 0)));
        cx.say("bad address", r.one(to(mem::BAD, 16)));
        cx.say("padding above the length", r.one(to(there, 16 | 1 << 16)));
        cx.say("length 1000", r.one(to(there, 1000)));
        cx.say(
            "too big a datagram",
            r.one(
                send(a.as_raw_fd(), sys::pages(1 << 17) as usize, 1 << 17, 1)
                    .off(there as u64)
                    .fi(16),
            ),
        );
    });
}

fn recv_poll_first(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(8, kind);
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("RECV, data there", r.one(recv(a.as_raw_fd(), at(buf(8)), 8, 1).prio(1)));
        r.push(recv(a.as_raw_fd(), at(buf(8)), 8, 1).prio(1));
        cx.say("RECV, none", r.brief(1));
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("data", r.go(1));
        cx.say("SEND", r.one(send(a.as_raw_fd(), at(buf(8)), 8, 1).prio(1)));
    });
}

fn recv_nonempty(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        let client = TcpStream::connect(l.local_addr().expect("address")).expect("connect");
        let (server, _) = l.accept().expect("accept");
        let r = Ring::new(8, kind);
        sys::write(client.as_raw_fd(), b"0123456789");
        sys::poll_for(server.as_raw_fd(), POLLIN, 1000);
        for len in [4, 4, 4] {
            cx.say(
                &format!("tcp, {len} of what is there"),
                r.one(recv(server.as_raw_fd(), at(buf(8)), len, 1)),
            );
        }
        let (a, c) = UnixStream::pair().expect("socketpair");
        sys::write(c.as_raw_fd(), b"0123456789");
        for len in [4, 6] {
            cx.say(
                &format!("unix, {len} of what is there"),
                r.one(recv(a.as_raw_fd(), at(buf(8)), len, 1)),
            );
        }
    });
}

fn recv_order(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixDatagram::pair().expect("socketpair");
        let r = Ring::new(16, kind);
        let slots: Vec<&'static mut [u8]> = (0..8).map(|_| buf(1)).collect();
        for (i, s) in slots.iter().enumerate() {
            r.push(recv(a.as_raw_fd(), at(s), 1, i as u64));
        }
        r.submit();
        for i in 0..8u8 {
            sys::write(c.as_raw_fd(), &[i]);
        }
        let done = r.collect(8);
        let mut seen: Vec<u8> = slots.iter().map(|s| s[0]).collect();
        seen.sort_unstable();
        // Which receive gets which datagram is the host's choice: each got one.
        cx.say("each one byte", format!("{} {seen:?}", done.iter().filter(|c| c.res == 1).count()));
    });
}

fn sendmsg_recvmsg(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(16));
        let sendmsg = |iov, n| q(op::SENDMSG).fd(a.as_raw_fd()).addr(mem::msghdr(iov, n)).ud(1);
        let recvmsg = |iov, n| q(op::RECVMSG).fd(c.as_raw_fd()).addr(mem::msghdr(iov, n)).ud(2);
        cx.say(
            "two vectors",
            r.one(sendmsg(mem::iovecs(&[(mem::bytes(b"abc"), 3), (mem::bytes(b"defg"), 4)]), 2)),
        );
        cx.say("into two", r.one(recvmsg(mem::iovecs(&[(at(b), 2), (at(b) + 8, 8)]), 2)));
        cx.say("memory", mem::text(b));
        cx.say("no vectors", r.one(sendmsg(0, 0)));
        cx.say("1025 vectors", r.one(sendmsg(mem::iovecs(&[(at(b), 1); 1025]), 1025)));
        r.push(recvmsg(mem::iovecs(&[(at(b), 8)]), 1));
        cx.say("RECVMSG waits", r.brief(1));
        sys::write(a.as_raw_fd(), b"later");
        cx.say("data", r.go(1));
        let (u, v) = (
            UdpSocket::bind("127.0.0.1:0").expect("bind"),
            UdpSocket::bind("127.0.0.1:0").expect("bind"),
        );
        let there = loopback(v.local_addr().expect("address").port());
        let iov = mem::iovecs(&[(mem::bytes(b"dgram"), 5)]);
        let to = leak([there as u64, 16, iov as u64, 1, 0, 0, 0]);
        cx.say("SENDMSG with a name", r.one(q(op::SENDMSG).fd(u.as_raw_fd()).addr(to).ud(1)));
        let name = buf(32);
        let from = leak([at(name) as u64, 32, mem::iovecs(&[(at(b), 16)]) as u64, 1, 0, 0, 0]);
        cx.say("RECVMSG with a name", r.one(q(op::RECVMSG).fd(v.as_raw_fd()).addr(from).ud(2)));
        // SAFETY: leaked above.
        let len = unsafe { *(from as *const [u64; 7]) }[1];
        cx.say(
            "name",
            format!(
                "{:?} len {} port right {}",
                &name[4..8],
                len as u32,
                u16::from_be_bytes([name[2], name[3]]) == u.local_addr().expect("address").port()
            ),
        );
    });
}

fn msg_control(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (p, w) = pipe();
        let (r, b) = (Ring::new(8, kind), buf(16));
        // One control message: length 20, SOL_SOCKET, SCM_RIGHTS, the descriptor.
        let control = leak([20u64, 1 | 1 << 32, *p as u64]);
        let iov = mem::iovecs(&[(mem::bytes(b"x"), 1)]);
        let out = leak([0u64, 0, iov as u64, 1, control as u64, 24, 0]);
        cx.say("SENDMSG", r.one(q(op::SENDMSG).fd(a.as_raw_fd()).addr(out).ud(1)));
        let got = leak([0u64; 3]);
        let into = leak([0u64, 0, mem::iovecs(&[(at(b), 16)]) as u64, 1, got as u64, 24, 0]);
        cx.say("RECVMSG", r.one(q(op::RECVMSG).fd(c.as_raw_fd()).addr(into).ud(2)));
        // SAFETY: leaked above.
        let (m, words) = unsafe { (*(into as *const [u64; 7]), *(got as *const [u64; 3])) };
        cx.say("control length, kind", format!("{} {:#x}", m[5], words[1]));
        let fd = words[2] as i32;
        sys::write(*w, b"through");
        cx.say("the descriptor works", sys::read(fd, 16).map_or_else(res, |v| mem::text(&v)));
        sys::close(fd);
    });
}

fn recvmsg_trunc(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixDatagram::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(4));
        let run = |flags: i32| {
            sys::write(a.as_raw_fd(), b"0123456789");
            let m = leak([0u64, 0, mem::iovecs(&[(at(b), 4)]) as u64, 1, 0, 0, 0]);
            let v = r.one(q(op::RECVMSG).fd(c.as_raw_fd()).addr(m).opf(flags as u32).ud(1));
            // SAFETY: leaked above.
            format!("{v} flags {:#x}", unsafe { *(m as *const [u64; 7]) }[6])
        };
        cx.say("plain", run(0));
        cx.say("MSG_TRUNC", run(libc::MSG_TRUNC));
        sys::write(a.as_raw_fd(), b"0123456789");
        cx.say(
            "RECV, MSG_TRUNC",
            r.one(recv(c.as_raw_fd(), at(b), 4, 2).opf(libc::MSG_TRUNC as u32)),
        );
    });
}

fn datagrams(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixDatagram::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(32));
        for d in [&b"one"[..], b"", b"three"] {
            cx.say("SEND", r.one(send(a.as_raw_fd(), mem::bytes(d), d.len() as u32, 1)));
        }
        for _ in 0..3 {
            cx.say("RECV", r.one(recv(c.as_raw_fd(), at(b), 32, 2)));
        }
        r.push(recv(c.as_raw_fd(), at(b), 32, 2));
        cx.say("none", r.brief(1));
        sys::write(a.as_raw_fd(), b"late");
        cx.say("later", r.go(1));
    });
}

fn shutdown_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(8, kind);
        let shut = |fd, how| q(op::SHUTDOWN).fd(fd).len(how).ud(1);
        cx.say("unknown way", r.one(shut(a.as_raw_fd(), 3)));
        cx.say("write side", r.one(shut(a.as_raw_fd(), 1)));
        cx.say(
            "peer reads the end",
            sys::read(c.as_raw_fd(), 8).map_or_else(res, |v| v.len().to_string()),
        );
        cx.say("SEND afterwards", r.one(send(a.as_raw_fd(), at(buf(4)), 4, 2)));
        cx.say("both", r.one(shut(a.as_raw_fd(), 2)));
        let (p, _w) = pipe();
        cx.say("a pipe", r.one(shut(*p, 2)));
        cx.say("closed number", r.one(shut(999, 2)));
        let s = tcp();
        cx.say("not connected", r.one(shut(s.as_raw_fd(), 2)));
    });
}

fn socket_op(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let socket = |d: i32, t: i32, p: u32| q(op::SOCKET).fd(d).off(t as u64).len(p).ud(1);
    cx.say("tcp", one_fd(&r, socket(libc::AF_INET, libc::SOCK_STREAM, 0)));
    cx.say("unix", one_fd(&r, socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0)));
    r.push(socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0));
    r.submit();
    let fd = r.collect(1)[0].res;
    // SAFETY: no memory involved.
    let (cloexec, fl) = unsafe { (libc::fcntl(fd, libc::F_GETFD), libc::fcntl(fd, libc::F_GETFL)) };
    cx.say("CLOEXEC|NONBLOCK", format!("{cloexec} {}", fl & libc::O_NONBLOCK != 0));
    cx.say("unknown family", r.one(socket(999, libc::SOCK_STREAM, 0)));
    cx.say("unknown type", r.one(socket(libc::AF_INET, 77, 0)));
    cx.say("unknown type flag", r.one(socket(libc::AF_INET, libc::SOCK_STREAM | 1 << 20, 0)));
    cx.say("wrong protocol", r.one(socket(libc::AF_INET, libc::SOCK_STREAM, 17)));
}

fn recv_after_shutdown(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(8, kind);
        r.push(recv(a.as_raw_fd(), at(buf(8)), 8, 1));
        r.submit();
        c.shutdown(std::net::Shutdown::Write).expect("shutdown");
        cx.say("peer shuts down", r.go(1));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.push(recv(a.as_raw_fd(), at(buf(8)), 8, 2));
        r.submit();
        a.shutdown(std::net::Shutdown::Read).expect("shutdown");
        cx.say("own side shut down", r.go(1));
        drop(c);
    });
}

fn net_echo(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        let here = l.local_addr().expect("address");
        let r = Ring::new(64, kind);
        let clients = std::thread::spawn(move || {
            let mut all: Vec<TcpStream> =
                (0..20).map(|_| TcpStream::connect(here).expect("connect")).collect();
            let mut good = 0;
            for round in 0..10u8 {
                for c in &mut all {
                    sys::write(c.as_raw_fd(), &[round; 100]);
                }
                for c in &mut all {
                    let mut b = [0u8; 100];
                    good += usize::from(
                        std::io::Read::read_exact(c, &mut b).is_ok() && b == [round; 100],
                    );
                }
            }
            good
        });
        let served = serve(&r, &l);
        cx.say("replies right", clients.join().unwrap_or(0));
        cx.say("connections served to the end", served);
    });
}

/// Echoes until 20 connections have ended. user_data: 1 accept, else descriptor and kind.
fn serve(r: &Ring, l: &TcpListener) -> usize {
    let bufs: std::collections::HashMap<i32, usize> =
        (0..4096).map(|fd| (fd, at(buf(128)))).collect();
    let tag = |kind: u64, fd: i32| kind << 32 | fd as u64;
    r.push(accept(l));
    r.submit();
    let mut ended = 0;
    while ended < 20 && r.wait(1, 3000) == 0 {
        for c in r.take() {
            let (kind, fd) = (c.user_data >> 32, c.user_data as u32 as i32);
            match kind {
                0 if c.res >= 0 => {
                    r.push_all(&[recv(c.res, bufs[&c.res], 128, tag(2, c.res)), accept(l)]);
                }
                2 if c.res > 0 => r.push(send(fd, bufs[&fd], c.res as u32, tag(3, fd))),
                2 => {
                    ended += 1;
                    r.push(q(op::CLOSE).fd(fd).ud(tag(4, fd)));
                }
                3 => r.push(recv(fd, bufs[&fd], 128, tag(2, fd))),
                _ => {}
            }
        }
        r.submit();
    }
    ended
}

fn net_fin(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let l = listener();
        let client = TcpStream::connect(l.local_addr().expect("address")).expect("connect");
        let (server, _) = l.accept().expect("accept");
        let r = Ring::new(8, kind);
        let fd = std::os::fd::IntoRawFd::into_raw_fd(server);
        sys::write(client.as_raw_fd(), b"abc");
        sys::poll_for(fd, POLLIN, 1000);
        cx.say("RECV", r.one(recv(fd, at(buf(8)), 8, 1)));
        // A receive that waited, so that the engine held the file for a while.
        r.push(recv(fd, at(buf(8)), 8, 1));
        r.submit();
        sys::write(client.as_raw_fd(), b"def");
        cx.say("RECV that waited", r.go(1));
        cx.say("CLOSE", r.one(q(op::CLOSE).fd(fd).ud(2)));
        cx.say("peer sees the end", sys::poll_for(client.as_raw_fd(), POLLIN, 1000));
        cx.say(
            "read there",
            sys::read(client.as_raw_fd(), 8).map_or_else(res, |v| v.len().to_string()),
        );
    });
}
