//! Runs a command with a time limit, in a process group of its own.
//!
//! Output goes to a file, not a pipe, so a left-over grandchild that keeps its stdout open
//! cannot hold the runner. The group is killed before its leader is reaped, while its id
//! cannot have been given to somebody else.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of a command's output that are kept: its end, where the reason for a failure is.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
    /// It was still running when its time was over, and was killed.
    TimedOut,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exited(status) => write!(f, "exit status {status}"),
            Ended::Signaled(signal) => write!(f, "killed by signal {signal}"),
            Ended::TimedOut => write!(f, "still running when its time was over"),
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// The end of what it wrote to stdout and stderr together.
    pub output: String,
    /// How long it ran.
    pub elapsed: Duration,
}

impl Outcome {
    /// The outcome if the command exited with 0, otherwise a message with its last lines.
    pub fn success(self) -> Result<Outcome, String> {
        match self.ended {
            Ended::Exited(0) => Ok(self),
            ended => Err(format!("{ended}; its last lines:\n{}", self.last_lines(15))),
        }
    }

    /// The last `count` lines of the output.
    pub fn last_lines(&self, count: usize) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

/// Runs `command` for at most `limit`, without stdin, its output gathered in `output`.
pub fn run(command: &mut Command, limit: Duration, output: &Path) -> io::Result<Outcome> {
    let start = Instant::now();
    let mut group = Group::start(command, output)?;
    let ended = group.wait(limit)?;
    Ok(Outcome { ended, output: read_end(output)?, elapsed: start.elapsed() })
}

/// A running command and everything it started that stayed in its process group. All of it
/// is killed when this is dropped.
pub struct Group {
    leader: Child,
    pidfd: OwnedFd,
    reaped: bool,
}

impl Group {
    /// Starts `command` as the leader of a new process group, its output going to `output`.
    pub fn start(command: &mut Command, output: &Path) -> io::Result<Group> {
        let file = File::create(output)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let leader = command.spawn()?;
        let pidfd = pidfd_open(leader.id())?;
        Ok(Group { leader, pidfd, reaped: false })
    }

    /// The process id of the leader, which is also the id of the group.
    pub fn id(&self) -> libc::pid_t {
        self.leader.id() as libc::pid_t
    }

    /// Whether the leader still runs.
    pub fn runs(&self) -> io::Result<bool> {
        Ok(!self.reaped && !readable(&self.pidfd, Duration::ZERO)?)
    }

    /// Sends a signal to the leader alone.
    pub fn signal(&self, signal: libc::c_int) {
        if !self.reaped {
            // SAFETY: kill takes no pointers; the leader is not reaped, so the id is still its.
            unsafe { libc::kill(self.id(), signal) };
        }
    }

    /// Waits for the leader, for at most `limit`; then the whole group is killed.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Ended> {
        let in_time = readable(&self.pidfd, limit)?;
        self.kill_group();
        let status = self.leader.wait()?;
        self.reaped = true;
        Ok(match (in_time, status.code(), status.signal()) {
            (false, ..) => Ended::TimedOut,
            (_, Some(code), _) => Ended::Exited(code),
            (_, _, signal) => Ended::Signaled(signal.unwrap_or(0)),
        })
    }

    fn kill_group(&self) {
        // SAFETY: kill takes no pointers; the leader is not reaped, so the group id is ours.
        unsafe { libc::kill(-self.id(), libc::SIGKILL) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_group();
            let _ = self.leader.wait();
        }
    }
}

/// Reads the end of an output file, with what is not UTF-8 replaced.
pub fn read_end(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let from = bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
    Ok(String::from_utf8_lossy(&bytes[from..]).into_owned())
}

fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Waits until `fd` is readable, for at most `limit`; says whether it is.
fn readable(fd: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one valid pollfd for the time of the call.
        let ready = unsafe { libc::poll(&mut poll, 1, left.as_millis() as libc::c_int) };
        if ready >= 0 {
            return Ok(ready > 0);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration, name: &str) -> Outcome {
        let folder = crate::places::scratch(name).unwrap();
        run(Command::new("sh").args(["-c", script]), limit, &folder.path().join("out")).unwrap()
    }

    #[test]
    fn exit_status_and_signal_are_told_apart() {
        let limit = Duration::from_secs(10);
        assert_eq!(shell("echo a; echo b >&2; exit 7", limit, "p-exit").ended, Ended::Exited(7));
        assert_eq!(shell("kill -SEGV $$", limit, "p-signal").ended, Ended::Signaled(11));
    }

    #[test]
    fn output_holds_both_streams() {
        let outcome = shell("echo a; echo b >&2", Duration::from_secs(10), "p-output");
        assert_eq!(outcome.output, "a\nb\n");
    }

    #[test]
    fn a_command_past_its_time_is_killed_with_its_children() {
        let outcome = shell("sleep 60 & echo $!; wait", Duration::from_millis(300), "p-timeout");
        assert_eq!(outcome.ended, Ended::TimedOut);
        let child = outcome.output.trim();
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            // A killed child stays a zombie until its new parent reaps it.
            fs::read_to_string(format!("/proc/{child}/stat")).map_or(true, |s| s.contains(") Z"))
        });
        assert!(gone, "process {child} outlived its group");
    }

    #[test]
    fn children_left_behind_are_killed() {
        let outcome = shell("sleep 60 & exit 3", Duration::from_secs(10), "p-left");
        assert_eq!(outcome.ended, Ended::Exited(3));
        assert!(outcome.elapsed < Duration::from_secs(5));
    }
}
