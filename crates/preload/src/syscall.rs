//! Interposed: `syscall(2)`.
//!
//! In assembly, because a call like clone or vfork that comes back twice must not come back into
//! a stack frame of ours that the other one has used meanwhile. Numbers that concern us take
//! the way into [`anyring_syscall`]; all others are made here as the C library makes them.

use crate::sys::{to_libc, SignalsOff};
use crate::{actions, calls, exec, fds, ids, limits, masks, report, rings, state, sys, waits};
#[cfg(not(test))]
use core::arch::naked_asm;

/// A bit for each number that takes the slow way.
#[cfg_attr(not(test), expect(dead_code, reason = "read by assembly"))]
struct Table([u64; 8]);

const fn table() -> Table {
    let numbers = [
        anyring_uapi::NR_SETUP,
        anyring_uapi::NR_ENTER,
        anyring_uapi::NR_REGISTER,
        libc::SYS_close,
        libc::SYS_close_range,
        libc::SYS_dup,
        libc::SYS_dup2,
        libc::SYS_dup3,
        libc::SYS_fcntl,
        libc::SYS_epoll_ctl,
        libc::SYS_mmap,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_getrlimit,
        libc::SYS_setrlimit,
        libc::SYS_prlimit64,
        libc::SYS_poll,
        libc::SYS_epoll_wait,
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setreuid,
        libc::SYS_setregid,
        libc::SYS_setresuid,
        libc::SYS_setresgid,
        libc::SYS_setgroups,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_exit_group,
    ];
    let mut bits = [0; 8];
    let mut i = 0;
    while i < numbers.len() {
        bits[numbers[i] as usize / 64] |= 1 << (numbers[i] % 64);
        i += 1;
    }
    Table(bits)
}

static SLOW: Table = table();

/// `syscall(2)`
///
/// # Safety
/// As the C library's.
#[cfg(not(test))]
#[no_mangle]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp rdi, 512",
        "jae 2f",
        "lea rax, [rip + {slow}]",
        "bt qword ptr [rax], rdi",
        "jc {ours}",
        "2:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 3f",
        "ret",
        "3:",
        "mov rdi, rax",
        "jmp {fail}",
        slow = sym SLOW,
        ours = sym anyring_syscall,
        fail = sym anyring_syscall_failed,
    )
}

#[cfg_attr(test, allow(dead_code))]
extern "C" fn anyring_syscall_failed(ret: isize) -> isize {
    to_libc(ret)
}

/// The numbers of [`SLOW`].
#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn anyring_syscall(
    nr: i64,
    a0: usize,
    a1: usize,
    a2: usize,
    a3: usize,
    a4: usize,
    a5: usize,
) -> isize {
    let a = [a0, a1, a2, a3, a4, a5];
    if calls::is_io_uring(nr) {
        return to_libc(rings::call(nr, a));
    }
    if !state::active() {
        if nr == libc::SYS_exit_group {
            report::at_exit();
        }
        // SAFETY: the program's own call, made as it asked for.
        return to_libc(unsafe { sys::call6(nr, a) });
    }
    // SAFETY: the program's own call, with arguments of the types its number says.
    unsafe { active_call(nr, a) }
}

/// # Safety
/// As the call demands.
unsafe fn active_call(nr: i64, a: [usize; 6]) -> isize {
    if calls::names_ring_range(nr, a) {
        let _signals = SignalsOff::new();
        return to_libc(calls::on_ring_range(nr, a));
    }
    // SAFETY: the caller's.
    unsafe {
        match nr {
            libc::SYS_rt_sigprocmask => to_libc(masks::raw_sigprocmask(a)),
            libc::SYS_rt_sigaction => to_libc(actions::raw_sigaction(a)),
            libc::SYS_close_range => to_libc(fds::close_all(a[0] as u32, a[1] as u32, a[2] as i32)),
            libc::SYS_close if report::owns(a[0] as i32) => to_libc(-(libc::EBADF as isize)),
            libc::SYS_getrlimit => limits::getrlimit(a[0] as u32, a[1] as _) as isize,
            libc::SYS_setrlimit => limits::setrlimit(a[0] as u32, a[1] as _) as isize,
            libc::SYS_prlimit64 => {
                limits::prlimit(a[0] as i32, a[1] as u32, a[2] as _, a[3] as _) as isize
            }
            libc::SYS_execve => exec::execve(a[0] as _, a[1] as _, a[2] as _) as isize,
            libc::SYS_execveat => {
                exec::execveat(a[0] as i32, a[1] as _, a[2] as _, a[3] as _, a[4] as i32) as isize
            }
            libc::SYS_exit_group => {
                report::at_exit();
                to_libc(sys::call6(nr, a))
            }
            libc::SYS_poll => {
                waits::prepare_poll(a[0] as _, a[1] as _);
                to_libc(sys::call6(nr, a))
            }
            libc::SYS_epoll_wait => {
                waits::refresh();
                to_libc(sys::call6(nr, a))
            }
            _ => {
                let ret = sys::call6(nr, a);
                if ids::changes(nr) && ret == 0 {
                    ids::changed();
                }
                to_libc(ret)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_numbers_take_the_slow_way() {
        let slow = |nr: i64| SLOW.0[nr as usize / 64] >> (nr % 64) & 1 == 1;
        assert!((425..=427).all(slow));
        assert!(slow(libc::SYS_close) && slow(libc::SYS_exit_group));
        assert!(!slow(libc::SYS_clone) && !slow(libc::SYS_vfork) && !slow(libc::SYS_read));
        assert_eq!(SLOW.0.iter().map(|word| word.count_ones()).sum::<u32>(), 28);
    }
}
