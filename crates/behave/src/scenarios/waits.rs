//! Waiting in enter: errors, timeouts, min_wait, signal masks, absolute times.

use crate::prelude::*;
use anyring_uapi::enter::{
    ABS_TIMER, EXT_ARG, EXT_ARG_REG, GETEVENTS, REGISTERED_RING, SQ_WAIT, SQ_WAKEUP,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(enter_bad, "flags, descriptors and indices that enter refuses"),
    scenario!(enter_ext_arg, "EXT_ARG: sizes and addresses"),
    scenario!(wait_timeout, "a wait's timeout: short, zero, negative, odd"),
    scenario!(wait_timeout_partial, "errors become 0 when the CQ is not empty"),
    scenario!(wait_min, "min_wait without and with a longer timeout"),
    scenario!(wait_abs_timer, "ABS_TIMER"),
    scenario!(wait_clock, "REGISTER_CLOCK and ABS_TIMER on it"),
    scenario!(
        wait_eintr,
        "a signal interrupts a wait; not once something was submitted or is ready"
    ),
    scenario!(wait_sigmask, "a signal mask for the wait, both wait flavours"),
    scenario!(wait_sigmask_delivers, "a mask that unblocks a pending signal ends the wait"),
    scenario!(wait_more_than_cq, "waiting for more than the CQ has room for"),
    scenario!(wait_wakes, "a completion in another thread's doing ends the wait"),
    scenario!(wait_two_threads, "two threads wait on one ring"),
    scenario!(wait_profiler, "a profiler's timer signal during 300 submit-and-waits"),
    scenario!(wait_getevents_zero, "GETEVENTS with 0"),
    scenario!(defer_batch, "a DEFER_TASKRUN wait for 1 with 100 ready shows all in the end"),
    scenario!(taskrun_flag, "the TASKRUN flag and when deferred work runs"),
];

fn arg(sigmask: usize, size: u32, min_wait_usec: u32, ts: usize) -> usize {
    leak(GeteventsArg { sigmask: sigmask as u64, sigmask_sz: size, min_wait_usec, ts: ts as u64 })
}

fn ext(r: &Ring, n: u32, min: u32, extra: u32, arg: usize) -> i64 {
    r.enter_arg(n, min, GETEVENTS | EXT_ARG | extra, arg, 24)
}

fn enter_bad(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (p, _w) = pipe();
    for bit in [8, 16, 31] {
        cx.say(&format!("flag bit {bit}"), res(r.enter(0, 0, 1 << bit)));
    }
    cx.say("closed number", res(sys::enter(999, 0, 0, 0, 0, 0)));
    cx.say("fd -1", res(sys::enter(-1, 0, 0, 0, 0, 0)));
    cx.say("a pipe", res(sys::enter(*p, 0, 0, 0, 0, 0)));
    cx.say("registered index, none", res(sys::enter(0, 0, 0, REGISTERED_RING, 0, 0)));
    cx.say("registered index 16", res(sys::enter(16, 0, 0, REGISTERED_RING, 0, 0)));
    cx.say("registered index -1", res(sys::enter(-1, 0, 0, REGISTERED_RING, 0, 0)));
    cx.say("SQ_WAKEUP without SQPOLL", res(r.enter(0, 0, SQ_WAKEUP)));
    cx.say("SQ_WAIT without SQPOLL", res(r.enter(0, 0, SQ_WAIT)));
    cx.say(
        "EXT_ARG_REG without a region",
        res(r.enter_arg(0, 1, GETEVENTS | EXT_ARG | EXT_ARG_REG, 0, 64)),
    );
    cx.say("EXT_ARG_REG without EXT_ARG", res(r.enter(0, 0, GETEVENTS | EXT_ARG_REG)));
}

