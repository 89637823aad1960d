//! SQEs at random: mostly sensible ones, some with one odd field or flag.

use anyring_uapi::op;
use anyring_uapi::sqe::{ASYNC, BUFFER_SELECT, CQE_SKIP_SUCCESS, FIXED_FILE, IO_DRAIN};

use super::rng::Rng;
use super::world::{guarded, Thing, World};
use crate::mem;
use crate::sqe::{q, Q};

/// A request, what it uses, and whether it may wait for an event that never comes.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The SQE, without user_data.
    pub q: Q,
    /// What it uses.
    pub thing: Thing,
    /// Whether no answer at all is a right answer for now.
    pub may_wait: bool,
}

const HERE: i32 = libc::AT_FDCWD;
const READABLE: &[Thing] = &[
    Thing::File,
    Thing::File,
    Thing::ReadOnly,
    Thing::Full,
    Thing::Empty,
    Thing::Socket,
    Thing::Silent,
    Thing::Event,
    Thing::Closed,
];
const WRITABLE: &[Thing] = &[
    Thing::File,
    Thing::File,
    Thing::ReadOnly,
    Thing::Empty,
    Thing::Full,
    Thing::Silent,
    Thing::Socket,
    Thing::Closed,
];
const SOCKETS: &[Thing] = &[Thing::Socket, Thing::Silent, Thing::Full, Thing::Closed];

/// One request at random. `pending` are user_data values that are outstanding.
pub fn item(rng: &mut Rng, w: &World, pending: &[u64]) -> Item {
    let mut item = match rng.below(10) {
        0 | 1 => reading(rng, w),
        2 => writing(rng, w),
        3 | 4 => socket_op(rng, w),
        5 => path_op(rng, w),
        6 => file_op(rng, w),
        7 => table_op(rng, w),
        8 => control(rng, w, pending),
        _ => simple(rng, w),
    };
    flags(rng, &mut item);
    if rng.chance(15) {
        oddity(rng, &mut item);
    }
    item
}

fn made(q: Q, thing: Thing, may_wait: bool) -> Item {
    Item { q, thing, may_wait }
}

/// Whether reading this waits when nobody writes.
fn waits(t: Thing) -> bool {
    matches!(
        t,
        Thing::Full | Thing::Empty | Thing::Socket | Thing::Silent | Thing::Event | Thing::Listener
    )
}

fn offset(rng: &mut Rng, t: Thing) -> u64 {
    match t {
        Thing::File | Thing::ReadOnly => {
            rng.pick(&[0, 0, 1, 100, 8190, 8192, 9000, u64::MAX, u64::MAX - 1])
        }
        _ => rng.pick(&[0, 0, u64::MAX]),
    }
}

fn vectors(rng: &mut Rng, len: usize) -> (usize, u32) {
    let buf = guarded(len.max(1));
    match rng.below(4) {
        0 => (mem::iovecs(&[(buf, len)]), 1),
        1 => (mem::iovecs(&[(buf, len / 2), (buf + len / 2, len - len / 2)]), 2),
        2 => (mem::iovecs(&[(buf, 0), (buf, len)]), 2),
        _ => (mem::iovecs(&[(mem::BAD, len)]), rng.pick(&[1, 0])),
    }
}

fn reading(rng: &mut Rng, w: &World) -> Item {
    let t = rng.pick(READABLE);
    let len = rng.pick(&[0, 1, 4, 8, 64, 100]);
    let b = q(rng.pick(&[op::READ, op::READ, op::READV, op::READ_FIXED]))
        .fd(w.fd(t))
        .off(offset(rng, t));
    let b = match b.0.opcode {
        op::READV => {
            let (v, n) = vectors(rng, len as usize);
            b.addr(v).len(n)
        }
        op::READ_FIXED => {
            b.addr(w.fixed + rng.pick(&[0, 1, 4090])).len(len).buf(rng.pick(&[0, 0, 0, 1, 2]))
        }
        _ => b.addr(guarded(64)).len(len.min(64)),
    };
    made(b, t, waits(t))
}

