//! O_DIRECT transfers with everything that can be asked of them, and files that change under them.

use super::direct::{disk_dir, open_direct};
use crate::fixture::{eventfd, eventfd_value};
use crate::prelude::*;
use std::os::unix::fs::OpenOptionsExt;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(direct_flags, "O_DIRECT with RWF flags and I/O priorities"),
    scenario!(direct_modes, "O_DIRECT against the file's mode, past its end, in holes"),
    scenario!(direct_vectors, "O_DIRECT with vectors, empty and misaligned ones"),
    scenario!(direct_cancel, "cancelling an O_DIRECT read finds nothing"),
    scenario!(direct_links, "O_DIRECT in chains, with a link timeout, skipping CQEs, drained"),
    scenario!(direct_select, "O_DIRECT into provided buffers"),
    scenario!(direct_cleared, "O_DIRECT cleared by F_SETFL: short of nothing"),
    scenario!(direct_replaced, "the descriptor of an O_DIRECT file becomes something else"),
    scenario!(direct_closed, "an O_DIRECT file closed in the same submission"),
    scenario!(direct_eventfd, "eventfd and EVENTFD_ASYNC with O_DIRECT"),
    scenario!(
        direct_wait,
        "waiting for O_DIRECT reads and something else, with and without a time"
    ),
];

fn direct_flags(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[1; 16384]).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let page = sys::pages(4096) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for (name, flag) in [
            ("HIPRI", 1),
            ("DSYNC", 2),
            ("SYNC", 4),
            ("NOWAIT", 8),
            ("APPEND", 0x10),
            ("NOAPPEND", 0x20),
            ("ATOMIC", 0x40),
            ("unknown", 1 << 20),
        ] {
            cx.say(&format!("read, {name}"), r.one(read(fd, page, 4096, 1).opf(flag)));
            cx.say(&format!("write, {name}"), r.one(write(fd, page, 4096, 1).opf(flag)));
        }
        for prio in [0, 1 << 13, (1 << 13) | 7, 2 << 13, (2 << 13) | 4, 3 << 13, 4 << 13, 5] {
            cx.say(&format!("ioprio {prio:#x}"), r.one(read(fd, page, 4096, 1).prio(prio)));
        }
        cx.say("ASYNC", r.one(read(fd, page, 4096, 1).flags(ASYNC)));
        cx.say("offset -2", r.one(read(fd, page, 4096, 1).off(-2i64 as u64)));
    });
    let dsync = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DIRECT | libc::O_DSYNC)
        .open(dir.join("f"))
        .expect("a file system with O_DIRECT");
    let r = Ring::new(8, 0);
    cx.say("O_DSYNC", r.one(write(dsync.as_raw_fd(), page, 4096, 1)));
}

fn direct_modes(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[1; 4096]).expect("a file system with O_DIRECT");
    let open = |read: bool| {
        std::fs::OpenOptions::new()
            .read(read)
            .write(!read)
            .custom_flags(libc::O_DIRECT)
            .open(dir.join("f"))
            .expect("a file system with O_DIRECT")
    };
    let (ro, wo) = (open(true), open(false));
    let page = sys::pages(8192) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for round in ["first", "again"] {
            cx.say(&format!("{round}, read"), r.one(read(ro.as_raw_fd(), page, 4096, 1)));
            cx.say(
                &format!("{round}, write to O_RDONLY"),
                r.one(write(ro.as_raw_fd(), page, 4096, 1)),
            );
            cx.say(&format!("{round}, write"), r.one(write(wo.as_raw_fd(), page, 4096, 1)));
            cx.say(
                &format!("{round}, read of O_WRONLY"),
                r.one(read(wo.as_raw_fd(), page, 4096, 1)),
            );
        }
        cx.say("extend", r.one(write(f.as_raw_fd(), page, 8192, 1).off(4096)));
        cx.say("leave a hole", r.one(write(f.as_raw_fd(), page, 4096, 1).off(65536)));
        cx.say("read the hole", r.one(read(f.as_raw_fd(), page, 8192, 1).off(16384)));
        cx.say("write into it", r.one(write(f.as_raw_fd(), page, 4096, 1).off(32768)));
        cx.say("size", f.metadata().map_or(0, |m| m.len()));
        cx.say("cut", f.set_len(4096).is_ok());
        cx.say("past the end", r.one(read(f.as_raw_fd(), page, 4096, 1).off(1 << 30)));
        cx.say("closed number", r.one(read(999, page, 4096, 1)));
    });
}

