//! READ and WRITE families on every kind of file.

use crate::fixture::{eventfd, pipe2};
use crate::prelude::*;
use std::os::fd::FromRawFd;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(rw_file, "regular files: offsets, lengths, the end"),
    scenario!(rw_position, "offset -1 is the file position; other negative offsets"),
    scenario!(rw_append, "O_APPEND and RWF_APPEND"),
    scenario!(rw_vectors, "vectors: none, one, many, too many, empty ones"),
    scenario!(rw_flags, "RWF flags on a regular file"),
    scenario!(rw_nowait, "RWF_NOWAIT and O_NONBLOCK where a read would wait"),
    scenario!(rw_bad_pointers, "bad buffers and vectors answer -EFAULT"),
    scenario!(rw_partial_fault, "a buffer that is bad only at its end"),
    scenario!(rw_bad_files, "closed numbers, directories, wrong access modes"),
    scenario!(rw_pipe, "pipes: data later, short reads, the end, offsets ignored"),
    scenario!(rw_pipe_writer, "a write to a full pipe waits; a write without reader fails"),
    scenario!(rw_two_readers, "two readers on one pipe, one byte: one completes"),
    scenario!(rw_socket, "READ and WRITE on sockets"),
    scenario!(rw_eventfd, "eventfds: a read waits for a value"),
    scenario!(rw_tty, "a terminal: a read waits for a line"),
    scenario!(rw_fifo, "a FIFO opened through the ring"),
    scenario!(rw_dev, "/dev/null, /dev/zero, /dev/full"),
    scenario!(rw_proc, "files in /proc"),
    scenario!(rw_async, "the same with IOSQE_ASYNC"),
    scenario!(rw_big, "a read and a write of 32 MiB in one request"),
    scenario!(rw_many, "2,000 reads in flight in batches of 64, checked"),
    scenario!(rw_same_file_writes, "64 writes to one file, any order, all there"),
    scenario!(rw_own_file, "close, and reuse of the number, do not redirect a waiting read"),
    scenario!(rw_rlimit_fsize, "writing beyond RLIMIT_FSIZE"),
    scenario!(rw_priority, "I/O priorities: classes, levels, hints"),
    scenario!(rw_check_order, "offsets, access modes and lengths that are wrong together"),
    scenario!(
        rw_chain_on_worker,
        "a read in a chain behind work on a worker, cancelled while it waits"
    ),
    scenario!(rw_seek_hole, "reading a hole, and beyond the end"),
];

fn rw_file(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"0123456789");
        let (r, b) = (Ring::new(8, kind), buf(32));
        let fd = f.as_raw_fd();
        cx.say("all", format!("{} {}", r.one(read(fd, at(b), 10, 1)), mem::text(&b[..10])));
        cx.say("from 4", format!("{} {}", r.one(read(fd, at(b), 3, 1).off(4)), mem::text(&b[..3])));
        cx.say("across the end", r.one(read(fd, at(b), 32, 1).off(5)));
        cx.say("at the end", r.one(read(fd, at(b), 32, 1).off(10)));
        cx.say("beyond", r.one(read(fd, at(b), 32, 1).off(1000)));
        cx.say("length 0", r.one(read(fd, at(b), 0, 1)));
        let data = mem::bytes(b"abcd");
        cx.say("write at 2", r.one(write(fd, data, 4, 1).off(2)));
        cx.say("write beyond the end", r.one(write(fd, data, 4, 1).off(12)));
        cx.say("write of 0", r.one(write(fd, data, 0, 1).off(99)));
        cx.say("content", mem::text(&std::fs::read(dir.join("f")).expect("content")));
        cx.say("huge offset", r.one(read(fd, at(b), 4, 1).off(i64::MAX as u64)));
        cx.say("write at a huge offset", r.one(write(fd, data, 4, 1).off(i64::MAX as u64)));
    });
}