fn writing(rng: &mut Rng, w: &World) -> Item {
    let t = rng.pick(WRITABLE);
    let len = rng.pick(&[0, 1, 4, 8, 64]);
    let b = q(rng.pick(&[op::WRITE, op::WRITE, op::WRITEV, op::WRITE_FIXED]))
        .fd(w.writing(t))
        .off(offset(rng, t));
    let b = match b.0.opcode {
        op::WRITEV => {
            let (v, n) = vectors(rng, len as usize);
            b.addr(v).len(n)
        }
        op::WRITE_FIXED => {
            b.addr(w.fixed + rng.pick(&[0, 1, 4090])).len(len).buf(rng.pick(&[0, 0, 0, 1, 2]))
        }
        _ => b.addr(guarded(64)).len(len),
    };
    made(b, t, false)
}

fn socket_op(rng: &mut Rng, w: &World) -> Item {
    let t = rng.pick(SOCKETS);
    let len = rng.pick(&[0, 1, 4, 64]);
    let fd = w.fd(t);
    let message = |rng: &mut Rng| {
        let (v, n) = vectors(rng, len as usize);
        mem::msghdr(v, n as usize)
    };
    match rng.below(8) {
        0 => made(q(op::SEND).fd(fd).addr(guarded(64)).len(len), t, false),
        1 => made(
            q(op::RECV).fd(fd).addr(guarded(64)).len(len).opf(rng.pick(&[0, 0, 2, 0x40, 0x100])),
            t,
            true,
        ),
        2 => made(q(op::SENDMSG).fd(fd).addr(message(rng)), t, false),
        3 => {
            made(q(op::RECVMSG).fd(fd).addr(message(rng)).opf(rng.pick(&[0, 0, 2, 0x40])), t, true)
        }
        4 => made(
            q(op::ACCEPT).fd(w.fd(Thing::Listener)).opf(rng.pick(&[0, 0x80000, 0x800, 1])),
            Thing::Listener,
            true,
        ),
        5 => made(
            q(op::CONNECT).fd(w.fd(Thing::Loose)).addr(w.refused).off(rng.pick(&[16, 16, 1, 1000])),
            Thing::Loose,
            false,
        ),
        6 => made(q(op::SHUTDOWN).fd(fd).len(rng.pick(&[0, 1, 2, 3])), t, false),
        _ => {
            let kind = rng.pick(&[1, 2, 1 | 0x80000, 77]);
            made(
                q(op::SOCKET).fd(rng.pick(&[1, 2, 999])).off(kind).len(rng.pick(&[0, 0, 17])),
                Thing::Nothing,
                false,
            )
        }
    }
}

fn path(rng: &mut Rng, w: &World) -> usize {
    match rng.below(8) {
        0 => mem::BAD,
        1 => mem::cstr(""),
        2 => w.dir.cpath("none"),
        3 => w.dir.cpath("d"),
        n => w.dir.cpath(["f", "g", "f/x", "h"][n - 4]),
    }
}

fn path_op(rng: &mut Rng, w: &World) -> Item {
    let (a, b) = (path(rng, w), path(rng, w));
    let open_flags = rng.pick(&[
        0,
        libc::O_RDWR,
        libc::O_CREAT | libc::O_RDWR,
        libc::O_DIRECTORY,
        libc::O_CREAT | libc::O_EXCL,
    ]);
    let how = [
        open_flags as u64,
        if open_flags & libc::O_CREAT != 0 { 0o600 } else { 0 },
        rng.pick(&[0, 0, 4, 8, 1 << 20]),
    ];
    let q = match rng.below(8) {
        0 => q(op::OPENAT).fd(HERE).addr(a).opf(open_flags as u32).len(0o600),
        1 => q(op::OPENAT2)
            .fd(HERE)
            .addr(a)
            .off(mem::leak(how) as u64)
            .len(rng.pick(&[24, 24, 8, 0])),
        2 => q(op::STATX)
            .fd(HERE)
            .addr(a)
            .len(0x7ff)
            .off(mem::at(mem::buf(256)) as u64)
            .opf(rng.pick(&[0, 0x100, 0x1000, 1])),
        3 => q(op::UNLINKAT).fd(HERE).addr(a).opf(rng.pick(&[0, 0x200, 1])),
        4 => q(op::RENAMEAT)
            .fd(HERE)
            .addr(a)
            .len(HERE as u32)
            .off(b as u64)
            .opf(rng.pick(&[0, 1, 2, 64])),
        5 => q(op::MKDIRAT).fd(HERE).addr(a).len(0o700),
        6 => q(op::SYMLINKAT).fd(HERE).addr(a).off(b as u64),
        _ => q(op::LINKAT)
            .fd(HERE)
            .addr(a)
            .len(HERE as u32)
            .off(b as u64)
            .opf(rng.pick(&[0, 0x400, 1])),
    };
    made(q, Thing::Paths, false)
}

