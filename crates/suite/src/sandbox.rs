//! Sandboxes that answer the three io_uring calls as container runtimes and hardened hosts
//! do: with an errno, or with a trap.

use std::io;
use std::os::raw::{c_long, c_ulong};

/// io_uring_setup; enter and register follow it. The same numbers on every architecture.
const IO_URING_FIRST: u32 = 425;
/// io_uring_register.
const IO_URING_LAST: u32 = 427;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

/// How the sandbox answers io_uring_setup, io_uring_enter and io_uring_register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// EPERM, as Docker's and containerd's default profiles do.
    Eperm,
    /// ENOSYS, as gVisor-like sandboxes and old kernels do.
    Enosys,
    /// EOPNOTSUPP (95), which some hosts answer and few programs expect.
    Errno95,
    /// SIGSYS, as Android's zygote does.
    Trap,
    /// The calls pass; only the filter is there.
    Allow,
}

impl Answer {
    /// Every answer with the name it has on the command line.
    pub const ALL: [(&'static str, Answer); 5] = [
        ("eperm", Answer::Eperm),
        ("enosys", Answer::Enosys),
        ("errno95", Answer::Errno95),
        ("trap", Answer::Trap),
        ("allow", Answer::Allow),
    ];

    /// The answer of this name.
    pub fn from_name(name: &str) -> Option<Answer> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, answer)| *answer)
    }

    /// The name of this answer.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, answer)| *answer == self).map_or("", |(name, _)| name)
    }

    fn action(self) -> u32 {
        match self {
            Answer::Eperm => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            Answer::Enosys => libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
            Answer::Errno95 => libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32,
            Answer::Trap => libc::SECCOMP_RET_TRAP,
            Answer::Allow => libc::SECCOMP_RET_ALLOW,
        }
    }
}

/// The filter: another architecture's calls and all but the three pass.
fn filter(answer: Answer) -> [libc::sock_filter; 7] {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_EQ: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const JUMP_GE: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const JUMP_GT: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    [
        step(LOAD, 4, 0, 0), // seccomp_data.arch
        step(JUMP_EQ, AUDIT_ARCH, 0, 3),
        step(LOAD, 0, 0, 0), // seccomp_data.nr
        step(JUMP_GE, IO_URING_FIRST, 0, 1),
        step(JUMP_GT, IO_URING_LAST, 0, 1),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(RETURN, answer.action(), 0, 0),
    ]
}

/// Puts this thread, and what it will exec, into the sandbox, with no_new_privs.
pub fn enter(answer: Answer) -> io::Result<()> {
    let mut steps = filter(answer);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the first call takes integers only; the second reads `program` and the steps it
    // points to, which both live until it returns.
    let refused = unsafe {
        libc::prctl(
            libc::PR_SET_NO_NEW_PRIVS,
            1 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        ) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as c_ulong, &program)
                != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The errno with which this place refuses io_uring, or None where the kernel's works.
pub fn refusal() -> Option<i32> {
    // SAFETY: io_uring_setup with no entries and no parameters reads nothing: where it is
    // allowed it fails with EFAULT or EINVAL.
    let answer: c_long = unsafe { libc::syscall(libc::SYS_io_uring_setup, 0, 0usize) };
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    match errno {
        libc::EFAULT | libc::EINVAL => None,
        _ if answer >= 0 => None,
        _ => Some(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_answers() {
        for (name, answer) in Answer::ALL {
            assert_eq!(Answer::from_name(name), Some(answer));
            assert_eq!(answer.name(), name);
        }
        assert_eq!(Answer::from_name("kill"), None);
    }

    // A filter binds one thread here: each test thread ends with its test.
    #[test]
    fn filter_answers_with_its_errno() {
        let wanted = [
            (Answer::Eperm, libc::EPERM),
            (Answer::Enosys, libc::ENOSYS),
            (Answer::Errno95, libc::EOPNOTSUPP),
        ];
        for (answer, errno) in wanted {
            let seen = std::thread::spawn(move || {
                enter(answer).unwrap();
                refusal()
            });
            assert_eq!(seen.join().unwrap(), Some(errno));
        }
    }

    #[test]
    fn filter_spares_the_neighbouring_calls() {
        let seen = std::thread::spawn(|| {
            enter(Answer::Enosys).unwrap();
            // SAFETY: pidfd_send_signal (424) and open_tree (428) with invalid arguments.
            let (before, after) = unsafe {
                let before = libc::syscall(424, -1, 0, 0usize, 0);
                let before = (before, io::Error::last_os_error().raw_os_error());
                let after = libc::syscall(428, -1, 0usize, u32::MAX);
                (before, (after, io::Error::last_os_error().raw_os_error()))
            };
            (before, after)
        });
        let (before, after) = seen.join().unwrap();
        assert_ne!(before.1, Some(libc::ENOSYS));
        assert_ne!(after.1, Some(libc::ENOSYS));
    }
}
