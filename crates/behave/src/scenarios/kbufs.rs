//! Provided buffers: the legacy groups and buffer rings.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(provide_bad, "PROVIDE_BUFFERS at its limits"),
    scenario!(provide_remove, "REMOVE_BUFFERS counts"),
    scenario!(provide_read, "READ and RECV take a provided buffer"),
    scenario!(provide_order, "buffers of a group are taken in order; groups are apart"),
    scenario!(provide_waits, "a waiting receive takes its buffer only when data comes"),
    scenario!(provide_missing, "no group, and an empty group"),
    scenario!(provide_readv, "READV and RECVMSG with one and with more vectors"),
    scenario!(provide_len, "the request's length and the buffer's length"),
    scenario!(recv_multishot, "multishot RECV on provided buffers"),
    scenario!(recv_multishot_bad, "what a multishot RECV refuses"),
    scenario!(pbuf_ring_register, "registering a buffer ring"),
    scenario!(pbuf_ring_use, "a buffer ring: receive, short length, empty, order"),
    scenario!(pbuf_ring_status, "PBUF_STATUS tells the head"),
    scenario!(pbuf_ring_legacy, "legacy operations on a buffer ring's group"),
    scenario!(pbuf_ring_mmap, "a buffer ring that the kernel allocates"),
    scenario!(pbuf_ring_incremental, "a buffer ring consumed in pieces"),
];

const MULTISHOT: u16 = 2;

/// PROVIDE_BUFFERS.
pub fn provide(addr: usize, len: u32, n: i32, first: u64, group: u16) -> Q {
    q(op::PROVIDE_BUFFERS).fd(n).addr(addr).len(len).off(first).buf(group).ud(99)
}

/// With a buffer of `group`.
pub fn select(q: Q, group: u16) -> Q {
    q.flags(BUFFER_SELECT).buf(group)
}

fn provide_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let b = at(buf(65536));
    let cases = [
        ("0 buffers", provide(b, 16, 0, 4, 7)),
        ("-1 buffers", provide(b, 16, -1, 4, 7)),
        ("length 0", provide(b, 0, 1, 4, 7)),
        ("id 65535", provide(b, 16, 1, 65535, 7)),
        ("id 65536", provide(b, 16, 1, 65536, 7)),
        ("two at id 65535", provide(b, 16, 2, 65535, 7)),
        ("65536 buffers", provide(b, 1, 65536, 0, 8)),
        ("65537 buffers", provide(b, 1, 65537, 0, 9)),
        ("kernel's addresses", provide(1 << 63, 0xffff_ffff, 2, 0, 7)),
        ("address wraps", provide(usize::MAX - 100, 0xff_ffff, 2, 0, 7)),
        ("NULL", provide(0, 16, 1, 0, 10)),
    ];
    for (name, q) in cases {
        cx.say(name, r.one(q));
    }
}

fn provide_remove(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let remove = |n| q(op::REMOVE_BUFFERS).fd(n).buf(7).ud(98);
        cx.say("unknown group", r.one(remove(1)));
        r.one(provide(at(buf(256)), 16, 6, 0, 7));
        cx.say("2 of 6", r.one(remove(2)));
        cx.say("5 of 4", r.one(remove(5)));
        cx.say("1 of 0", r.one(remove(1)));
        cx.say("0", r.one(remove(0)));
        cx.say("65537", r.one(remove(65537)));
    });
}

fn provide_read(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(64));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.one(provide(at(b), 16, 4, 10, 7));
        cx.say("READ of a file", r.one(select(read(f.as_raw_fd(), 0, 0, 1), 7)));
        sys::write(c.as_raw_fd(), b"hello");
        cx.say("RECV", r.one(select(recv(a.as_raw_fd(), 0, 0, 2), 7)));
        let (p, w) = pipe();
        sys::write(*w, b"pipe");
        cx.say("READ of a pipe", r.one(select(read(*p, 0, 0, 3), 7)));
        cx.say("WRITE", r.one(select(write(*w, 0, 0, 4), 7)));
        cx.say("READ_FIXED", r.one(select(q(op::READ_FIXED).fd(f.as_raw_fd()).ud(5), 7)));
        cx.say("memory", mem::text(&b[..48]));
        cx.say("one left", r.one(q(op::REMOVE_BUFFERS).fd(9).buf(7).ud(98)));
    });
}

