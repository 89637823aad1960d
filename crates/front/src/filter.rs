//! The seccomp filter that brings a program's io_uring calls, and the calls that name a ring
//! descriptor, into the SIGSYS handler.
//!
//! Written by hand: a generated filter cannot compare a range, and the usual generators kill a
//! process of another architecture, where this one lets it be. Only seven calls are looked at
//! by their arguments; the answer for all others depends on the number alone, so that the
//! kernel keeps it in its bitmap and does not run the filter at all.
//!
//! - `read` on a ring descriptor is not looked at: every read of every program would pay for a
//!   call that no program makes.
//! - `rt_sigaction(SIGSYS)` is not looked at: `posix_spawn` resets every signal in a child
//!   that has all signals blocked, where a trap kills. The C library's `sigaction` is
//!   interposed instead.
//! - 64-bit arguments are compared by their low half, which is what the kernel takes for a
//!   descriptor.

use anyring_engine::{Errno, PASS_MAGIC};

/// One BPF instruction (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if true.
    pub jt: u8,
    /// Instructions to skip if false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// What a trap of this filter puts into `si_errno`.
pub const TAG: u16 = 0x616e;

const LD: u16 = 0x20; // A = data[k]
const JA: u16 = 0x05;
const JEQ: u16 = 0x15;
const JGT: u16 = 0x25;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const RET: u16 = 0x06;

const ARCH_X86_64: u32 = 0xc000_003e;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_TRAP: u32 = 0x0003_0000;
const DATA_NR: u32 = 0;
const DATA_ARCH: u32 = 4;
const MAP_ANONYMOUS: u32 = 0x20;

/// The offset of the low half of argument `n`.
const fn arg(n: u32) -> u32 {
    16 + 8 * n
}

/// Number of instructions.
pub const LEN: usize = 29;

// Places that are jumped to.
const LOW: usize = 5;
const MMAP: usize = 12;
const FD2: usize = 17;
const FD01: usize = 19;
const FD0: usize = 22;
const CHECK: usize = 23;
const MAGIC: usize = 25;
const ALLOW: usize = 27;
const TRAP: usize = 28;

const fn load(k: u32) -> Insn {
    Insn { code: LD, jt: 0, jf: 0, k }
}

/// At `here`: compare, and go to one of two later places.
const fn jump(here: usize, code: u16, k: u32, yes: usize, no: usize) -> Insn {
    Insn { code, jt: (yes - here - 1) as u8, jf: (no - here - 1) as u8, k }
}

const fn ret(k: u32) -> Insn {
    Insn { code: RET, jt: 0, jf: 0, k }
}

/// The filter for ring descriptors in `base..end`.
pub const fn program(base: u32, end: u32) -> [Insn; LEN] {
    [
        load(DATA_ARCH),
        jump(1, JEQ, ARCH_X86_64, 2, ALLOW),
        load(DATA_NR),
        jump(3, JGE, 425, 4, LOW),
        jump(4, JGT, 427, ALLOW, TRAP),
        // LOW
        jump(5, JEQ, libc::SYS_close as u32, FD0, 6),
        jump(6, JEQ, libc::SYS_mmap as u32, MMAP, 7),
        jump(7, JEQ, libc::SYS_fcntl as u32, FD0, 8),
        jump(8, JEQ, libc::SYS_epoll_ctl as u32, FD2, 9),
        jump(9, JEQ, libc::SYS_dup as u32, FD0, 10),
        jump(10, JEQ, libc::SYS_dup2 as u32, FD01, 11),
        jump(11, JEQ, libc::SYS_dup3 as u32, FD01, ALLOW),
        // MMAP: no seventh argument could carry the magic.
        load(arg(3)),
        jump(13, JSET, MAP_ANONYMOUS, ALLOW, 14),
        load(arg(4)),
        jump(15, JGE, base, 16, ALLOW),
        jump(16, JGE, end, ALLOW, TRAP),
        // FD2
        load(arg(2)),
        Insn { code: JA, jt: 0, jf: 0, k: (CHECK - 18 - 1) as u32 },
        // FD01: the second argument, then the first.
        load(arg(1)),
        jump(20, JGE, base, 21, FD0),
        jump(21, JGE, end, FD0, MAGIC),
        // FD0
        load(arg(0)),
        // CHECK
        jump(23, JGE, base, 24, ALLOW),
        jump(24, JGE, end, ALLOW, MAGIC),
        // MAGIC
        load(arg(5)),
        jump(26, JEQ, PASS_MAGIC, ALLOW, TRAP),
        ret(RET_ALLOW),
        ret(RET_TRAP | TAG as u32),
    ]
}

