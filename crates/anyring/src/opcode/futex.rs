//! Futexes and child processes.

use crate::types;
use anyring_uapi::op;

opcode! {
    /// Waits on a futex while its value is `val`; only wakers whose mask meets `mask` count.
    /// `futex_flags` are those of the `futex2` calls.
    FutexWait = op::FUTEX_WAIT;
    new(futex: *const u32, val: u64, mask: u64, futex_flags: u32) |s| {
        s.fd = futex_flags as i32;
        s.addr = futex as u64;
        s.off = val;
        s.addr3 = mask;
    }
    /// None are defined.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Wakes up to `val` waiters of a futex whose mask meets `mask`.
    FutexWake = op::FUTEX_WAKE;
    new(futex: *const u32, val: u64, mask: u64, futex_flags: u32) |s| {
        s.fd = futex_flags as i32;
        s.addr = futex as u64;
        s.off = val;
        s.addr3 = mask;
    }
    /// None are defined.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Waits on several futexes at once; the result is the number of the one that was woken.
    FutexWaitV = op::FUTEX_WAITV;
    new(futexv: *const types::FutexWaitV, nr_futex: u32) |s| {
        s.addr = futexv as u64;
        s.len = nr_futex;
    }
    /// None are defined.
    flags(flags: u32) |s| { s.op_flags = flags; }
}

opcode! {
    /// Waits for a child process, as `waitid(2)`.
    WaitId = op::WAITID;
    new(idtype: libc::idtype_t, id: libc::id_t, options: libc::c_int) |s| {
        s.fd = id as i32;
        s.len = idtype;
        s.file_index = options as u32;
    }
    @pointer
    /// Where the description of the child's change goes. It is written to.
    infop(*const libc::siginfo_t) => off;
    /// None are defined.
    flags(flags: libc::c_uint) |s| { s.op_flags = flags; }
}
