//! Tries something in a forked child, since a seccomp filter may kill whoever tries it.

use anyring_engine::Errno;

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It worked, with this value.
    Works(u32),
    /// It was refused.
    Refused(Errno),
    /// The child died of this signal.
    Killed(i32),
    /// There could be no child, for this reason.
    Untried(Errno),
}

impl Outcome {
    /// Whether it worked.
    pub fn works(self) -> bool {
        matches!(self, Outcome::Works(_))
    }
}

/// Turns what a libc function returned into a result.
pub fn check(ret: i64) -> Result<u32, Errno> {
    if ret == -1 {
        Err(last_errno())
    } else {
        Ok(ret as u32)
    }
}

/// The C library's errno.
pub fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Runs `attempt` in a forked child. This process has one thread, so the child may do anything.
pub fn attempt(attempt: impl FnOnce() -> Result<u32, Errno>) -> Outcome {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Outcome::Untried(last_errno());
    }
    // SAFETY: one thread.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Outcome::Untried(last_errno()),
        0 => {
            let answer = match attempt() {
                Ok(value) => i64::from(value),
                Err(errno) => -i64::from(errno.0),
            }
            .to_ne_bytes();
            // SAFETY: the bytes are readable; leaves without running anything of the parent's.
            unsafe {
                libc::write(ends[1], answer.as_ptr().cast(), answer.len());
                libc::_exit(0)
            }
        }
        _ => collect(pid, ends),
    }
}

fn collect(pid: libc::pid_t, ends: [libc::c_int; 2]) -> Outcome {
    let mut answer = [0u8; 8];
    let mut status = 0;
    // SAFETY: the descriptors are ours, the buffers are writable.
    let read = unsafe {
        libc::close(ends[1]);
        while libc::waitpid(pid, &mut status, 0) == -1 && last_errno() == Errno::INTR {}
        let read = libc::read(ends[0], answer.as_mut_ptr().cast(), answer.len());
        libc::close(ends[0]);
        read
    };
    match i64::from_ne_bytes(answer) {
        _ if libc::WIFSIGNALED(status) => Outcome::Killed(libc::WTERMSIG(status)),
        _ if read != 8 => Outcome::Refused(Errno::IO),
        value if value < 0 => Outcome::Refused(Errno(-value as i32)),
        value => Outcome::Works(value as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_told() {
        assert_eq!(attempt(|| Ok(7)), Outcome::Works(7));
        assert_eq!(attempt(|| Err(Errno::PERM)), Outcome::Refused(Errno::PERM));
        // SAFETY: sends a signal to this child only.
        let killed = attempt(|| unsafe { Ok(libc::raise(libc::SIGKILL) as u32) });
        assert_eq!(killed, Outcome::Killed(libc::SIGKILL));
    }
}