fn provide_order(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(64));
        r.one(provide(at(b), 8, 2, 5, 1));
        r.one(provide(at(&b[32..]), 8, 2, 100, 2));
        let (p, w) = pipe();
        for group in [1, 2, 1, 2, 1] {
            sys::write(*w, b"x");
            cx.say(&format!("group {group}"), r.one(select(read(*p, 0, 8, 3), group)));
        }
        r.one(provide(at(b), 8, 1, 7, 1));
        cx.say("given back under another id", r.one(select(read(*p, 0, 8, 3), 1)));
    });
}

fn provide_waits(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(64));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.one(provide(at(b), 8, 1, 5, 1));
        r.push(select(recv(a.as_raw_fd(), 0, 8, 1), 1));
        cx.say("waits", r.brief(1));
        cx.say("buffers left meanwhile", r.one(q(op::REMOVE_BUFFERS).fd(9).buf(1).ud(98)));
        sys::write(c.as_raw_fd(), b"x");
        cx.say("data, but the buffer is gone", r.go(1));
        r.one(provide(at(b), 8, 1, 6, 1));
        r.push(select(recv(a.as_raw_fd(), 0, 8, 2), 1));
        cx.say("again", r.go(1));
        r.one(provide(at(b), 8, 1, 9, 1));
        r.push(select(recv(a.as_raw_fd(), 0, 8, 3), 1));
        cx.say("waits", r.brief(1));
        sys::write(c.as_raw_fd(), b"yz");
        cx.say("data", r.go(1));
    });
}

fn provide_missing(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (p, w) = pipe();
        sys::write(*w, b"x");
        sys::write(c.as_raw_fd(), b"x");
        cx.say("READ, no group", r.one(select(read(*p, 0, 8, 1), 3)));
        cx.say("RECV, no group", r.one(select(recv(a.as_raw_fd(), 0, 8, 1), 3)));
        cx.say("SEND, no group", r.one(select(send(a.as_raw_fd(), 0, 8, 1), 3)));
        r.one(provide(at(buf(8)), 8, 1, 0, 3));
        r.one(q(op::REMOVE_BUFFERS).fd(1).buf(3).ud(98));
        cx.say("READ, empty group", r.one(select(read(*p, 0, 8, 1), 3)));
        cx.say("RECV, empty group", r.one(select(recv(a.as_raw_fd(), 0, 8, 1), 3)));
        cx.say("SEND, empty group", r.one(select(send(a.as_raw_fd(), 0, 8, 1), 3)));
    });
}

fn provide_readv(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(64));
        r.one(provide(at(b), 8, 8, 0, 1));
        let fd = f.as_raw_fd();
        let readv = |iov: usize, n| select(q(op::READV).fd(fd).addr(iov).len(n).ud(1), 1);
        cx.say("READV, one vector of 5", r.one(readv(mem::iovecs(&[(0, 5)]), 1)));
        cx.say("READV, one vector of 0", r.one(readv(mem::iovecs(&[(0, 0)]), 1)));
        cx.say("READV, two vectors", r.one(readv(mem::iovecs(&[(0, 5), (0, 5)]), 2)));
        cx.say("READV, none", r.one(readv(mem::iovecs(&[]), 0)));
        let (a, c) = UnixStream::pair().expect("socketpair");
        sys::write(c.as_raw_fd(), b"abcdef");
        let recvmsg = |iov: usize, n| {
            select(q(op::RECVMSG).fd(a.as_raw_fd()).addr(mem::msghdr(iov, n)).ud(2), 1)
        };
        cx.say("RECVMSG, one vector of 2", r.one(recvmsg(mem::iovecs(&[(0, 2)]), 1)));
        cx.say("RECVMSG, no vector", r.one(recvmsg(0, 0)));
        cx.say("RECVMSG, two vectors", r.one(recvmsg(mem::iovecs(&[(0, 2), (0, 2)]), 2)));
    });
}

fn provide_len(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", &[b'z'; 100]);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.one(provide(at(buf(64)), 16, 4, 0, 1));
        for len in [0, 4, 16, 50] {
            cx.say(
                &format!("length {len}, buffer 16"),
                r.one(select(read(f.as_raw_fd(), 0, len, 1), 1)),
            );
        }
    });
}

