//! Registered files and buffers: tables, updates, tags, sparse slots.

use crate::prelude::*;
use anyring_uapi::register::{RsrcRegister, RsrcUpdate2, RSRC_SPARSE};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(files_register, "registering a file table: refusals"),
    scenario!(files_use, "FIXED_FILE: filled, empty and missing slots"),
    scenario!(files_update, "FILES_UPDATE by register"),
    scenario!(files_update_op, "FILES_UPDATE as a request, with slots picked"),
    scenario!(files_tags, "tags of file slots post CQEs when the slot is idle"),
    scenario!(files_tag_in_use, "a tag waits for the last user of its slot"),
    scenario!(files2_bad, "FILES2: sizes, flags, sparse"),
    scenario!(files_alloc_range, "FILE_ALLOC_RANGE"),
    scenario!(files_direct_open, "opening into slots: explicit, picked, used, out of range"),
    scenario!(files_direct_close, "closing slots"),
    scenario!(files_direct_socket, "sockets and accepts into slots"),
    scenario!(files_keep_open, "a slot keeps its file open"),
    scenario!(files_unregister_in_use, "unregistering a table with a receive pending"),
    scenario!(bufs_register, "registering buffers: refusals"),
    scenario!(bufs_use, "READ_FIXED and WRITE_FIXED: ranges and indices"),
    scenario!(bufs_update, "BUFFERS_UPDATE and tags"),
    scenario!(bufs_sparse, "BUFFERS2 sparse and its refusals"),
    scenario!(bufs_memlock, "registered buffers under a small memlock limit"),
    scenario!(bufs_unregister, "unregistering buffers"),
];

fn rsrc(nr: u32, flags: u32, data: usize, tags: usize) -> usize {
    leak(RsrcRegister { nr, flags, resv2: 0, data: data as u64, tags: tags as u64 })
}

fn update2(offset: u32, nr: u32, data: usize, tags: usize) -> usize {
    leak(RsrcUpdate2 { offset, resv: 0, data: data as u64, tags: tags as u64, nr, resv2: 0 })
}

/// `struct io_uring_rsrc_update` (16 bytes).
fn update(offset: u32, data: usize) -> usize {
    leak([u64::from(offset), data as u64])
}

fn fds(v: &[i32]) -> usize {
    at(Vec::leak(v.to_vec()))
}

fn files_register(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    let other = Ring::new(8, 0);
    cx.say("unregister none", res(r.reg(register::UNREGISTER_FILES, 0, 0)));
    cx.say("update none", res(r.reg(register::FILES_UPDATE, update(0, fds(&[*p])), 1)));
    cx.say("0 files", res(r.reg(register::FILES, fds(&[]), 0)));
    cx.say("a closed number", res(r.reg(register::FILES, fds(&[*p, 999]), 2)));
    cx.say("a ring", res(r.reg(register::FILES, fds(&[other.fd]), 1)));
    cx.say("itself", res(r.reg(register::FILES, fds(&[r.fd]), 1)));
    cx.say("2^20 + 1", res(r.reg(register::FILES, fds(&[]), (1 << 20) + 1)));
    cx.say("unmapped", res(r.reg(register::FILES, mem::BAD, 2)));
    cx.say("good, with an empty slot", res(r.reg(register::FILES, fds(&[*p, -1]), 2)));
    cx.say("twice", res(r.reg(register::FILES, fds(&[*p]), 1)));
    cx.say("unregister", res(r.reg(register::UNREGISTER_FILES, 0, 0)));
    cx.say("unregister again", res(r.reg(register::UNREGISTER_FILES, 0, 0)));
    cx.say("-2", res(r.reg(register::FILES, fds(&[-2]), 1)));
}

fn files_use(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), at(buf(16)));
        cx.say("no table", r.one(read(0, b, 4, 1).flags(FIXED_FILE)));
        r.reg(register::FILES, fds(&[f.as_raw_fd(), -1, f.as_raw_fd()]), 3);
        for slot in [0, 1, 2, 3, 1000, -1] {
            cx.say(&format!("slot {slot}"), r.one(read(slot, b, 4, 1).flags(FIXED_FILE)));
        }
        cx.say("ASYNC", r.one(read(0, b, 4, 1).flags(FIXED_FILE | ASYNC)));
        r.reg(register::UNREGISTER_FILES, 0, 0);
        cx.say("unregistered", r.one(read(0, b, 4, 1).flags(FIXED_FILE)));
    });
}

