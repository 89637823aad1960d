//! Operations on paths and whole files.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(open_basic, "OPENAT: existing, missing, created, exclusive, directories"),
    scenario!(open_flags, "OPENAT: access modes, close-on-exec, O_NONBLOCK, O_TMPFILE"),
    scenario!(open_dirfd, "OPENAT relative to a directory, to a file, to nothing"),
    scenario!(open_paths, "OPENAT: bad addresses, empty and long paths"),
    scenario!(open_fifo, "OPENAT of a FIFO returns at once"),
    scenario!(openat2, "OPENAT2: sizes, resolve flags, extensions"),
    scenario!(close_op, "CLOSE of descriptors"),
    scenario!(statx_op, "STATX: sizes, flags, bad addresses, empty paths"),
    scenario!(fsync_op, "FSYNC and SYNC_FILE_RANGE"),
    scenario!(fallocate_op, "FALLOCATE"),
    scenario!(fadvise_op, "FADVISE"),
    scenario!(madvise_op, "MADVISE"),
    scenario!(ftruncate_op, "FTRUNCATE"),
    scenario!(unlink_op, "UNLINKAT"),
    scenario!(rename_op, "RENAMEAT"),
    scenario!(mkdir_op, "MKDIRAT"),
    scenario!(symlink_op, "SYMLINKAT"),
    scenario!(linkat_op, "LINKAT"),
    scenario!(path_bad, "bad path addresses of every path operation"),
    scenario!(path_prep, "a path that cannot be taken in fails before the request runs"),
    scenario!(path_check_order, "an empty path against an unknown flag: which error wins"),
    scenario!(path_chain, "mkdir, create, write, rename, unlink, rmdir in one chain"),
    scenario!(path_many, "200 files created, stat'ed and removed in batches"),
    scenario!(umask_cwd, "umask and working directory of the submitter hold"),
];

const HERE: i32 = libc::AT_FDCWD;

fn open(path: usize, flags: i32) -> Q {
    q(op::OPENAT).fd(HERE).addr(path).opf(flags as u32).len(0o644).ud(1)
}

/// Runs one request that makes a descriptor: `ok` and what `look` says of it.
fn opened(r: &Ring, q: Q, look: impl Fn(i32) -> String) -> String {
    r.push(q);
    r.submit();
    r.wait(1, 2000);
    let c = r.take();
    match c[..] {
        [c] if c.res >= 0 => {
            let text = format!("ok {}", look(c.res));
            sys::close(c.res);
            text
        }
        _ => show(&c),
    }
}

fn fd_flags(fd: i32) -> String {
    // SAFETY: no memory involved.
    unsafe {
        let mode = libc::fcntl(fd, libc::F_GETFL) & !0o100000;
        format!("cloexec {} flags {mode:#o}", libc::fcntl(fd, libc::F_GETFD))
    }
}

fn content(fd: i32) -> String {
    sys::read(fd, 64).map_or_else(res, |b| mem::text(&b))
}

fn open_basic(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        dir.file("f", b"content");
        let r = Ring::new(8, kind);
        cx.say("existing", opened(&r, open(dir.cpath("f"), 0), content));
        cx.say("existing, ASYNC", opened(&r, open(dir.cpath("f"), 0).flags(ASYNC), content));
        cx.say("missing", opened(&r, open(dir.cpath("none"), 0), content));
        cx.say(
            "created",
            opened(&r, open(dir.cpath("new"), libc::O_CREAT | libc::O_RDWR), content),
        );
        cx.say(
            "exclusive, exists",
            opened(&r, open(dir.cpath("new"), libc::O_CREAT | libc::O_EXCL), content),
        );
        cx.say(
            "truncated",
            opened(&r, open(dir.cpath("f"), libc::O_TRUNC | libc::O_RDWR), content),
        );
        cx.say("a directory", opened(&r, open(dir.cpath("."), 0), content));
        cx.say("a directory for writing", opened(&r, open(dir.cpath("."), libc::O_RDWR), content));
        cx.say("below a file", opened(&r, open(dir.cpath("f/x"), 0), content));
        cx.say(
            "O_DIRECTORY on a file",
            opened(&r, open(dir.cpath("f"), libc::O_DIRECTORY), content),
        );
        cx.say("missing, in a chain", {
            r.push_all(&[open(dir.cpath("none"), 0).flags(IO_LINK), nop(2)]);
            r.go(2)
        });
    });
}

