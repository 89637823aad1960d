//! Operations on attributes, sockets and descriptors: xattr, bind, listen, vectors in a registered buffer,
//! installing a slot, pipes, epoll_wait.

use crate::prelude::*;
use anyring_uapi::sqe::FILE_INDEX_ALLOC;

use super::matrix_base::loopback;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(xattr_values, "setting and getting attributes: values, room, flags"),
    scenario!(xattr_refusals, "attributes: names, pointers, paths"),
    scenario!(bind_listen_op, "a listening socket made by requests, and refusals"),
    scenario!(rwv_fixed, "vectors inside a registered buffer"),
    scenario!(rwv_fixed_bad, "vectors outside it, empty ones, missing buffers"),
    scenario!(fd_install, "a slot gets a descriptor"),
    scenario!(fd_install_linked, "installing what the link before opened"),
    scenario!(pipe_plain, "PIPE with descriptors"),
    scenario!(pipe_direct, "PIPE into slots"),
    scenario!(pipe_rollback, "PIPE that finds no room leaves nothing behind"),
    scenario!(epoll_wait_op, "EPOLL_WAIT: ready, later ready, several"),
    scenario!(epoll_wait_ring, "EPOLL_WAIT on a set that holds another ring"),
    scenario!(epoll_wait_bad, "EPOLL_WAIT: refusals, cancel"),
];

fn xattr(code: u8, name: &str, value: usize, len: u32) -> Q {
    q(code).addr(mem::cstr(name)).off(value as u64).len(len)
}

fn xattr_values(cx: &mut Cx) {
    let (r, dir) = (Ring::new(8, 0), Dir::new());
    let f = dir.file("f", b"x");
    let path = dir.cpath("f") as u64;
    let (bar, room) = (mem::bytes(b"barbaz"), buf(16));
    let set =
        |code, len, flags| xattr(code, "user.a", bar, len).fd(f.as_raw_fd()).addr3(path).opf(flags);
    let get = |code, len| xattr(code, "user.a", at(room), len).fd(f.as_raw_fd()).addr3(path);
    cx.say("get nothing", r.one(get(op::FGETXATTR, 16)));
    cx.say("replace nothing", r.one(set(op::FSETXATTR, 3, 2)));
    cx.say("set", r.one(set(op::FSETXATTR, 3, 0)));
    cx.say("create again", r.one(set(op::SETXATTR, 3, 1)));
    cx.say("get", r.one(get(op::FGETXATTR, 16)));
    cx.say("value", mem::text(&room[..4]));
    cx.say("set by path", r.one(set(op::SETXATTR, 6, 2)));
    cx.say("get by path", r.one(get(op::GETXATTR, 16)));
    cx.say("value", mem::text(&room[..7]));
    cx.say("no room", r.one(get(op::GETXATTR, 0)));
    cx.say("too little room", r.one(get(op::FGETXATTR, 2)));
    cx.say("empty value", r.one(set(op::FSETXATTR, 0, 0)));
    cx.say("get it", r.one(get(op::GETXATTR, 16)));
    cx.say("both flags", r.one(set(op::FSETXATTR, 3, 3)));
    cx.say("unknown flag", r.one(set(op::FSETXATTR, 3, 4)));
    r.reg(register::FILES, leak([f.as_raw_fd()]), 1);
    cx.say("fixed file", r.one(get(op::FGETXATTR, 16).fd(0).flags(FIXED_FILE)));
}