fn recv_multishot(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), at(buf(4096)));
        let (a, c) = UnixStream::pair().expect("socketpair");
        let shot = || select(recv(a.as_raw_fd(), 0, 0, 1).prio(MULTISHOT), 7);
        r.one(provide(b, 16, 2, 0, 7));
        r.push(shot());
        r.submit();
        sys::write(c.as_raw_fd(), b"hello");
        cx.say("first", r.go(1));
        sys::write(c.as_raw_fd(), &[b'x'; 20]);
        r.submit();
        cx.say("20 bytes into one buffer of 16", show(&r.collect(2)));
        r.push_all(&[provide(b, 16, 2, 4, 7), shot()]);
        r.submit();
        cx.say("more buffers", show(&r.collect(2)));
        drop(c);
        cx.say("the end", r.go(1));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.one(provide(b, 16, 2, 8, 7));
        r.push(select(recv(a.as_raw_fd(), 0, 0, 1).prio(MULTISHOT), 7));
        r.submit();
        r.push(cancel(1, 9));
        cx.say("cancelled", r.go_sorted(2));
        drop(c);
    });
}

fn recv_multishot_bad(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (a, _c) = UnixStream::pair().expect("socketpair");
        let shot = recv(a.as_raw_fd(), 0, 0, 1).prio(MULTISHOT);
        cx.say("no BUFFER_SELECT", r.one(shot));
        cx.say("MSG_WAITALL", r.one(select(shot.opf(libc::MSG_WAITALL as u32), 7)));
        cx.say("no group", {
            r.push(select(shot, 7));
            r.brief(1)
        });
    });
}

/// A buffer ring of `entries` in the program's memory.
pub struct PbufRing {
    base: *mut u8,
    entries: u16,
}

/// `struct io_uring_buf_reg`, 40 bytes.
fn buf_reg(addr: usize, entries: u32, group: u16, flags: u16) -> [u64; 5] {
    [addr as u64, u64::from(entries) | u64::from(group) << 32 | u64::from(flags) << 48, 0, 0, 0]
}

const PBUF_MMAP: u16 = 1;
/// Consumed in pieces.
pub const PBUF_INC: u16 = 2;

impl PbufRing {
    /// Registers one.
    pub fn register(r: &Ring, entries: u16, group: u16, flags: u16) -> PbufRing {
        let base = sys::pages(4096);
        let v = r.reg(
            register::PBUF_RING,
            leak(buf_reg(base as usize, entries.into(), group, flags)),
            1,
        );
        assert_eq!(v, 0, "register a buffer ring");
        PbufRing { base, entries }
    }
    fn tail(&self) -> *mut u16 {
        // SAFETY: the tail overlays the first entry's last two bytes.
        unsafe { self.base.add(14).cast() }
    }
    /// Publishes a buffer.
    pub fn add(&self, addr: usize, len: u32, id: u16) {
        // SAFETY: masked slot inside the page; the tail is ours to write.
        unsafe {
            let tail = self.tail().read_volatile();
            let e = self.base.add(usize::from(tail & (self.entries - 1)) * 16);
            e.cast::<u64>().write_volatile(addr as u64);
            e.add(8).cast::<u32>().write_volatile(len);
            e.add(12).cast::<u16>().write_volatile(id);
            std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
            self.tail().write_volatile(tail.wrapping_add(1));
        }
    }
}

fn pbuf_ring_register(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let page = sys::pages(4096 * 128) as usize;
    let mut next = 0;
    let mut ask = |name: &str, addr, entries, flags| {
        next += 1;
        cx.say(name, res(r.reg(register::PBUF_RING, leak(buf_reg(addr, entries, next, flags)), 1)));
    };
    ask("8 entries", page, 8, 0);
    ask("3 entries", page, 3, 0);
    ask("0 entries", page, 0, 0);
    ask("65536 entries", page, 65536, 0);
    ask("32768 entries", page, 32768, 0);
    ask("unaligned", page + 64, 8, 0);
    ask("NULL", 0, 8, 0);
    ask("unmapped", 0x1000, 8, 0);
    ask("unknown flag", page, 8, 0x80);
    cx.say("group 1 again", res(r.reg(register::PBUF_RING, leak(buf_reg(page, 8, 1, 0)), 1)));
    cx.say(
        "unregister 1",
        res(r.reg(register::UNREGISTER_PBUF_RING, leak(buf_reg(0, 0, 1, 0)), 1)),
    );
    cx.say(
        "unregister 1 again",
        res(r.reg(register::UNREGISTER_PBUF_RING, leak(buf_reg(0, 0, 1, 0)), 1)),
    );
    cx.say("nr 2", res(r.reg(register::PBUF_RING, leak(buf_reg(page, 8, 60, 0)), 2)));
    let mut reserved = buf_reg(page, 8, 61, 0);
    reserved[3] = 1;
    cx.say("reserved word", res(r.reg(register::PBUF_RING, leak(reserved), 1)));
}