fn rw_position(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"0123456789");
        let (r, b) = (Ring::new(8, kind), buf(32));
        let fd = f.as_raw_fd();
        let here = |q: Q| q.off(u64::MAX);
        cx.say("first", format!("{} {}", r.one(here(read(fd, at(b), 3, 1))), mem::text(&b[..3])));
        cx.say("second", format!("{} {}", r.one(here(read(fd, at(b), 3, 1))), mem::text(&b[..3])));
        cx.say("explicit offset leaves it", r.one(read(fd, at(b), 3, 1)));
        cx.say("write there", r.one(here(write(fd, mem::bytes(b"XY"), 2, 1))));
        // SAFETY: no memory involved.
        cx.say("position", unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) });
        r.push_all(&[here(read(fd, at(b), 1, 1)).flags(IO_LINK), here(read(fd, at(b), 1, 2))]);
        cx.say("linked", format!("{} {}", r.go(2), mem::text(&b[..1])));
        for off in [-2i64, -10, i64::MIN] {
            cx.say(&format!("offset {off}"), r.one(read(fd, at(b), 3, 1).off(off as u64)));
        }
        let v = mem::iovecs(&[(at(b), 2)]);
        cx.say("readv there", r.one(here(q(op::READV).fd(fd).addr(v).len(1).ud(1))));
    });
}

fn rw_append(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"01234");
        let r = Ring::new(8, kind);
        let append = std::fs::OpenOptions::new().append(true).open(dir.join("f")).expect("open");
        cx.say("O_APPEND at 0", r.one(write(append.as_raw_fd(), mem::bytes(b"ab"), 2, 1)));
        cx.say("RWF_APPEND at 0", r.one(write(f.as_raw_fd(), mem::bytes(b"cd"), 2, 1).opf(0x10)));
        cx.say(
            "O_APPEND with RWF_NOAPPEND",
            r.one(write(append.as_raw_fd(), mem::bytes(b"ef"), 2, 1).opf(0x20)),
        );
        cx.say("content", mem::text(&std::fs::read(dir.join("f")).expect("content")));
    });
}

fn rw_vectors(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"0123456789");
        let (r, b) = (Ring::new(8, kind), buf(32));
        let readv = |v: &[(usize, usize)]| {
            q(op::READV).fd(f.as_raw_fd()).addr(mem::iovecs(v)).len(v.len() as u32).ud(1)
        };
        cx.say("none", r.one(readv(&[])));
        cx.say(
            "two",
            format!("{} {}", r.one(readv(&[(at(b), 2), (at(b) + 8, 4)])), mem::text(&b[..12])),
        );
        cx.say("empty ones", r.one(readv(&[(at(b), 0), (at(b), 4), (0, 0)])));
        cx.say("NULL with length 0", r.one(readv(&[(0, 0)])));
        cx.say("1024", r.one(readv(&[(at(b), 1); 1024])));
        cx.say("1025", r.one(readv(&[(at(b), 1); 1025])));
        cx.say("length negative", r.one(readv(&[(at(b), usize::MAX)])));
        let v = mem::iovecs(&[(mem::bytes(b"ab"), 2), (mem::bytes(b"cd"), 2)]);
        cx.say("writev", r.one(q(op::WRITEV).fd(f.as_raw_fd()).addr(v).len(2).off(3).ud(2)));
        cx.say("content", mem::text(&std::fs::read(dir.join("f")).expect("content")));
    });
}

fn rw_flags(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let (r, b) = (Ring::new(8, 0), at(buf(32)));
    let flags = [
        ("HIPRI", 1),
        ("DSYNC", 2),
        ("SYNC", 4),
        ("NOWAIT", 8),
        ("NOAPPEND", 0x20),
        ("ATOMIC", 0x40),
        ("0x80", 0x80),
        ("0x100", 0x100),
        ("0x200", 0x200),
        ("bit 31", 1 << 31),
        ("APPEND|NOAPPEND", 0x30),
    ];
    for (name, flag) in flags {
        cx.say(&format!("read, {name}"), r.one(read(f.as_raw_fd(), b, 4, 1).opf(flag)));
        // A buffered write without waiting depends on the file system's state: either way.
        let v = r.one(write(f.as_raw_fd(), b, 4, 1).opf(flag));
        let v = if flag == 8 && (v.contains("EAGAIN") || v.contains(":4")) {
            "4 or -EAGAIN".into()
        } else {
            v
        };
        cx.say(&format!("write, {name}"), v);
    }
    cx.say("priority", r.one(read(f.as_raw_fd(), b, 4, 1).prio(2 << 13 | 4)));
    cx.say("bad priority", r.one(read(f.as_raw_fd(), b, 4, 1).prio(7 << 13)));
}

