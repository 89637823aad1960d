//! Runs one scenario in a child process, on the kernel's io_uring or under an engine.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::ring::{flags, raw_setup};
use crate::sys;

/// Seconds beyond a scenario's own alarm before the runner kills the child.
const GRACE_SECONDS: u64 = 5;

/// On what a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The kernel's io_uring.
    Kernel,
    /// The user-space engine, by `anyring run --engine user`.
    Engine,
}

/// Whether this process may use the kernel's io_uring.
pub fn kernel_has_io_uring() -> bool {
    let (fd, _) = raw_setup(1, flags(0));
    if fd >= 0 {
        sys::close(fd as i32);
    }
    fd >= 0
}

/// Whether the running kernel is of the series that the golden answers come from.
pub fn kernel_is_golden_series() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.starts_with("6.18.")
}

/// The launcher: `ANYRING_BIN`, or target/release/anyring next to this build.
pub fn launcher() -> Result<PathBuf, String> {
    if let Some(p) = std::env::var_os("ANYRING_BIN") {
        return Ok(PathBuf::from(p));
    }
    let exe = std::env::current_exe().map_err(|e| format!("own path: {e}"))?;
    exe.ancestors()
        .flat_map(|d| [d.join("release/anyring"), d.join("target/release/anyring")])
        .find(|p| p.is_file())
        .ok_or_else(|| "no target/release/anyring: build it, or set ANYRING_BIN".into())
}

/// Runs a scenario of the binary `behave`; its lines, with one more if it died.
pub fn scenario(behave: &Path, name: &str, seconds: u32, on: On) -> Result<String, String> {
    let mut cmd = match on {
        On::Kernel => Command::new(behave),
        On::Engine => {
            let mut c = Command::new(launcher()?);
            c.args(["run", "--engine", "user", "--"]).arg(behave);
            c
        }
    };
    cmd.arg(name).env("RUST_BACKTRACE", "0");
    let limit = Duration::from_secs(u64::from(seconds) + GRACE_SECONDS);
    let (text, status) = run_limited(cmd, limit)?;
    Ok(format!("{text}{}", verdict(status)))
}

/// Runs a command in its own process group, killed as a whole after `limit`.
pub fn run_limited(mut cmd: Command, limit: Duration) -> Result<(String, ExitStatus), String> {
    let out = tempfile()?;
    let writer = out.try_clone().map_err(|e| format!("output file: {e}"))?;
    cmd.stdin(Stdio::null()).stdout(writer).process_group(0);
    let mut child = cmd.spawn().map_err(|e| format!("start {:?}: {e}", cmd.get_program()))?;
    let group = -(child.id() as i32);
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(s) = child.try_wait().map_err(|e| format!("wait: {e}"))? {
            break s;
        }
        if Instant::now() > end {
            // SAFETY: no memory involved; the group is the child's own.
            unsafe { libc::kill(group, libc::SIGKILL) };
        }
        sys::sleep_ms(2);
    };
    // What the scenario left behind (a forked child) must not disturb the next one.
    // SAFETY: no memory involved; the group is the child's own.
    unsafe { libc::kill(group, libc::SIGKILL) };
    Ok((read_all(out)?, status))
}

/// A nameless file: a pipe would have to be drained while waiting.
fn tempfile() -> Result<std::fs::File, String> {
    // SAFETY: a NUL-terminated name; the result is owned by the file made from it.
    let fd = unsafe { libc::memfd_create(c"answers".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(format!("memfd: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) })
}

fn read_all(mut f: std::fs::File) -> Result<String, String> {
    use std::io::Seek;
    let mut bytes = Vec::new();
    f.rewind()
        .and_then(|()| f.read_to_end(&mut bytes))
        .map_err(|e| format!("read answers: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn verdict(s: ExitStatus) -> String {
    match (s.code(), s.signal()) {
        (Some(0), _) => String::new(),
        (_, Some(libc::SIGALRM)) => "!! hung: killed by the scenario's alarm\n".into(),
        (_, Some(n)) => format!("!! killed by signal {n}\n"),
        (Some(c), _) => format!("!! exit code {c}\n"),
        _ => "!! ended in an unknown way\n".into(),
    }
}