fn open_flags(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"content");
    let r = Ring::new(8, 0);
    let path = dir.cpath("f");
    for (name, flags) in [
        ("O_RDONLY", 0),
        ("O_WRONLY", libc::O_WRONLY),
        ("O_RDWR", libc::O_RDWR),
        ("O_CLOEXEC", libc::O_CLOEXEC),
        ("O_NONBLOCK", libc::O_NONBLOCK),
        ("O_APPEND", libc::O_APPEND | libc::O_WRONLY),
        ("O_PATH", libc::O_PATH),
    ] {
        cx.say(name, opened(&r, open(path, flags), fd_flags));
    }
    cx.say(
        "O_TMPFILE",
        opened(&r, open(dir.cpath("."), libc::O_TMPFILE | libc::O_RDWR), |fd| {
            res(sys::write(fd, b"x"))
        }),
    );
    cx.say("unknown flag", opened(&r, open(path, 1 << 30), fd_flags));
    cx.say("created, mode", {
        let v =
            opened(&r, open(dir.cpath("m"), libc::O_CREAT | libc::O_WRONLY).len(0o7777), |_| {
                String::new()
            });
        use std::os::unix::fs::PermissionsExt;
        format!(
            "{v} {:o}",
            std::fs::metadata(dir.join("m")).map_or(0, |m| m.permissions().mode() & 0o7777)
        )
    });
}

fn open_dirfd(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"content");
    let d = std::fs::File::open(dir.join(".")).expect("open");
    let r = Ring::new(8, 0);
    let rel = mem::cstr("f");
    cx.say("directory", opened(&r, open(rel, 0).fd(d.as_raw_fd()), content));
    cx.say("a file", opened(&r, open(rel, 0).fd(f.as_raw_fd()), content));
    cx.say("closed number", opened(&r, open(rel, 0).fd(999), content));
    cx.say("absolute path, closed number", opened(&r, open(dir.cpath("f"), 0).fd(999), content));
    cx.say("FIXED_FILE", opened(&r, open(rel, 0).flags(FIXED_FILE).fd(0), content));
}

fn open_paths(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    cx.say("NULL", r.one(open(0, 0)));
    cx.say("unmapped", r.one(open(mem::BAD, 0)));
    cx.say("empty", r.one(open(mem::cstr(""), 0)));
    cx.say("5000 bytes", r.one(open(mem::cstr(&"x/".repeat(2500)), 0)));
    cx.say("a name of 300 bytes", r.one(open(mem::cstr(&"x".repeat(300)), 0)));
    let two = sys::pages(8192);
    // SAFETY: the second page is ours and unused; the string fills the first's end.
    unsafe {
        sys::munmap(two.add(4096), 4096);
        two.add(4090).write_bytes(b'a', 6);
        cx.say("not terminated before unmapped memory", r.one(open(two as usize + 4090, 0)));
    }
}

fn open_fifo(cx: &mut Cx) {
    let dir = Dir::new();
    dir.fifo("fifo");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("for reading", opened(&r, open(dir.cpath("fifo"), 0), |_| String::new()));
        cx.say(
            "for writing, O_NONBLOCK, no reader",
            r.one(open(dir.cpath("fifo"), libc::O_WRONLY | libc::O_NONBLOCK)),
        );
    });
}

