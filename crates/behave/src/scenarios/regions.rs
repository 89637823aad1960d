//! Cloned buffers, memory regions, and waits whose arguments lie in a region.

use crate::prelude::*;
use anyring_uapi::enter::{RegWait, REG_WAIT_TS};
use anyring_uapi::register::*;

/// This topic's scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(clone_all, "cloning all buffers of a ring"),
    scenario!(clone_ranges, "cloning ranges: offsets, replacing, growing"),
    scenario!(clone_bad, "cloning: refusals"),
    scenario!(clone_tags, "tags are not cloned"),
    scenario!(region_bad, "memory regions: refusals"),
    scenario!(region_own, "a region that the ring allocates"),
    scenario!(reg_wait, "EXT_ARG_REG waits"),
    scenario!(reg_wait_bad, "EXT_ARG_REG: offsets, flags, masks"),
];

fn buffers(n: usize) -> (Ring, Vec<usize>) {
    let r = Ring::new(8, 0);
    let at: Vec<usize> = (0..n).map(|_| sys::pages(4096) as usize).collect();
    let iov: Vec<_> = at.iter().map(|a| (*a, 4096)).collect();
    r.reg(BUFFERS, mem::iovecs(&iov), n as u32);
    (r, at)
}

fn clone_from(dst: &Ring, src: i32, c: CloneBuffers) -> String {
    res(dst.reg(CLONE_BUFFERS, leak(CloneBuffers { src_fd: src as u32, ..c }), 1))
}

/// Which of `at` each slot of a ring is: its index, `.` for none.
fn slots(r: &Ring, at: &[usize], n: u16) -> String {
    // SAFETY: a literal path.
    let zero = Fd(unsafe { libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) });
    let holds = |slot: u16, addr: usize| {
        r.push(q(op::READ_FIXED).fd(*zero).addr(addr).len(8).buf(slot));
        r.submit();
        r.wait(1, 2000);
        r.take().first().is_some_and(|c| c.res == 8)
    };
    let name = |slot| at.iter().position(|a| holds(slot, *a)).map_or(".".into(), |i| i.to_string());
    (0..n).map(name).collect()
}

fn clone_all(cx: &mut Cx) {
    let ((src, at), dst) = (buffers(3), Ring::new(8, 0));
    cx.say("clone", clone_from(&dst, src.fd, CloneBuffers::default()));
    cx.say("slots", slots(&dst, &at, 4));
    cx.say("again", clone_from(&dst, src.fd, CloneBuffers::default()));
    src.reg(UNREGISTER_BUFFERS, 0, 0);
    cx.say("lives on", slots(&dst, &at, 3));
    cx.say("from one without", clone_from(&Ring::new(8, 0), src.fd, CloneBuffers::default()));
    cx.say("unregister", res(dst.reg(UNREGISTER_BUFFERS, 0, 0)));
    let sparse = Ring::new(8, 0);
    sparse.reg(
        BUFFERS2,
        leak(RsrcRegister { nr: 2, flags: RSRC_SPARSE, ..Default::default() }),
        32,
    );
    cx.say("of empty slots", clone_from(&dst, sparse.fd, CloneBuffers::default()));
    cx.say("slots", slots(&dst, &at, 2));
}

fn clone_ranges(cx: &mut Cx) {
    let ((src, at), dst) = (buffers(4), Ring::new(8, 0));
    let c = |src_off, dst_off, nr, flags| CloneBuffers {
        src_off,
        dst_off,
        nr,
        flags,
        ..Default::default()
    };
    cx.say("two, to 1", clone_from(&dst, src.fd, c(2, 1, 2, 0)));
    cx.say("slots", slots(&dst, &at, 5));
    cx.say("replace 0", clone_from(&dst, src.fd, c(0, 0, 1, CLONE_DST_REPLACE)));
    cx.say("slots", slots(&dst, &at, 5));
    cx.say("grow", clone_from(&dst, src.fd, c(0, 2, 4, CLONE_DST_REPLACE)));
    cx.say("slots", slots(&dst, &at, 7));
    cx.say("all again", clone_from(&dst, src.fd, c(0, 0, 0, CLONE_DST_REPLACE)));
    cx.say("slots", slots(&dst, &at, 7));
    cx.say("within itself", clone_from(&src, src.fd, c(0, 4, 2, CLONE_DST_REPLACE)));
    cx.say("slots", slots(&src, &at, 7));
    cx.say("onto itself", clone_from(&src, src.fd, c(0, 1, 2, CLONE_DST_REPLACE)));
    cx.say("slots", slots(&src, &at, 7));
}