fn rw_nowait(cx: &mut Cx) {
    let b = at(buf(16));
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        cx.say("pipe, RWF_NOWAIT", r.one(read(*p, b, 4, 1).opf(8)));
        let (np, nw) = pipe2(libc::O_NONBLOCK | libc::O_CLOEXEC);
        cx.say("O_NONBLOCK pipe, RWF_NOWAIT", r.one(read(*np, b, 4, 1).opf(8)));
        r.push(read(*np, b, 4, 1));
        cx.say("O_NONBLOCK pipe waits", r.brief(1));
        sys::write(*nw, b"x");
        cx.say("and completes", r.go(1));
        // SAFETY: no memory involved.
        unsafe { libc::fcntl(*w, libc::F_SETPIPE_SZ, 4096) };
        sys::write(*w, &[0; 4096]);
        cx.say("full pipe, RWF_NOWAIT", r.one(write(*w, b, 4, 1).opf(8)));
        let (a, c) = UnixStream::pair().expect("socketpair");
        a.set_nonblocking(true).expect("nonblocking");
        r.push(recv(a.as_raw_fd(), b, 4, 2));
        cx.say("O_NONBLOCK socket recv waits", r.brief(1));
        sys::write(c.as_raw_fd(), b"x");
        cx.say("and completes", r.go(1));
        cx.say("MSG_DONTWAIT", r.one(recv(a.as_raw_fd(), b, 4, 2).opf(libc::MSG_DONTWAIT as u32)));
        cx.say("socket READ, RWF_NOWAIT", r.one(read(a.as_raw_fd(), b, 4, 2).opf(8)));
    });
}

fn rw_bad_pointers(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        let (a, c) = UnixStream::pair().expect("socketpair");
        let fd = f.as_raw_fd();
        for (name, bad) in [
            ("NULL", 0),
            ("unmapped", mem::BAD),
            ("kernel", 1 << 63),
            ("end of memory", usize::MAX - 100),
        ] {
            cx.say(&format!("READ {name}"), r.one(read(fd, bad, 4, 1)));
            cx.say(&format!("WRITE {name}"), r.one(write(fd, bad, 4, 1)));
            sys::write(*w, b"x");
            cx.say(&format!("pipe READ {name}"), r.one(read(*p, bad, 4, 1)));
            cx.say(&format!("pipe WRITE {name}"), r.one(write(*w, bad, 4, 1)));
            cx.say(&format!("READV {name}"), r.one(q(op::READV).fd(fd).addr(bad).len(1).ud(1)));
            cx.say(
                &format!("READV buffer {name}"),
                r.one(q(op::READV).fd(fd).addr(mem::iovecs(&[(bad, 4)])).len(1).ud(1)),
            );
            cx.say(&format!("WRITEV {name}"), r.one(q(op::WRITEV).fd(fd).addr(bad).len(1).ud(1)));
            sys::write(c.as_raw_fd(), b"x");
            cx.say(&format!("RECV {name}"), r.one(recv(a.as_raw_fd(), bad, 4, 1)));
            cx.say(&format!("SEND {name}"), r.one(send(a.as_raw_fd(), bad, 4, 1)));
            cx.say(
                &format!("RECVMSG {name}"),
                r.one(q(op::RECVMSG).fd(a.as_raw_fd()).addr(bad).ud(1)),
            );
            cx.say(
                &format!("SENDMSG {name}"),
                r.one(q(op::SENDMSG).fd(a.as_raw_fd()).addr(bad).ud(1)),
            );
            cx.say(
                &format!("SENDMSG vector {name}"),
                r.one(q(op::SENDMSG).fd(a.as_raw_fd()).addr(mem::msghdr(bad, 1)).ud(1)),
            );
            cx.say(&format!("ASYNC READ {name}"), r.one(read(fd, bad, 4, 1).flags(ASYNC)));
        }
        let ro = sys::mmap(-1, 4096, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
            .expect("memory") as usize;
        cx.say("READ into read-only memory", r.one(read(fd, ro, 4, 1)));
        cx.say("WRITE from read-only memory", r.one(write(fd, ro, 4, 1)));
        let none = sys::mmap(-1, 4096, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
            .expect("memory") as usize;
        cx.say("WRITE from PROT_NONE memory", r.one(write(fd, none, 4, 1)));
        r.push(read(*p, at(buf(8)), 0, 1));
        r.submit();
        r.wait(1, 100);
        r.take();
    });
}

