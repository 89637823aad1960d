//! `with-io-uring-off PROGRAM [ARG...]`: runs a program while the kernel's io_uring is off.
//!
//! It is off for the whole machine (`kernel.io_uring_disabled=2`) and comes back when the
//! program has ended, or this one was killed. Where that setting cannot be changed (kernels
//! before 6.6, containers, other users than root) a seccomp filter with EPERM does it for the
//! program alone. The exit code is the program's; 125 if it could not be started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};

use anyring_suite::sandbox::{self, Answer};
use anyring_suite::sysctl::{self, Off};

const KEEPER: &str = "--keeper";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = match arguments.split_first() {
        None => {
            eprintln!("usage: with-io-uring-off PROGRAM [ARG...]");
            return ExitCode::from(125);
        }
        Some((first, [])) if first == KEEPER => sysctl::keep().map(|()| 0),
        Some((program, rest)) => run(program, rest),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("with-io-uring-off: {error}; are we root, and is /proc/sys writable?");
            ExitCode::from(125)
        }
    }
}

fn run(program: &OsStr, arguments: &[OsString]) -> io::Result<u8> {
    let off = match sysctl::available() {
        true => {
            let mut keeper = Command::new(env::current_exe()?);
            keeper.arg(KEEPER);
            Some(Off::start(keeper)?)
        }
        false => None,
    };
    let filter_instead = off.is_none();
    if filter_instead {
        eprintln!("with-io-uring-off: kernel.io_uring_disabled cannot be set here; using a seccomp filter instead");
    }
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: prctl is async-signal-safe, and `enter` only makes prctl calls on its own stack.
    unsafe { command.pre_exec(move || prepare(filter_instead)) };
    let status = command.status()?;
    drop(off);
    Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(125) as u8)
}

/// In the child: it dies with us, since io_uring is on again then.
fn prepare(filter_instead: bool) -> io::Result<()> {
    // SAFETY: prctl with integers only.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if filter_instead {
        sandbox::enter(Answer::Eperm)?;
    }
    Ok(())
}
