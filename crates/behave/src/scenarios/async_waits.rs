//! Waits that no file stands for: WAITID, and the futex operations.

use crate::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(waitid_exit, "WAITID: a child that has ended, one that ends later"),
    scenario!(waitid_kinds, "WAITID by process group, by pidfd, any child, stopped and continued"),
    scenario!(waitid_nohang, "WNOHANG and WNOWAIT"),
    scenario!(waitid_bad, "WAITID: no child, wrong options, bad pointers"),
    scenario!(waitid_cancel, "cancelling WAITID"),
    scenario!(futex_wait_op, "FUTEX_WAIT: woken by a request, by a thread, in order"),
    scenario!(futex_wake_counts, "FUTEX_WAKE: how many, across rings and threads"),
    scenario!(futex_masks, "waits and wakes with masks, private and shared"),
    scenario!(futex_waitv_op, "FUTEX_WAITV: the index of the word that was woken"),
    scenario!(futex_many, "more words than one array of the host holds"),
    scenario!(futex_bad, "futexes: flags, values, addresses"),
    scenario!(futex_cancel, "cancelling futex waits; link timeouts"),
    scenario!(futex_posts, "two waits, two wakes in a row by a thread, many times"),
    scenario!(futex_unmapped, "memory that goes away under a wait, and comes back"),
    scenario!(futex_sqpoll, "futex waits of a polled ring; a ring closed while it waits"),
    scenario!(futex_linked, "a futex wait in a chain, and with IOSQE_ASYNC"),
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

const U32: i32 = 2;
const PRIVATE: i32 = 128;
const ANY: u64 = u32::MAX as u64;

fn word(v: u32) -> &'static AtomicU32 {
    Box::leak(Box::new(AtomicU32::new(v)))
}

fn wait_on(w: &AtomicU32, value: u64) -> Q {
    q(op::FUTEX_WAIT).fd(U32 | PRIVATE).addr(w.as_ptr() as usize).off(value).addr3(ANY)
}

fn wake(w: &AtomicU32, count: u64) -> Q {
    Q(anyring_uapi::Sqe { opcode: op::FUTEX_WAKE, ..wait_on(w, count).0 }).ud(99)
}

/// FUTEX_WAKE by a system call.
fn thread_wake(w: &AtomicU32, count: i32) -> i64 {
    // SAFETY: a leaked word.
    sys::ret(unsafe { libc::syscall(libc::SYS_futex, w.as_ptr(), 1 | 128, count, 0, 0, 0) })
}

fn waitv(words: &[(&AtomicU32, u64)], flags: u32) -> Q {
    let list: Vec<[u64; 3]> =
        words.iter().map(|(w, v)| [*v, w.as_ptr() as u64, u64::from(flags)]).collect();
    q(op::FUTEX_WAITV).fd(0).addr(at(Vec::leak(list))).len(words.len() as u32)
}

fn futex_wait_op(cx: &mut Cx) {
    cx.both_setups(|cx, flags| {
        let (r, w) = (Ring::new(8, flags), word(5));
        cx.say("another value", r.one(wait_on(w, 4)));
        r.push(wait_on(w, 5).ud(1));
        cx.say("waits", r.brief(1));
        r.push(wake(w, 1));
        cx.say("woken by a request", r.go_sorted(2));
        r.push(wait_on(w, 5).ud(1));
        r.push(wake(w, 1));
        cx.say("woken at once", r.go_sorted(2));
        r.push(wait_on(w, 5).ud(1));
        r.brief(1);
        cx.say("woken by a thread", res(thread_wake(w, 1)));
        cx.say("ends", r.go(1));
        r.push(wait_on(w, 5).ud(1));
        r.submit();
        w.store(6, Ordering::SeqCst);
        thread_wake(w, 1);
        cx.say("changed and woken at once", r.go(1));
        for ud in 1..=4 {
            r.push(wait_on(w, 6).ud(ud));
        }
        r.brief(1);
        w.store(7, Ordering::SeqCst);
        r.push(wake(w, 1));
        cx.say("the first of four", r.go_sorted(2));
        cx.say("the others wait", r.brief(1));
        r.push(wake(w, 2));
        cx.say("the next two", r.go_sorted(3));
        cx.say("one waits", r.brief(1));
        cx.say("by a thread", res(thread_wake(w, 9)));
        cx.say("ends", r.go(1));
        cx.say("nobody", r.one(wake(w, 1)));
    });
}

