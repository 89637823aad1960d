//! Which failures break a chain: on Linux 6.18 not all of them do. Operations on whole
//! files and paths mostly complete with their error without marking the request failed.

use crate::prelude::*;
use std::os::fd::{FromRawFd, OwnedFd};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(
        link_breaks_by_op,
        "for each operation that fails when it runs: is the next in a soft chain cancelled"
    ),
    scenario!(link_breaks_async, "the same on workers"),
    scenario!(
        link_breaks_bad_file,
        "for each operation on a closed number: is the next in a soft chain cancelled"
    ),
    scenario!(link_breaks_skip, "which failures post a CQE in spite of CQE_SKIP_SUCCESS"),
];

const HERE: i32 = libc::AT_FDCWD;

struct Failing {
    cases: Vec<(&'static str, Q)>,
    _keep: (Dir, std::fs::File, (Fd, Fd), (UnixStream, UnixStream), OwnedFd, Fd),
}

/// Requests that pass prep and fail when they run.
fn failing() -> Failing {
    let dir = Dir::new();
    let f = dir.file("f", b"x");
    let (p, w) = pipe();
    let pair = UnixStream::pair().expect("socketpair");
    // SAFETY: no memory involved; both descriptors are fresh.
    let (loose, ep) = unsafe {
        (
            OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)),
            Fd(libc::epoll_create1(0)),
        )
    };
    let (file, none, bad) = (f.as_raw_fd(), dir.cpath("none"), mem::BAD);
    let path = |o| q(o).fd(HERE).addr(none);
    let there = dir.cpath("f") as u64;
    let iov = mem::iovecs(&[(bad, 4)]);
    let cases = vec![
        ("READ", read(file, bad, 4, 1)),
        ("READV", q(op::READV).fd(file).addr(iov).len(1)),
        ("WRITE", write(file, bad, 4, 1)),
        ("FSYNC", q(op::FSYNC).fd(*p)),
        ("SYNC_FILE_RANGE", q(op::SYNC_FILE_RANGE).fd(file).opf(8)),
        ("FALLOCATE", q(op::FALLOCATE).fd(file).addr(0)),
        ("FADVISE", q(op::FADVISE).fd(*p).opf(3)),
        ("FADVISE inline", q(op::FADVISE).fd(*p).opf(0)),
        ("MADVISE", q(op::MADVISE).addr(0x1000).len(4096).opf(4)),
        ("FTRUNCATE", q(op::FTRUNCATE).fd(*p).off(1)),
        ("OPENAT", path(op::OPENAT)),
        ("OPENAT2", path(op::OPENAT2).off(leak([0u64; 3]) as u64).len(24)),
        ("CLOSE", q(op::CLOSE).fd(999)),
        ("STATX", path(op::STATX).len(0x7ff).off(at(buf(256)) as u64)),
        ("UNLINKAT", path(op::UNLINKAT)),
        ("RENAMEAT", path(op::RENAMEAT).len(HERE as u32).off(there)),
        ("MKDIRAT", q(op::MKDIRAT).fd(HERE).addr(there as usize)),
        ("SYMLINKAT", q(op::SYMLINKAT).fd(HERE).addr(none).off(there)),
        ("LINKAT", path(op::LINKAT).len(HERE as u32).off(there)),
        ("SHUTDOWN", q(op::SHUTDOWN).fd(*p).len(2)),
        ("SHUTDOWN of a socket", q(op::SHUTDOWN).fd(loose.as_raw_fd()).len(2)),
        ("SOCKET", q(op::SOCKET).fd(999).off(1)),
        ("ACCEPT", q(op::ACCEPT).fd(*p)),
        ("CONNECT", q(op::CONNECT).fd(loose.as_raw_fd()).addr(at(buf(16))).off(1)),
        ("SEND", send(*w, at(buf(4)), 4, 1)),
        ("SEND bad address", send(pair.0.as_raw_fd(), bad, 4, 1)),
        ("RECV", recv(*p, at(buf(4)), 4, 1)),
        ("SENDMSG", q(op::SENDMSG).fd(*w).addr(mem::msghdr(0, 0))),
        ("RECVMSG", q(op::RECVMSG).fd(*p).addr(mem::msghdr(0, 0))),
        ("SPLICE", q(op::SPLICE).fd(file).fi(file as u32).len(1)),
        ("TEE", q(op::TEE).fd(*w).fi(*p as u32).len(1)),
        ("EPOLL_CTL", q(op::EPOLL_CTL).fd(*ep).off(*p as u64).len(2)),
        ("FILES_UPDATE", q(op::FILES_UPDATE).addr(leak(999i32)).len(1)),
        ("REMOVE_BUFFERS", q(op::REMOVE_BUFFERS).fd(1).buf(9)),
        ("POLL_ADD", poll(999, 1, 1)),
        ("POLL_REMOVE", q(op::POLL_REMOVE).addr(77)),
        ("ASYNC_CANCEL", cancel(77, 1)),
        ("TIMEOUT_REMOVE", q(op::TIMEOUT_REMOVE).addr(77)),
        ("TIMEOUT", timeout(mem::ms(1), 0, 1)),
        ("NOP with an injected error", nop(1).opf(1).len(-5i32 as u32)),
    ];
    Failing { cases, _keep: (dir, f, (p, w), pair, loose, ep) }
}

/// The chain's CQEs, told apart: the error, and what became of the next.
fn chain(r: &Ring, head: Q) -> String {
    r.push_all(&[head.ud(1), nop(2)]);
    r.submit();
    show_sorted(r.collect(2))
}

fn link_breaks_by_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let all = failing();
        let r = Ring::new(8, kind);
        for (name, q) in &all.cases {
            cx.say(name, chain(&r, q.flags(IO_LINK)));
        }
    });
}

fn link_breaks_async(cx: &mut Cx) {
    let all = failing();
    let r = Ring::new(8, 0);
    for (name, q) in &all.cases {
        cx.say(name, chain(&r, q.flags(IO_LINK | ASYNC)));
    }
}

fn link_breaks_bad_file(cx: &mut Cx) {
    let all = failing();
    let r = Ring::new(8, 0);
    for (name, q) in &all.cases {
        let paths = matches!(q.0.opcode, op::OPENAT..=op::CLOSE | op::STATX | op::OPENAT2 | op::RENAMEAT..=op::LINKAT);
        if !paths && q.0.fd != -1 {
            cx.say(name, chain(&r, q.fd(998).flags(IO_LINK)));
        }
    }
}

fn link_breaks_skip(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let all = failing();
        let r = Ring::new(8, kind);
        for (name, q) in &all.cases {
            r.push(q.flags(CQE_SKIP_SUCCESS).ud(1));
            r.submit();
            r.wait(1, 30);
            cx.say(name, r.cqes());
        }
    });
}