fn rw_partial_fault(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", &[b'x'; 8192]);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let two = sys::pages(8192);
        // SAFETY: the second page is ours and unused.
        sys::munmap(unsafe { two.add(4096) }, 4096);
        let edge = two as usize + 4096 - 100;
        cx.say("file READ, 100 good of 200", r.one(read(f.as_raw_fd(), edge, 200, 1)));
        cx.say("file WRITE", r.one(write(f.as_raw_fd(), edge, 200, 1)));
        let (a, c) = UnixStream::pair().expect("socketpair");
        cx.say("socket SEND", r.one(send(a.as_raw_fd(), edge, 200, 1)));
        sys::write(c.as_raw_fd(), &[1; 200]);
        cx.say("socket RECV", r.one(recv(a.as_raw_fd(), edge, 200, 1)));
    });
}

fn rw_bad_files(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"x");
    let b = at(buf(16));
    let ro = std::fs::File::open(dir.join("f")).expect("open");
    let d = std::fs::File::open(dir.join(".")).expect("open");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        for fd in [999, -1, -100, i32::MAX, i32::MIN] {
            cx.say(&format!("READ of {fd}"), r.one(read(fd, b, 4, 1)));
        }
        cx.say("READ of a directory", r.one(read(d.as_raw_fd(), b, 4, 1)));
        cx.say("WRITE to a read-only file", r.one(write(ro.as_raw_fd(), b, 4, 1)));
        cx.say("READ of a write end", r.one(read(*w, b, 4, 1)));
        cx.say("WRITE to a read end", r.one(write(*p, b, 4, 1)));
        // SAFETY: a NUL-terminated path.
        let path = Fd(unsafe { libc::open(dir.cpath("f") as *const libc::c_char, libc::O_PATH) });
        cx.say("READ of O_PATH", r.one(read(*path, b, 4, 1)));
        // Files without a read method: the kernel waits for them to poll as ready before it
        // says so. Waiting and -EINVAL are the same answer here.
        // SAFETY: no memory involved.
        let ep = Fd(unsafe { libc::epoll_create1(0) });
        for (name, fd) in [("an epoll", *ep), ("a ring", r.fd)] {
            let own = Ring::new(8, kind);
            own.push(read(fd, b, 4, 1));
            let v = own.brief(1);
            let fine = v == "1 -ETIME []" || v == "1 0 [1:-EINVAL]";
            cx.say(
                &format!("READ of {name} is refused or waits"),
                if fine { "true".into() } else { v },
            );
        }
        cx.say("READ of another closed number, ASYNC", r.one(read(998, b, 4, 1).flags(ASYNC)));
    });
}

fn rw_pipe(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let (r, b) = (Ring::new(8, kind), buf(16));
        r.push(read(*p, at(b), 8, 1));
        cx.say("empty", r.brief(1));
        sys::write(*w, b"abc");
        cx.say("data", format!("{} {}", r.go(1), mem::text(&b[..3])));
        sys::write(*w, b"defgh");
        cx.say("2 of 5", r.one(read(*p, at(b), 2, 2)));
        cx.say(
            "the rest, offset 100",
            format!("{} {}", r.one(read(*p, at(b), 8, 3).off(100)), mem::text(&b[..3])),
        );
        r.push(read(*p, at(b), 8, 4));
        r.submit();
        drop(w);
        cx.say("the end while waiting", r.go(1));
        cx.say("the end", r.one(read(*p, at(b), 8, 5)));
        cx.say("the end, with an offset of -1", r.one(read(*p, at(b), 8, 5).off(u64::MAX)));
    });
}