fn file_op(rng: &mut Rng, w: &World) -> Item {
    let t = rng.pick(&[Thing::File, Thing::File, Thing::ReadOnly, Thing::Full, Thing::Closed]);
    let fd = w.fd(t);
    let off = rng.pick(&[0, 1, 4096, 10_000, u64::MAX]);
    let page = crate::sys::pages(4096) as usize;
    let (q, t) = match rng.below(7) {
        0 => (q(op::FSYNC).fd(fd).off(off).opf(rng.pick(&[0, 1, 2])), t),
        1 => (q(op::SYNC_FILE_RANGE).fd(fd).off(off).len(10).opf(rng.pick(&[0, 2, 7, 8])), t),
        2 => (
            q(op::FALLOCATE)
                .fd(fd)
                .off(off)
                .addr(rng.pick(&[0, 10, 5000]))
                .len(rng.pick(&[0, 1, 3, 0x4000])),
            t,
        ),
        3 => (q(op::FADVISE).fd(fd).off(off).len(10).opf(rng.pick(&[0, 1, 2, 3, 4, 5, 6])), t),
        4 => (
            q(op::MADVISE)
                .addr(page + rng.pick(&[0, 0, 1]))
                .len(4096)
                .opf(rng.pick(&[0, 1, 4, 999])),
            Thing::Nothing,
        ),
        5 => (q(op::FTRUNCATE).fd(fd).off(rng.pick(&[8192, 100, u64::MAX])), t),
        _ => (
            q(op::CLOSE).fd(if t == Thing::Closed { 999 } else { crate::sys::dup(fd) }),
            Thing::Nothing,
        ),
    };
    made(q, t, false)
}

fn table_op(rng: &mut Rng, w: &World) -> Item {
    let some = mem::leak([w.fd(rng.pick(&[Thing::File, Thing::Full, Thing::Closed])), -1]);
    let q = match rng.below(5) {
        0 => q(op::FILES_UPDATE).addr(some).len(rng.pick(&[1, 2, 0])).off(rng.pick(&[
            0,
            2,
            3,
            4,
            u64::from(u32::MAX),
        ])),
        1 => q(op::PROVIDE_BUFFERS)
            .fd(rng.pick(&[1, 2, 0, 70_000]))
            .addr(mem::at(mem::buf(256)))
            .len(rng.pick(&[64, 64, 0]))
            .off(rng.pick(&[0, 5, 65535, 65536]))
            .buf(1),
        2 => q(op::REMOVE_BUFFERS).fd(rng.pick(&[1, 5, 0])).buf(rng.pick(&[1, 1, 9])),
        3 => q(op::CLOSE).fi(rng.pick(&[1, 3, 4, 5])),
        _ => q(op::OPENAT).fd(HERE).addr(w.dir.cpath("f")).fi(rng.pick(&[3, 4, 5, u32::MAX])),
    };
    made(q, Thing::Tables, false)
}

fn control(rng: &mut Rng, w: &World, pending: &[u64]) -> Item {
    let target = if pending.is_empty() { 7777 } else { rng.pick(pending) };
    let q = match rng.below(4) {
        0 | 1 => {
            let f = rng.pick(&[0, 0, 1, 1 | 2, 2, 16 | 2, 32, 4 | 2, 64]);
            let fd = if f & 2 != 0 {
                w.fd(rng.pick(&[Thing::Empty, Thing::Silent, Thing::Closed]))
            } else {
                -1
            };
            q(op::ASYNC_CANCEL).addr(target as usize).opf(f).fd(fd).len(if f & 32 != 0 {
                op::READ.into()
            } else {
                0
            })
        }
        2 => {
            let f = rng.pick(&[0, 0, 2, 4, 1, 8]);
            let b = q(op::POLL_REMOVE).addr(target as usize).len(f);
            if f & 2 != 0 {
                b.opf(4)
            } else {
                b
            }
        }
        _ => {
            let f = rng.pick(&[0, 0, 2, 2 | 16, 1]);
            q(op::TIMEOUT_REMOVE).addr(target as usize).opf(f).off(if f & 2 != 0 {
                mem::ms(60_000) as u64
            } else {
                0
            })
        }
    };
    made(q, Thing::Nothing, false)
}

