//! O_DIRECT and polled rings.

use crate::prelude::*;
use anyring_uapi::setup::{HYBRID_IOPOLL, IOPOLL};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(
        direct_short,
        "O_DIRECT read of a 4864-byte file: short at 4096, nothing past the end"
    ),
    scenario!(direct_rw, "O_DIRECT writes and reads, alignment"),
    scenario!(direct_many, "64 O_DIRECT reads in flight, checked"),
    scenario!(direct_fixed, "O_DIRECT with registered buffers"),
    scenario!(iopoll_ops, "which operations a polled ring takes"),
    scenario!(
        iopoll_unpollable,
        "a polled ring on files that cannot be polled: an error, never a hang"
    ),
];

/// A directory on a file system that takes O_DIRECT: below the build's target directory,
/// since the temporary directory may be in memory.
pub fn disk_dir() -> Dir {
    let exe = std::env::current_exe().unwrap_or_default();
    let parent = exe.parent().map_or_else(std::env::temp_dir, PathBuf::from);
    Dir::below(&parent)
}

/// A file with this content, opened with O_DIRECT.
pub fn open_direct(dir: &Dir, name: &str, content: &[u8]) -> std::io::Result<std::fs::File> {
    // What is not on the disk yet would have to be written first, by a worker.
    dir.file(name, content).sync_all()?;
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(dir.join(name))
}

fn direct_short(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[b'x'; 4864]).expect("a file system with O_DIRECT");
    let page = sys::pages(8192) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for (off, len) in [(0, 8192), (4096, 4096), (4096, 8192), (8192, 4096)] {
            cx.say(&format!("{len} at {off}"), r.one(read(f.as_raw_fd(), page, len, 1).off(off)));
        }
    });
}

fn direct_rw(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[0; 16384]).expect("a file system with O_DIRECT");
    let (page, back) = (sys::pages(8192), sys::pages(8192));
    // SAFETY: the pages are ours.
    unsafe { page.write_bytes(7, 8192) };
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("write", r.one(write(f.as_raw_fd(), page as usize, 8192, 1).off(4096)));
        cx.say("read", r.one(read(f.as_raw_fd(), back as usize, 8192, 1).off(4096)));
        // SAFETY: both have 8192 bytes.
        cx.say("same", unsafe {
            std::slice::from_raw_parts(page, 8192) == std::slice::from_raw_parts(back, 8192)
        });
        cx.say("odd offset", r.one(read(f.as_raw_fd(), back as usize, 4096, 1).off(1)));
        cx.say("odd length", r.one(read(f.as_raw_fd(), back as usize, 100, 1)));
        cx.say("odd address", r.one(read(f.as_raw_fd(), back as usize + 1, 4096, 1)));
        cx.say("unmapped", r.one(read(f.as_raw_fd(), 0x1000, 4096, 1)));
        let v = mem::iovecs(&[(back as usize, 4096), (back as usize + 4096, 4096)]);
        cx.say("readv", r.one(q(op::READV).fd(f.as_raw_fd()).addr(v).len(2).ud(1)));
        r.push_all(&[
            write(f.as_raw_fd(), page as usize, 4096, 1).flags(IO_LINK),
            q(op::FSYNC).fd(f.as_raw_fd()).ud(2).flags(IO_LINK),
            read(f.as_raw_fd(), back as usize, 4096, 3),
        ]);
        cx.say("write, fsync, read", r.go(3));
        cx.say("position", r.one(read(f.as_raw_fd(), back as usize, 4096, 1).off(u64::MAX)));
    });
}

fn direct_many(cx: &mut Cx) {
    let dir = disk_dir();
    let content: Vec<u8> = (0..64u8).flat_map(|i| [i; 4096]).collect();
    let f = open_direct(&dir, "f", &content).expect("a file system with O_DIRECT");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(64, kind);
        let mem = sys::pages(64 * 4096);
        for i in 0..64u64 {
            r.push(read(f.as_raw_fd(), mem as usize + i as usize * 4096, 4096, i).off(i * 4096));
        }
        r.submit();
        let good = r.collect(64).iter().filter(|c| c.res == 4096).count();
        // SAFETY: the mapping has that many bytes.
        let same = unsafe { std::slice::from_raw_parts(mem, 64 * 4096) } == content;
        cx.say("good, content", format!("{good} {same}"));
    });
}

