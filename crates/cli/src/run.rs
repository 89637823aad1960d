//! `anyring run`: becomes the program, with the preload library in its environment.
//!
//! Same process, so that the exit code and death by a signal are the program's own. What can be
//! known beforehand to go wrong is said here, in one line, instead of by a dynamic linker or a
//! signal later.

use crate::child::{self, Outcome};
use crate::failure::Failure;
use crate::{features, library, uring, Run};
use anyring_engine::Errno;
use anyring_engine::Policy;
use anyring_front::program::{judge_at, Kind, Verdict};
use anyring_front::settings::{self, Choice};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::OpenOptions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Runs the program; returns only if that fails.
pub fn run(request: Run) -> Failure {
    match prepare(request) {
        Ok(program) => execute(&program),
        Err(failure) => failure,
    }
}

fn check_policy(list: &str) -> Result<(), Failure> {
    match Policy::parse(list.as_bytes()) {
        Ok(_) => Ok(()),
        Err(item) => {
            let item = String::from_utf8_lossy(item);
            Err(Failure::own(format!(
                "policy '{item}' is not understood; there is {}",
                Policy::HELP
            )))
        }
    }
}

fn prepare(request: Run) -> Result<Vec<CString>, Failure> {
    check_policy(request.policy.as_deref().unwrap_or(""))?;
    let stats = request.stats.as_deref().map(stats_file).transpose()?;
    let name = &request.program[0];
    let path = find_program(name)?;
    let verdict = judge(name, &path)?;
    // Under a filter of ours already: it stays, whatever is chosen now.
    let nested = std::env::var_os(OsStr::from_bytes(settings::FILTER.to_bytes())).is_some();
    let takes_over = match request.engine {
        _ if nested => true,
        Choice::User => true,
        Choice::Kernel => false,
        Choice::Auto => !uring::try_setup().works(),
    };
    if takes_over {
        check_coverable(name, verdict)?;
    }
    if takes_over && !nested {
        check_trap()?;
    }
    set(settings::ENGINE, request.engine.name());
    if let Some(stats) = stats {
        set(settings::STATS, stats);
    }
    if let Some(policy) = request.policy {
        set(settings::POLICY, policy);
    }
    // Another dynamic linker would complain about the library.
    if !matches!(verdict.kind, Kind::OtherArch | Kind::OtherLibc) {
        preload(&library::find()?);
    }
    Ok(request.program.into_iter().map(c_string).collect())
}

/// Arguments come from the kernel as C strings, so they contain no zero byte.
fn c_string(text: OsString) -> CString {
    let bytes: Vec<u8> = text.into_vec().into_iter().filter(|&b| b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

fn set(name: &CStr, value: impl AsRef<OsStr>) {
    std::env::set_var(OsStr::from_bytes(name.to_bytes()), value);
}

/// Puts the library first in LD_PRELOAD.
fn preload(library: &Path) {
    let name = OsStr::from_bytes(settings::PRELOAD.to_bytes());
    let mut list = library.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os(name).filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    std::env::set_var(name, list);
}

/// The file as an absolute path: the program may change its directory. Must be writable.
fn stats_file(path: &Path) -> Result<PathBuf, Failure> {
    let fail = |error| {
        let path = path.display();
        Failure::own(format!("cannot write statistics to '{path}': {}", text_of(&error)))
    };
    OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(fail)?;
    std::path::absolute(path).map_err(fail)
}

/// What the C library says about an error, without Rust's addition of the number.
fn text_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn text_of_errno(errno: Errno) -> String {
    text_of(&std::io::Error::from_raw_os_error(errno.0))
}

/// Where execvp(3) will find the program.
fn find_program(name: &OsStr) -> Result<CString, Failure> {
    if name.as_bytes().contains(&b'/') {
        return executable(name).map_err(|errno| failure_of(name, errno));
    }
    let list = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut last = Errno::NOENT;
    for dir in std::env::split_paths(&list).filter(|_| !name.is_empty()) {
        match executable(dir.join(name).as_os_str()) {
            Ok(path) => return Ok(path),
            Err(Errno::ACCES) => last = Errno::ACCES,
            Err(_) => {}
        }
    }
    Err(failure_of(name, last))
}

/// A file that is there and may be executed.
fn executable(path: &OsStr) -> Result<CString, Errno> {
    let path = c_string(path.to_owned());
    // SAFETY: the path is a C string.
    child::check(unsafe { libc::access(path.as_ptr(), libc::F_OK) }.into())?;
    let is_dir = Path::new(OsStr::from_bytes(path.to_bytes())).is_dir();
    // SAFETY: as above.
    child::check(unsafe { libc::access(path.as_ptr(), libc::X_OK) }.into())?;
    if is_dir {
        return Err(Errno::ACCES);
    }
    Ok(path)
}

fn failure_of(name: &OsStr, errno: Errno) -> Failure {
    let message = format!("cannot run '{}': {}", name.to_string_lossy(), text_of_errno(errno));
    if errno == Errno::NOENT {
        Failure::not_found(message)
    } else {
        Failure::cannot_run(message)
    }
}

fn judge(name: &OsStr, path: &CStr) -> Result<Verdict, Failure> {
    match judge_at(libc::AT_FDCWD, path) {
        Ok(verdict) => Ok(verdict),
        // Executable but not readable.
        Err(Errno::ACCES) => Ok(Verdict { kind: Kind::Unknown, secure: false }),
        Err(errno) => Err(failure_of(name, errno)),
    }
}

/// A program the library cannot be loaded into would die of its first io_uring call.
fn check_coverable(name: &OsStr, verdict: Verdict) -> Result<(), Failure> {
    let name = name.to_string_lossy();
    let why = match verdict {
        Verdict { secure: true, .. } => {
            "is set-user-id, set-group-id or has file capabilities, which turns LD_PRELOAD off; \
             put 'setpriv --no-new-privs' before anyring to run it without those privileges"
        }
        Verdict { kind: Kind::Static, .. } => {
            "is statically linked, so the preload library cannot be loaded into it; use a \
             dynamically linked build"
        }
        Verdict { kind: Kind::OtherLibc, .. } => {
            "is not linked to the GNU C library; use a build for it"
        }
        Verdict { kind: Kind::OtherArch, .. } => {
            "is built for another architecture; anyring covers 64-bit x86 programs"
        }
        _ => return Ok(()),
    };
    Err(Failure::cannot_run(format!("cannot run '{name}': it {why}")))
}

/// The filter must be allowed, and its trap must arrive.
fn check_trap() -> Result<(), Failure> {
    let why = match child::attempt(features::seccomp_trap) {
        Outcome::Works(_) => return Ok(()),
        Outcome::Refused(errno) => uring::name(errno),
        Outcome::Killed(signal) => format!("killed by signal {signal}"),
        Outcome::Untried(errno) => {
            return Err(Failure::own(format!(
                "no process could be started to try a seccomp filter ({}); raise the limit of \
                 processes (ulimit -u), or use --engine kernel",
                uring::name(errno)
            )))
        }
    };
    Err(Failure::own(format!(
        "seccomp filters that trap are not allowed here ({why}), so io_uring calls cannot be \
         answered; allow seccomp(2), or use --engine kernel"
    )))
}

fn execute(program: &[CString]) -> Failure {
    let mut argv: Vec<*const libc::c_char> = program.iter().map(|arg| arg.as_ptr()).collect();
    argv.push(std::ptr::null());
    // SAFETY: a null-terminated array of C strings that live across the call.
    unsafe { libc::execvp(argv[0], argv.as_ptr()) };
    failure_of(OsStr::from_bytes(program[0].to_bytes()), child::last_errno())
}