fn rw_pipe_writer(cx: &mut Cx) {
    // SAFETY: no memory involved: a write without reader must not kill this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        // SAFETY: no memory involved.
        unsafe { libc::fcntl(*w, libc::F_SETPIPE_SZ, 4096) };
        cx.say("into an empty pipe", r.one(write(*w, at(buf(4096)), 4096, 1)));
        r.push(write(*w, at(buf(4096)), 100, 2));
        cx.say("into a full pipe", r.brief(1));
        let _ = sys::read(*p, 4096);
        cx.say("after a read", r.go(1));
        let _ = sys::read(*p, 4096);
        cx.say("more than fits", r.one(write(*w, at(buf(8192)), 8192, 3)));
        r.push(write(*w, at(buf(4096)), 4096, 4));
        r.submit();
        drop(p);
        cx.say("reader gone while waiting", r.go(1));
        cx.say("no reader", r.one(write(*w, at(buf(4)), 4, 5)));
    });
}

fn rw_two_readers(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (p, w) = pipe();
        let r = Ring::new(8, kind);
        r.push_all(&[read(*p, at(buf(8)), 8, 1), read(*p, at(buf(8)), 8, 1)]);
        r.submit();
        sys::write(*w, b"x");
        r.wait(1, 2000);
        r.wait(2, 50);
        cx.say("one byte", r.cqes());
        sys::write(*w, b"yz");
        cx.say("two more", r.go(1));
    });
}

fn rw_socket(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(16));
        let fd = a.as_raw_fd();
        r.push(read(fd, at(b), 8, 1));
        r.submit();
        sys::write(c.as_raw_fd(), b"hello");
        cx.say("READ", format!("{} {}", r.go(1), mem::text(&b[..5])));
        cx.say("WRITE", r.one(write(fd, mem::bytes(b"world"), 5, 2)));
        cx.say("other end", mem::text(&sys::read(c.as_raw_fd(), 16).unwrap_or_default()));
        cx.say("READ with an offset", {
            sys::write(c.as_raw_fd(), b"z");
            r.one(read(fd, at(b), 8, 3).off(7))
        });
        drop(c);
        cx.say("READ at the end", r.one(read(fd, at(b), 8, 4)));
        cx.say("WRITE, peer gone", r.one(write(fd, at(b), 8, 5)));
    });
}

fn rw_eventfd(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let e = eventfd(0);
        let (r, b) = (Ring::new(8, kind), buf(8));
        r.push(read(*e, at(b), 8, 1));
        cx.say("zero", r.brief(1));
        sys::write(*e, &5u64.to_ne_bytes());
        cx.say("a value", format!("{} {:?}", r.go(1), b));
        cx.say("WRITE", r.one(write(*e, leak(7u64), 8, 2)));
        cx.say("READ", format!("{} {:?}", r.one(read(*e, at(b), 8, 3)), b));
        cx.say("READ of 4", r.one(read(*e, at(b), 4, 3)));
        let e = eventfd(libc::EFD_NONBLOCK);
        r.push(read(*e, at(b), 8, 4));
        cx.say("nonblocking, zero", r.brief(1));
        sys::write(*e, &1u64.to_ne_bytes());
        cx.say("nonblocking, a value", r.go(1));
        let e = eventfd(libc::EFD_SEMAPHORE);
        sys::write(*e, &2u64.to_ne_bytes());
        r.push_all(&[read(*e, at(b), 8, 5), read(*e, at(b), 8, 6), read(*e, at(b), 8, 7)]);
        cx.say("semaphore of 2, three reads", r.brief(3));
    });
}

fn rw_tty(cx: &mut Cx) {
    // SAFETY: no memory involved; results are checked.
    let master = Fd(unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) });
    let mut name = [0u8; 64];
    // SAFETY: the buffer has 64 bytes.
    let slave = unsafe {
        libc::grantpt(*master);
        libc::unlockpt(*master);
        libc::ptsname_r(*master, name.as_mut_ptr().cast(), 64);
        Fd(libc::open(name.as_ptr().cast(), libc::O_RDWR | libc::O_NOCTTY))
    };
    if *slave < 0 {
        cx.say("no terminals here", "");
        return;
    }
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(16));
        r.push(read(*slave, at(b), 16, 1));
        cx.say("no line", r.brief(1));
        sys::write(*master, b"half");
        r.wait(1, 50);
        cx.say("half a line", r.cqes());
        sys::write(*master, b" line\n");
        cx.say("a line", format!("{} {}", r.go(1), mem::text(&b[..10])));
        cx.say("WRITE", r.one(write(*slave, mem::bytes(b"out"), 3, 2)));
        let _ = sys::read(*master, 64);
    });
}