fn enter_ext_arg(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let good = arg(0, 0, 0, mem::ms(5));
        cx.say("good", res(ext(&r, 0, 1, 0, good)));
        for size in [0, 20, 23, 25, 32] {
            cx.say(
                &format!("size {size}"),
                res(r.enter_arg(0, 1, GETEVENTS | EXT_ARG, good, size)),
            );
        }
        cx.say("NULL", res(ext(&r, 0, 1, 0, 0)));
        cx.say("unmapped", res(ext(&r, 0, 1, 0, mem::BAD)));
        cx.say("bad timespec", res(ext(&r, 0, 1, 0, arg(0, 0, 0, mem::BAD))));
        cx.say("bad sigmask", res(ext(&r, 0, 1, 0, arg(mem::BAD, 8, 0, mem::ms(5)))));
        cx.say("sigmask size 4", res(ext(&r, 0, 1, 0, arg(leak(0u64), 4, 0, mem::ms(5)))));
        cx.say("without GETEVENTS, size 1", res(r.enter_arg(0, 0, EXT_ARG, 0, 1)));
        for min in [0, 1] {
            cx.say(
                &format!("plain sigmask size 4, wait for {min}"),
                res(r.enter_arg(0, min, GETEVENTS, leak(0u64), 4)),
            );
            cx.say(
                &format!("plain sigmask unmapped, wait for {min}"),
                res(r.enter_arg(0, min, GETEVENTS, mem::BAD, 8)),
            );
        }
        r.push(nop(1));
        let s = ext(&r, 1, 1, 0, mem::BAD);
        cx.say("bad argument with a submission", format!("{} {}", res(s), r.cqes()));
    });
}

fn wait_timeout(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let times = [
            ("10 ms", 0, 10_000_000),
            ("zero", 0, 0),
            ("negative", -1, 0),
            ("nsec 1e9", 0, 1_000_000_000),
            ("nsec -1", 0, -1),
        ];
        for (name, s, n) in times {
            cx.say(name, res(ext(&r, 0, 1, 0, arg(0, 0, 0, mem::ts(s, n)))));
        }
        let start = Instant::now();
        ext(&r, 0, 1, 0, arg(0, 0, 0, mem::ms(30)));
        cx.say("not early", start.elapsed() >= Duration::from_millis(30));
        r.push(nop(1));
        cx.say("zero, but a CQE is there", res(ext(&r, 1, 1, 0, arg(0, 0, 0, mem::ts(0, 0)))));
    });
}

fn wait_timeout_partial(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        r.push(nop(1));
        r.submit();
        cx.say("want 2, have 1", res(ext(&r, 0, 2, 0, arg(0, 0, 0, mem::ms(10)))));
        r.take();
        cx.say("want 2, have 0", res(ext(&r, 0, 2, 0, arg(0, 0, 0, mem::ms(10)))));
        r.push(nop(2));
        cx.say("want 2, submit 1", res(ext(&r, 1, 2, 0, arg(0, 0, 0, mem::ms(10)))));
    });
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, u128) {
    let start = Instant::now();
    let v = f();
    (v, start.elapsed().as_millis())
}

fn wait_min(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (v, ms) = timed(|| ext(&r, 0, 1, 0, arg(0, 0, 20_000, 0)));
        cx.say("20 ms, no timeout", format!("{} waited {}", res(v), (20..400).contains(&ms)));
        r.push(nop(1));
        let (v, ms) = timed(|| ext(&r, 1, 2, 0, arg(0, 0, 20_000, mem::ms(3000))));
        cx.say(
            "20 ms, have 1 of 2",
            format!("{} waited {} {}", res(v), (20..1500).contains(&ms), r.cqes()),
        );
        let (p, w) = pipe();
        r.push(read(*p, at(buf(8)), 8, 5));
        r.submit();
        let t = std::thread::spawn(move || {
            sys::sleep_ms(60);
            sys::write(*w, b"x");
            w
        });
        let (v, ms) = timed(|| ext(&r, 0, 2, 0, arg(0, 0, 20_000, mem::ms(5000))));
        cx.say(
            "20 ms, one of 2 at 60 ms",
            format!("{} waited {} {}", res(v), (55..2500).contains(&ms), r.cqes()),
        );
        let _w = t.join();
        let (v, ms) = timed(|| ext(&r, 0, 2, 0, arg(0, 0, 1_000_000, mem::ms(30))));
        cx.say("min_wait beyond the timeout", format!("{} waited {}", res(v), ms >= 30));
    });
}

