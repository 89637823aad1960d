//! The `anyring` command.
//!
//! `no_main`, because the standard library's start-up changes what `run` must hand on to the
//! program as it found it: it ignores SIGPIPE, and opens closed standard descriptors.

#![cfg_attr(not(test), no_main)]

mod bench;
mod child;
mod doctor;
mod failure;
mod features;
mod library;
mod run;
mod uring;

use anyring_front::settings::Choice;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

/// io_uring, anywhere: runs programs written for io_uring where the kernel's is blocked.
#[derive(Parser)]
#[command(name = "anyring", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program; its io_uring calls are answered wherever it runs
    ///
    /// The exit code is the program's own. 125: anyring itself failed; 126: the program was found
    /// but cannot be run; 127: it was not found.
    Run(Run),
    /// Measure the engine, the kernel's io_uring and what else could be used, side by side
    ///
    /// Arms take turns; figures are medians with 95 % intervals. Ctrl-C keeps what is finished.
    Bench(bench::Bench),
    /// Say whether io_uring works here, why not, and what anyring would do
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What `run` was asked to do. Settings that are not given are read from the environment.
#[derive(Args)]
struct Run {
    /// Who answers: the kernel where its io_uring works, else anyring (auto); always anyring
    /// (user); never (kernel)
    #[arg(long, env = "ANYRING_ENGINE", hide_env_values = true, default_value = "auto",
          value_parser = choices())]
    engine: Choice,
    /// Append one line of JSON per process, with what its rings did
    #[arg(long, env = "ANYRING_STATS", hide_env_values = true, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Change rules of the engine
    #[arg(long, env = "ANYRING_POLICY", hide_env_values = true, value_name = "NAME=VALUE,...")]
    policy: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

fn choices() -> impl TypedValueParser<Value = Choice> {
    let names = [Choice::Auto, Choice::User, Choice::Kernel].map(Choice::name);
    PossibleValuesParser::new(names)
        .map(|name| Choice::parse(name.as_bytes()).unwrap_or(Choice::Auto))
}

#[cfg_attr(test, allow(dead_code))]
fn main_with(args: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Run(request) }) => Err(run::run(request)),
        Ok(Cli { command: Command::Bench(request) }) => bench::bench(&request),
        Ok(Cli { command: Command::Doctor { json } }) => doctor::doctor(json),
        Err(message) if !message.use_stderr() => {
            message.print().map_err(|error| Failure::own(format!("cannot print: {error}")))
        }
        Err(message) if message.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::own("no command given; see 'anyring --help'"))
        }
        Err(message) => Err(Failure::usage(&message.to_string())),
    }
}

/// Called by the C library's start-up.
#[cfg(not(test))]
#[no_mangle]
pub extern "C" fn main(_argc: libc::c_int, _argv: *const *const libc::c_char) -> libc::c_int {
    match main_with(std::env::args_os()) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("anyring: {}", failure.message);
            failure.code
        }
    }
}