fn xattr_refusals(cx: &mut Cx) {
    let (r, dir) = (Ring::new(8, 0), Dir::new());
    let f = dir.file("f", b"x");
    let (bar, room) = (mem::bytes(b"bar"), at(buf(16)));
    for (what, code, value) in [("set", op::FSETXATTR, bar), ("get", op::FGETXATTR, room)] {
        let ask = |name: &str| xattr(code, name, value, 3).fd(f.as_raw_fd());
        cx.say(&format!("{what}: empty name"), r.one(ask("")));
        cx.say(&format!("{what}: 255"), r.one(ask(&format!("user.{}", "n".repeat(250)))));
        cx.say(&format!("{what}: 256"), r.one(ask(&format!("user.{}", "n".repeat(251)))));
        cx.say(&format!("{what}: 5000"), r.one(ask(&"n".repeat(5000))));
        cx.say(&format!("{what}: no namespace"), r.one(ask("foo")));
        cx.say(&format!("{what}: bad name"), r.one(ask("x").addr(mem::BAD)));
        cx.say(&format!("{what}: bad value"), r.one(ask("user.a").off(mem::BAD as u64)));
        cx.say(&format!("{what}: bad fd"), r.one(ask("user.a").fd(999)));
        cx.say(&format!("{what}: 65537"), r.one(ask("user.a").len(65537)));
    }
    for code in [op::SETXATTR, op::GETXATTR] {
        let ask = || xattr(code, "user.a", room, 3);
        cx.say("bad path", r.one(ask().addr3(mem::BAD as u64)));
        cx.say("no file", r.one(ask().addr3(dir.cpath("none") as u64)));
        cx.say("empty path", r.one(ask().addr3(mem::cstr("") as u64)));
    }
}

fn tcp() -> Fd {
    // SAFETY: no memory involved.
    Fd(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })
}

fn bind_listen_op(cx: &mut Cx) {
    let (r, s) = (Ring::new(8, 0), tcp());
    let (p, _w) = pipe();
    let bind = |fd: i32| q(op::BIND).fd(fd).addr(loopback(0)).off(16);
    cx.say("not a socket", r.one(bind(*p)));
    cx.say("listen on a pipe", r.one(q(op::LISTEN).fd(*p).len(1)));
    cx.say("short address", r.one(bind(*s).off(3)));
    cx.say("no address", r.one(bind(*s).addr(0).off(0)));
    cx.say("129 bytes", r.one(bind(*s).off(129)));
    cx.say("bad pointer", r.one(bind(*s).addr(mem::BAD)));
    cx.say("high half of the length", r.one(bind(*s).off(16 | 1 << 32)));
    cx.say("again", r.one(bind(*s)));
    cx.say("negative backlog", r.one(q(op::LISTEN).fd(*s).len(u32::MAX)));
    cx.say("listen", r.one(q(op::LISTEN).fd(*s).len(4)));
    r.reg(register::FILES, leak([-1i32, -1]), 2);
    r.push(
        q(op::SOCKET).fd(libc::AF_INET).off(libc::SOCK_STREAM as u64).fi(1).flags(IO_LINK).ud(1),
    );
    r.push(bind(0).flags(FIXED_FILE | IO_LINK).ud(2));
    r.push(q(op::LISTEN).fd(0).len(4).flags(FIXED_FILE).ud(3));
    cx.say("a chain on a slot", r.go(3));
}

fn fixed_ring() -> (Ring, usize) {
    let (r, fixed) = (Ring::new(8, 0), sys::pages(8192) as usize);
    r.reg(register::BUFFERS, mem::iovecs(&[(fixed, 4096), (0, 0)]), 2);
    (r, fixed)
}

fn rwv_fixed(cx: &mut Cx) {
    let ((r, fixed), dir) = (fixed_ring(), Dir::new());
    let f = dir.file("f", b"0123456789");
    let some = mem::iovecs(&[(fixed + 10, 3), (fixed, 2), (fixed + 4000, 96)]);
    let read = q(op::READV_FIXED).fd(f.as_raw_fd()).addr(some).len(3);
    cx.say("read", r.one(read));
    // SAFETY: the mapping is the scenario's own.
    let memory = unsafe { std::slice::from_raw_parts(fixed as *const u8, 4096) };
    cx.say(
        "where it went",
        format!(
            "{} {} {}",
            mem::text(&memory[10..13]),
            mem::text(&memory[..2]),
            mem::text(&memory[4000..4005])
        ),
    );
    cx.say(
        "write",
        r.one(Q(anyring_uapi::Sqe { opcode: op::WRITEV_FIXED, ..read.0 }).off(10).len(2)),
    );
    cx.say("file", std::fs::read_to_string(dir.join("f")).expect("read"));
    let (p, w) = pipe();
    cx.say("to a pipe", r.one(q(op::WRITEV_FIXED).fd(*w).addr(some).len(2)));
    cx.say("from it, short", r.one(q(op::READV_FIXED).fd(*p).addr(some).len(3)));
    r.push(q(op::READV_FIXED).fd(*p).addr(some).len(2).ud(7));
    cx.say("from it, empty", r.brief(1));
    sys::write(*w, b"abcd");
    cx.say("then filled", r.go(1));
    cx.say("ASYNC", r.one(read.flags(ASYNC)));
}

