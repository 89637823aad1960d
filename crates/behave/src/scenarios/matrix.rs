//! For each opcode, one row: a request that works, then the same with one more field or
//! flag set. What a field that is not used must be is part of the ABI.

use crate::prelude::*;

use super::matrix_base::{base, World};

/// Opcode names in order of their numbers.
pub const NAMES: [&str; op::COUNT] = [
    "NOP",
    "READV",
    "WRITEV",
    "FSYNC",
    "READ_FIXED",
    "WRITE_FIXED",
    "POLL_ADD",
    "POLL_REMOVE",
    "SYNC_FILE_RANGE",
    "SENDMSG",
    "RECVMSG",
    "TIMEOUT",
    "TIMEOUT_REMOVE",
    "ACCEPT",
    "ASYNC_CANCEL",
    "LINK_TIMEOUT",
    "CONNECT",
    "FALLOCATE",
    "OPENAT",
    "CLOSE",
    "FILES_UPDATE",
    "STATX",
    "READ",
    "WRITE",
    "FADVISE",
    "MADVISE",
    "SEND",
    "RECV",
    "OPENAT2",
    "EPOLL_CTL",
    "SPLICE",
    "PROVIDE_BUFFERS",
    "REMOVE_BUFFERS",
    "TEE",
    "SHUTDOWN",
    "RENAMEAT",
    "UNLINKAT",
    "MKDIRAT",
    "SYMLINKAT",
    "LINKAT",
    "MSG_RING",
    "FSETXATTR",
    "SETXATTR",
    "FGETXATTR",
    "GETXATTR",
    "SOCKET",
    "URING_CMD",
    "SEND_ZC",
    "SENDMSG_ZC",
    "READ_MULTISHOT",
    "WAITID",
    "FUTEX_WAIT",
    "FUTEX_WAKE",
    "FUTEX_WAITV",
    "FIXED_FD_INSTALL",
    "FTRUNCATE",
    "BIND",
    "LISTEN",
    "RECV_ZC",
    "EPOLL_WAIT",
    "READV_FIXED",
    "WRITEV_FIXED",
    "PIPE",
];

macro_rules! rows {
    ($($name:literal)*) => { [$(Scenario {
        name: concat!("matrix_", $name),
        about: concat!("which fields and flags ", $name, " takes"),
        run: row,
        seconds: 20,
    }),*] };
}

/// One scenario per opcode.
pub const SCENARIOS: &[Scenario] = &rows! {
    "NOP" "READV" "WRITEV" "FSYNC" "READ_FIXED" "WRITE_FIXED" "POLL_ADD" "POLL_REMOVE" "SYNC_FILE_RANGE" "SENDMSG"
    "RECVMSG" "TIMEOUT" "TIMEOUT_REMOVE" "ACCEPT" "ASYNC_CANCEL" "LINK_TIMEOUT" "CONNECT" "FALLOCATE" "OPENAT" "CLOSE"
    "FILES_UPDATE" "STATX" "READ" "WRITE" "FADVISE" "MADVISE" "SEND" "RECV" "OPENAT2" "EPOLL_CTL" "SPLICE"
    "PROVIDE_BUFFERS" "REMOVE_BUFFERS" "TEE" "SHUTDOWN" "RENAMEAT" "UNLINKAT" "MKDIRAT" "SYMLINKAT" "LINKAT"
    "MSG_RING" "FSETXATTR" "SETXATTR" "FGETXATTR" "GETXATTR" "SOCKET" "URING_CMD" "SEND_ZC" "SENDMSG_ZC"
    "READ_MULTISHOT" "WAITID" "FUTEX_WAIT" "FUTEX_WAKE" "FUTEX_WAITV" "FIXED_FD_INSTALL" "FTRUNCATE" "BIND" "LISTEN"
    "RECV_ZC" "EPOLL_WAIT" "READV_FIXED" "WRITEV_FIXED" "PIPE"
};

/// A change of one field of a working request; `None` if the request uses that field.
type Change = fn(&mut Q) -> bool;

macro_rules! set {
    ($field:ident, $v:expr) => {
        |q: &mut Q| {
            q.0.$field |= $v;
            true
        }
    };
    ($field:ident, $v:expr, unless used) => {
        |q: &mut Q| {
            let free = q.0.$field == 0;
            q.0.$field |= $v;
            free
        }
    };
}

const CHANGES: &[(&str, Change)] = &[
    ("as it should be", |_| true),
    ("ioprio 1", set!(ioprio, 1)),
    ("off 1", set!(off, 1, unless used)),
    ("addr 1", set!(addr, 1, unless used)),
    ("len 1", set!(len, 1, unless used)),
    ("op flags 1", set!(op_flags, 1)),
    ("op flags 0x10000", set!(op_flags, 0x10000)),
    ("buf_index 1", set!(buf_index, 1)),
    ("personality 1", set!(personality, 1)),
    ("file_index 1", set!(file_index, 1, unless used)),
    ("addr3 1", set!(addr3, 1, unless used)),
    ("pad2 1", set!(pad2, 1)),
    ("FIXED_FILE", set!(flags, FIXED_FILE)),
    ("BUFFER_SELECT", set!(flags, BUFFER_SELECT)),
    ("CQE_SKIP", set!(flags, CQE_SKIP_SUCCESS)),
    ("ASYNC", set!(flags, ASYNC)),
    ("flag bit 7", set!(flags, 0x80)),
];

fn row(cx: &mut Cx) {
    let name = cx.name.strip_prefix("matrix_").expect("row name");
    let opcode = NAMES.iter().position(|n| *n == name).expect("opcode") as u8;
    for (what, change) in CHANGES {
        let w = World::new();
        let mut q = base(opcode, &w).ud(2);
        if change(&mut q) {
            cx.say(what, ask(&w, q));
        }
    }
}

/// Runs one request on the world's ring and tells its CQEs.
fn ask(w: &World, q: Q) -> String {
    if q.0.opcode == op::LINK_TIMEOUT {
        w.ring.push(nop(1).flags(IO_LINK));
    }
    w.ring.push(q);
    w.ring.submit();
    // A LINK_TIMEOUT's head completes too, and a zero-copy send has a second CQE.
    let two = matches!(q.0.opcode, op::LINK_TIMEOUT | op::SEND_ZC | op::SENDMSG_ZC);
    if two {
        w.ring.wait(2, 60);
    } else {
        w.ring.wait(1, patience(&q));
    }
    let mut cqes = w.ring.take();
    cqes.retain(|c| c.user_data == 2);
    for c in &mut cqes {
        if c.res > 2 && makes_fd(&q) {
            sys::close(c.res);
            c.res = 777_777;
        }
    }
    let text = show(&cqes).replace("777777", "fd");
    if cqes.is_empty() {
        "nothing".into()
    } else {
        text
    }
}

/// How long to wait before saying that nothing came: long where an answer must come.
fn patience(q: &Q) -> i64 {
    let skip = q.0.flags & CQE_SKIP_SUCCESS != 0;
    if skip || q.0.opcode == op::EPOLL_WAIT {
        60
    } else {
        2000
    }
}

/// Whether a positive result is a descriptor's number.
fn makes_fd(q: &Q) -> bool {
    matches!(q.0.opcode, op::ACCEPT | op::OPENAT | op::OPENAT2 | op::SOCKET | op::FIXED_FD_INSTALL)
}
