//! Does the kernel's io_uring work here and, if not, why?

use crate::child::{self, Outcome};
use anyring_engine::Errno;
use anyring_uapi::{setup, Params, NR_SETUP};
use std::fs;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works, but lacks these features that programs of today use.
    Works {
        /// Names of feature bits.
        missing: Vec<&'static str>,
    },
    /// The kernel does not have the call.
    NoSyscall,
    /// `kernel.io_uring_disabled` has this value.
    Sysctl(u32),
    /// A seccomp filter answers with this error.
    Filter(Errno),
    /// A seccomp filter ends or traps whoever makes the call.
    Kills(i32),
    /// RLIMIT_MEMLOCK is too small for a ring.
    Memlock,
    /// Something else answers with this error.
    Other(Errno),
    /// There was no process to try it in, for this reason.
    Untried(Errno),
}

/// What is known about this place besides the call's own answer.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// `kernel.io_uring_disabled`, if there is such a setting.
    pub sysctl: Option<u32>,
    /// This process runs under a seccomp filter.
    pub filtered: bool,
    /// The kernel's version is at least 5.1.
    pub has_syscall: bool,
}

impl Place {
    /// Reads it.
    pub fn read() -> Place {
        let sysctl = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        Place {
            sysctl: sysctl.and_then(|text| text.trim().parse().ok()),
            filtered: mode.is_some_and(|mode| mode.trim() == "2"),
            has_syscall: kernel_at_least(&release(), (5, 1)),
        }
    }
}

/// The kernel's release, as uname(2) gives it.
pub fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

fn kernel_at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= wanted,
        _ => true,
    }
}

/// Makes a ring in a forked child; its value is the feature bits.
pub fn try_setup() -> Outcome {
    child::attempt(|| {
        let mut params = Params::default();
        // SAFETY: `params` lives across the call.
        let fd = unsafe { libc::syscall(NR_SETUP, 1, &raw mut params) };
        child::check(fd).map(|_| params.features)
    })
}

/// Explains what a try gave.
pub fn explain(outcome: Outcome, place: Place) -> Verdict {
    let errno = match outcome {
        Outcome::Works(features) => return Verdict::Works { missing: missing(features) },
        Outcome::Killed(signal) => return Verdict::Kills(signal),
        Outcome::Untried(errno) => return Verdict::Untried(errno),
        Outcome::Refused(errno) => errno,
    };
    match (errno, place.sysctl) {
        (Errno::PERM, Some(value @ 1..)) => Verdict::Sysctl(value),
        (Errno::NOSYS, _) if !place.has_syscall || !place.filtered => Verdict::NoSyscall,
        (Errno::NOMEM, _) => Verdict::Memlock,
        _ if place.filtered => Verdict::Filter(errno),
        // Without a setting that forbids it, and with the call there, EPERM is a filter's
        // answer, even where /proc does not show the filter.
        (Errno::PERM, _) => Verdict::Filter(errno),
        _ => Verdict::Other(errno),
    }
}

/// Features without which many programs of today refuse a ring.
const EXPECTED: [(u32, &str); 6] = [
    (setup::FEAT_NODROP, "NODROP"),
    (setup::FEAT_SUBMIT_STABLE, "SUBMIT_STABLE"),
    (setup::FEAT_RW_CUR_POS, "RW_CUR_POS"),
    (setup::FEAT_FAST_POLL, "FAST_POLL"),
    (setup::FEAT_EXT_ARG, "EXT_ARG"),
    (setup::FEAT_NATIVE_WORKERS, "NATIVE_WORKERS"),
];

fn missing(features: u32) -> Vec<&'static str> {
    let lacks = |(bit, name): (u32, &'static str)| (features & bit == 0).then_some(name);
    EXPECTED.into_iter().filter_map(lacks).collect()
}

impl Verdict {
    /// Whether it works.
    pub fn works(&self) -> bool {
        matches!(self, Verdict::Works { .. })
    }