fn openat2(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"content");
    let d = std::fs::File::open(dir.join(".")).expect("open");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let open2 = |path: usize, how: usize, size| {
            q(op::OPENAT2).fd(d.as_raw_fd()).addr(path).off(how as u64).len(size).ud(1)
        };
        let rel = mem::cstr("f");
        let how =
            |flags: u64, mode: u64, resolve: u64, extra: u64| leak([flags, mode, resolve, extra]);
        cx.say("plain", opened(&r, open2(rel, how(0, 0, 0, 0), 24), content));
        cx.say("size 8", r.one(open2(rel, how(0, 0, 0, 0), 8)));
        cx.say("size 0", r.one(open2(rel, how(0, 0, 0, 0), 0)));
        cx.say("size 32, zero", opened(&r, open2(rel, how(0, 0, 0, 0), 32), content));
        cx.say("size 32, not zero", r.one(open2(rel, how(0, 0, 0, 1), 32)));
        cx.say("unknown flag", r.one(open2(rel, how(1 << 40, 0, 0, 0), 24)));
        cx.say("unknown resolve flag", r.one(open2(rel, how(0, 0, 1 << 10, 0), 24)));
        cx.say("mode without O_CREAT", r.one(open2(rel, how(0, 0o644, 0, 0), 24)));
        cx.say("RESOLVE_BENEATH, ..", r.one(open2(mem::cstr(".."), how(0, 0, 8, 0), 24)));
        cx.say("RESOLVE_BENEATH", opened(&r, open2(rel, how(0, 0, 8, 0), 24), content));
        cx.say("RESOLVE_CACHED", opened(&r, open2(rel, how(0, 0, 0x20, 0), 24), content));
        cx.say("RESOLVE_NO_SYMLINKS, a file", opened(&r, open2(rel, how(0, 0, 4, 0), 24), content));
        cx.say("how NULL", r.one(open2(rel, 0, 24)));
        cx.say("how unmapped", r.one(open2(rel, mem::BAD, 24)));
        cx.say("path NULL", r.one(open2(0, how(0, 0, 0, 0), 24)));
        cx.say(
            "O_CLOEXEC",
            opened(&r, open2(rel, how(libc::O_CLOEXEC as u64, 0, 0, 0), 24), fd_flags),
        );
    });
}

fn close_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        let close = |fd| q(op::CLOSE).fd(fd).ud(1);
        let copy = sys::dup(*w);
        cx.say("good", r.one(close(copy)));
        cx.say("again", r.one(close(copy)));
        cx.say("-1", r.one(close(-1)));
        let copy = sys::dup(*w);
        cx.say("ASYNC", r.one(close(copy).flags(ASYNC)));
        let last = sys::dup(*w);
        drop(w);
        r.push_all(&[read(*p, at(buf(8)), 8, 2)]);
        r.submit();
        cx.say("the last write end ends a waiting read", {
            r.push(close(last));
            r.submit();
            show_sorted(r.collect(2))
        });
    });
}

fn statx_op(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"content");
    cx.both_setups(|cx, kind| {
        let (r, b) = (Ring::new(8, kind), buf(256));
        let out = at(b) as u64;
        let statx = |path, flags: i32| {
            q(op::STATX).fd(HERE).addr(path).len(0x7ff).off(out).opf(flags as u32).ud(1)
        };
        let size = |b: &[u8]| u64::from_ne_bytes(b[40..48].try_into().expect("8 bytes"));
        cx.say("file", format!("{} size {}", r.one(statx(dir.cpath("f"), 0)), size(b)));
        cx.say("missing", r.one(statx(dir.cpath("none"), 0)));
        cx.say("NULL path", r.one(statx(0, 0)));
        cx.say(
            "NULL path, AT_EMPTY_PATH, descriptor",
            r.one(statx(0, libc::AT_EMPTY_PATH).fd(f.as_raw_fd())),
        );
        cx.say("empty path", r.one(statx(mem::cstr(""), 0)));
        let empty = statx(mem::cstr(""), libc::AT_EMPTY_PATH).fd(f.as_raw_fd());
        b.fill(0);
        cx.say("empty path, AT_EMPTY_PATH", format!("{} size {}", r.one(empty), size(b)));
        cx.say("ASYNC", r.one(statx(dir.cpath("f"), 0).flags(ASYNC)));
        cx.say("buffer NULL", r.one(statx(dir.cpath("f"), 0).off(0)));
        cx.say("buffer unmapped", r.one(statx(dir.cpath("f"), 0).off(mem::BAD as u64)));
        cx.say("unknown flag", r.one(statx(dir.cpath("f"), 1)));
        cx.say("reserved mask bit", r.one(statx(dir.cpath("f"), 0).len(0x8000_0000)));
        cx.say("FIXED_FILE", r.one(statx(dir.cpath("f"), 0).flags(FIXED_FILE)));
    });
}

