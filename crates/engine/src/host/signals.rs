//! Signals that arrived while a front door had them blocked.

use super::{nr, syscall};

/// The kernel's `struct sigaction`; only the first field is looked at.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    rest: [usize; 3],
}

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
/// What SIG_DFL ignores: SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
const IGNORED_BY_DEFAULT: u64 = 1 << 16 | 1 << 17 | 1 << 22 | 1 << 27;

/// Signals that wait for the calling thread or its process.
fn pending() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes eight bytes.
    let _ = unsafe { syscall(nr::__NR_rt_sigpending, [&raw mut set as usize, 8, 0, 0, 0, 0]) };
    set
}

fn is_ignored(bit: u32) -> bool {
    let mut action = Action::default();
    let args = [bit as usize + 1, 0, &raw mut action as usize, 8, 0, 0];
    // SAFETY: only reads the action, into a structure of the kernel's size.
    let asked = unsafe { syscall(nr::__NR_rt_sigaction, args) };
    let by_default = action.handler == SIG_DFL && IGNORED_BY_DEFAULT & (1 << bit) != 0;
    asked.is_ok() && (by_default || action.handler == SIG_IGN)
}

/// Drops those of the blocked signals that a wait with `mask` would let in, and that the program ignores. A thread that
/// does not block them never sees such a signal; one that lets it in at the start of a wait would be interrupted for nothing.
pub fn drop_ignored(mask: u64) {
    let waiting = pending() & !mask;
    if waiting == 0 {
        return;
    }
    let ignored = (0..64).filter(|bit| waiting & (1 << bit) != 0 && is_ignored(*bit));
    let set: u64 = ignored.fold(0, |set, bit| set | 1 << bit);
    let now = [0i64; 2];
    let args = [&raw const set as usize, 0, &raw const now as usize, 8, 0, 0];
    // SAFETY: set and time are locals; takes blocked signals only, and does not wait.
    while set != 0 && unsafe { syscall(nr::__NR_rt_sigtimedwait, args) }.is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks `set` for this thread, or gives it free again.
    fn mask(how: usize, set: u64) {
        // SAFETY: a set of eight bytes.
        let done =
            unsafe { syscall(nr::__NR_rt_sigprocmask, [how, &raw const set as usize, 0, 8, 0, 0]) };
        assert!(done.is_ok());
    }

    #[test]
    fn ignored_signals_go_and_others_stay() {
        const URG: u64 = 1 << 22;
        const USR2: u64 = 1 << 11;
        mask(0, URG | USR2);
        for signal in [23, 12] {
            crate::host::thread::tgkill(crate::host::thread::gettid(), signal).unwrap();
        }
        assert_eq!(pending() & (URG | USR2), URG | USR2);
        drop_ignored(URG);
        assert_eq!(pending() & URG, URG, "it stays blocked in the wait");
        drop_ignored(0);
        assert_eq!(pending() & (URG | USR2), USR2);
        // Before it is given free: its default would end the process.
        let (set, now) = (USR2, [0i64; 2]);
        let args = [&raw const set as usize, 0, &raw const now as usize, 8, 0, 0];
        // SAFETY: set and time are locals.
        assert_eq!(unsafe { syscall(nr::__NR_rt_sigtimedwait, args) }.ok(), Some(12));
        mask(1, URG | USR2);
    }
}
