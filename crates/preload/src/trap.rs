//! The SIGSYS handler: where calls arrive that no function of ours stands in front of.
//!
//! The handler runs on the program's stack with all signals blocked but SIGSYS itself. That one
//! stays deliverable (SA_NODEFER, and not in `sa_mask`), because a trap of a thread that blocks
//! SIGSYS kills the process: an operation the engine runs for the program may name a ring
//! descriptor and trap in its turn.
//!
//! While the engine waits it installs the program's own mask, which is in the signal frame.
//! Nothing here touches errno, allocates through libc or takes a lock of libc.

use crate::program_sigsys;
use crate::state;
use crate::sys::{self, SIGSYS_BIT};
use crate::{calls, exit, rewrite};
use anyring_engine::Caller;
use anyring_front::filter::TAG;
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct KernelAction {
    /// Address, SIG_DFL or SIG_IGN.
    pub handler: usize,
    /// SA_*
    pub flags: u64,
    /// Returns from the handler.
    pub restorer: usize,
    /// Blocked while the handler runs.
    pub mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;

global_asm!(
    // Unwinders recognise a signal frame by these two instructions.
    ".balign 16",
    ".globl anyring_restore",
    ".hidden anyring_restore",
    ".type anyring_restore,@function",
    "nop",
    "anyring_restore:",
    "mov rax, 15",
    "syscall",
    ".size anyring_restore, . - anyring_restore",
);
extern "C" {
    fn anyring_restore();
}

/// `rt_sigaction(2)` for SIGSYS; the old action.
pub fn set_action(action: &KernelAction) -> KernelAction {
    let mut old = KernelAction::default();
    let (new_at, old_at) = (&raw const *action as usize, &raw mut old as usize);
    // SAFETY: both live across the call; the handler may run at any time from here on, and
    // for SIG_DFL, SIG_IGN and our own that is allowed.
    unsafe {
        sys::call6(libc::SYS_rt_sigaction, [libc::SIGSYS as usize, new_at, old_at, 8, 0, 0]);
    }
    old
}

/// Installs the handler; the old action.
pub fn install() -> KernelAction {
    set_action(&KernelAction {
        handler: on_sigsys as *const () as usize,
        flags: (libc::SA_SIGINFO | libc::SA_NODEFER) as u64 | SA_RESTORER,
        restorer: anyring_restore as *const () as usize,
        mask: !SIGSYS_BIT,
    })
}

/// The parts of `siginfo_t` that matter here.
#[repr(C)]
pub struct Info {
    signal: c_int,
    errno: c_int,
    code: c_int,
    pad: c_int,
    /// With SI_TKILL and SI_USER: the sender.
    pid: c_int,
    uid: c_int,
    /// With SYS_SECCOMP: the call's number; with SI_TIMER: the low half of the timer's value.
    nr: c_int,
    arch: u32,
}

const SYS_SECCOMP: c_int = 1;
const SI_TKILL: c_int = -6;
const SI_TIMER: c_int = -2;

/// Set in the second half of `fcntl(fd, F_GETFD, PROBE)`: asks whether our filter is installed.
const PROBE: usize = 0x5072_6f62;
const PROBE_ANSWER: isize = 0x5965;

/// Whether our filter traps calls that name `fd`. The handler must be installed.
pub fn filter_watches(fd: u32) -> bool {
    let args = [fd as usize, libc::F_GETFD as usize, PROBE, 0, 0, 0];
    // SAFETY: F_GETFD takes no third argument.
    unsafe { sys::call6(libc::SYS_fcntl, args) == PROBE_ANSWER }
}

unsafe extern "C" fn on_sigsys(signal: c_int, info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel's pointers, valid while the handler runs.
    let (info_ref, uc) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    if info_ref.code == SYS_SECCOMP {
        if let Some(result) = answer(info_ref, uc) {
            uc.uc_mcontext.gregs[libc::REG_RAX as usize] = result as i64;
            // Heals a mask that came about behind our back.
            *mask_of(uc) &= !SIGSYS_BIT;
            return;
        }
    } else if is_interrupt(info_ref) {
        // SAFETY: the kernel's pointer.
        unsafe { anyring_engine::on_interrupt(context) };
        return;
    }
    // SAFETY: the kernel's pointers.
    unsafe { program_sigsys::deliver(signal, info, uc, info_ref.code == SYS_SECCOMP) };
}

/// The mask to return to. The kernel's set is the first eight bytes.
pub fn mask_of(uc: &mut libc::ucontext_t) -> &mut u64 {
    // SAFETY: `sigset_t` is larger than eight bytes and aligned to them.
    unsafe { &mut *(&raw mut uc.uc_sigmask).cast::<u64>() }
}

/// The result of a trapped call; `None` if it is not one of ours.
fn answer(info: &Info, uc: &mut libc::ucontext_t) -> Option<isize> {
    let g = &uc.uc_mcontext.gregs;
    let arg = |register: c_int| g[register as usize] as usize;
    let a = [
        arg(libc::REG_RDI),
        arg(libc::REG_RSI),
        arg(libc::REG_RDX),
        arg(libc::REG_R10),
        arg(libc::REG_R8),
        arg(libc::REG_R9),
    ];
    let nr = i64::from(info.nr);
    let ours = info.errno == c_int::from(TAG);
    if ours && nr == libc::SYS_fcntl && a[1] == libc::F_GETFD as usize && a[2] == PROBE {
        return Some(PROBE_ANSWER);
    }
    if calls::is_io_uring(nr) {
        return Some(answer_io_uring(nr, a, uc));
    }
    if ours {
        state::process().traps.fetch_add(1, Relaxed);
        return Some(calls::on_ring_range(nr, a));
    }
    None
}

fn answer_io_uring(nr: i64, a: [usize; 6], uc: &mut libc::ucontext_t) -> isize {
    let process = state::process();
    // Before the constructor has decided, a filter from outside traps its probe; and a child
    // of vfork has no engine.
    if !state::active() || (process.engine().is_some() && process.own_engine().is_none()) {
        return -(libc::ENOSYS as isize);
    }
    process.traps.fetch_add(1, Relaxed);
    if nr == anyring_uapi::NR_ENTER {
        rewrite::count(uc.uc_mcontext.gregs[libc::REG_RIP as usize] as usize);
    }
    let tid = sys::gettid();
    exit::announce_thread_once(tid);
    calls::io_uring(nr, a, &Caller { tid, mask: Some(*mask_of(uc) & !SIGSYS_BIT) })
}

/// Whether the engine sent this: its timers are known by their value. Or to one of its own threads: the program
/// may send SIGSYS to its threads as well; the engine's are known by their names.
fn is_interrupt(info: &Info) -> bool {
    if info.code == SI_TIMER {
        return info.nr as u32 == anyring_engine::PASS_MAGIC;
    }
    if info.code != SI_TKILL || info.pid != sys::getpid() {
        return false;
    }
    let mut name = [0u8; 16];
    let args = [libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { sys::call6(libc::SYS_prctl, args) };
    name.starts_with(b"iou-")
}