fn clock_in(clock: libc::clockid_t, ms: i64) -> usize {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(clock, &mut t) };
    let ns = t.tv_nsec + ms * 1_000_000;
    mem::ts(t.tv_sec + ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
}

fn wait_abs_timer(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        for (name, at, least) in [("in 30 ms", 30, 29), ("past", -30, 0)] {
            let a = arg(0, 0, 0, clock_in(libc::CLOCK_MONOTONIC, at));
            let (v, ms) = timed(|| ext(&r, 0, 1, ABS_TIMER, a));
            cx.say(name, format!("{} waited {}", res(v), ms >= least && ms < 1000));
        }
    });
}

fn wait_clock(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let clock = |id: i32| leak([id as u32, 0, 0, 0]);
    for (name, id) in [("MONOTONIC", 1), ("BOOTTIME", 7), ("REALTIME", 0), ("unknown", 99)] {
        cx.say(name, res(r.reg(register::CLOCK, clock(id), 0)));
    }
    cx.say("nr 1", res(r.reg(register::CLOCK, clock(1), 1)));
    cx.say("NULL", res(r.reg(register::CLOCK, 0, 0)));
    cx.say("reserved word", res(r.reg(register::CLOCK, leak([1u32, 1, 0, 0]), 0)));
    r.reg(register::CLOCK, clock(7), 0);
    let (v, ms) =
        timed(|| ext(&r, 0, 1, ABS_TIMER, arg(0, 0, 0, clock_in(libc::CLOCK_BOOTTIME, 30))));
    cx.say("BOOTTIME in 30 ms", format!("{} waited {}", res(v), (29..1000).contains(&ms)));
}

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_signal(_: i32) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Installs the counting handler without SA_RESTART.
fn handle(sig: i32) {
    // SAFETY: the action is fully set; the handler touches an atomic only.
    unsafe {
        let mut a: libc::sigaction = std::mem::zeroed();
        a.sa_sigaction = count_signal as *const () as usize;
        libc::sigaction(sig, &a, std::ptr::null_mut());
    }
}

/// One SIGUSR2 to this process after `ms`, by a POSIX timer: the scenario's alarm stays.
fn signal_in(ms: i64, every_ms: i64) -> libc::timer_t {
    // SAFETY: all structures are valid and fully set.
    unsafe {
        let mut ev: libc::sigevent = std::mem::zeroed();
        ev.sigev_notify = libc::SIGEV_SIGNAL;
        ev.sigev_signo = libc::SIGUSR2;
        let mut t: libc::timer_t = std::mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut ev, &mut t), 0, "timer");
        let spec = |ms: i64| libc::timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
        let when = libc::itimerspec { it_interval: spec(every_ms), it_value: spec(ms) };
        libc::timer_settime(t, 0, &when, std::ptr::null_mut());
        t
    }
}

fn signals() -> u32 {
    SIGNALS.swap(0, Ordering::SeqCst)
}

fn wait_eintr(cx: &mut Cx) {
    handle(libc::SIGUSR2);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        signal_in(30, 0);
        cx.say(
            "nothing submitted, plain",
            format!("{} handlers {}", res(r.enter(0, 1, GETEVENTS)), signals()),
        );
        signal_in(30, 0);
        let v = ext(&r, 0, 1, 0, arg(0, 0, 0, mem::ms(5000)));
        cx.say("nothing submitted, EXT_ARG", format!("{} handlers {}", res(v), signals()));
        r.push(nop(1));
        signal_in(30, 0);
        let v = r.enter(1, 2, GETEVENTS);
        cx.say(
            "one submitted and ready of two",
            format!("{} {} handlers {}", res(v), r.cqes(), signals()),
        );
        let (p, _w) = pipe();
        r.push(poll(*p, 1, 5));
        signal_in(30, 0);
        let v = r.enter(1, 1, GETEVENTS);
        cx.say(
            "one submitted, none ready",
            format!("{} {} handlers {}", res(v), r.cqes(), signals()),
        );
        r.push(nop(1));
        r.submit();
        signal_in(30, 0);
        let v = r.enter(0, 2, GETEVENTS);
        cx.say("one ready of two", format!("{} handlers {}", res(v), signals()));
    });
}