fn fsync_op(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"content");
    let (p, _w) = pipe();
    let ro = std::fs::File::open(dir.join("f")).expect("open");
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let fsync = |fd: i32| q(op::FSYNC).fd(fd).ud(1);
        cx.say("file", r.one(fsync(f.as_raw_fd())));
        cx.say("DATASYNC", r.one(fsync(f.as_raw_fd()).opf(1)));
        cx.say("unknown flag", r.one(fsync(f.as_raw_fd()).opf(2)));
        cx.say("range", r.one(fsync(f.as_raw_fd()).off(2).len(3)));
        cx.say("negative offset", r.one(fsync(f.as_raw_fd()).off(u64::MAX)));
        cx.say("read-only descriptor", r.one(fsync(ro.as_raw_fd())));
        cx.say("pipe", r.one(fsync(*p)));
        cx.say("closed number", r.one(fsync(999)));
        let range = |flags| q(op::SYNC_FILE_RANGE).fd(f.as_raw_fd()).len(4).opf(flags).ud(2);
        cx.say("SYNC_FILE_RANGE", r.one(range(7)));
        cx.say("SYNC_FILE_RANGE, unknown flag", r.one(range(8)));
        cx.say("SYNC_FILE_RANGE, negative offset", r.one(range(0).off(u64::MAX)));
        cx.say("SYNC_FILE_RANGE, pipe", r.one(range(0).fd(*p)));
    });
}

fn size_of_file(f: &std::fs::File) -> u64 {
    f.metadata().map_or(0, |m| m.len())
}

fn fallocate_op(cx: &mut Cx) {
    let dir = Dir::new();
    let (p, _w) = pipe();
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"content");
        let r = Ring::new(8, kind);
        let falloc = |off: i64, len: i64, mode: u32| {
            q(op::FALLOCATE).fd(f.as_raw_fd()).off(off as u64).addr(len as usize).len(mode).ud(1)
        };
        cx.say("10000 at 0", format!("{} size {}", r.one(falloc(0, 10_000, 0)), size_of_file(&f)));
        cx.say(
            "KEEP_SIZE",
            format!("{} size {}", r.one(falloc(10_000, 10_000, 1)), size_of_file(&f)),
        );
        cx.say(
            "PUNCH_HOLE|KEEP_SIZE",
            format!("{} size {}", r.one(falloc(0, 4096, 3)), size_of_file(&f)),
        );
        cx.say("length 0", r.one(falloc(0, 0, 0)));
        cx.say("negative offset", r.one(falloc(-1, 10, 0)));
        cx.say("negative length", r.one(falloc(0, -1, 0)));
        cx.say("unknown mode", r.one(falloc(0, 10, 0x4000)));
        cx.say("pipe", r.one(falloc(0, 10, 0).fd(*p)));
        cx.say("closed number", r.one(falloc(0, 10, 0).fd(999)));
    });
}

fn fadvise_op(cx: &mut Cx) {
    let dir = Dir::new();
    let f = dir.file("f", b"content");
    let (p, _w) = pipe();
    let r = Ring::new(8, 0);
    let advise = |a| q(op::FADVISE).fd(f.as_raw_fd()).len(4).opf(a).ud(1);
    for a in 0..7 {
        cx.say(&format!("advice {a}"), r.one(advise(a)));
    }
    cx.say("64-bit length", r.one(advise(0).addr(1 << 33).len(0)));
    cx.say("negative offset", r.one(advise(4).off(u64::MAX)));
    cx.say("pipe", r.one(advise(0).fd(*p)));
    cx.say("closed number", r.one(advise(0).fd(999)));
}

fn madvise_op(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let page = sys::pages(8192);
    // SAFETY: the page is ours.
    unsafe { page.write(77) };
    let advise = |addr: usize, len, a: i32| q(op::MADVISE).addr(addr).len(len).opf(a as u32).ud(1);
    cx.say("NORMAL", r.one(advise(page as usize, 4096, 0)));
    cx.say("DONTNEED", r.one(advise(page as usize, 4096, libc::MADV_DONTNEED)));
    // SAFETY: the page is ours.
    cx.say("content", unsafe { page.read() });
    cx.say("unaligned", r.one(advise(page as usize + 1, 4096, 0)));
    cx.say("length 0", r.one(advise(page as usize, 0, 0)));
    cx.say("unmapped", r.one(advise(0x1000, 4096, 0)));
    cx.say("unknown advice", r.one(advise(page as usize, 4096, 999)));
    cx.say("64-bit length in off", r.one(advise(page as usize, 0, 0).off(8192)));
}