fn files_update(cx: &mut Cx) {
    let ((p, _w), (p2, _w2)) = (pipe(), pipe());
    let r = Ring::new(8, 0);
    r.reg(register::FILES, fds(&[*p, -1, -1, -1]), 4);
    let up = |offset, list: &[i32]| {
        res(r.reg(register::FILES_UPDATE, update(offset, fds(list)), list.len() as u32))
    };
    cx.say("two slots", up(1, &[*p, *p2]));
    cx.say("beyond the end", up(3, &[*p, *p]));
    cx.say("offset at the end", up(4, &[*p]));
    cx.say("skip (-2) and clear (-1)", up(0, &[-2, -1]));
    cx.say("slot 0 still there", r.one(nop(1).opf(2 | 4).fd(0)));
    cx.say("slot 1 cleared", r.one(nop(1).opf(2 | 4).fd(1)));
    cx.say("a closed number", up(1, &[999]));
    cx.say("one good, one closed number", up(1, &[*p, 999]));
    cx.say("a ring", up(1, &[r.fd]));
    cx.say("0 entries", up(0, &[]));
    cx.say(
        "reserved word",
        res(r.reg(register::FILES_UPDATE, leak([1u64 << 32, fds(&[*p]) as u64]), 1)),
    );
    cx.say("unmapped list", res(r.reg(register::FILES_UPDATE, update(0, mem::BAD), 1)));
    cx.say("offset wraps", up(u32::MAX, &[*p]));
}

fn files_update_op(cx: &mut Cx) {
    let (p, _w) = pipe();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let up = |list: usize, n, off: u64| q(op::FILES_UPDATE).addr(list).len(n).off(off).ud(4);
        cx.say("no table", r.one(up(fds(&[*p]), 1, 0)));
        r.reg(register::FILES, fds(&[-1; 4]), 4);
        cx.say("slots 1 and 2", r.one(up(fds(&[*p, *p]), 2, 1)));
        cx.say("beyond the end", r.one(up(fds(&[*p, *p]), 2, 3)));
        let list = Vec::leak(vec![*p, *p]);
        cx.say("pick 2", format!("{} {list:?}", r.one(up(at(list), 2, u32::MAX.into()))));
        let list = Vec::leak(vec![*p]);
        cx.say("pick 1 when full", r.one(up(at(list), 1, u32::MAX.into())));
        cx.say("clear slot 0", r.one(up(fds(&[-1]), 1, 0)));
        let list = Vec::leak(vec![*p, *p]);
        cx.say(
            "pick 2 with 1 free",
            format!("{} first {}", r.one(up(at(list), 2, u32::MAX.into())), list[0]),
        );
        cx.say("length 0", r.one(up(fds(&[*p]), 0, 0)));
        cx.say("unmapped", r.one(up(mem::BAD, 1, 0)));
        cx.say("closed number", r.one(up(fds(&[999]), 1, 0)));
    });
}

fn files_tags(cx: &mut Cx) {
    let (p, _w) = pipe();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let tags = at(Vec::leak(vec![101u64, 102, 103, 0]));
        cx.say(
            "register",
            res(r.reg(register::FILES2, rsrc(4, 0, fds(&[*p, *p, *p, *p]), tags), 32)),
        );
        let up = |offset, fd: i32, tag: u64| {
            let v = r.reg(register::FILES_UPDATE2, update2(offset, 1, fds(&[fd]), leak(tag)), 32);
            r.wait(1, 50);
            format!("{} {}", res(v), r.cqes())
        };
        cx.say("replace slot 0, new tag", up(0, *p, 111));
        cx.say("clear slot 1", up(1, -1, 0));
        cx.say("clear with a tag", up(2, -1, 5));
        cx.say("replace the untagged slot", up(3, *p, 0));
        let v = r.reg(register::UNREGISTER_FILES, 0, 0);
        r.wait(2, 50);
        cx.say("unregister", format!("{} {}", res(v), r.cqes_sorted()));
    });
}

