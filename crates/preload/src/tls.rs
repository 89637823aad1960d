//! What a thread of the program remembers.
//!
//! Not `thread_local!`: in a shared library that reaches the variable through `__tls_get_addr`,
//! which may allocate, and we are inside signal handlers. A variable of the initial-exec model
//! lies at a fixed distance from the thread pointer; the room for it exists because the
//! library is loaded at program start. Threads of the engine never come here: they have no
//! thread pointer of their own.

use core::arch::{asm, global_asm};

global_asm!(
    ".section .tbss.anyring_thread,\"awT\",@nobits",
    ".balign 8",
    ".globl anyring_thread",
    ".hidden anyring_thread",
    ".type anyring_thread,@object",
    ".size anyring_thread,16",
    "anyring_thread:",
    ".zero 16",
    ".text",
);

/// All zeroes at the start of a thread.
#[repr(C)]
pub struct Thread {
    /// The thread's id, if `epoch` is the process's.
    pub tid: i32,
    /// The end of this thread will be reported to the engine.
    pub announced: bool,
    /// The process in which `tid` was asked for: a forked child inherits this variable, with
    /// the parent's thread id in it.
    pub epoch: u64,
}

/// The calling thread's variable.
pub fn current() -> *mut Thread {
    let at: *mut Thread;
    // SAFETY: reads the distance and the thread pointer, nothing else.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + anyring_thread@GOTTPOFF]",
            "add {at}, qword ptr fs:[0]",
            at = out(reg) at,
            options(nostack, readonly),
        );
    }
    at
}