fn direct_vectors(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 16384]).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let page = sys::pages(16384) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let v = |parts: &[(usize, usize)]| (mem::iovecs(parts), parts.len() as u32);
        let two = v(&[(page, 4096), (page + 8192, 4096)]);
        let odd = v(&[(page, 4096), (page + 1, 4096)]);
        let bad = v(&[(page, 4096), (0x1000, 4096)]);
        let none = v(&[]);
        let empty = v(&[(page, 0), (page, 4096)]);
        for (name, (at, n)) in
            [("two", two), ("odd", odd), ("bad", bad), ("none", none), ("one empty", empty)]
        {
            for (what, o) in [("readv", op::READV), ("writev", op::WRITEV)] {
                let one = q(o).fd(fd).addr(at).len(n).off(4096).ud(1);
                cx.say(&format!("{what}, {name}"), r.one(one));
            }
        }
        cx.say("empty read", r.one(read(fd, page, 0, 1)));
        cx.say("empty write", r.one(write(fd, page, 0, 1)));
        let parts: Vec<_> = (0..4).map(|i| (page + i * 4096, 4096)).collect();
        let (at, n) = v(&parts);
        cx.say("at the end", r.one(q(op::READV).fd(fd).addr(at).len(n).off(8192).ud(1)));
    });
}

fn direct_cancel(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 16384]).expect("a file system with O_DIRECT");
    let page = sys::pages(4096) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("read", r.one(read(f.as_raw_fd(), page, 4096, 1)));
        r.push_all(&[read(f.as_raw_fd(), page, 4096, 1), cancel(1, 2)]);
        cx.say("by user_data", r.go_sorted(2));
        r.push_all(&[read(f.as_raw_fd(), page, 4096, 1), q(op::ASYNC_CANCEL).opf(4).ud(2)]);
        cx.say("any", r.go_sorted(2));
        r.push_all(&[
            read(f.as_raw_fd(), page, 4096, 1),
            q(op::ASYNC_CANCEL).fd(f.as_raw_fd()).opf(3).ud(2),
        ]);
        cx.say("all of the file", r.go_sorted(2));
    });
}

fn direct_links(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 8192]).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let (page, other) = (sys::pages(8192) as usize, sys::pages(8192) as usize);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(16, kind);
        r.push_all(&[
            read(fd, page, 4096, 1).flags(IO_LINK),
            write(fd, page, 4096, 2).off(4096).flags(IO_LINK),
            read(fd, other, 8192, 3),
        ]);
        cx.say("read, write, read", r.go(3));
        r.push_all(&[read(fd, page, 8192, 1).off(4096).flags(IO_LINK), nop(2)]);
        cx.say("short read, NOP", r.go(2));
        r.push_all(&[read(fd, page + 1, 4096, 1).flags(IO_LINK), nop(2)]);
        cx.say("misaligned, NOP", r.go(2));
        r.push_all(&[read(fd, page + 1, 4096, 1).flags(IO_HARDLINK), nop(2)]);
        cx.say("misaligned, hard, NOP", r.go(2));
        r.push_all(&[read(fd, page, 4096, 1).flags(IO_LINK), link_timeout(mem::ms(5000), 2)]);
        cx.say("link timeout", r.go_sorted(2));
        r.push_all(&[read(fd, page, 4096, 1), nop(2).flags(IO_DRAIN), read(fd, page, 4096, 3)]);
        cx.say("drained NOP", r.go(3));
        r.push_all(&[
            read(fd, page, 4096, 1).flags(CQE_SKIP_SUCCESS | IO_LINK),
            read(fd, page, 4096, 2).flags(IO_LINK),
            nop(3),
        ]);
        cx.say("first without CQE", r.go(2));
        r.push_all(&[read(fd, page + 1, 4096, 1).flags(CQE_SKIP_SUCCESS)]);
        cx.say("a failure has one", r.go(1));
    });
}

fn direct_select(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 8192]).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let page = sys::pages(16384) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(16, kind);
        let select = |len, off| read(fd, 0, len, 1).off(off).flags(BUFFER_SELECT).buf(7);
        cx.say("no group", r.one(select(4096, 0)));
        cx.say("provide", r.one(super::kbufs::provide(page, 4096, 2, 5, 7)));
        cx.say("read", r.one(select(4096, 0)));
        cx.say("past the end", r.one(select(4096, 8192)));
        cx.say("none left", r.one(select(4096, 0)));
    });
}

/// Clears or sets O_DIRECT.
fn set_direct(fd: i32, on: bool) -> i32 {
    // SAFETY: integers only.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL) & !libc::O_DIRECT;
        libc::fcntl(fd, libc::F_SETFL, if on { flags | libc::O_DIRECT } else { flags })
    }
}

