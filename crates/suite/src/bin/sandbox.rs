//! `sandbox --io-uring ANSWER -- PROGRAM [ARG...]`: runs a program where io_uring is blocked.
//!
//! Exit codes are those of `env`: 125 for a wrong use, 126 if the program cannot be run, 127
//! if it was not found.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyring_suite::sandbox::{self, Answer};

const USAGE: &str = "usage: sandbox --io-uring eperm|enosys|errno95|trap|allow -- PROGRAM [ARG...]";

fn main() -> ExitCode {
    let Some((answer, program)) = parse(std::env::args_os().skip(1).collect()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(125);
    };
    if let Err(error) = sandbox::enter(answer) {
        eprintln!(
            "sandbox: the seccomp filter was refused: {error}; is seccomp built into this kernel?"
        );
        return ExitCode::from(125);
    }
    let error = Command::new(&program[0]).args(&program[1..]).exec();
    eprintln!("sandbox: cannot run {}: {error}", program[0].to_string_lossy());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

fn parse(arguments: Vec<OsString>) -> Option<(Answer, Vec<OsString>)> {
    let [option, answer, dashes, program @ ..] = arguments.as_slice() else {
        return None;
    };
    if option != "--io-uring" || dashes != "--" || program.is_empty() {
        return None;
    }
    Some((Answer::from_name(answer.to_str()?)?, program.to_vec()))
}