fn simple(rng: &mut Rng, w: &World) -> Item {
    match rng.below(6) {
        0 | 1 => made(q(op::NOP).opf(rng.pick(&[0, 0, 0, 1, 2, 64])), Thing::Nothing, false),
        2 => {
            let t = rng.pick(READABLE);
            let mask = rng.pick(&[1, 4, 5, 0x2000]);
            made(q(op::POLL_ADD).fd(w.fd(t)).opf(mask).len(rng.pick(&[0, 0, 0, 8])), t, true)
        }
        3 => {
            let ts =
                rng.pick(&[mem::ms(0), mem::ms(1), mem::ms(60_000), mem::ts(-1, 0), 0, mem::BAD]);
            made(
                q(op::TIMEOUT)
                    .addr(ts)
                    .len(rng.pick(&[1, 1, 1, 0]))
                    .opf(rng.pick(&[0, 0, 4, 8, 12, 32])),
                Thing::Nothing,
                true,
            )
        }
        4 => {
            let t = rng.pick(&[Thing::Full, Thing::Empty, Thing::File]);
            let input = w.fd(t);
            let off = if t == Thing::File { 0 } else { usize::MAX };
            let o = rng.pick(&[op::SPLICE, op::TEE]);
            let b = q(o).fd(w.writing(Thing::Empty)).fi(input as u32).len(rng.pick(&[0, 1, 4]));
            // Without SPLICE_F_NONBLOCK a worker would be blocked for good.
            let b = b.opf(2);
            made(if o == op::SPLICE { b.addr(off).off(u64::MAX) } else { b }, Thing::Empty, false)
        }
        _ => {
            let event = mem::leak([1u32, 5, 0]);
            let fd = w.fd(rng.pick(&[Thing::Full, Thing::File, Thing::Closed]));
            made(
                q(op::EPOLL_CTL)
                    .fd(w.epoll())
                    .len(rng.pick(&[1, 2, 3, 9]))
                    .off(fd as u64)
                    .addr(event),
                Thing::Tables,
                false,
            )
        }
    }
}

fn flags(rng: &mut Rng, item: &mut Item) {
    // A cancel that runs on a worker finds itself there, by descriptor for instance.
    if rng.chance(15) && item.q.0.opcode != op::ASYNC_CANCEL {
        item.q.0.flags |= ASYNC;
    }
    let f = &mut item.q.0.flags;
    if rng.chance(4) {
        *f |= CQE_SKIP_SUCCESS;
    }
    if rng.chance(2) {
        *f |= IO_DRAIN;
    }
    if rng.chance(4) && selects(item.q.0.opcode) {
        item.q.0.flags |= BUFFER_SELECT;
        item.q.0.buf_index = 1;
        item.thing = Thing::Tables;
    }
    if rng.chance(8) && fixable(item.q.0.opcode) {
        item.q.0.flags |= FIXED_FILE;
        item.q.0.fd = rng.pick(&[0, 1, 2, 3, 4, -1]);
        item.thing = Thing::Tables;
        item.may_wait = true;
    }
}

/// Opcodes whose BUFFER_SELECT form is worth trying.
fn selects(opcode: u8) -> bool {
    matches!(opcode, op::READ | op::RECV | op::NOP | op::FSYNC)
}

/// Opcodes whose descriptor may be a slot without touching another thing's data.
fn fixable(opcode: u8) -> bool {
    matches!(
        opcode,
        op::READ
            | op::FSYNC
            | op::NOP
            | op::FADVISE
            | op::POLL_ADD
            | op::STATX
            | op::CLOSE
            | op::MADVISE
    )
}

/// Makes one field odd. Values are chosen so that no oddity reaches a file or memory
/// that the sequence does not own.
fn oddity(rng: &mut Rng, item: &mut Item) {
    let s = &mut item.q.0;
    match rng.below(9) {
        0 => s.ioprio = rng.pick(&[1, 2, 8, 0x100, 0xffff]),
        1 if s.off == 0 => s.off = rng.pick(&[1, u64::MAX]),
        2 if s.addr == 0 => s.addr = 1,
        3 if s.len == 0 => s.len = 1,
        // Bit 3 is RWF_NOWAIT, whose answer is the file system's state.
        4 => s.op_flags |= rng.pick(&[0x40, 0x10000, 1 << 30]),
        5 => s.personality = 1,
        6 if s.file_index == 0 => s.file_index = 77,
        7 => s.flags |= 0x80,
        _ => s.opcode = rng.pick(&[63, 64, 100, 200, 255]),
    }
}