fn rw_fifo(cx: &mut Cx) {
    let dir = Dir::new();
    dir.fifo("fifo");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(16));
        r.push(
            q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("fifo")).opf(libc::O_RDWR as u32).ud(1),
        );
        r.submit();
        r.wait(1, 2000);
        let fd = r.take().first().map_or(-1, |c| c.res);
        cx.say("open", ok(fd));
        r.push(read(fd, at(b), 8, 2));
        cx.say("empty", r.brief(1));
        sys::write(fd, b"abc");
        cx.say("data", r.go(1));
        sys::close(fd);
    });
}

fn rw_dev(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(16));
        for name in ["/dev/null", "/dev/zero", "/dev/full"] {
            let f = std::fs::OpenOptions::new().read(true).write(true).open(name).expect("device");
            cx.say(&format!("{name} READ"), r.one(read(f.as_raw_fd(), at(b), 8, 1)));
            cx.say(&format!("{name} WRITE"), r.one(write(f.as_raw_fd(), at(b), 8, 1)));
        }
    });
}

fn rw_proc(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(4096));
        let f = std::fs::File::open("/proc/self/comm").expect("proc");
        cx.say(
            "comm",
            format!("{} {}", r.one(read(f.as_raw_fd(), at(b), 4096, 1)), mem::text(&b[..7])),
        );
        cx.say("comm at the end", r.one(read(f.as_raw_fd(), at(b), 4096, 1).off(7)));
        let f = std::fs::File::open("/proc/sys/kernel/ostype").expect("proc");
        cx.say(
            "ostype",
            format!("{} {}", r.one(read(f.as_raw_fd(), at(b), 4096, 1)), mem::text(&b[..6])),
        );
    });
}

fn rw_async(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(32));
        let fd = f.as_raw_fd();
        cx.say("file READ", r.one(read(fd, at(b), 10, 1).flags(ASYNC)));
        cx.say("file WRITE", r.one(write(fd, mem::bytes(b"ab"), 2, 1).flags(ASYNC)));
        cx.say("closed number", r.one(read(999, at(b), 10, 1).flags(ASYNC)));
        let (p, w) = pipe();
        r.push(read(*p, at(b), 8, 1).flags(ASYNC));
        cx.say("empty pipe", r.brief(1));
        sys::write(*w, b"abc");
        cx.say("data", r.go(1));
        let (a, c) = UnixStream::pair().expect("socketpair");
        r.push(recv(a.as_raw_fd(), at(b), 8, 1).flags(ASYNC));
        cx.say("empty socket", r.brief(1));
        sys::write(c.as_raw_fd(), b"abc");
        cx.say("data", r.go(1));
        for i in 0..8 {
            r.push(nop(i).flags(ASYNC));
        }
        r.submit();
        cx.say("8 NOPs", show_sorted(r.collect(8)));
    });
}

fn rw_big(cx: &mut Cx) {
    let dir = Dir::new();
    let size = 32usize << 20;
    let f = dir.file("f", b"");
    let data = sys::pages(size);
    for i in (0..size).step_by(4096) {
        // SAFETY: inside the mapping.
        unsafe { data.add(i).cast::<u64>().write(i as u64) };
    }
    let back = sys::pages(size);
    let r = Ring::new(8, 0);
    cx.say("WRITE", r.one(write(f.as_raw_fd(), data as usize, size as u32, 1)));
    cx.say("READ", r.one(read(f.as_raw_fd(), back as usize, size as u32, 2)));
    // SAFETY: both mappings have `size` bytes.
    let same =
        unsafe { std::slice::from_raw_parts(data, size) == std::slice::from_raw_parts(back, size) };
    cx.say("same", same);
    cx.say(
        "READ of 4 GiB - 1",
        r.one(read(f.as_raw_fd(), back as usize, u32::MAX, 3)).replace("33554432", "file size"),
    );
}