fn rwv_fixed_bad(cx: &mut Cx) {
    let ((r, fixed), dir) = (fixed_ring(), Dir::new());
    let f = dir.file("f", b"0123456789");
    let ask = |v: &[(usize, usize)], buf: u16| {
        q(op::READV_FIXED).fd(f.as_raw_fd()).addr(mem::iovecs(v)).len(v.len() as u32).buf(buf)
    };
    cx.say("no vectors", r.one(ask(&[], 0)));
    cx.say("an empty vector", r.one(ask(&[(fixed, 0)], 0)));
    cx.say("one of them empty", r.one(ask(&[(fixed, 1), (fixed, 0)], 0)));
    cx.say("beyond", r.one(ask(&[(fixed, 1), (fixed + 4096, 1)], 0)));
    cx.say("across the end", r.one(ask(&[(fixed + 4000, 97)], 0)));
    cx.say("before", r.one(ask(&[(fixed - 1, 2)], 0)));
    cx.say("empty slot", r.one(ask(&[(fixed, 1)], 1)));
    cx.say("no slot", r.one(ask(&[(fixed, 1)], 9)));
    cx.say("1025 vectors", r.one(ask(&[(fixed, 1); 1025], 0)));
    cx.say("1024 vectors", r.one(ask(&[(fixed, 1); 1024], 0)));
    cx.say("bad pointer", r.one(ask(&[(fixed, 1)], 0).addr(mem::BAD)));
    cx.say("a huge vector", r.one(ask(&[(fixed, usize::MAX)], 0)));
    cx.say("no vectors, no slot", r.one(ask(&[], 9)));
    cx.say("bad fd", r.one(ask(&[(fixed, 1)], 0).fd(999)));
}

fn install(slot: i32) -> Q {
    q(op::FIXED_FD_INSTALL).fd(slot).flags(FIXED_FILE)
}

/// The descriptor in the next CQE, or its result.
fn taken(r: &Ring, q: Q) -> Result<Fd, String> {
    r.push(q);
    r.submit();
    r.wait(1, 2000);
    match r.take().first().map(|c| c.res) {
        Some(fd) if fd > 2 => Ok(Fd(fd)),
        Some(other) => Err(res(other).to_string()),
        None => Err("nothing".into()),
    }
}

fn cloexec(fd: i32) -> i32 {
    // SAFETY: no memory involved.
    unsafe { libc::fcntl(fd, libc::F_GETFD) }
}

fn fd_install(cx: &mut Cx) {
    let (r, (p, w)) = (Ring::new(8, 0), pipe());
    cx.say("no table", r.one(install(0)));
    r.reg(register::FILES, leak([*w, -1i32]), 2);
    let made = taken(&r, install(0)).expect("installed");
    cx.say("close-on-exec", cloexec(*made));
    let open = taken(&r, install(0).opf(1)).expect("installed");
    cx.say("without", cloexec(*open));
    sys::write(*open, b"hi");
    cx.say("it is the pipe", mem::text(&sys::read(*p, 9).expect("read")));
    cx.say("empty slot", r.one(install(1)));
    cx.say("no slot", r.one(install(2)));
    cx.say("not a slot", r.one(install(*w).flags(0)));
    cx.say("other flag", r.one(install(0).opf(2)));
    let me = r.reg(register::PERSONALITY, 0, 0) as u16;
    cx.say("personality", r.one(install(0).pers(me)));
    r.reg(register::UNREGISTER_FILES, 0, 0);
    cx.say("lives on", sys::write(*open, b"!"));
    cx.say("unused", r.cqes());
}