fn mask_of(sig: i32) -> usize {
    leak(1u64 << (sig - 1))
}

fn wait_sigmask(cx: &mut Cx) {
    handle(libc::SIGUSR2);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        signal_in(20, 0);
        let v = ext(&r, 0, 1, 0, arg(mask_of(libc::SIGUSR2), 8, 0, mem::ms(80)));
        cx.say("EXT_ARG, blocked", format!("{} handlers {}", res(v), signals()));
        r.push(timeout(mem::ms(80), 0, 1));
        signal_in(20, 0);
        let v = r.enter_arg(1, 1, GETEVENTS, mask_of(libc::SIGUSR2), 8);
        cx.say("plain, blocked", format!("{} {} handlers {}", res(v), r.cqes(), signals()));
        signal_in(20, 0);
        let v = ext(&r, 0, 1, 0, arg(mask_of(libc::SIGUSR1), 8, 0, mem::ms(2000)));
        cx.say("another signal blocked", format!("{} handlers {}", res(v), signals()));
        let mut now = [0u64; 1];
        // SAFETY: the raw call writes eight bytes into the array.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, 0, 0, now.as_mut_ptr(), 8) };
        cx.say("mask afterwards", now[0] & (1 << (libc::SIGUSR2 - 1)));
    });
}

fn wait_sigmask_delivers(cx: &mut Cx) {
    handle(libc::SIGUSR2);
    // SAFETY: the sets are initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR2);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), libc::SIGUSR2);
    }
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("before", signals());
        let v = ext(&r, 0, 1, 0, arg(leak(0u64), 8, 0, mem::ms(2000)));
        cx.say("EXT_ARG with an empty mask", format!("{} handlers {}", res(v), signals()));
        // SAFETY: no memory involved.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) };
        cx.say("blocked again", signals());
        let v = r.enter_arg(0, 1, GETEVENTS, leak(0u64), 8);
        cx.say("plain with an empty mask", format!("{} handlers {}", res(v), signals()));
        // SAFETY: no memory involved.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) };
    });
}

fn wait_more_than_cq(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        cx.say("10000", res(ext(&r, 0, 10000, 0, arg(0, 0, 0, mem::ms(20)))));
        for i in 0..8 {
            r.push(nop(i));
        }
        r.submit();
        for i in 8..16 {
            r.push(nop(i));
        }
        cx.say(
            "10000, CQ of 16 gets full",
            format!("{} {}", res(r.enter(8, 10000, GETEVENTS)), r.take().len()),
        );
    });
}

fn wait_wakes(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        for (name, plain) in [("plain", true), ("EXT_ARG", false)] {
            r.push(read(*p, at(buf(8)), 8, 1));
            let t = std::thread::spawn({
                let w = sys::dup(*w);
                move || {
                    sys::sleep_ms(30);
                    sys::write(w, b"abc");
                    sys::close(w);
                }
            });
            cx.say(name, if plain { r.go_plain(1) } else { r.go(1) });
            t.join().expect("writer");
        }
    });
}