fn ftruncate_op(cx: &mut Cx) {
    let dir = Dir::new();
    let (p, _w) = pipe();
    let ro = {
        dir.file("r", b"content");
        std::fs::File::open(dir.join("r")).expect("open")
    };
    cx.both_setups(|cx, kind| {
        let f = dir.file("f", b"content");
        let r = Ring::new(8, kind);
        let trunc = |len: i64| q(op::FTRUNCATE).fd(f.as_raw_fd()).off(len as u64).ud(1);
        for len in [3, 1000, 0, -1] {
            cx.say(
                &format!("to {len}"),
                format!("{} size {}", r.one(trunc(len)), size_of_file(&f)),
            );
        }
        cx.say("read-only descriptor", r.one(trunc(1).fd(ro.as_raw_fd())));
        cx.say("pipe", r.one(trunc(1).fd(*p)));
        cx.say("closed number", r.one(trunc(1).fd(999)));
    });
}

fn unlink_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        dir.file("f", b"");
        std::fs::create_dir(dir.join("d")).expect("mkdir");
        let r = Ring::new(8, kind);
        let unlink = |name: &str, flags: u32| {
            q(op::UNLINKAT).fd(HERE).addr(dir.cpath(name)).opf(flags).ud(1)
        };
        let rmdir = libc::AT_REMOVEDIR as u32;
        cx.say("rmdir of a file", r.one(unlink("f", rmdir)));
        cx.say("file", r.one(unlink("f", 0)));
        cx.say("again", r.one(unlink("f", 0)));
        cx.say("unlink of a directory", r.one(unlink("d", 0)));
        cx.say("directory", r.one(unlink("d", rmdir)));
        cx.say("unknown flag", r.one(unlink("f", 1)));
        cx.say(
            "closed number, relative",
            r.one(q(op::UNLINKAT).fd(999).addr(mem::cstr("f")).ud(1)),
        );
    });
}

fn rename_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        dir.file("a", b"A");
        dir.file("b", b"B");
        let r = Ring::new(8, kind);
        let rename = |from: &str, to: &str, flags| {
            q(op::RENAMEAT)
                .fd(HERE)
                .addr(dir.cpath(from))
                .len(HERE as u32)
                .off(dir.cpath(to) as u64)
                .opf(flags)
                .ud(1)
        };
        let text = |n: &str| std::fs::read_to_string(dir.join(n)).unwrap_or("none".into());
        cx.say("NOREPLACE over a file", r.one(rename("a", "b", 1)));
        cx.say("EXCHANGE", format!("{} {} {}", r.one(rename("a", "b", 2)), text("a"), text("b")));
        cx.say("plain", format!("{} {} {}", r.one(rename("a", "b", 0)), text("a"), text("b")));
        cx.say("missing", r.one(rename("none", "x", 0)));
        cx.say("unknown flag", r.one(rename("b", "c", 64)));
        cx.say("NOREPLACE|EXCHANGE", r.one(rename("b", "c", 3)));
    });
}

fn mkdir_op(cx: &mut Cx) {
    use std::os::unix::fs::PermissionsExt;
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        let r = Ring::new(8, kind);
        let mkdir =
            |name: &str, mode| q(op::MKDIRAT).fd(HERE).addr(dir.cpath(name)).len(mode).ud(1);
        cx.say("new", r.one(mkdir("d", 0o750)));
        cx.say(
            "mode",
            format!(
                "{:o}",
                std::fs::metadata(dir.join("d")).map_or(0, |m| m.permissions().mode() & 0o7777)
            ),
        );
        cx.say("again", r.one(mkdir("d", 0o750)));
        cx.say("below nothing", r.one(mkdir("x/y", 0o750)));
    });
}

fn symlink_op(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        let r = Ring::new(8, kind);
        let link = |target: &str, name: &str| {
            q(op::SYMLINKAT).fd(HERE).addr(mem::cstr(target)).off(dir.cpath(name) as u64).ud(1)
        };
        cx.say("new", r.one(link("where/ever", "l")));
        cx.say(
            "target",
            std::fs::read_link(dir.join("l")).map_or("none".into(), |p| p.display().to_string()),
        );
        cx.say("again", r.one(link("where/ever", "l")));
        cx.say("empty target", r.one(link("", "m")));
    });
}