fn clone_bad(cx: &mut Cx) {
    let ((src, _), dst, (p, _w)) = (buffers(4), Ring::new(8, 0), pipe());
    let c = |src_off, dst_off, nr| CloneBuffers { src_off, dst_off, nr, ..Default::default() };
    let ask = |c| clone_from(&dst, src.fd, c);
    cx.say("offset without a count", ask(c(1, 0, 0)));
    cx.say("place without a count", ask(c(0, 1, 0)));
    cx.say("too many", ask(c(0, 0, 5)));
    cx.say("beyond", ask(c(2, 0, 3)));
    cx.say("offset wraps", ask(c(u32::MAX, 0, 2)));
    cx.say("place wraps", ask(c(0, u32::MAX, 2)));
    cx.say("place too high", ask(c(0, 16383, 2)));
    cx.say("the last place", ask(c(0, 16382, 2)));
    cx.say("now there are some", ask(c(0, 0, 2)));
    dst.reg(UNREGISTER_BUFFERS, 0, 0);
    cx.say("flag 4", ask(CloneBuffers { flags: 4, ..c(0, 0, 0) }));
    cx.say("padding", ask(CloneBuffers { pad: [0, 1, 0], ..c(0, 0, 0) }));
    cx.say("a pipe", clone_from(&dst, *p, c(0, 0, 0)));
    cx.say("not open", clone_from(&dst, 999, c(0, 0, 0)));
    cx.say("no such index", ask(CloneBuffers { flags: CLONE_SRC_REGISTERED, ..c(0, 0, 0) }));
    cx.say("bad pointer", res(dst.reg(CLONE_BUFFERS, mem::BAD, 1)));
    cx.say("no argument", res(dst.reg(CLONE_BUFFERS, 0, 1)));
    cx.say("two", res(dst.reg(CLONE_BUFFERS, leak(c(0, 0, 0)), 2)));
    let index = leak([u64::from(u32::MAX), src.fd as u64]);
    cx.say("register the source", res(dst.reg(RING_FDS, index, 1)));
    // SAFETY: leaked memory, filled by the call.
    let got = unsafe { (index as *const u32).read_volatile() };
    cx.say(
        "by index",
        clone_from(&dst, got as i32, CloneBuffers { flags: CLONE_SRC_REGISTERED, ..c(0, 0, 0) }),
    );
}

fn clone_tags(cx: &mut Cx) {
    let (src, dst, page) = (Ring::new(8, 0), Ring::new(8, 0), sys::pages(4096) as usize);
    let tagged = RsrcRegister {
        nr: 1,
        flags: 0,
        resv2: 0,
        data: mem::iovecs(&[(page, 4096)]) as u64,
        tags: leak(77u64) as u64,
    };
    cx.say("tagged", res(src.reg(BUFFERS2, leak(tagged), 32)));
    cx.say("clone", clone_from(&dst, src.fd, CloneBuffers::default()));
    cx.say(
        "clone over it",
        clone_from(&src, src.fd, CloneBuffers { flags: CLONE_DST_REPLACE, ..Default::default() }),
    );
    src.enter(0, 0, enter::GETEVENTS);
    cx.say("told", src.cqes());
    dst.reg(UNREGISTER_BUFFERS, 0, 0);
    dst.enter(0, 0, enter::GETEVENTS);
    cx.say("the clone", dst.cqes());
    src.reg(UNREGISTER_BUFFERS, 0, 0);
    src.enter(0, 0, enter::GETEVENTS);
    cx.say("the source", src.cqes());
}

fn region(r: &Ring, d: RegionDesc, flags: u64) -> (String, RegionDesc) {
    let at = leak(d);
    let got =
        res(r.reg(MEM_REGION, leak(MemRegionReg { region: at as u64, flags, resv: [0; 2] }), 1));
    // SAFETY: leaked memory of that type.
    (got, unsafe { (at as *const RegionDesc).read_volatile() })
}