fn wait_two_threads(cx: &mut Cx) {
    let r = Ring::new(8, 0);
    let (p, w) = pipe();
    r.push_all(&[read(*p, at(buf(8)), 8, 1), poll(*p, 1, 2)]);
    r.submit();
    let results: Vec<i64> = std::thread::scope(|s| {
        let waiters: Vec<_> = (0..2).map(|_| s.spawn(|| r.wait(1, 3000))).collect();
        sys::sleep_ms(30);
        sys::write(*w, b"x");
        waiters.into_iter().map(|t| t.join().unwrap_or(-1)).collect()
    });
    cx.say("both return", format!("{results:?}"));
    cx.say("CQE of the read", r.take().iter().filter(|c| c.user_data == 1 && c.res == 1).count());
}

fn wait_profiler(cx: &mut Cx) {
    handle(libc::SIGUSR2);
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let timer = signal_in(1, 1);
        let (mut done, mut bad, mut doubled) = (0u64, 0, 0);
        for i in 0..300 {
            r.push(timeout(mem::ts(0, 1_500_000), 0, i));
            let mut want = 1;
            loop {
                let v = r.enter(want, 1, GETEVENTS);
                bad += usize::from(v < 0 && v != -i64::from(libc::EINTR));
                if v > 0 {
                    want -= v as u32;
                }
                let cqes = r.take();
                doubled += usize::from(cqes.len() > 1 || cqes.iter().any(|c| c.user_data != i));
                if !cqes.is_empty() {
                    break;
                }
            }
            done += 1;
        }
        // SAFETY: the timer was created above.
        unsafe { libc::timer_delete(timer) };
        cx.say("done, bad results, doubled", format!("{done} {bad} {doubled}"));
        cx.say("there were signals", signals() > 20);
    });
}

fn wait_getevents_zero(cx: &mut Cx) {
    cx.both_setups(|cx, kind| {
        let r = Ring::new(8, kind);
        let (p, w) = pipe();
        cx.say("idle", res(r.enter(0, 0, GETEVENTS)));
        r.push(poll(*p, 1, 1));
        cx.say("with a submission", res(r.enter(1, 0, GETEVENTS)));
        sys::write(*w, b"x");
        cx.say("after the event", format!("{} {}", res(r.enter(0, 0, GETEVENTS)), r.cqes()));
    });
}

fn defer_batch(cx: &mut Cx) {
    let r = Ring::new(128, setup::DEFER_TASKRUN | setup::SINGLE_ISSUER);
    let (p, w) = pipe();
    for i in 0..100 {
        r.push(poll(*p, 1, i));
    }
    r.submit();
    sys::write(*w, b"x");
    cx.say("nothing before entering", r.ready());
    cx.say("wait for 1", res(r.enter(0, 1, GETEVENTS)));
    let first = r.take().len();
    cx.say("at least one", first >= 1);
    let mut total = first;
    while total < 100 && r.wait(1, 1000) == 0 {
        total += r.take().len();
    }
    cx.say("all in the end", total);
}

fn taskrun_flag(cx: &mut Cx) {
    let kinds = [
        ("COOP|TASKRUN_FLAG", setup::COOP_TASKRUN | setup::TASKRUN_FLAG),
        ("DEFER|TASKRUN_FLAG", setup::DEFER_TASKRUN | setup::SINGLE_ISSUER | setup::TASKRUN_FLAG),
        ("DEFER", setup::DEFER_TASKRUN | setup::SINGLE_ISSUER),
        ("plain", 0),
    ];
    for (name, flags) in kinds {
        let (p, w) = pipe();
        let r = Ring::new(8, flags);
        r.push(poll(*p, 1, 1));
        r.submit();
        sys::write(*w, b"x");
        sys::sleep_ms(30);
        cx.say(
            &format!("{name}, after a sleep"),
            format!("ready {} flags {}", r.ready(), r.sq_flags()),
        );
        r.enter(0, 0, 0);
        cx.say(
            &format!("{name}, after enter(0)"),
            format!("ready {} flags {}", r.ready(), r.sq_flags()),
        );
        r.enter(0, 0, GETEVENTS);
        cx.say(
            &format!("{name}, after GETEVENTS"),
            format!("ready {} flags {}", r.ready(), r.sq_flags()),
        );
    }
}