fn pbuf_ring_use(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(64));
        let ring = PbufRing::register(&r, 4, 5, 0);
        let (a, c) = UnixStream::pair().expect("socketpair");
        let take = |len| select(recv(a.as_raw_fd(), 0, len, 1), 5);
        sys::write(c.as_raw_fd(), b"abcdefghijklmnop");
        cx.say("empty", r.one(take(0)));
        ring.add(at(b), 4, 10);
        cx.say("buffer of 4", r.one(take(0)));
        ring.add(at(&b[8..]), 4, 11);
        cx.say("length 2", r.one(take(2)));
        cx.say("empty again", r.one(take(0)));
        for id in 12..16 {
            ring.add(at(&b[16..]), 2, id);
        }
        for _ in 0..4 {
            cx.say("in order", r.one(take(0)));
        }
        cx.say("memory", mem::text(&b[..10]));
        let (a2, c2) = UnixStream::pair().expect("socketpair");
        ring.add(at(b), 4, 20);
        r.push(select(recv(a2.as_raw_fd(), 0, 0, 2), 5));
        cx.say("waits", r.brief(1));
        sys::write(c2.as_raw_fd(), b"zz");
        cx.say("data", r.go(1));
    });
}

fn pbuf_ring_status(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let ring = PbufRing::register(&r, 4, 5, 0);
    let status = |group: u32| {
        let s = leak([group, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let v = r.reg(register::PBUF_STATUS, s, 1);
        // SAFETY: leaked above.
        format!("{} head {}", res(v), unsafe { (s as *const u32).add(1).read() })
    };
    cx.say("fresh", status(5));
    cx.say("unknown", status(6));
    ring.add(at(buf(8)), 8, 0);
    let (p, w) = pipe();
    sys::write(*w, b"x");
    r.one(select(read(*p, 0, 0, 1), 5));
    cx.say("one taken", status(5));
}

fn pbuf_ring_legacy(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let _ring = PbufRing::register(&r, 4, 5, 0);
    cx.say("PROVIDE_BUFFERS", r.one(provide(at(buf(8)), 8, 1, 0, 5)));
    cx.say("REMOVE_BUFFERS", r.one(q(op::REMOVE_BUFFERS).fd(1).buf(5).ud(98)));
    r.one(provide(at(buf(8)), 8, 1, 0, 6));
    let page = sys::pages(4096) as usize;
    cx.say(
        "ring on a legacy group",
        res(r.reg(register::PBUF_RING, leak(buf_reg(page, 4, 6, 0)), 1)),
    );
    cx.say(
        "unregister a legacy group",
        res(r.reg(register::UNREGISTER_PBUF_RING, leak(buf_reg(0, 0, 6, 0)), 1)),
    );
    r.one(q(op::REMOVE_BUFFERS).fd(1).buf(6).ud(98));
    cx.say(
        "ring on an emptied legacy group",
        res(r.reg(register::PBUF_RING, leak(buf_reg(page, 4, 6, 0)), 1)),
    );
}

fn pbuf_ring_mmap(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    cx.say("register", res(r.reg(register::PBUF_RING, leak(buf_reg(0, 4, 3, PBUF_MMAP)), 1)));
    let off = setup::OFF_PBUF_RING | 3 << 16;
    let m = sys::mmap(r.fd, 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, off);
    cx.say("mmap", m.map_or_else(res, |_| "ok".into()));
    if let Ok(base) = m {
        let ring = PbufRing { base, entries: 4 };
        ring.add(at(buf(8)), 8, 77);
        let (p, w) = pipe();
        sys::write(*w, b"x");
        cx.say("used", r.one(select(read(*p, 0, 0, 1), 3)));
    }
    let other = sys::mmap(
        r.fd,
        4096,
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED,
        setup::OFF_PBUF_RING | 4 << 16,
    );
    cx.say("mmap of another group", other.map_or_else(res, |_| "ok".into()));
}

fn pbuf_ring_incremental(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let ring = PbufRing::register(&r, 4, 5, PBUF_INC);
        let (p, w) = pipe();
        sys::write(*w, b"abcdefghijklmnop");
        ring.add(at(buf(16)), 10, 3);
        ring.add(at(buf(16)), 4, 4);
        for len in [3, 0, 2, 2, 1] {
            cx.say(&format!("length {len}"), r.one(select(read(*p, 0, len, 1), 5)));
        }
    });
}