fn files_tag_in_use(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        let (p2, _w2) = pipe();
        r.reg(register::FILES2, rsrc(1, 0, fds(&[*p]), leak(101u64)), 32);
        r.push(read(0, at(buf(8)), 8, 1).flags(FIXED_FILE));
        r.submit();
        r.reg(register::FILES_UPDATE2, update2(0, 1, fds(&[*p2]), leak(0u64)), 32);
        cx.say("replaced while a read waits", r.brief(1));
        sys::write(*w, b"x");
        r.wait(2, 1000);
        cx.say("the read ends on the old file, then the tag", r.cqes());
    });
}

fn files2_bad(cx: &mut Cx) {
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    let f = fds(&[*p]);
    let mut ask = |name: &str, arg: usize, size| {
        let v = r.reg(register::FILES2, arg, size);
        cx.say(name, res(v));
        if v == 0 {
            r.reg(register::UNREGISTER_FILES, 0, 0);
        }
    };
    ask("size 24", rsrc(1, 0, f, 0), 24);
    ask("size 40", rsrc(1, 0, f, 0), 40);
    ask("0 entries", rsrc(0, 0, f, 0), 32);
    ask("unknown flag", rsrc(1, 2, f, 0), 32);
    ask("sparse with data", rsrc(1, RSRC_SPARSE, f, 0), 32);
    ask("sparse", rsrc(4, RSRC_SPARSE, 0, 0), 32);
    ask("sparse with tags", rsrc(1, RSRC_SPARSE, 0, leak(5u64)), 32);
    ask("tag on an empty slot", rsrc(1, 0, fds(&[-1]), leak(5u64)), 32);
    ask("good", rsrc(1, 0, f, 0), 32);
    ask("unmapped tags", rsrc(1, 0, f, mem::BAD), 32);
    ask("unmapped", mem::BAD, 32);
    let reserved = leak(RsrcRegister { nr: 1, flags: 0, resv2: 1, data: f as u64, tags: 0 });
    ask("reserved word", reserved, 32);
    r.reg(register::FILES2, rsrc(4, RSRC_SPARSE, 0, 0), 32);
    cx.say("update size 24", res(r.reg(register::FILES_UPDATE2, update2(0, 1, f, 0), 24)));
    cx.say("update 0 entries", res(r.reg(register::FILES_UPDATE2, update2(0, 0, f, 0), 32)));
    cx.say("update beyond", res(r.reg(register::FILES_UPDATE2, update2(4, 1, f, 0), 32)));
    cx.say("update", res(r.reg(register::FILES_UPDATE2, update2(3, 1, f, 0), 32)));
}

fn direct_open(dir: &Dir, slot: u32, ud: u64) -> Q {
    q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("f")).fi(slot).ud(ud)
}

fn files_alloc_range(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"x");
    let r = Ring::new(8, 0);
    let range = |off: u32, len: u32, resv: u64| leak([u64::from(off) | u64::from(len) << 32, resv]);
    cx.say("no table", res(r.reg(register::FILE_ALLOC_RANGE, range(0, 1, 0), 0)));
    r.reg(register::FILES2, rsrc(10, RSRC_SPARSE, 0, 0), 32);
    let set = |off, len, resv| res(r.reg(register::FILE_ALLOC_RANGE, range(off, len, resv), 0));
    cx.say("beyond the end", set(8, 3, 0));
    cx.say("overflow", set(u32::MAX, 2, 0));
    cx.say("reserved word", set(0, 1, 1));
    cx.say("4 to 5", set(4, 2, 0));
    for i in 0..3 {
        cx.say("picked", r.one(direct_open(&dir, u32::MAX, i)));
    }
    cx.say("an explicit slot outside", r.one(direct_open(&dir, 1, 7)));
}

