//! Threads: ids, signals to them, and starting them.
//!
//! Two ways to start one. A raw thread is a bare `clone(2)` with its own stack and a blank
//! thread-local block, so that it can be started inside a signal handler; it may never use
//! libc's or Rust's thread-local storage. A plain thread is the standard library's.

use super::{nr, syscall};
use crate::Errno;
use core::arch::asm;

/// `getpid(2)`.
pub fn getpid() -> i32 {
    // SAFETY: no arguments.
    unsafe { syscall(nr::__NR_getpid, [0; 6]) }.unwrap_or(0) as i32
}
/// `gettid(2)`.
pub fn gettid() -> i32 {
    // SAFETY: no arguments.
    unsafe { syscall(nr::__NR_gettid, [0; 6]) }.unwrap_or(0) as i32
}
/// Sends a signal to one thread of this process.
pub fn tgkill(tid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: integer arguments only.
    unsafe { syscall(nr::__NR_tgkill, [getpid() as usize, tid as usize, signal as usize, 0, 0, 0]) }
        .map(drop)
}
/// `sched_yield(2)`.
pub fn yield_now() {
    // SAFETY: no arguments.
    let _ = unsafe { syscall(nr::__NR_sched_yield, [0; 6]) };
}
/// Names the calling thread, at most 15 bytes and a NUL.
pub fn set_name(name: &str) {
    let mut buf = [0u8; 16];
    for (to, from) in buf.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    const PR_SET_NAME: usize = 15;
    // SAFETY: a 16-byte NUL-terminated local.
    let _ = unsafe { syscall(nr::__NR_prctl, [PR_SET_NAME, buf.as_ptr() as usize, 0, 0, 0, 0]) };
}
/// CPUs this thread may use.
pub fn cpus() -> u32 {
    affinity().iter().map(|b| b.count_ones()).sum::<u32>().max(1)
}
/// The calling thread's affinity mask, in bytes.
pub fn affinity() -> Vec<u8> {
    let mut mask = vec![0u8; 1024];
    // SAFETY: the kernel writes at most the given bytes.
    let n = unsafe {
        syscall(nr::__NR_sched_getaffinity, [0, mask.len(), mask.as_mut_ptr() as usize, 0, 0, 0])
    };
    mask.truncate(n.unwrap_or(0));
    mask
}
/// Sets a thread's affinity (0 for the caller).
pub fn set_affinity(tid: i32, mask: &[u8]) -> Result<(), Errno> {
    // SAFETY: the kernel reads the given bytes.
    unsafe {
        syscall(
            nr::__NR_sched_setaffinity,
            [tid as usize, mask.len(), mask.as_ptr() as usize, 0, 0, 0],
        )
    }
    .map(drop)
}
/// Blocks all signals of the calling thread except `keep` (0 for none); returns the old mask.
pub fn block_signals_except(keep: i32) -> u64 {
    let mut new = !0u64;
    if keep > 0 {
        new &= !(1u64 << (keep - 1));
    }
    set_signal_mask(new)
}
/// Sets the calling thread's signal mask; returns the old one.
pub fn set_signal_mask(new: u64) -> u64 {
    let mut old = 0u64;
    const SETMASK: usize = 2;
    // SAFETY: two local masks of eight bytes.
    let _ = unsafe {
        syscall(
            nr::__NR_rt_sigprocmask,
            [SETMASK, &raw const new as usize, &raw mut old as usize, 8, 0, 0],
        )
    };
    old
}

const STACK: usize = 256 * 1024;
/// Room below and above the thread pointer, for whatever libraries keep at fixed offsets.
const TLS: usize = 64 * 1024;

struct RawStart {
    entry: Box<dyn FnOnce() + Send>,
    map: usize,
}

/// Starts a thread that runs `entry` with all signals blocked but `keep_signal`.
pub fn spawn(raw: bool, keep_signal: i32, entry: Box<dyn FnOnce() + Send>) -> Result<(), Errno> {
    let old = block_signals_except(keep_signal);
    let result = if raw {
        spawn_raw(entry)
    } else {
        std::thread::Builder::new().spawn(entry).map(drop).map_err(|_| Errno::AGAIN)
    };
    set_signal_mask(old);
    result
}

