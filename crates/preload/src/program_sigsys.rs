//! The program's own SIGSYS action. The kernel holds ours; the program's is kept here, told to
//! the program when it asks, and honoured when a SIGSYS arrives that is not for us.

use crate::sys::{self, SIGSYS_BIT};
use crate::trap::{self, Info, KernelAction};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicU64 = AtomicU64::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// What the program set, or what it found at its start.
pub fn get() -> KernelAction {
    let handler = HANDLER.load(Acquire);
    KernelAction { handler, flags: FLAGS.load(Relaxed), restorer: 0, mask: MASK.load(Relaxed) }
}

/// The program sets its action. Handler last: a signal that arrives in between finds the old
/// handler with the new flags at worst, as it may when two threads set it at once.
pub fn set(action: &KernelAction) {
    FLAGS.store(action.flags, Relaxed);
    MASK.store(action.mask, Relaxed);
    HANDLER.store(action.handler, Release);
}

/// Does with a SIGSYS what the program asked for. `trapped`: it stands for a system call that a
/// filter refused, which cannot be ignored.
///
/// # Safety
/// `info` and `uc` are what the kernel gave to the handler.
pub unsafe fn deliver(signal: c_int, info: *mut Info, uc: &mut libc::ucontext_t, trapped: bool) {
    let action = get();
    match action.handler {
        libc::SIG_IGN if !trapped => return,
        libc::SIG_DFL | libc::SIG_IGN => die(),
        _ => {}
    }
    if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
        HANDLER.store(libc::SIG_DFL, Release);
    }
    // The mask a handler of the program expects, without SIGSYS.
    sys::set_mask((*trap::mask_of(uc) | action.mask) & !SIGSYS_BIT);
    // SAFETY: the program gave this address for a handler, and the flags say of which kind.
    unsafe {
        if action.flags & libc::SA_SIGINFO as u64 != 0 {
            let handler: extern "C" fn(c_int, *mut Info, *mut c_void) =
                core::mem::transmute(action.handler);
            handler(signal, info, (&raw mut *uc).cast());
        } else {
            let handler: extern "C" fn(c_int) = core::mem::transmute(action.handler);
            handler(signal);
        }
    }
}

/// Ends the process by SIGSYS.
fn die() {
    trap::set_action(&KernelAction::default());
    sys::set_mask(!SIGSYS_BIT);
    let (pid, tid) = (sys::getpid() as usize, sys::gettid() as usize);
    // SAFETY: takes no pointers.
    unsafe { sys::call6(libc::SYS_tgkill, [pid, tid, libc::SIGSYS as usize, 0, 0, 0]) };
}