fn rw_many(cx: &mut Cx) {
    let dir = Dir::new();
    let content: Vec<u8> = (0..2000u32).flat_map(|i| [i as u8; 512]).collect();
    let f = dir.file("f", &content);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(64, kind);
        let b: Vec<&'static mut [u8]> = (0..64).map(|_| buf(512)).collect();
        let (mut bad, mut done) = (0, 0);
        for start in (0..2000u64).step_by(50) {
            for i in 0..50 {
                r.push(
                    read(f.as_raw_fd(), at(b[i as usize]), 512, start + i).off((start + i) * 512),
                );
            }
            r.submit();
            for c in r.collect(50) {
                let slot = (c.user_data - start) as usize;
                let good = c.res == 512 && b[slot].iter().all(|x| *x == c.user_data as u8);
                bad += usize::from(!good);
                done += 1;
            }
        }
        cx.say("done, bad", format!("{done} {bad}"));
    });
}

fn rw_same_file_writes(cx: &mut Cx) {
    let dir = Dir::new();
    cx.both_setups(|cx, kind| {
        for flags in [0, ASYNC] {
            let f = dir.file("f", b"");
            let r = Ring::new(64, kind);
            for i in 0..64u64 {
                let block = mem::bytes(&[i as u8; 1000]);
                r.push(write(f.as_raw_fd(), block, 1000, i).off(i * 1000).flags(flags));
            }
            r.submit();
            let good = r.collect(64).iter().filter(|c| c.res == 1000).count();
            let text = std::fs::read(dir.join("f")).expect("content");
            let right =
                text.len() == 64000 && text.iter().enumerate().all(|(i, x)| *x == (i / 1000) as u8);
            cx.say(&format!("flags {flags}"), format!("{good} content {right}"));
        }
    });
}

fn rw_own_file(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let (a, c) = UnixStream::pair().expect("socketpair");
        let (d, e) = UnixStream::pair().expect("socketpair");
        let (r, b) = (Ring::new(8, kind), buf(16));
        let number = a.as_raw_fd();
        r.push(recv(number, at(b), 8, 1));
        r.submit();
        // SAFETY: no memory involved: `number` now names another socket.
        unsafe { libc::dup2(d.as_raw_fd(), number) };
        sys::write(e.as_raw_fd(), b"new");
        cx.say("data on the new file", r.brief(1));
        sys::write(c.as_raw_fd(), b"old");
        cx.say("data on the old file", format!("{} {}", r.go(1), mem::text(&b[..3])));
        cx.say(
            "peer of the old file sees the end",
            sys::poll_for(c.as_raw_fd(), POLLIN, 1000) & libc::POLLHUP,
        );
        // SAFETY: the number belongs to `a`, whose drop closes it.
        drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(sys::dup(number)) });
        cx.say("the new file", r.one(recv(number, at(b), 8, 2)));
    });
}

fn rw_rlimit_fsize(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"");
    // SAFETY: a valid limit of this process only; the signal is ignored.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        // Large enough for the answers themselves and for a ring's memory.
        let l = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        libc::setrlimit(libc::RLIMIT_FSIZE, &l);
    }
    let r = Ring::new(8, 0);
    let end = 1u64 << 20;
    cx.say("across the limit", r.one(write(f.as_raw_fd(), at(buf(200)), 200, 1).off(end - 100)));
    cx.say("beyond the limit", r.one(write(f.as_raw_fd(), at(buf(200)), 200, 1).off(end)));
    cx.say("FTRUNCATE beyond", r.one(q(op::FTRUNCATE).fd(f.as_raw_fd()).off(end + 1).ud(2)));
    cx.say(
        "FALLOCATE beyond",
        r.one(q(op::FALLOCATE).fd(f.as_raw_fd()).addr(end as usize + 1).ud(3)),
    );
}

fn rw_priority(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let (r, b) = (Ring::new(8, 0), at(buf(16)));
    // Class in the upper three bits, then ten bits of hint, then three of level.
    for prio in [0, 1, 7, 8, 0x100, 0x2000, 0x2007, 0x4004, 0x6000, 0x6001, 0x8000, 0xe000, 0xffff]
    {
        cx.say(&format!("priority {prio:#x}"), r.one(read(f.as_raw_fd(), b, 4, 1).prio(prio)));
    }
}