/// Sets up the stack and the blank thread block, then clones. The new thread inherits the signal mask.
fn spawn_raw(entry: Box<dyn FnOnce() + Send>) -> Result<(), Errno> {
    let len = STACK + TLS;
    let prot = (nr::PROT_READ | nr::PROT_WRITE) as usize;
    let flags = (nr::MAP_PRIVATE | nr::MAP_ANONYMOUS | nr::MAP_NORESERVE) as usize;
    // SAFETY: a fresh private mapping.
    let map = unsafe { syscall(nr::__NR_mmap, [0, len, prot, flags, usize::MAX, 0]) }?;
    let tp = map + STACK + TLS / 2;
    let start = Box::into_raw(Box::new(RawStart { entry, map }));
    // SAFETY: the block is ours. glibc and compilers expect the thread pointer to point to itself (offsets 0 and 16) and the
    // stack guard at 40, which this thread may check in code compiled with it.
    unsafe {
        let guard: usize;
        asm!("mov {}, fs:[40]", out(reg) guard, options(nostack, readonly, preserves_flags));
        let tcb = tp as *mut usize;
        tcb.write(tp);
        tcb.add(2).write(tp);
        tcb.add(5).write(guard);
    }
    // SAFETY: the stack is fresh and large enough; `start` is handed to the new thread.
    let ret = unsafe { clone_thread(map + STACK, tp, start) };
    if ret.is_err() {
        // SAFETY: no thread took them over.
        unsafe {
            drop(Box::from_raw(start));
            let _ = syscall(nr::__NR_munmap, [map, len, 0, 0, 0, 0]);
        }
    }
    ret
}

/// # Safety
/// `stack_top` is the 16-byte aligned end of a stack of the new thread's own, `tp` its thread block.
unsafe fn clone_thread(stack_top: usize, tp: usize, start: *mut RawStart) -> Result<(), Errno> {
    let flags = nr::CLONE_VM
        | nr::CLONE_FS
        | nr::CLONE_FILES
        | nr::CLONE_SIGHAND
        | nr::CLONE_THREAD
        | nr::CLONE_SYSVSEM
        | nr::CLONE_SETTLS;
    let ret: isize;
    // SAFETY: in the child the instruction returns on the new stack, where the entry is called and never returns;
    // its argument waits in r12, which the kernel preserves.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") nr::__NR_clone as isize => ret,
            in("rdi") flags as usize, in("rsi") stack_top, in("rdx") 0, in("r10") 0, in("r8") tp,
            in("r12") start, in("r13") raw_entry as *const () as usize,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    Errno::check(ret).map(drop)
}

extern "C" fn raw_entry(start: *mut RawStart) -> ! {
    // SAFETY: made by spawn_raw for this thread alone.
    let RawStart { entry, map } = *unsafe { Box::from_raw(start) };
    entry();
    // SAFETY: nothing lives on this stack any more; the two calls need none.
    unsafe {
        asm!(
            "syscall",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "ud2",
            exit = const nr::__NR_exit,
            in("rax") nr::__NR_munmap as usize,
            in("rdi") map, in("rsi") STACK + TLS,
            options(noreturn)
        )
    }
}

/// The soft RLIMIT_NPROC.
pub fn nproc_limit() -> u64 {
    let mut old = [u64::MAX; 2];
    // SAFETY: the kernel fills two integers.
    let _ = unsafe {
        syscall(
            nr::__NR_prlimit64,
            [0, nr::RLIMIT_NPROC as usize, 0, old.as_mut_ptr() as usize, 0, 0],
        )
    };
    old[0]
}

/// How often the calling thread has stopped running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// To wait for something.
    pub voluntary: i64,
    /// For others to run.
    pub involuntary: i64,
}

/// See [`Switches`].
pub fn switches() -> Switches {
    const THREAD: usize = 1;
    let mut usage = core::mem::MaybeUninit::<nr::rusage>::zeroed();
    let args = [THREAD, usage.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel fills one `struct rusage`, which was zeroed before: valid for integers.
    let usage = unsafe {
        let _ = syscall(nr::__NR_getrusage, args);
        usage.assume_init()
    };
    Switches { voluntary: usage.ru_nvcsw, involuntary: usage.ru_nivcsw }
}

/// A pipe without reader.
pub const SIGPIPE: i32 = 13;

/// Takes back a SIGPIPE that a call of this thread has just raised while its signals are blocked. False if there is none.
pub fn take_back_sigpipe() -> bool {
    let set = 1u64 << (SIGPIPE - 1);
    let zero = [0i64; 2];
    let args = [&raw const set as usize, 0, zero.as_ptr() as usize, 8, 0, 0];
    // SAFETY: the set and the timespec are locals; nothing is waited for.
    unsafe { syscall(nr::__NR_rt_sigtimedwait, args) }.is_ok()
}