fn linkat_op(cx: &mut Cx) {
    use std::os::unix::fs::MetadataExt;
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        let f = dir.file("a", b"A");
        std::os::unix::fs::symlink(dir.join("a"), dir.join("s")).expect("symlink");
        let r = Ring::new(8, kind);
        let link = |from: &str, to: &str, flags: i32| {
            q(op::LINKAT)
                .fd(HERE)
                .addr(dir.cpath(from))
                .len(HERE as u32)
                .off(dir.cpath(to) as u64)
                .opf(flags as u32)
                .ud(1)
        };
        cx.say(
            "new",
            format!("{} links {}", r.one(link("a", "b", 0)), f.metadata().map_or(0, |m| m.nlink())),
        );
        cx.say("over a file", r.one(link("a", "b", 0)));
        cx.say("missing", r.one(link("none", "x", 0)));
        cx.say(
            "of a symbolic link",
            format!("{} links {}", r.one(link("s", "c", 0)), f.metadata().map_or(0, |m| m.nlink())),
        );
        let follow = r.one(link("s", "d", libc::AT_SYMLINK_FOLLOW));
        cx.say(
            "AT_SYMLINK_FOLLOW",
            format!("{follow} links {}", f.metadata().map_or(0, |m| m.nlink())),
        );
        cx.say("unknown flag", r.one(link("a", "e", 1)));
    });
}

fn path_bad(cx: &mut Cx) {
    let dir = Dir::new();
    dir.file("f", b"");
    let good = dir.cpath("f");
    let r = Ring::new(8, 0);
    for (name, bad) in [("NULL", 0), ("unmapped", mem::BAD), ("kernel", 1 << 63)] {
        let mut ask = |what: &str, q: Q| cx.say(&format!("{what}, {name}"), r.one(q.ud(1)));
        let at_here = |o| q(o).fd(HERE);
        ask("UNLINKAT", at_here(op::UNLINKAT).addr(bad));
        ask("MKDIRAT", at_here(op::MKDIRAT).addr(bad));
        ask("RENAMEAT old", at_here(op::RENAMEAT).addr(bad).len(HERE as u32).off(good as u64));
        ask("RENAMEAT new", at_here(op::RENAMEAT).addr(good).len(HERE as u32).off(bad as u64));
        ask("SYMLINKAT target", at_here(op::SYMLINKAT).addr(bad).off(good as u64));
        ask("SYMLINKAT name", at_here(op::SYMLINKAT).addr(good).off(bad as u64));
        ask("LINKAT old", at_here(op::LINKAT).addr(bad).len(HERE as u32).off(good as u64));
        ask("LINKAT new", at_here(op::LINKAT).addr(good).len(HERE as u32).off(bad as u64));
        ask("STATX", at_here(op::STATX).addr(bad).off(at(buf(256)) as u64));
    }
}

/// A request of each path operation with `path` as its (first) path.
fn each_path_op(path: usize, good: usize, flags: u32) -> Vec<(&'static str, Q)> {
    let stat = at(buf(256)) as u64;
    let q = |o| q(o).fd(HERE).addr(path).opf(flags);
    vec![
        ("OPENAT", q(op::OPENAT)),
        ("STATX", q(op::STATX).len(0x7ff).off(stat)),
        ("UNLINKAT", q(op::UNLINKAT)),
        ("RENAMEAT", q(op::RENAMEAT).len(HERE as u32).off(good as u64)),
        ("MKDIRAT", q(op::MKDIRAT)),
        ("SYMLINKAT", q(op::SYMLINKAT).off(good as u64)),
        ("LINKAT", q(op::LINKAT).len(HERE as u32).off(good as u64)),
    ]
}

fn path_prep(cx: &mut Cx) {
    let dir = Dir::new();
    let good = dir.cpath("new");
    for (kind, path) in
        [("empty", mem::cstr("")), ("unmapped", mem::BAD), ("missing", dir.cpath("none/x"))]
    {
        for (name, q) in each_path_op(path, good, 0) {
            let r = Ring::new(8, 0);
            r.push_all(&[q.ud(1), nop(2)]);
            let s = r.submit();
            cx.say(&format!("{name}, {kind}: of 2 taken"), res(s));
            r.submit();
            cx.say(&format!("{name}, {kind}"), show_sorted(r.collect(2)));
            r.push_all(&[nop(1).flags(IO_HARDLINK), q.ud(2).flags(IO_HARDLINK), nop(3)]);
            cx.say(&format!("{name}, {kind}: in a hard chain"), r.go_sorted(3));
        }
    }
}