fn futex_wake_counts(cx: &mut Cx) {
    let (r, other, w) = (Ring::new(16, 0), Ring::new(8, 0), word(0));
    cx.say("count 0", r.one(wake(w, 0)));
    for ud in 1..=3 {
        r.push(wait_on(w, 0).ud(ud));
        other.push(wait_on(w, 0).ud(ud));
    }
    other.submit();
    r.brief(1);
    r.push(wake(w, 0));
    cx.say("count 0 with waits", r.go(1));
    r.push(wake(w, 1 << 31));
    r.submit();
    r.wait(1, 2000);
    cx.say("count 2^31", r.cqes_sorted());
    r.push(wake(w, 100));
    r.submit();
    let mine = r.collect(3).iter().filter(|c| c.user_data != 99).count();
    cx.say("all", other.collect(3).len() + mine);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(move || {
                // SAFETY: a leaked word.
                unsafe { libc::syscall(libc::SYS_futex, w.as_ptr(), 128, 0, 0, 0, 0) }
            })
        })
        .collect();
    sys::sleep_ms(50);
    r.push(wait_on(w, 0).ud(1));
    r.brief(1);
    r.push(wake(w, 100));
    cx.say("threads and a request", r.go_sorted(2));
    for t in threads {
        cx.say("thread", t.join().expect("joined"));
    }
}

fn futex_masks(cx: &mut Cx) {
    let (r, w) = (Ring::new(8, 0), word(0));
    r.push(wait_on(w, 0).addr3(1).ud(1));
    r.push(wait_on(w, 0).addr3(2).ud(2));
    cx.say("two masks", r.brief(1));
    r.push(wake(w, 1).addr3(4));
    cx.say("neither", r.go_sorted(1));
    r.push(wake(w, 5).addr3(2));
    cx.say("the second", r.go_sorted(2));
    r.push(wake(w, 5).addr3(ANY));
    cx.say("the first", r.go_sorted(2));
    r.push(wait_on(w, 0).ud(3));
    r.push(wait_on(w, 0).fd(U32).ud(4));
    cx.say("private and shared", r.brief(1));
    r.push(wake(w, 5).fd(U32));
    cx.say("shared", r.go_sorted(2));
    r.push(wake(w, 5));
    cx.say("private", r.go_sorted(2));
    cx.say("mask 0", r.one(wait_on(w, 0).addr3(0)));
    cx.say("wake mask 0", r.one(wake(w, 1).addr3(0)));
}

fn futex_waitv_op(cx: &mut Cx) {
    cx.both_setups(|cx, flags| {
        let (r, w) = (Ring::new(8, flags), [word(0), word(1), word(2)]);
        let all: Vec<_> = w.iter().zip(0u64..).map(|(w, v)| (*w, v)).collect();
        r.push(waitv(&all, 130).ud(1));
        cx.say("waits", r.brief(1));
        r.push(wake(w[1], 1));
        cx.say("the second", r.go_sorted(2));
        r.push(waitv(&all, 130).ud(1));
        r.brief(1);
        cx.say("by a thread", res(thread_wake(w[2], 1)));
        cx.say("the third", r.go(1));
        cx.say("a value", r.one(waitv(&[(w[0], 0), (w[1], 9)], 130)));
        r.push(waitv(&[(w[0], 0), (w[0], 0)], 130).ud(1));
        r.push(wait_on(w[0], 0).ud(2));
        r.brief(1);
        w[0].store(1, Ordering::SeqCst);
        r.push(wake(w[0], 9));
        r.submit();
        let mut woken = r.collect(3);
        woken.retain(|c| c.user_data == 2);
        cx.say("a word twice, then another wait", show(&woken));
    });
}