const SET_MODE_FILTER: usize = 1;
const FLAG_TSYNC: usize = 1;
const FLAG_SPEC_ALLOW: usize = 4;

#[repr(C)]
struct Program {
    len: u16,
    filter: *const Insn,
}

/// Installs `filter` in all threads of the process. Without no_new_privs where the process may
/// (CAP_SYS_ADMIN), so that set-user-id programs it starts keep working; else with it.
pub fn install(filter: &[Insn]) -> Result<(), Errno> {
    // Without SPEC_ALLOW kernels before 5.16 turn on costly mitigations for every filter.
    const FLAGS: [usize; 3] = [FLAG_TSYNC | FLAG_SPEC_ALLOW, FLAG_TSYNC, 0];
    let mut last = Errno::INVAL;
    for no_new_privs in [false, true] {
        if no_new_privs {
            // SAFETY: this prctl takes no pointer.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        }
        for flags in FLAGS {
            match set_filter(filter, flags) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
            if last == Errno::ACCES {
                break;
            }
        }
        if last != Errno::ACCES {
            break;
        }
    }
    Err(last)
}

fn set_filter(filter: &[Insn], flags: usize) -> Result<(), Errno> {
    let program = Program { len: filter.len() as u16, filter: filter.as_ptr() };
    // SAFETY: `program` and the instructions it points to live across the call.
    let ret = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &program) };
    match ret {
        0 => Ok(()),
        // SAFETY: always a valid pointer.
        -1 => Err(Errno(unsafe { *libc::__errno_location() })),
        // A thread has filters of its own: the id of that thread.
        _ => Err(Errno::SRCH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 768;
    const END: u32 = 1024;

    /// Runs the filter as the kernel would; true for TRAP.
    fn traps(arch: u32, nr: u32, args: [u64; 6]) -> bool {
        let program = program(BASE, END);
        let word = |k: u32| match k {
            DATA_NR => nr,
            DATA_ARCH => arch,
            k => args[(k as usize - 16) / 8] as u32,
        };
        let (mut pc, mut a) = (0, 0);
        loop {
            let Insn { code, jt, jf, k } = program[pc];
            pc += 1;
            let yes = match code {
                LD => {
                    a = word(k);
                    continue;
                }
                JA => {
                    pc += k as usize;
                    continue;
                }
                RET if k == RET_ALLOW => return false,
                RET => return k == RET_TRAP | u32::from(TAG),
                JEQ => a == k,
                JGT => a > k,
                JGE => a >= k,
                JSET => a & k != 0,
                other => panic!("instruction {other:#x}"),
            };
            pc += usize::from(if yes { jt } else { jf });
        }
    }

    fn call(nr: i64, args: [u64; 6]) -> bool {
        traps(ARCH_X86_64, nr as u32, args)
    }

    #[test]
    fn the_three_calls_trap() {
        for nr in 425..=427 {
            assert!(call(nr, [0; 6]));
        }
        for nr in [0, 1, 424, 428, 435, 999] {
            assert!(!call(nr, [800, 800, 800, 800, 800, 0]), "{nr}");
        }
    }

    #[test]
    fn another_architecture_is_let_be() {
        assert!(!traps(0x4000_0003, 425, [0; 6]));
        // The x32 numbers of the same architecture.
        assert!(!call(0x4000_0000 + 425, [0; 6]));
    }

    #[test]
    fn descriptors_of_the_range_trap() {
        let one_fd = [libc::SYS_close, libc::SYS_dup, libc::SYS_fcntl];
        for nr in one_fd.into_iter().chain([libc::SYS_dup2, libc::SYS_dup3]) {
            for (fd, expected) in [(767, false), (768, true), (1023, true), (1024, false)] {
                assert_eq!(call(nr, [fd, 0, 0, 0, 0, 0]), expected, "{nr} {fd}");
                assert!(!call(nr, [fd, 0, 0, 0, 0, u64::from(PASS_MAGIC)]), "{nr} {fd}");
            }
            assert!(!call(nr, [u64::MAX, 0, 0, 0, 0, 0]));
            assert!(call(nr, [0xffff_ffff_0000_0300, 0, 0, 0, 0, 0]), "the low half counts");
        }
    }

    #[test]
    fn the_new_descriptor_of_dup2_counts() {
        for nr in [libc::SYS_dup2, libc::SYS_dup3] {
            assert!(call(nr, [3, 800, 0, 0, 0, 0]));
            assert!(!call(nr, [3, 1024, 0, 0, 0, 0]));
            assert!(!call(nr, [3, 4, 0, 0, 0, 0]));
            assert!(!call(nr, [3, 800, 0, 0, 0, u64::from(PASS_MAGIC)]));
        }
        assert!(!call(libc::SYS_fcntl, [3, 800, 0, 0, 0, 0]));
    }

    #[test]
    fn epoll_ctl_is_judged_by_its_third_argument() {
        assert!(call(libc::SYS_epoll_ctl, [3, 1, 800, 0, 0, 0]));
        assert!(!call(libc::SYS_epoll_ctl, [800, 1, 3, 0, 0, 0]));
        assert!(!call(libc::SYS_epoll_ctl, [3, 1, 800, 0, 0, u64::from(PASS_MAGIC)]));
    }

    #[test]
    fn mmap_is_judged_by_its_fifth_argument() {
        assert!(call(libc::SYS_mmap, [0, 4096, 3, 1, 800, 0]));
        assert!(!call(libc::SYS_mmap, [0, 4096, 3, 0x22, 800, 0]));
        assert!(!call(libc::SYS_mmap, [0, 4096, 3, 1, 3, 0]));
        assert!(!call(libc::SYS_mmap, [0, 4096, 3, 2, u64::MAX, 0]));
        assert!(call(libc::SYS_mmap, [0, 4096, 3, 1, 800, u64::from(PASS_MAGIC)]));
    }

    #[test]
    fn golden() {
        let words: Vec<(u16, u8, u8, u32)> =
            program(BASE, END).iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect();
        assert_eq!(
            words,
            [
                (0x20, 0, 0, 4),
                (0x15, 0, 25, 0xc000003e),
                (0x20, 0, 0, 0),
                (0x35, 0, 1, 425),
                (0x25, 22, 23, 427),
                (0x15, 16, 0, 3),
                (0x15, 5, 0, 9),
                (0x15, 14, 0, 72),
                (0x15, 8, 0, 233),
                (0x15, 12, 0, 32),
                (0x15, 8, 0, 33),
                (0x15, 7, 15, 292),
                (0x20, 0, 0, 40),
                (0x45, 13, 0, 0x20),
                (0x20, 0, 0, 48),
                (0x35, 0, 11, 768),
                (0x35, 10, 11, 1024),
                (0x20, 0, 0, 32),
                (0x05, 0, 0, 4),
                (0x20, 0, 0, 24),
                (0x35, 0, 1, 768),
                (0x35, 0, 3, 1024),
                (0x20, 0, 0, 16),
                (0x35, 0, 3, 768),
                (0x35, 2, 0, 1024),
                (0x20, 0, 0, 56),
                (0x15, 0, 1, 0x616e7972),
                (0x06, 0, 0, 0x7fff0000),
                (0x06, 0, 0, 0x0003616e),
            ]
        );
    }
}
