//! Waits that no file stands for: WAITID, and the futex operations.

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(waitid_exit, "WAITID: a child that has ended, one that ends later"),
    scenario!(waitid_kinds, "WAITID by process group, by pidfd, any child, stopped and continued"),
    scenario!(waitid_nohang, "WNOHANG and WNOWAIT"),
    scenario!(waitid_bad, "WAITID: no child, wrong options, bad pointers"),
    scenario!(waitid_cancel, "cancelling WAITID"),
];

const P_ALL: u32 = 0;
const P_PID: u32 = 1;
const P_PGID: u32 = 2;
const P_PIDFD: u32 = 3;
const EXITED: u32 = libc::WEXITED as u32;
const NOHANG: u32 = libc::WNOHANG as u32;
const NOWAIT: u32 = libc::WNOWAIT as u32;

/// A child that reads a byte from a pipe, then exits with 7.
struct Child {
    pid: i32,
    bell: Fd,
}

impl Child {
    fn new() -> Child {
        let (r, w) = pipe();
        // SAFETY: the child makes only async-signal-safe calls.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            sys::close(*w);
            let mut byte = [0u8; 1];
            // SAFETY: one byte of its own.
            unsafe {
                libc::read(*r, byte.as_mut_ptr().cast(), 1);
                libc::_exit(7);
            }
        }
        Child { pid, bell: w }
    }
    fn end(&self) {
        sys::write(*self.bell, b"x");
    }
    fn ended() -> Child {
        let c = Child::new();
        c.end();
        // It is still to be waited for afterwards.
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: room for one siginfo.
        unsafe {
            libc::waitid(
                libc::P_PID,
                c.pid as u32,
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        c
    }
}

fn waitid(which: u32, id: i32, options: u32, info: &[i32; 32]) -> Q {
    q(op::WAITID).fd(id).len(which).fi(options).off(at(info) as u64)
}

fn room() -> &'static mut [i32; 32] {
    Box::leak(Box::new([-1; 32]))
}

/// signo, errno, code, the hole, whether it is this child, status.
fn told(info: &[i32; 32], c: &Child) -> String {
    // SAFETY: the array is there; the kernel writes it behind the compiler's back.
    let i = unsafe { std::ptr::from_ref(info).read_volatile() };
    let pid = if i[4] == c.pid { "pid".into() } else { i[4].to_string() };
    format!("{} {} {} {} {pid} {} {} {}", i[0], i[1], i[2], i[3], i[5], i[6], i[7])
}

fn waitid_exit(cx: &mut Cx) {
    cx.both_setups(|cx, flags| {
        let r = Ring::new(8, flags);
        let (c, i) = (Child::ended(), room());
        cx.say("ended", r.one(waitid(P_PID, c.pid, EXITED, i)));
        cx.say("told", told(i, &c));
        let (c, i) = (Child::new(), room());
        r.push(waitid(P_PID, c.pid, EXITED, i).ud(1));
        cx.say("alive", r.brief(1));
        c.end();
        cx.say("ends", r.go(1));
        cx.say("told", told(i, &c));
        let (c, i) = (Child::new(), room());
        r.push(waitid(P_PID, c.pid, EXITED, i).ud(1));
        r.push(waitid(P_PID, c.pid, EXITED | NOWAIT, room()).ud(1));
        r.submit();
        // SAFETY: a child of this process.
        unsafe { libc::kill(c.pid, libc::SIGKILL) };
        let first = r.collect(2).iter().map(|c| c.res).max();
        cx.say("two waits, at least one", first.map_or("none".into(), res));
        let (c, i) = (Child::new(), room());
        r.push(waitid(P_PID, c.pid, EXITED, i).ud(1).flags(ASYNC | IO_LINK));
        r.push(nop(2));
        cx.say("ASYNC, linked", r.brief(1));
        c.end();
        cx.say("ends", r.go(2));
        cx.say("without siginfo", {
            let c = Child::ended();
            r.one(waitid(P_PID, c.pid, EXITED, room()).off(0))
        });
    });
}