fn of_user(addr: usize, size: u64) -> RegionDesc {
    RegionDesc { user_addr: addr as u64, size, flags: MEM_REGION_TYPE_USER, ..Default::default() }
}

fn region_bad(cx: &mut Cx) {
    let page = sys::pages(8192) as usize;
    let good = of_user(page, 4096);
    let ask = |d, flags, disabled: bool| {
        region(&Ring::new(8, if disabled { setup::R_DISABLED } else { 0 }), d, flags).0
    };
    cx.say("good", ask(good, 0, false));
    cx.say("for waits, enabled", ask(good, MEM_REGION_WAIT_ARG, false));
    cx.say("for waits", ask(good, MEM_REGION_WAIT_ARG, true));
    cx.say("flag 2", ask(good, 2, true));
    cx.say("no address", ask(of_user(0, 4096), 0, false));
    cx.say("an address of the ring's", ask(RegionDesc { flags: 0, ..good }, 0, false));
    cx.say("kind 2", ask(RegionDesc { flags: 3, ..good }, 0, false));
    cx.say("no size", ask(of_user(page, 0), 0, false));
    cx.say("odd size", ask(of_user(page, 100), 0, false));
    cx.say("odd address", ask(of_user(page + 16, 4096), 0, false));
    cx.say("not mapped", ask(of_user(0x1000, 4096), 0, false));
    cx.say("wraps", ask(of_user(usize::MAX - 4095, 8192), 0, false));
    cx.say("huge", ask(of_user(page, 1 << 60), 0, false));
    cx.say("id", ask(RegionDesc { id: 1, ..good }, 0, false));
    cx.say("offset", ask(RegionDesc { mmap_offset: 4096, ..good }, 0, false));
    cx.say("reserved", ask(RegionDesc { resv: [0, 1, 0, 0], ..good }, 0, false));
    let read_only =
        sys::mmap(-1, 4096, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
            .expect("memory");
    cx.say("read-only", ask(of_user(read_only as usize, 4096), 0, false));
    let r = Ring::new(8, 0);
    cx.say("first", region(&r, good, 0).0);
    cx.say("second", region(&r, good, 0).0);
    let r = Ring::new(8, 0);
    cx.say("bad pointer", res(r.reg(MEM_REGION, mem::BAD, 1)));
    cx.say("bad description", res(r.reg(MEM_REGION, leak([8u64, 0, 0, 0]), 1)));
    cx.say("no argument", res(r.reg(MEM_REGION, 0, 1)));
    cx.say("two", res(r.reg(MEM_REGION, leak([0u64; 4]), 2)));
    cx.say("reserved", res(r.reg(MEM_REGION, leak([leak(good) as u64, 0, 0, 1]), 1)));
}

fn region_own(cx: &mut Cx) {
    let r = Ring::new(8, setup::R_DISABLED);
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let map = |len, off| sys::mmap(r.fd, len, rw, libc::MAP_SHARED, off).map(|p| p as usize);
    cx.say("mapped before", map(4096, 0x2000_0000).map_or_else(res, |_| "ok".into()));
    let (got, d) = region(&r, RegionDesc { size: 8192, ..Default::default() }, MEM_REGION_WAIT_ARG);
    cx.say("register", got);
    cx.say(
        "description",
        format!("{:#x} {} {} {:#x}", d.user_addr, d.size, d.flags, d.mmap_offset),
    );
    r.reg(ENABLE_RINGS, 0, 0);
    let at = map(8192, d.mmap_offset).expect("mapped");
    let wait =
        RegWait { ts: Timespec { sec: 0, nsec: 1000 }, flags: REG_WAIT_TS, ..Default::default() };
    for offset in [0, 4096 - 64, 4096, 8192 - 64] {
        // SAFETY: the mapping has room there.
        unsafe { ((at + offset) as *mut RegWait).write_volatile(wait) };
        cx.say(&format!("a wait at {offset}"), res(r.enter_arg(0, 1, REG, offset, 64)));
    }
    let user = Ring::new(8, 0);
    region(&user, of_user(sys::pages(4096) as usize, 4096), 0);
    cx.say(
        "mapping the program's own",
        sys::mmap(user.fd, 4096, rw, libc::MAP_SHARED, 0x2000_0000)
            .map_or_else(res, |_| "ok".into()),
    );
}

const REG: u32 = enter::GETEVENTS | enter::EXT_ARG | enter::EXT_ARG_REG;

/// A ring with a page of wait arguments.
fn waiting_ring() -> (Ring, usize) {
    let (r, page) = (Ring::new(8, setup::R_DISABLED), sys::pages(4096) as usize);
    region(&r, of_user(page, 4096), MEM_REGION_WAIT_ARG);
    r.reg(ENABLE_RINGS, 0, 0);
    (r, page)
}

fn put(page: usize, index: usize, w: RegWait) {
    // SAFETY: inside the scenario's own page.
    unsafe { ((page + 64 * index) as *mut RegWait).write_volatile(w) }
}

fn reg_wait(cx: &mut Cx) {
    let (r, page) = waiting_ring();
    let ts = |ms: i64| Timespec { sec: 0, nsec: ms * 1_000_000 };
    put(page, 0, RegWait { ts: ts(30), flags: REG_WAIT_TS, ..Default::default() });
    let start = std::time::Instant::now();
    cx.say("time out", res(r.enter_arg(0, 1, REG, 0, 64)));
    let took = start.elapsed().as_millis();
    cx.say("took its time", (30..200).contains(&took));
    put(page, 63, RegWait { ts: ts(1), flags: REG_WAIT_TS, ..Default::default() });
    cx.say("the last one", res(r.enter_arg(0, 1, REG, 63 * 64, 64)));
    put(
        page,
        1,
        RegWait { ts: ts(5), flags: REG_WAIT_TS, min_wait_usec: 1000, ..Default::default() },
    );
    r.push(nop(1));
    cx.say("submit, min wait", res(r.enter_arg(1, 2, REG, 64, 64)));
    cx.say("cqes", r.cqes());
    put(page, 2, RegWait { ts: ts(1), ..Default::default() });
    r.push(q(op::TIMEOUT).addr(mem::ms(20)).len(1).ud(3));
    cx.say("without a time", res(r.enter_arg(1, 1, REG, 128, 64)));
    cx.say("cqes", r.cqes());
    let mask = leak(0u64) as u64;
    put(
        page,
        3,
        RegWait {
            ts: ts(1),
            flags: REG_WAIT_TS,
            sigmask: mask,
            sigmask_sz: 8,
            ..Default::default()
        },
    );
    cx.say("a mask", res(r.enter_arg(0, 1, REG, 192, 64)));
}

fn reg_wait_bad(cx: &mut Cx) {
    let (r, page) = waiting_ring();
    let w =
        RegWait { ts: Timespec { sec: 0, nsec: 1000 }, flags: REG_WAIT_TS, ..Default::default() };
    put(page, 0, w);
    put(page, 1, w);
    for offset in [4096 - 56, 4096, usize::MAX - 7, 1, 4] {
        cx.say(&format!("offset {}", offset as isize), res(r.enter_arg(0, 1, REG, offset, 64)));
        put(page, 0, w);
    }
    for size in [0, 24, 63, 65] {
        cx.say(&format!("size {size}"), res(r.enter_arg(0, 1, REG, 0, size)));
    }
    put(page, 0, RegWait { flags: 2 | REG_WAIT_TS, ..w });
    cx.say("flag 2", res(r.enter_arg(0, 1, REG, 0, 64)));
    put(page, 0, RegWait { sigmask: leak(0u64) as u64, sigmask_sz: 1, ..w });
    cx.say("mask of 1 byte", res(r.enter_arg(0, 1, REG, 0, 64)));
    put(page, 0, RegWait { sigmask: 100, sigmask_sz: 8, ..w });
    cx.say("bad mask", res(r.enter_arg(0, 1, REG, 0, 64)));
    let plain = Ring::new(8, 0);
    region(&plain, of_user(sys::pages(4096) as usize, 4096), 0);
    cx.say("a region not for waits", res(plain.enter_arg(0, 1, REG, 0, 64)));
}