fn fd_install_linked(cx: &mut Cx) {
    let (r, dir) = (Ring::new(8, 0), Dir::new());
    drop(dir.file("f", b"content"));
    r.reg(register::FILES, leak([-1i32; 2]), 2);
    r.push(q(op::OPENAT).fd(libc::AT_FDCWD).addr(dir.cpath("f")).fi(1).flags(IO_LINK).ud(1));
    r.push(install(0).ud(2));
    r.submit();
    r.wait(2, 2000);
    let cqes = r.take();
    cx.say("open", res(cqes[0].res));
    cx.say("read it", mem::text(&sys::read(cqes[1].res, 20).unwrap_or_default()));
    sys::close(cqes[1].res);
}

fn pipe_op(addr: usize) -> Q {
    q(op::PIPE).fd(0).addr(addr)
}

fn two(addr: usize) -> [i32; 2] {
    // SAFETY: leaked memory of two integers.
    unsafe { (addr as *const [i32; 2]).read_volatile() }
}

fn pipe_plain(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    for (what, flags) in [
        ("plain", 0),
        ("CLOEXEC", libc::O_CLOEXEC),
        ("NONBLOCK", libc::O_NONBLOCK),
        ("DIRECT", libc::O_DIRECT),
    ] {
        let addr = leak([-1i32; 2]);
        cx.say(what, r.one(pipe_op(addr).opf(flags as u32)));
        let ends = two(addr);
        // SAFETY: no memory involved.
        let status = ends.map(|fd| unsafe { libc::fcntl(fd, libc::F_GETFL) });
        cx.say(
            "ends",
            format!("{} {} {:#x} {:#x}", cloexec(ends[0]), ends[1] - ends[0], status[0], status[1]),
        );
        sys::write(ends[1], b"x");
        cx.say("works", mem::text(&sys::read(ends[0], 4).unwrap_or_default()));
        let _ = ends.map(sys::close);
    }
    cx.say("other flag", r.one(pipe_op(leak([0i32; 2])).opf(2)));
    cx.say("fd -1", r.one(pipe_op(leak([0i32; 2])).fd(-1)));
    let before = sys::dup(0);
    cx.say("bad pointer", r.one(pipe_op(mem::BAD)));
    let after = sys::dup(0);
    cx.say("nothing leaked", after - before);
}

fn pipe_direct(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let addr = leak([-1i32; 2]);
    cx.say("no table", r.one(pipe_op(addr).fi(1)));
    cx.say("no table, any", r.one(pipe_op(addr).fi(FILE_INDEX_ALLOC)));
    r.reg(register::FILES, leak([-1i32; 6]), 6);
    cx.say("slots 1 and 2", r.one(pipe_op(addr).fi(2)));
    cx.say("numbers", format!("{:?}", two(addr)));
    r.push(write(2, mem::bytes(b"hey"), 3, 1).flags(FIXED_FILE | IO_LINK));
    r.push(read(1, at(buf(8)), 8, 2).flags(FIXED_FILE));
    cx.say("through it", r.go(2));
    cx.say("any", r.one(pipe_op(addr).fi(FILE_INDEX_ALLOC)));
    cx.say("numbers", format!("{:?}", two(addr)));
    cx.say("CLOEXEC", r.one(pipe_op(addr).fi(1).opf(libc::O_CLOEXEC as u32)));
    cx.say("the last slot only", r.one(pipe_op(addr).fi(6)));
    cx.say("beyond", r.one(pipe_op(addr).fi(7)));
    cx.say("over used ones", r.one(pipe_op(addr).fi(2)));
    cx.say("NONBLOCK", r.one(pipe_op(addr).fi(1).opf(libc::O_NONBLOCK as u32)));
    cx.say("empty read", r.brief(0));
}