fn waitid_kinds(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (c, i) = (Child::new(), room());
    // SAFETY: a child of this process.
    unsafe { libc::setpgid(c.pid, c.pid) };
    r.push(waitid(P_PGID, c.pid, EXITED, i).ud(1));
    cx.say("group, alive", r.brief(1));
    c.end();
    cx.say("ends", r.go(1));
    cx.say("told", told(i, &c));
    let (c, i) = (Child::new(), room());
    r.push(waitid(P_ALL, 0, EXITED, i).ud(1));
    cx.say("any, alive", r.brief(1));
    c.end();
    cx.say("ends", r.go(1));
    cx.say("told", told(i, &c));
    let (c, i) = (Child::new(), room());
    for flags in [libc::O_NONBLOCK as u32, 0] {
        // SAFETY: integer arguments only.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, c.pid, flags) } as i32;
        r.push(waitid(P_PIDFD, pidfd, EXITED, i).ud(1));
        cx.say("pidfd, alive", r.brief(1));
        sys::close(pidfd);
    }
    c.end();
    r.wait(1, 2000);
    cx.say("ends", r.cqes_sorted());
    let (c, i) = (Child::new(), room());
    for (what, signal, option) in
        [("stop", libc::SIGSTOP, libc::WSTOPPED), ("continue", libc::SIGCONT, libc::WCONTINUED)]
    {
        r.push(waitid(P_PID, c.pid, option as u32 | EXITED, i).ud(1));
        cx.say("alive", r.brief(1));
        // SAFETY: a child of this process.
        unsafe { libc::kill(c.pid, signal) };
        cx.say(what, r.go(1));
        cx.say("told", told(i, &c));
    }
    c.end();
    cx.say("ends", r.one(waitid(P_PID, c.pid, EXITED, i)));
}

fn waitid_nohang(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (c, i) = (Child::new(), room());
    cx.say("alive", r.one(waitid(P_PID, c.pid, EXITED | NOHANG, i)));
    cx.say("told", told(i, &c));
    c.end();
    cx.say("look", r.one(waitid(P_PID, c.pid, EXITED | NOWAIT, i)));
    cx.say("told", told(i, &c));
    cx.say("take", r.one(waitid(P_PID, c.pid, EXITED | NOHANG, i)));
    cx.say("gone", r.one(waitid(P_PID, c.pid, EXITED | NOHANG, i)));
    cx.say("told", told(i, &c));
}

fn waitid_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let i = room();
    cx.say("no child", r.one(waitid(P_ALL, 0, EXITED, i)));
    cx.say("told", told(i, &Child { pid: -1, bell: Fd(-1) }));
    cx.say("not ours", r.one(waitid(P_PID, 1, EXITED, i)));
    cx.say("pid 0", r.one(waitid(P_PID, 0, EXITED, i)));
    cx.say("pid -1", r.one(waitid(P_PID, -1, EXITED, i)));
    cx.say("pidfd -1", r.one(waitid(P_PIDFD, -1, EXITED, i)));
    cx.say("pidfd of no kind", r.one(waitid(P_PIDFD, 0, EXITED, i)));
    cx.say("no options", r.one(waitid(P_ALL, 0, 0, i)));
    cx.say("only WNOHANG", r.one(waitid(P_ALL, 0, NOHANG, i)));
    cx.say("unknown option", r.one(waitid(P_ALL, 0, EXITED | 0x100, i)));
    cx.say("unknown kind", r.one(waitid(4, 0, EXITED, i)));
    let c = Child::new();
    r.push(waitid(P_PID, c.pid, EXITED, i).off(mem::BAD as u64).ud(1));
    cx.say("bad pointer, alive", r.brief(1));
    c.end();
    cx.say("ends", r.go(1));
    cx.say("reaped all the same", r.one(waitid(P_PID, c.pid, EXITED, i)));
}

fn waitid_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, flags| {
        let r = Ring::new(8, flags);
        let c = Child::new();
        for (what, which) in [("one child", P_PID), ("any child", P_ALL)] {
            r.push(waitid(which, if which == P_PID { c.pid } else { 0 }, EXITED, room()).ud(1));
            cx.say(what, r.brief(1));
            r.push(cancel(1, 2));
            cx.say("cancelled", r.go_sorted(2));
            r.push(waitid(which, if which == P_PID { c.pid } else { 0 }, EXITED, room()).ud(1));
            r.submit();
            r.push(cancel(1, 2).opf(1));
            cx.say("cancelled, ALL", r.go_sorted(2));
            r.push(
                waitid(which, if which == P_PID { c.pid } else { 0 }, EXITED, room())
                    .ud(1)
                    .flags(IO_LINK),
            );
            r.push(link_timeout(mem::ms(20), 2));
            cx.say("link timeout", r.go_sorted(2));
        }
        c.end();
        cx.say("still a child", r.one(waitid(P_PID, c.pid, EXITED, room())));
    });
}
