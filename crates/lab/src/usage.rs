//! CPU time and context switches, by getrusage(2).

use std::time::Duration;

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// User and system time, in seconds.
    pub cpu_s: f64,
    /// Times a thread gave up its CPU to wait.
    pub voluntary: u64,
    /// Times a thread was pushed off its CPU.
    pub involuntary: u64,
}

impl Usage {
    fn read(who: libc::c_int) -> Usage {
        // SAFETY: all-zero is a valid rusage.
        let mut r: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the struct is writable.
        unsafe { libc::getrusage(who, &mut r) };
        let seconds = |t: libc::timeval| {
            Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000).as_secs_f64()
        };
        Usage {
            cpu_s: seconds(r.ru_utime) + seconds(r.ru_stime),
            voluntary: r.ru_nvcsw as u64,
            involuntary: r.ru_nivcsw as u64,
        }
    }
    /// Of all threads of this process so far.
    pub fn process() -> Usage {
        Usage::read(libc::RUSAGE_SELF)
    }
    /// Of the calling thread so far.
    pub fn thread() -> Usage {
        Usage::read(libc::RUSAGE_THREAD)
    }
    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s + other.cpu_s,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
    /// What came on top of `before`.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            cpu_s: (self.cpu_s - before.cpu_s).max(0.0),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// Threads of this process.
pub fn threads() -> u64 {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let before = Usage::thread();
        std::thread::sleep(Duration::from_millis(2));
        assert!(Usage::thread().since(before).voluntary >= 1);
        assert!(threads() >= 1);
    }
}