fn futex_many(cx: &mut Cx) {
    let (r, words) = (Ring::new(256, 0), (0..128).map(|_| word(0)).collect::<Vec<_>>());
    let all: Vec<_> = words.iter().map(|w| (*w, 0)).collect();
    r.push(waitv(&all, 130).ud(1000));
    for (i, w) in words.iter().enumerate() {
        r.push(wait_on(w, 0).ud(i as u64));
    }
    cx.say("257 words", r.brief(1));
    let mut out = Vec::new();
    for (i, w) in words.iter().enumerate() {
        w.store(1, Ordering::SeqCst);
        thread_wake(w, if i == 127 { 9 } else { 2 });
    }
    out.extend(r.collect(129).iter().filter(|c| c.user_data != 1000).map(|c| c.res));
    cx.say("woken", format!("{} {}", out.len(), out.iter().all(|r| *r == 0)));
    cx.say("129 words", r.one(waitv(&[(words[0], 1); 129], 130)));
    cx.say("no words", r.one(waitv(&[], 130)));
}

fn futex_bad(cx: &mut Cx) {
    let (r, w) = (Ring::new(8, 0), word(0));
    for size in [0, 1, 3, 128, 131, 0x100 | 2, 16 | 2] {
        cx.say(&format!("flags {size:#x}"), r.one(wait_on(w, 0).fd(size)));
        cx.say(&format!("wake, flags {size:#x}"), r.one(wake(w, 0).fd(size)));
        cx.say(&format!("waitv, flags {size:#x}"), r.one(waitv(&[(w, 0)], size as u32)));
    }
    cx.say("a large value", r.one(wait_on(w, 1 << 32)));
    cx.say("a large mask", r.one(wait_on(w, 0).addr3(1 << 32)));
    cx.say("a large count", r.one(wake(w, 1 << 32)));
    cx.say("unaligned", r.one(wait_on(w, 0).addr(w.as_ptr() as usize + 2)));
    cx.say("wake unaligned", r.one(wake(w, 1).addr(w.as_ptr() as usize + 2)));
    cx.say("unmapped", r.one(wait_on(w, 0).addr(mem::BAD)));
    cx.say("wake unmapped, private", r.one(wake(w, 1).addr(mem::BAD)));
    cx.say("wake unmapped, shared", r.one(wake(w, 1).addr(mem::BAD).fd(U32)));
    let two = leak([0u64, w.as_ptr() as u64, 130, 0, mem::BAD as u64, 130]);
    cx.say("waitv, second unmapped", r.one(q(op::FUTEX_WAITV).fd(0).addr(two).len(2)));
    cx.say("waitv, bad array", r.one(q(op::FUTEX_WAITV).fd(0).addr(mem::BAD).len(2)));
    let reserved = leak([0u64, w.as_ptr() as u64, 130 | 1 << 32]);
    cx.say("waitv, reserved", r.one(q(op::FUTEX_WAITV).fd(0).addr(reserved).len(1)));
}

fn futex_cancel(cx: &mut Cx) {
    cx.both_setups(|cx, flags| {
        let (r, w) = (Ring::new(8, flags), word(0));
        let kinds = [
            ("wait", wait_on(w, 0)),
            ("masked", wait_on(w, 0).addr3(1)),
            ("waitv", waitv(&[(w, 0)], 130)),
        ];
        for (what, ask) in kinds {
            r.push(ask.ud(1));
            cx.say(what, r.brief(1));
            r.push(cancel(1, 2));
            cx.say("cancelled", r.go_sorted(2));
            r.push(ask.ud(1));
            r.push(ask.ud(1));
            r.submit();
            r.push(cancel(1, 2).opf(1));
            cx.say("two, ALL", r.go_sorted(3));
            r.push(ask.ud(1).flags(IO_LINK));
            r.push(link_timeout(mem::ms(20), 2));
            cx.say("link timeout", r.go_sorted(2));
            cx.say("nobody left", r.one(wake(w, 9)));
        }
    });
}

