//! The system call instruction, plain and interruptible.
//!
//! The interruptible form is for a worker's blocking call. It tests a cancel flag and
//! enters the kernel in a short stretch of code with known ends; the interrupt signal's
//! handler moves a thread that it finds inside that stretch to its exit. So a cancel that arrives
//! between the test and the call is not lost, and none has to be sent twice.

use crate::Errno;
use core::arch::{asm, global_asm};
use core::sync::atomic::AtomicU32;

/// A system call number.
pub type Nr = u32;

/// Makes a system call.
///
/// # Safety
/// The call's own rules about its arguments hold; pointers of the program may be bad, the kernel then
/// answers EFAULT, but must not point into memory the engine owns unless the call may change it.
#[inline(always)]
pub unsafe fn syscall(nr: Nr, a: [usize; 6]) -> Result<usize, Errno> {
    let ret: isize;
    // SAFETY: the x86-64 system call convention; rcx and r11 are clobbered by the instruction.
    unsafe {
        asm!("syscall", inlateout("rax") nr as usize => ret,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    Errno::check(ret)
}

global_asm!(
    ".text",
    ".globl anyring_intr_call",
    ".hidden anyring_intr_call",
    ".globl anyring_intr_begin",
    ".hidden anyring_intr_begin",
    ".globl anyring_intr_end",
    ".hidden anyring_intr_end",
    ".globl anyring_intr_abort",
    ".hidden anyring_intr_abort",
    ".type anyring_intr_call, @function",
    // (flag: *const u32 = rdi, nr = rsi, args: *const [usize; 6] = rdx) -> isize
    "anyring_intr_call:",
    "mov %rdi, %r11",
    "mov %rsi, %rax",
    "mov %rdx, %rcx",
    "mov 0(%rcx), %rdi",
    "mov 8(%rcx), %rsi",
    "mov 16(%rcx), %rdx",
    "mov 24(%rcx), %r10",
    "mov 32(%rcx), %r8",
    "mov 40(%rcx), %r9",
    "anyring_intr_begin:",
    "cmpl $0, (%r11)",
    "jne anyring_intr_abort",
    "syscall",
    "anyring_intr_end:",
    "ret",
    "anyring_intr_abort:",
    "mov $-4, %rax",
    "ret",
    options(att_syntax)
);

extern "C" {
    fn anyring_intr_call(flag: *const u32, nr: usize, args: *const [usize; 6]) -> isize;
    static anyring_intr_begin: u8;
    static anyring_intr_end: u8;
    static anyring_intr_abort: u8;
}

/// Makes a system call that returns EINTR once `flag` is non-zero and the interrupt signal
/// was sent, and never enters the kernel if the flag was set before.
///
/// # Safety
/// As for [`syscall`].
pub unsafe fn interruptible(flag: &AtomicU32, nr: Nr, a: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the assembly reads the flag and the array and makes the call; the caller vouches for the arguments.
    Errno::check(unsafe { anyring_intr_call(flag.as_ptr(), nr as usize, &a) })
}

/// Index of the instruction pointer in the general registers of an x86-64 `ucontext_t`.
const REG_RIP: usize = 16;
/// Bytes before the general registers in `ucontext_t`: uc_flags, uc_link, uc_stack.
const GREGS_OFFSET: usize = 8 + 8 + 24;

/// The interrupt handler's work: a thread that stands before its system call is moved to the abort path.
///
/// # Safety
/// `ucontext` is what the kernel passed to the running handler.
pub unsafe fn on_interrupt_fixup(ucontext: *mut core::ffi::c_void) {
    // SAFETY: the symbols are only used as addresses; the register file lies at a fixed place in ucontext_t.
    unsafe {
        let rip = ucontext.cast::<u8>().add(GREGS_OFFSET).cast::<usize>().add(REG_RIP);
        let (begin, end) =
            (&raw const anyring_intr_begin as usize, &raw const anyring_intr_end as usize);
        if (begin..end).contains(&*rip) {
            *rip = &raw const anyring_intr_abort as usize;
        }
    }
}
