//! Where a job runs, and how its commands are started there.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::places::{self, Scratch};
use crate::process::{self, Outcome};
use crate::sandbox::{self, Answer};
use crate::stats::Stats;

/// How io_uring is blocked, if it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The kernel's io_uring, without anyring.
    Kernel,
    /// Turned off for the whole machine, by whoever started us.
    Sysctl,
    /// A seccomp filter around anyring and the program.
    Sandbox(Answer),
}

impl Place {
    /// Every place.
    pub const ALL: [Place; 6] = [
        Place::Kernel,
        Place::Sysctl,
        Place::Sandbox(Answer::Eperm),
        Place::Sandbox(Answer::Enosys),
        Place::Sandbox(Answer::Errno95),
        Place::Sandbox(Answer::Trap),
    ];

    /// Its name, the first half of a test's.
    pub fn name(self) -> &'static str {
        match self {
            Place::Kernel => "kernel",
            Place::Sysctl => "sysctl",
            Place::Sandbox(answer) => answer.name(),
        }
    }

    /// Why a test cannot run here and now.
    pub fn unfit(self) -> Option<String> {
        match (self, sandbox::refusal()) {
            (Place::Kernel, Some(errno)) => Some(format!("io_uring refused, errno {errno}")),
            (Place::Sysctl, None) => Some("needs with-io-uring-off".to_string()),
            _ => None,
        }
    }
}

/// One job's scratch folder and statistics.
pub struct Desk {
    place: Place,
    scratch: Scratch,
    commands: Cell<u32>,
}

impl Desk {
    /// An empty desk.
    pub fn new(place: Place, name: &str) -> Result<Desk, String> {
        let scratch = places::scratch(&format!("{}-{name}", place.name()))
            .map_err(|error| format!("no scratch folder: {error}"))?;
        Ok(Desk { place, scratch, commands: Cell::new(0) })
    }

    /// Whether the engine answers here, not the kernel.
    pub fn on_engine(&self) -> bool {
        self.place != Place::Kernel
    }

    /// Whether this is the one place where a job that runs for a time takes it in full: the usual sandbox.
    pub fn takes_its_time(&self) -> bool {
        self.place == Place::Sandbox(Answer::Eperm)
    }

    /// A path in the scratch folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A command that meets io_uring as this place has it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, String> {
        if self.place == Place::Kernel {
            let mut command = Command::new(program);
            command.current_dir(self.scratch.path());
            return Ok(command);
        }
        let anyring = places::anyring()?;
        let mut command = match self.place {
            Place::Sandbox(answer) => {
                let mut command = Command::new(places::helper("sandbox")?);
                command.args(["--io-uring", answer.name(), "--"]).arg(anyring);
                command
            }
            _ => Command::new(anyring),
        };
        command.args(["run", "--stats"]).arg(self.stats_path()).arg("--").arg(program);
        command.current_dir(self.scratch.path());
        Ok(command)
    }

    /// A command in this place without anyring around it, for a program that brings the crate.
    pub fn plain_command(&self, program: impl AsRef<OsStr>) -> Result<Command, String> {
        let mut command = match self.place {
            Place::Sandbox(answer) => {
                let mut command = Command::new(places::helper("sandbox")?);
                command.args(["--io-uring", answer.name(), "--"]).arg(program);
                command.env("ANYRING_ENGINE", "auto");
                command
            }
            Place::Kernel => {
                let mut command = Command::new(program);
                command.env("ANYRING_ENGINE", "kernel");
                command
            }
            Place::Sysctl => Command::new(program),
        };
        command.current_dir(self.scratch.path());
        Ok(command)
    }

    /// A command for a set-user-id or set-group-id program. It could not be covered, since the
    /// loader ignores LD_PRELOAD for it; no_new_privs, which sandboxes have, turns the bits off.
    pub fn set_id_command(&self, program: &str) -> Result<Command, String> {
        if self.place != Place::Sysctl {
            return self.command(program);
        }
        let mut command = self.command("setpriv")?;
        command.args(["--no-new-privs", program]);
        Ok(command)
    }

    /// Runs a command to its end, which must be exit status 0, for at most `limit` seconds.
    pub fn run(&self, command: &mut Command, limit: u64) -> Result<Outcome, String> {
        process::run(command, Duration::from_secs(limit), &self.next_output())
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?
            .success()
    }

    /// A new file for a command's output.
    pub fn next_output(&self) -> PathBuf {
        self.commands.set(self.commands.get() + 1);
        self.path(format!("output-{}", self.commands.get()))
    }

    /// Says no unless the engine posted at least `least` CQEs for these opcodes together.
    pub fn engine_did(&self, opcodes: &[&str], least: u64) -> Result<(), String> {
        match self.place {
            Place::Kernel => Ok(()),
            _ => Stats::read(&self.stats_path())?.require(opcodes, least),
        }
    }

    /// What a person needs to look further.
    pub fn hint(&self) -> String {
        match self.place {
            Place::Kernel => "this is without anyring: the check itself fails".to_string(),
            _ => format!(
                "statistics: {}",
                std::fs::read_to_string(self.stats_path()).unwrap_or_default()
            ),
        }
    }

    fn stats_path(&self) -> PathBuf {
        self.path("stats.json")
    }
}