fn files_direct_open(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"content");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(8));
        cx.say("no table, explicit", r.one(direct_open(&dir, 1, 1)));
        cx.say("no table, picked", r.one(direct_open(&dir, u32::MAX, 1)));
        r.reg(register::FILES, fds(&[-1; 3]), 3);
        cx.say("slot 1", r.one(direct_open(&dir, 2, 1)));
        cx.say("slot 1 again", r.one(direct_open(&dir, 2, 1)));
        cx.say("slot 3 of 3", r.one(direct_open(&dir, 4, 1)));
        cx.say("picked", r.one(direct_open(&dir, u32::MAX, 1)));
        cx.say("picked", r.one(direct_open(&dir, u32::MAX, 1)));
        cx.say("picked, full", r.one(direct_open(&dir, u32::MAX, 1)));
        cx.say("with O_CLOEXEC", r.one(direct_open(&dir, 1, 1).opf(libc::O_CLOEXEC as u32)));
        cx.say(
            "read slot 1",
            format!("{} {}", r.one(read(1, at(b), 8, 2).flags(FIXED_FILE)), mem::text(b)),
        );
        cx.say(
            "missing file",
            r.one(q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("none")).fi(1).ud(3)),
        );
        cx.say("slot 0 after the failure", r.one(read(0, at(b), 8, 2).flags(FIXED_FILE)));
        cx.say("openat2 into slot 2", {
            let how = leak([0u64; 3]);
            r.one(
                q(op::OPENAT2)
                    .fd(libc::AT_FDCWD)
                    .addr(dir.cpath("f"))
                    .off(how as u64)
                    .len(24)
                    .fi(3)
                    .ud(4),
            )
        });
    });
}

fn files_direct_close(cx: &mut Cx) {
    let (p, _w) = pipe();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let close = |fd, slot| q(op::CLOSE).fd(fd).fi(slot).ud(1);
        cx.say("no table", r.one(close(0, 1)));
        r.reg(register::FILES, fds(&[*p, *p]), 2);
        cx.say("slot 0", r.one(close(0, 1)));
        cx.say("slot 0 again", r.one(close(0, 1)));
        cx.say("slot 5 of 2", r.one(close(0, 6)));
        cx.say("descriptor and slot", r.one(close(5, 1)));
        cx.say("the ring", r.one(close(r.fd, 0)));
        cx.say("closed number", r.one(close(999, 0)));
        let copy = sys::dup(*p);
        cx.say("a descriptor", r.one(close(copy, 0)));
        cx.say("it is closed", res(sys::close(copy)));
    });
}

fn files_direct_socket(cx: &mut Cx) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
    let here = listener.local_addr().expect("address");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let socket =
            |slot| q(op::SOCKET).fd(libc::AF_INET).off(libc::SOCK_STREAM as u64).fi(slot).ud(1);
        cx.say("socket, no table, picked", r.one(socket(u32::MAX)));
        cx.say("socket, no table, explicit", r.one(socket(1)));
        r.reg(register::FILES, fds(&[-1; 2]), 2);
        cx.say("socket into slot 0", r.one(socket(1)));
        let cloexec = socket(1).off((libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64);
        cx.say("socket with CLOEXEC into a slot", r.one(cloexec));
        let clients: Vec<_> =
            (0..2).map(|_| std::net::TcpStream::connect(here).expect("connect")).collect();
        let accept = |slot| q(op::ACCEPT).fd(listener.as_raw_fd()).fi(slot).ud(2);
        cx.say("accept, picked", r.one(accept(u32::MAX)));
        cx.say("accept, full", r.one(accept(u32::MAX)));
        cx.say("accept into slot 0", {
            let more = std::net::TcpStream::connect(here).expect("connect");
            let v = r.one(accept(1));
            drop(more);
            v
        });
        drop(clients);
    });
}

fn files_keep_open(cx: &mut Cx) {
    let (a, b) = UnixStream::pair().expect("socketpair");
    let r = Ring::new(8, 0);
    r.reg(register::FILES, fds(&[a.as_raw_fd()]), 1);
    drop(a);
    cx.say("peer after close", sys::poll_now(b.as_raw_fd(), POLLIN));
    sys::write(b.as_raw_fd(), b"hey");
    cx.say("recv by slot", r.one(recv(0, at(buf(8)), 8, 1).flags(FIXED_FILE)));
    r.reg(register::UNREGISTER_FILES, 0, 0);
    cx.say("peer after unregister", sys::poll_for(b.as_raw_fd(), POLLIN, 2000) & libc::POLLHUP);
}