/// Which of the slots hold a file.
fn used(r: &Ring, slots: i32) -> String {
    (0..slots)
        .map(|i| match taken(r, install(i)) {
            Ok(_) => 'x',
            Err(_) => '.',
        })
        .collect()
}

fn pipe_rollback(cx: &mut Cx) {
    let (r, (p, _w)) = (Ring::new(8, 0), pipe());
    r.reg(register::FILES, leak([*p, -1, *p, *p]), 4);
    let addr = leak([-1i32; 2]);
    cx.say("one free, any", r.one(pipe_op(addr).fi(FILE_INDEX_ALLOC)));
    cx.say("slots", used(&r, 4));
    cx.say("numbers", format!("{:?}", two(addr)));
    cx.say("last slot", r.one(pipe_op(addr).fi(4)));
    cx.say("slots", used(&r, 4));
    cx.say("bad pointer", r.one(pipe_op(mem::BAD).fi(1)));
    cx.say("slots", used(&r, 4));
}

fn epoll_wait_op(cx: &mut Cx) {
    let (r, (p, w), (p2, w2)) = (Ring::new(8, 0), pipe(), pipe());
    // SAFETY: no memory involved.
    let ep = Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
    for (fd, token) in [(*p, 5), (*p2, 6)] {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: one valid event.
        unsafe { libc::epoll_ctl(*ep, libc::EPOLL_CTL_ADD, fd, &mut event) };
    }
    let events = buf(64);
    let ask = q(op::EPOLL_WAIT).fd(*ep).addr(at(events));
    sys::write(*w, b"x");
    cx.say("ready", r.one(ask.len(4)));
    cx.say("event", format!("{:?}", &events[..12]));
    sys::write(*w2, b"x");
    cx.say("two", r.one(ask.len(4)));
    cx.say("room for one", r.one(ask.len(1)));
    sys::read(*p, 1).expect("read");
    sys::read(*p2, 1).expect("read");
    r.push(ask.len(4).ud(7));
    cx.say("none", r.brief(1));
    sys::write(*w2, b"x");
    cx.say("later", r.go(1));
    cx.say("event", format!("{:?}", &events[4..12]));
    cx.say("ASYNC", r.one(ask.len(4).flags(ASYNC)));
    r.reg(register::FILES, leak([*ep]), 1);
    cx.say("fixed file", r.one(ask.fd(0).len(4).flags(FIXED_FILE)));
}

fn epoll_wait_bad(cx: &mut Cx) {
    let (r, (p, _w)) = (Ring::new(8, 0), pipe());
    // SAFETY: no memory involved.
    let ep = Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
    let ask = q(op::EPOLL_WAIT).fd(*ep).addr(at(buf(64))).len(1);
    cx.say("a pipe", r.one(ask.fd(*p)));
    cx.say("not open", r.one(ask.fd(999)));
    cx.say("no room", r.one(ask.len(0)));
    cx.say("negative", r.one(ask.len(u32::MAX)));
    r.push(ask.ud(3));
    r.submit();
    r.push(cancel(3, 4));
    cx.say("cancelled", r.go_sorted(2));
    r.push(ask.ud(3));
    r.submit();
    r.push(q(op::ASYNC_CANCEL).fd(*ep).opf(2).ud(4));
    cx.say("cancelled by file", r.go_sorted(2));
}

fn epoll_wait_ring(cx: &mut Cx) {
    let (r, other) = (Ring::new(8, 0), Ring::new(8, 0));
    // SAFETY: no memory involved.
    let ep = Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 5 };
    // SAFETY: one valid event.
    unsafe { libc::epoll_ctl(*ep, libc::EPOLL_CTL_ADD, other.fd, &mut event) };
    let ask = q(op::EPOLL_WAIT).fd(*ep).addr(at(buf(64))).len(4);
    other.push(nop(1));
    other.submit();
    cx.say("ready", r.one(ask));
    cx.say("taken", other.cqes());
    r.push(ask.ud(2));
    cx.say("none", r.brief(1));
    other.push(nop(3));
    other.submit();
    cx.say("ready again", r.go(1));
}