fn direct_fixed(cx: &mut Cx) {
    let dir = disk_dir();
    let f = open_direct(&dir, "f", &[9; 8192]).expect("a file system with O_DIRECT");
    let page = sys::pages(8192) as usize;
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.reg(register::BUFFERS, mem::iovecs(&[(page, 8192)]), 1);
        r.reg(register::FILES, leak([f.as_raw_fd()]), 1);
        let fixed = |o, off| q(o).fd(0).flags(FIXED_FILE).addr(page).len(4096).off(off).ud(1);
        cx.say("read", r.one(fixed(op::READ_FIXED, 4096)));
        cx.say("write", r.one(fixed(op::WRITE_FIXED, 0)));
        cx.say("read at the end", r.one(fixed(op::READ_FIXED, 8192)));
    });
}

fn iopoll_ops(cx: &mut Cx) {
    let r = Ring::new(8, IOPOLL);
    // The matrix has a working request of each opcode; here only the opcode decides.
    for (i, name) in super::matrix::NAMES.iter().enumerate() {
        let i = i as u8;
        let takes = !matches!(
            i,
            op::READV
                | op::WRITEV
                | op::READ
                | op::WRITE
                | op::READ_FIXED
                | op::WRITE_FIXED
                | op::READV_FIXED
                | op::WRITEV_FIXED
                | op::URING_CMD
                | op::MSG_RING
                | op::LINK_TIMEOUT
        );
        if takes {
            r.push(q(i).fd(999).ud(1));
            r.submit();
            r.enter(0, 1, enter::GETEVENTS);
            cx.say(name, r.cqes());
        }
    }
}

fn iopoll_unpollable(cx: &mut Cx) {
    let dir = disk_dir();
    let f = dir.file("f", &[1; 8192]);
    let direct = open_direct(&dir, "d", &[1; 8192]).expect("a file system with O_DIRECT");
    let page = sys::pages(4096) as usize;
    let (p, w) = pipe();
    sys::write(*w, b"x");
    let (a, c) = UnixStream::pair().expect("socketpair");
    sys::write(c.as_raw_fd(), b"x");
    for (kind, flags) in [("IOPOLL", IOPOLL), ("IOPOLL|HYBRID", IOPOLL | HYBRID_IOPOLL)] {
        let r = Ring::new(8, flags);
        let mut ask = |name: &str, q: Q| {
            r.push(q);
            let s = r.submit();
            r.enter(0, 1, enter::GETEVENTS);
            cx.say(&format!("{kind}, {name}"), format!("{} {}", res(s), r.cqes()));
        };
        ask("buffered file", read(f.as_raw_fd(), page, 4096, 1));
        ask("pipe", read(*p, page, 8, 1));
        ask("socket", read(a.as_raw_fd(), page, 8, 1));
        ask("closed number", read(999, page, 8, 1));
        ask("recv", recv(a.as_raw_fd(), page, 8, 1));
        ask("NOP", nop(1));
        // Whether this file system polls is the host's: 4096 or -EOPNOTSUPP.
        r.push(read(direct.as_raw_fd(), page, 4096, 1));
        r.submit();
        // A polled wait may return early; the scenario's alarm ends a hang.
        while r.ready() == 0 {
            r.enter(0, 1, enter::GETEVENTS);
        }
        let v = r.cqes();
        let fine = v == "[1:4096]" || v == "[1:-EOPNOTSUPP]";
        cx.say(
            &format!("{kind}, O_DIRECT file reads or is refused"),
            if fine { "true".into() } else { v },
        );
    }
}