fn files_unregister_in_use(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, b) = UnixStream::pair().expect("socketpair");
        let r = Ring::new(8, kind);
        r.reg(register::FILES, fds(&[a.as_raw_fd()]), 1);
        r.push(recv(0, at(buf(8)), 8, 1).flags(FIXED_FILE));
        r.submit();
        cx.say("unregister", res(r.reg(register::UNREGISTER_FILES, 0, 0)));
        drop(a);
        sys::write(b.as_raw_fd(), b"hey");
        cx.say("the receive", r.go(1));
        cx.say("peer sees the end", sys::poll_for(b.as_raw_fd(), POLLIN, 2000) & libc::POLLHUP);
    });
}

fn bufs_register(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let page = sys::pages(8192) as usize;
    let mut ask = |name: &str, iov: &[(usize, usize)]| {
        let v = r.reg(register::BUFFERS, mem::iovecs(iov), iov.len() as u32);
        cx.say(name, res(v));
        if v == 0 {
            r.reg(register::UNREGISTER_BUFFERS, 0, 0);
        }
    };
    ask("none", &[]);
    ask("NULL with length", &[(0, 4096)]);
    ask("length 0", &[(page, 0)]);
    ask("over 1 GiB", &[(page, (1 << 30) + 1)]);
    ask("unmapped", &[(0x1000, 4096)]);
    ask("half unmapped", &[(page, 1 << 24)]);
    ask("NULL and 0", &[(0, 0)]);
    ask("one page", &[(page, 4096)]);
    ask("odd address and length", &[(page + 1, 7)]);
    ask("two, one empty", &[(page, 4096), (0, 0)]);
    ask("the same twice", &[(page, 4096), (page, 4096)]);
    cx.say("16385 entries", res(r.reg(register::BUFFERS, page, 16385)));
    cx.say("unmapped list", res(r.reg(register::BUFFERS, mem::BAD, 1)));
    r.reg(register::BUFFERS, mem::iovecs(&[(page, 4096)]), 1);
    cx.say("twice", res(r.reg(register::BUFFERS, mem::iovecs(&[(page, 4096)]), 1)));
}

fn bufs_use(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let fd = f.as_raw_fd();
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let page = sys::pages(8192);
        let a = page as usize;
        let rf = |addr, len, index| q(op::READ_FIXED).fd(fd).addr(addr).len(len).buf(index).ud(1);
        cx.say("none registered", r.one(rf(a, 4, 0)));
        r.reg(register::BUFFERS, mem::iovecs(&[(a, 4096), (0, 0)]), 2);
        cx.say("start", r.one(rf(a, 4, 0)));
        cx.say("end", r.one(rf(a + 4092, 4, 0)));
        cx.say("beyond the end", r.one(rf(a + 4093, 4, 0)));
        cx.say("before the start", r.one(rf(a - 1, 4, 0)));
        cx.say("another place", r.one(rf(a + 4096, 4, 0)));
        cx.say("length 0", r.one(rf(a, 0, 0)));
        cx.say("length 0 beyond", r.one(rf(a + 5000, 0, 0)));
        cx.say("wraps", r.one(rf(usize::MAX - 2, 10, 0)));
        cx.say("sparse index", r.one(rf(a, 4, 1)));
        cx.say("index out of range", r.one(rf(a, 4, 2)));
        cx.say("ASYNC", r.one(rf(a, 4, 0).flags(ASYNC)));
        cx.say("write", r.one(q(op::WRITE_FIXED).fd(fd).addr(a).len(4).off(10).ud(2)));
        cx.say("read all of it", r.one(rf(a, 100, 0)));
        // SAFETY: the page is ours.
        cx.say("memory", mem::text(unsafe { std::slice::from_raw_parts(page, 16) }));
        let (p, w) = pipe();
        r.push(q(op::READ_FIXED).fd(*p).addr(a).len(8).ud(3));
        r.submit();
        sys::write(*w, b"pipe");
        cx.say("pipe, later", r.go(1));
        f.set_len(10).expect("truncate");
    });
}