fn futex_linked(cx: &mut Cx) {
    let (r, w) = (Ring::new(8, 0), word(0));
    r.push(wait_on(w, 0).ud(1).flags(IO_LINK));
    r.push(nop(2));
    cx.say("waits", r.brief(1));
    w.store(1, Ordering::SeqCst);
    thread_wake(w, 1);
    cx.say("goes on", r.go(2));
    r.push(wait_on(w, 0).ud(1).flags(IO_LINK));
    r.push(nop(2));
    cx.say("a wrong value breaks it", r.go(2));
    r.push(wait_on(w, 1).ud(1).flags(ASYNC));
    cx.say("ASYNC", r.brief(1));
    r.push(wake(w, 1).flags(ASYNC));
    cx.say("woken", r.go_sorted(2));
    r.push(wait_on(w, 1).ud(1).flags(IO_LINK));
    r.push(wake(w, 1));
    cx.say("a wake behind its wait", r.brief(1));
    r.push(wake(w, 1).ud(5));
    cx.say("freed", r.go_sorted(3));
}

fn futex_posts(cx: &mut Cx) {
    let (r, w) = (Ring::new(8, 0), word(0));
    // Linux 6.18 loses a wait that was queued before the process made its first thread.
    std::thread::spawn(|| ()).join().expect("joined");
    let (mut woken, mut late) = (0, 0);
    for _ in 0..300 {
        let value = w.load(Ordering::SeqCst);
        r.push(wait_on(w, u64::from(value)).ud(1));
        r.push(wait_on(w, u64::from(value)).ud(2));
        r.submit();
        let poster = std::thread::spawn(move || {
            for _ in 0..2 {
                w.fetch_add(1, Ordering::SeqCst);
                thread_wake(w, 1);
            }
        });
        poster.join().expect("joined");
        for _ in 0..10 {
            if r.ready() < 2 {
                r.wait(2, 100);
            }
        }
        woken += r.take().len();
        // A wait that was missed must not swallow the next round's wakes.
        thread_wake(w, 9);
        r.wait(1, 0);
        late += r.take().len();
    }
    cx.say("woken, late", format!("{woken} {late}"));
}

fn futex_unmapped(cx: &mut Cx) {
    let (r, w, page) = (Ring::new(8, 0), word(0), sys::pages(4096));
    // SAFETY: a mapping of the scenario's own.
    let lost = unsafe { AtomicU32::from_ptr(page.cast()) };
    r.push(wait_on(lost, 0).ud(1));
    r.push(waitv(&[(lost, 0), (w, 0)], 130).ud(2));
    r.push(wait_on(w, 0).ud(3));
    cx.say("three wait", r.brief(1));
    sys::munmap(page, 4096);
    cx.say("unmapped", r.brief(1));
    w.store(1, Ordering::SeqCst);
    r.push(wake(w, 9));
    cx.say("the others", r.go_sorted(3));
    r.push(wait_on(w, 1).ud(4));
    cx.say("one more", r.brief(1));
    r.push(wake(lost, 9));
    cx.say("at the lost address", r.go_sorted(2));
    sys::sleep_ms(50);
    w.store(2, Ordering::SeqCst);
    cx.say("by a thread", res(thread_wake(w, 1)));
    cx.say("ends", r.go(1));
}

fn futex_sqpoll(cx: &mut Cx) {
    let (p, w) =
        (Params { flags: setup::SQPOLL, sq_thread_idle: 1000, ..Params::default() }, word(0));
    let r = Ring::with(8, p).expect("ring");
    r.push(wait_on(w, 0).ud(1));
    r.enter(1, 0, enter::SQ_WAKEUP);
    cx.say("waits", res(r.wait(1, 50)));
    w.store(1, Ordering::SeqCst);
    cx.say("by a thread", res(thread_wake(w, 1)));
    cx.say("ends", res(r.wait(1, 2000)));
    cx.say("cqes", r.cqes());
    let closed = Ring::new(8, 0);
    closed.push(wait_on(w, 1).ud(1));
    closed.push(wait_on(w, 1).ud(2).addr3(1));
    closed.submit();
    drop(closed);
    sys::sleep_ms(50);
    cx.say("nobody waits", res(thread_wake(w, 9)));
}