fn rw_check_order(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"0123456789");
    let ro = std::fs::File::open(dir.join("f")).expect("open");
    let wo = std::fs::OpenOptions::new().write(true).open(dir.join("f")).expect("open");
    let (r, b) = (Ring::new(8, 0), at(buf(16)));
    let neg = -2i64 as u64;
    cx.say("WRITE to a read-only file at -2", r.one(write(ro.as_raw_fd(), b, 4, 1).off(neg)));
    cx.say("READ of a write-only file at -2", r.one(read(wo.as_raw_fd(), b, 4, 1).off(neg)));
    cx.say(
        "WRITE to a read-only file, unknown flag",
        r.one(write(ro.as_raw_fd(), b, 4, 1).opf(1 << 20)),
    );
    cx.say("WRITE of 0 to a read-only file", r.one(write(ro.as_raw_fd(), b, 0, 1)));
    cx.say("READ of 0 at -2", r.one(read(f.as_raw_fd(), b, 0, 1).off(neg)));
    cx.say("READ of 0 into unmapped memory", r.one(read(f.as_raw_fd(), mem::BAD, 0, 1)));
    cx.say(
        "READV, bad vector, closed number",
        r.one(q(op::READV).fd(999).addr(mem::BAD).len(1).ud(1)),
    );
    let (p, w) = pipe();
    cx.say("WRITE of 0 to a pipe", r.one(write(*w, b, 0, 1)));
    cx.say("READ of 0 of an empty pipe", {
        r.push(read(*p, b, 0, 1));
        r.brief(1)
    });
    let (a, _c) = UnixStream::pair().expect("socketpair");
    cx.say("WRITE of 0 to a socket at 1", r.one(write(a.as_raw_fd(), b, 0, 1).off(1)));
    cx.say("WRITE to a socket at 1", r.one(write(a.as_raw_fd(), b, 4, 1).off(1)));
    let e = eventfd(0);
    for len in [0, 4, 7] {
        r.push(read(*e, b, len, 1));
        cx.say(&format!("READ of {len} of an eventfd of 0"), r.brief(1));
    }
    cx.say("WRITE of 4 to an eventfd", r.one(write(*e, b, 4, 1)));
}

fn rw_chain_on_worker(cx: &mut Cx) {
    // How the read ends (interrupted or cancelled) and how the cancel counts it is
    // chance: that both end, and the chain with them, is not.
    let dir = Dir::new();
    let f = dir.file("f", b"");
    cx.both_setups(|cx, kind| {
        let (p, _w) = pipe();
        let r = Ring::new(8, kind);
        let l = IO_LINK | ASYNC;
        r.push_all(&[
            write(f.as_raw_fd(), at(buf(8)), 8, 1).flags(l),
            read(*p, at(buf(8)), 8, 2).flags(IO_LINK),
            nop(3),
        ]);
        r.submit();
        cx.say("the write", show(&r.collect(1)));
        // On a deferring ring the read starts only in here.
        r.enter(0, 0, enter::GETEVENTS);
        sys::sleep_ms(20);
        r.push(cancel(2, 9));
        r.submit();
        let c = r.collect(3);
        let of = |ud| c.iter().find(|c| c.user_data == ud).map(|c| c.res);
        let ended =
            |r: Option<i32>| r.is_some_and(|n| [-libc::EINTR, -libc::ECANCELED].contains(&n));
        cx.say("the read ended", ended(of(2)));
        cx.say("the NOP", of(3).map_or("lost".into(), res));
        cx.say(
            "the cancel",
            of(9).map_or("lost", |n| {
                if [0, -libc::EALREADY].contains(&n) {
                    "found it"
                } else {
                    "missed it"
                }
            }),
        );
    });
}

fn rw_seek_hole(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"");
    f.set_len(1 << 20).expect("truncate");
    let (r, b) = (Ring::new(8, 0), buf(16));
    b.fill(9);
    cx.say("hole", format!("{} {:?}", r.one(read(f.as_raw_fd(), at(b), 4, 1).off(5000)), &b[..5]));
    cx.say("last bytes", r.one(read(f.as_raw_fd(), at(b), 16, 1).off((1 << 20) - 3)));
    cx.say("beyond", r.one(read(f.as_raw_fd(), at(b), 16, 1).off(1 << 21)));
}