fn path_check_order(cx: &mut Cx) {
    let dir = Dir::new();
    let r = Ring::new(8, 0);
    for (kind, path) in
        [("empty", mem::cstr("")), ("unmapped", mem::BAD), ("missing", dir.cpath("none"))]
    {
        for (name, q) in each_path_op(path, dir.cpath("new"), 1) {
            if name != "OPENAT" {
                cx.say(&format!("{name}, {kind}, flag 1"), r.one(q.ud(1)));
            }
        }
    }
    cx.say(
        "SYMLINKAT, empty target, unmapped name",
        r.one(q(op::SYMLINKAT).fd(HERE).addr(mem::cstr("")).off(8).ud(1)),
    );
    let open = |flags: i32| {
        q(op::OPENAT).fd(HERE).addr(dir.cpath("none")).opf(flags as u32).len(0o600).ud(1)
    };
    cx.say("O_DIRECTORY|O_RDWR, missing", r.one(open(libc::O_DIRECTORY | libc::O_RDWR)));
    cx.say("O_DIRECTORY|O_CREAT, missing", r.one(open(libc::O_DIRECTORY | libc::O_CREAT)));
    cx.say("unknown flag, missing", r.one(open(1 << 30)));
}

fn path_chain(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        let r = Ring::new(16, kind);
        r.reg(register::FILES, leak([-1i32]), 1);
        let (d, a, b) = (dir.cpath("d"), dir.cpath("d/a"), dir.cpath("d/b"));
        let create = (libc::O_CREAT | libc::O_RDWR) as u32;
        let chain = [
            q(op::MKDIRAT).fd(HERE).addr(d).len(0o700).ud(1),
            q(op::OPENAT).fd(HERE).addr(a).opf(create).len(0o600).fi(1).ud(2),
            write(0, mem::bytes(b"data"), 4, 3).flags(FIXED_FILE),
            q(op::RENAMEAT).fd(HERE).addr(a).len(HERE as u32).off(b as u64).ud(4),
            q(op::CLOSE).fd(0).fi(1).ud(5),
            q(op::STATX).fd(HERE).addr(b).len(0x7ff).off(at(buf(256)) as u64).ud(6),
            q(op::UNLINKAT).fd(HERE).addr(b).ud(7),
            q(op::UNLINKAT).fd(HERE).addr(d).opf(libc::AT_REMOVEDIR as u32).ud(8),
            q(op::STATX).fd(HERE).addr(d).len(0x7ff).off(at(buf(256)) as u64).ud(9),
        ];
        let last = chain.len() - 1;
        for (i, mut q) in chain.into_iter().enumerate() {
            q.0.flags |= if i < last { IO_LINK } else { 0 };
            r.push(q);
        }
        cx.say("chain", r.go(9));
    });
}

fn path_many(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let dir = Dir::new();
        let r = Ring::new(256, kind);
        let run = |make: &dyn Fn(usize) -> Q| {
            for i in 0..200u64 {
                r.push(make(dir.cpath(&format!("f{i}"))).ud(i));
            }
            r.submit();
            let c = r.collect(200);
            for c in &c {
                if c.res > 0 {
                    sys::close(c.res);
                }
            }
            c.iter().filter(|c| c.res >= 0).count()
        };
        let create = (libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC) as u32;
        cx.say("created", run(&|p| q(op::OPENAT).fd(HERE).addr(p).opf(create).len(0o600)));
        cx.say(
            "statx",
            run(&|p| q(op::STATX).fd(HERE).addr(p).len(0x7ff).off(at(buf(256)) as u64)),
        );
        cx.say("opened", run(&|p| q(op::OPENAT).fd(HERE).addr(p)));
        cx.say("removed", run(&|p| q(op::UNLINKAT).fd(HERE).addr(p)));
        cx.say("gone", run(&|p| q(op::STATX).fd(HERE).addr(p).len(0x7ff).off(at(buf(256)) as u64)));
    });
}

fn umask_cwd(cx: &mut Cx) {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    std::env::set_current_dir(dir.join(".")).expect("chdir");
    // SAFETY: no memory involved.
    unsafe { libc::umask(0o077) };
    let r = Ring::new(8, 0);
    let create = (libc::O_CREAT | libc::O_RDWR) as u32;
    for (name, flags) in [("a", 0), ("b", ASYNC)] {
        let v = opened(
            &r,
            q(op::OPENAT).fd(HERE).addr(mem::cstr(name)).opf(create).len(0o666).flags(flags).ud(1),
            |_| String::new(),
        );
        let mode = std::fs::metadata(dir.join(name)).map_or(0, |m| m.permissions().mode() & 0o777);
        cx.say(name, format!("{v} {mode:o}"));
    }
    std::env::set_current_dir("/").expect("chdir");
}