fn bufs_update(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let a = sys::pages(8192) as usize;
        let iov = mem::iovecs(&[(a, 4096), (0, 0)]);
        let tags = at(Vec::leak(vec![55u64, 0]));
        cx.say("register", res(r.reg(register::BUFFERS2, rsrc(2, 0, iov, tags), 32)));
        let up = |offset, entry: (usize, usize), tag: u64, size| {
            let v = r.reg(
                register::BUFFERS_UPDATE,
                update2(offset, 1, mem::iovecs(&[entry]), leak(tag)),
                size,
            );
            r.wait(1, 50);
            format!("{} {}", res(v), r.cqes())
        };
        cx.say("bad size", up(1, (a, 4096), 0, 16));
        cx.say("fill the sparse slot", up(1, (a + 4096, 4096), 77, 32));
        cx.say("clear slot 0", up(0, (0, 0), 0, 32));
        cx.say("clear with a tag", up(0, (0, 0), 9, 32));
        cx.say("out of range", up(2, (a, 4096), 0, 32));
        cx.say("unmapped buffer", up(0, (0x1000, 4096), 0, 32));
        let v = r.reg(register::UNREGISTER_BUFFERS, 0, 0);
        r.wait(1, 50);
        cx.say("unregister", format!("{} {}", res(v), r.cqes()));
    });
}

fn bufs_sparse(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let a = sys::pages(4096) as usize;
    let mut ask = |name: &str, arg, size| {
        let v = r.reg(register::BUFFERS2, arg, size);
        cx.say(name, res(v));
        if v == 0 {
            r.reg(register::UNREGISTER_BUFFERS, 0, 0);
        }
    };
    ask("sparse", rsrc(4, RSRC_SPARSE, 0, 0), 32);
    ask("0 entries", rsrc(0, RSRC_SPARSE, 0, 0), 32);
    ask("sparse with data", rsrc(1, RSRC_SPARSE, mem::iovecs(&[(a, 4096)]), 0), 32);
    ask("unknown flag", rsrc(1, 4, mem::iovecs(&[(a, 4096)]), 0), 32);
    ask("size 16", rsrc(1, 0, mem::iovecs(&[(a, 4096)]), 0), 16);
    ask("16385 entries", rsrc(16385, RSRC_SPARSE, 0, 0), 32);
    ask("tag on an empty slot", rsrc(1, 0, mem::iovecs(&[(0, 0)]), leak(3u64)), 32);
    ask("good", rsrc(1, 0, mem::iovecs(&[(a, 4096)]), leak(3u64)), 32);
}

fn bufs_memlock(cx: &mut Cx) {
    // As root the kernel charges nothing; an engine in user space never does.
    let l = libc::rlimit { rlim_cur: 65536, rlim_max: 65536 };
    // SAFETY: a valid limit; it holds for this process only.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &l) };
    let r = Ring::new(8, 0);
    let a = sys::pages(8 << 20) as usize;
    cx.say(
        "8 MiB under a limit of 64 KiB",
        res(r.reg(register::BUFFERS, mem::iovecs(&[(a, 8 << 20)]), 1)),
    );
}

fn bufs_unregister(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    cx.say("none", res(r.reg(register::UNREGISTER_BUFFERS, 0, 0)));
    let a = sys::pages(4096) as usize;
    r.reg(register::BUFFERS, mem::iovecs(&[(a, 4096)]), 1);
    let (p, w) = pipe();
    r.push(q(op::READ_FIXED).fd(*p).addr(a).len(8).ud(3));
    r.submit();
    cx.say("with a read pending", res(r.reg(register::UNREGISTER_BUFFERS, 0, 0)));
    cx.say("again", res(r.reg(register::UNREGISTER_BUFFERS, 0, 0)));
    sys::write(*w, b"x");
    cx.say("the read", r.go(1));
}