    /// A word for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Verdict::Works { missing } if missing.is_empty() => "works",
            Verdict::Works { .. } => "old",
            Verdict::NoSyscall => "no-syscall",
            Verdict::Sysctl(_) => "sysctl",
            Verdict::Filter(_) => "seccomp",
            Verdict::Kills(_) => "seccomp-kill",
            Verdict::Memlock => "memlock",
            Verdict::Other(_) => "errno",
            Verdict::Untried(_) => "untried",
        }
    }

    /// The error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Verdict::Filter(errno) | Verdict::Other(errno) | Verdict::Untried(errno) => {
                Some(errno.0)
            }
            Verdict::NoSyscall => Some(Errno::NOSYS.0),
            Verdict::Sysctl(_) => Some(Errno::PERM.0),
            Verdict::Memlock => Some(Errno::NOMEM.0),
            Verdict::Works { .. } | Verdict::Kills(_) => None,
        }
    }

    /// A line for people.
    pub fn text(&self) -> String {
        match self {
            Verdict::Works { missing } if missing.is_empty() => "works".to_owned(),
            Verdict::Works { missing } => {
                format!("works, but the kernel is too old for {}", missing.join(", "))
            }
            Verdict::NoSyscall => "blocked: the kernel has no io_uring (ENOSYS)".to_owned(),
            Verdict::Sysctl(1) => "blocked: kernel.io_uring_disabled is 1 (only for \
                                   kernel.io_uring_group and CAP_SYS_ADMIN)"
                .to_owned(),
            Verdict::Sysctl(value) => format!("blocked: kernel.io_uring_disabled is {value}"),
            Verdict::Filter(errno) => format!("blocked: a seccomp filter answers {}", name(*errno)),
            Verdict::Kills(signal) => {
                format!("blocked: a seccomp filter ends or traps the caller (signal {signal})")
            }
            Verdict::Memlock => {
                "blocked: a ring needs more memory than RLIMIT_MEMLOCK allows (ENOMEM)".to_owned()
            }
            Verdict::Other(errno) => format!("blocked: io_uring_setup answers {}", name(*errno)),
            Verdict::Untried(errno) => {
                format!("unknown: no process could be started to try it, {}", name(*errno))
            }
        }
    }
}

/// `EPERM (errno 1)`
pub fn name(errno: Errno) -> String {
    match errno.name() {
        Some(name) => format!("E{name} (errno {})", errno.0),
        None => format!("errno {}", errno.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Place = Place { sysctl: Some(0), filtered: false, has_syscall: true };

    fn refused(errno: Errno, place: Place) -> Verdict {
        explain(Outcome::Refused(errno), place)
    }

    #[test]
    fn each_cause_is_recognised() {
        let filtered = Place { filtered: true, ..OPEN };
        let disabled = Place { sysctl: Some(2), ..OPEN };
        assert_eq!(refused(Errno::PERM, disabled), Verdict::Sysctl(2));
        assert_eq!(refused(Errno::PERM, filtered), Verdict::Filter(Errno::PERM));
        assert_eq!(refused(Errno::PERM, OPEN), Verdict::Filter(Errno::PERM));
        assert_eq!(refused(Errno::NOSYS, filtered), Verdict::Filter(Errno::NOSYS));
        assert_eq!(refused(Errno::NOSYS, OPEN), Verdict::NoSyscall);
        let ancient = Place { has_syscall: false, ..filtered };
        assert_eq!(refused(Errno::NOSYS, ancient), Verdict::NoSyscall);
        assert_eq!(refused(Errno::OPNOTSUPP, filtered), Verdict::Filter(Errno::OPNOTSUPP));
        assert_eq!(refused(Errno::NOMEM, OPEN), Verdict::Memlock);
        assert_eq!(refused(Errno::MFILE, OPEN), Verdict::Other(Errno::MFILE));
        assert_eq!(explain(Outcome::Killed(31), filtered), Verdict::Kills(31));
        assert_eq!(explain(Outcome::Untried(Errno::AGAIN), OPEN), Verdict::Untried(Errno::AGAIN));
        assert!(explain(Outcome::Works(u32::MAX), OPEN).works());
    }

    #[test]
    fn an_old_kernel_lacks_features() {
        let old = explain(Outcome::Works(setup::FEAT_SINGLE_MMAP | setup::FEAT_NODROP), OPEN);
        assert_eq!(old.reason(), "old");
        assert!(old.text().contains("EXT_ARG") && !old.text().contains("NODROP"));
    }

    #[test]
    fn kernel_releases_compare_as_numbers() {
        assert!(kernel_at_least("5.10.0-9-amd64", (5, 1)));
        assert!(kernel_at_least("6.18.44-x", (5, 1)));
        assert!(!kernel_at_least("4.19.0", (5, 1)));
        assert!(!kernel_at_least("5.0-rc1", (5, 1)));
        assert!(kernel_at_least("odd", (5, 1)));
    }
}
