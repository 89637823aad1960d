//! IORING_REGISTER_RESIZE_RINGS: who may, to what sizes, and what stays.

use anyring_uapi::setup::{
    CLAMP, CQE32, CQSIZE, DEFER_TASKRUN, NO_SQARRAY, SINGLE_ISSUER, SQE128, SQPOLL,
};

use crate::prelude::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(resize_who, "which rings can be resized"),
    scenario!(resize_sizes, "sizes and flags"),
    scenario!(resize_keeps, "what waits is kept"),
    scenario!(resize_overflow, "what waits does not fit"),
];

const DEFER: u32 = SINGLE_ISSUER | DEFER_TASKRUN;

fn resize(r: &Ring, sq: u32, cq: u32, flags: u32) -> (i64, Params) {
    let p = leak(Params { sq_entries: sq, cq_entries: cq, flags, ..Params::default() });
    let v = r.reg(register::RESIZE_RINGS, p, 1);
    // SAFETY: leaked above.
    (v, unsafe { (p as *const Params).read() })
}

fn tell((v, p): (i64, Params)) -> String {
    if v < 0 {
        return res(v);
    }
    // Linux 6.18 leaves out the offset of the index array.
    format!("{} {} {} cqes {}", res(v), p.sq_entries, p.cq_entries, p.cq_off.cqes)
}

/// Resizes and maps the new memory.
fn moved(r: &mut Ring, sq: u32, cq: u32) -> String {
    let (v, p) = resize(r, sq, cq, CQSIZE);
    if v == 0 {
        r.remap(Params { flags: r.p.flags, ..p });
    }
    tell((v, p))
}

fn resize_who(cx: &mut Cx) {
    for (name, flags) in [
        ("plain", 0),
        ("single issuer", SINGLE_ISSUER),
        ("deferred", DEFER),
        ("SQPOLL", SQPOLL),
        ("no array", DEFER | NO_SQARRAY),
        ("large SQEs", DEFER | SQE128),
        ("large CQEs", DEFER | CQE32),
    ] {
        let r = Ring::new(8, flags);
        cx.say(name, tell(resize(&r, 16, 0, 0)));
    }
}

fn resize_sizes(cx: &mut Cx) {
    for (name, sq, cq, flags) in [
        ("larger", 64, 0, 0),
        ("smaller", 2, 0, 0),
        ("the same", 8, 0, 0),
        ("not a power of two", 5, 0, 0),
        ("none", 0, 0, 0),
        ("too many", 40000, 0, 0),
        ("too many, clamped", 40000, 0, CLAMP),
        ("CQ too", 8, 100, CQSIZE),
        ("CQ smaller than SQ", 8, 4, CQSIZE),
        ("CQ of none", 8, 0, CQSIZE),
        ("a setup flag", 8, 0, DEFER),
        ("an unknown flag", 8, 0, 1 << 30),
    ] {
        let r = Ring::new(8, DEFER);
        cx.say(name, tell(resize(&r, sq, cq, flags)));
    }
    let r = Ring::new(8, DEFER);
    let p = leak(Params { sq_entries: 16, ..Params::default() });
    cx.say("nr 0", res(r.reg(register::RESIZE_RINGS, p, 0)));
    cx.say("nr 2", res(r.reg(register::RESIZE_RINGS, p, 2)));
    cx.say("NULL", res(r.reg(register::RESIZE_RINGS, 0, 1)));
    cx.say("bad memory", res(r.reg(register::RESIZE_RINGS, mem::BAD, 1)));
}

fn resize_keeps(cx: &mut Cx) {
    for flags in [DEFER | NO_SQARRAY, DEFER | CQE32 | NO_SQARRAY] {
        let mut r = Ring::new(8, flags);
        let (p, w) = pipe();
        r.push_all(&[nop(1), nop(2), nop(3), read(*p, at(buf(8)), 8, 4)]);
        cx.say("submitted", res(r.submit()));
        r.push_all(&[nop(5), nop(6)]);
        cx.say("larger", moved(&mut r, 32, 64));
        cx.say("CQEs", r.cqes());
        cx.say("SQEs", r.go(2));
        sys::write(*w, b"x");
        cx.say("the read", r.go(1));
        r.push_all(&[nop(7), nop(8)]);
        r.submit();
        r.push(nop(9));
        cx.say("smaller", moved(&mut r, 4, 4));
        cx.say("CQEs", r.cqes());
        cx.say("SQEs", r.go(1));
        r.push_all(&[nop(10), nop(11), nop(12), nop(13)]);
        cx.say("full", r.go(4));
    }
}

fn resize_overflow(cx: &mut Cx) {
    let mut r = Ring::new(8, DEFER | NO_SQARRAY);
    r.push_all(&[nop(1), nop(2), nop(3)]);
    cx.say("three SQEs into 2", moved(&mut r, 2, 4));
    cx.say("as before", r.go(3));
    r.push_all(&[nop(4), nop(5), nop(6)]);
    r.submit();
    cx.say("three CQEs into 2", moved(&mut r, 2, 2));
    cx.say("as before", r.cqes());
    let mut r = Ring::sized(8, 8, DEFER | NO_SQARRAY);
    for _ in 0..2 {
        for n in 0..6 {
            r.push(nop(n));
        }
        r.submit();
    }
    cx.say("flags", r.sq_flags() & 2);
    cx.say("with a backlog", moved(&mut r, 8, 32));
    cx.say("flags", r.sq_flags() & 2);
    cx.say("all", show(&r.collect(12)));
}