fn direct_cleared(cx: &mut Cx) {
    let dir = disk_dir();
    let content: Vec<u8> = (0..256 * 1024).map(|i| (i / 512) as u8).collect();
    let f = open_direct(&dir, "f", &content).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let page = sys::pages(256 * 1024);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let whole = |cx: &mut Cx, name: &str| {
            // SAFETY: the pages are ours.
            unsafe { page.write_bytes(0xff, content.len()) };
            let got = r.one(read(fd, page as usize, content.len() as u32, 1));
            // SAFETY: as above.
            let same = unsafe { std::slice::from_raw_parts(page, content.len()) } == content;
            cx.say(name, format!("{got} {same}"));
        };
        cx.say("on", set_direct(fd, true));
        whole(cx, "direct");
        cx.say("off", set_direct(fd, false));
        // SAFETY: integers only; part of the file stays in memory.
        unsafe { libc::posix_fadvise(fd, 65536, 0, libc::POSIX_FADV_DONTNEED) };
        whole(cx, "buffered");
        whole(cx, "buffered, in memory");
        cx.say("odd length", r.one(read(fd, page as usize + 1, 100, 1).off(7)));
        cx.say("odd write", r.one(write(fd, page as usize, 100, 1)));
        cx.say("on again", set_direct(fd, true));
        whole(cx, "direct again");
    });
}

fn direct_replaced(cx: &mut Cx) {
    let dir = disk_dir();
    let page = sys::pages(4096) as usize;
    cx.both_setups(|cx, kind| {
        let f = open_direct(&dir, "f", &[3; 8192]).expect("a file system with O_DIRECT");
        let fd = f.as_raw_fd();
        let r = Ring::new(8, kind);
        cx.say("direct", r.one(read(fd, page, 4096, 1)));
        let (p, w) = pipe();
        // SAFETY: the number is the file's, which is not used any more.
        unsafe { libc::dup2(*p, fd) };
        r.push(read(fd, page, 8, 2));
        r.submit();
        cx.say("nothing to read", r.cqes());
        sys::write(*w, b"abc");
        r.wait(1, 2000);
        cx.say("pipe", r.cqes());
        sys::write(*w, b"de");
        cx.say("pipe with data", r.one(read(fd, page, 8, 3)));
        let (a, b) = UnixStream::pair().expect("socketpair");
        // SAFETY: as above.
        unsafe { libc::dup2(a.as_raw_fd(), fd) };
        sys::write(b.as_raw_fd(), b"xyz");
        cx.say("socket", r.one(read(fd, page, 8, 4)));
        cx.say("socket, offset", r.one(read(fd, page, 8, 4).off(5)));
        let plain = dir.file("g", b"plain");
        // SAFETY: as above.
        unsafe { libc::dup2(plain.as_raw_fd(), fd) };
        cx.say("buffered", r.one(read(fd, page, 8, 5)));
    });
}

fn direct_closed(cx: &mut Cx) {
    let dir = disk_dir();
    let page = sys::pages(4096) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for round in ["first", "again"] {
            let f = open_direct(&dir, "f", &[3; 8192]).expect("a file system with O_DIRECT");
            let fd = std::os::fd::IntoRawFd::into_raw_fd(f);
            cx.say(&format!("{round}, read"), r.one(read(fd, page, 4096, 1)));
            r.push_all(&[
                read(fd, page, 4096, 1),
                q(op::CLOSE).fd(fd).ud(2),
                read(fd, page, 4096, 3),
            ]);
            cx.say(&format!("{round}, read, close, read"), r.go_sorted(3));
        }
    });
}

fn direct_eventfd(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 8192]).expect("a file system with O_DIRECT");
    let page = sys::pages(4096) as usize;
    for (name, o) in [("EVENTFD", register::EVENTFD), ("EVENTFD_ASYNC", register::EVENTFD_ASYNC)] {
        let (r, e) = (Ring::new(8, 0), eventfd(0));
        r.reg(o, leak(*e), 1);
        r.push(read(f.as_raw_fd(), page, 4096, 1));
        r.submit();
        // Nobody waits in the ring meanwhile.
        sys::sleep_ms(50);
        cx.say(&format!("{name}: CQE without a wait"), r.cqes());
        cx.say(&format!("{name}: signalled"), eventfd_value(*e) > 0);
    }
}

fn direct_wait(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[3; 65536]).expect("a file system with O_DIRECT");
    let fd = f.as_raw_fd();
    let page = sys::pages(65536) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(32, kind);
        let reads = |n: u64| {
            (0..n).for_each(|i| r.push(read(fd, page + 4096 * i as usize, 4096, i).off(4096 * i)));
            r.submit()
        };
        cx.say("reads", res(reads(8)));
        cx.say("more than there are", res(r.wait(9, 50)));
        cx.say("all", r.cqes_sorted());
        let (p, w) = pipe();
        r.push(read(*p, page, 8, 100));
        reads(4);
        cx.say("reads and a pipe", res(r.wait(5, 50)));
        cx.say("the reads", r.cqes_sorted());
        sys::write(*w, b"x");
        cx.say("the pipe", r.submit_wait(1, 2000));
        reads(4);
        r.push(timeout(mem::ms(20), 0, 50));
        r.submit();
        cx.say("a timeout ends the wait", res(r.wait(6, 2000)));
        cx.say("reads and timeout", r.cqes_sorted());
    });
}
