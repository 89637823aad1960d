//! The servers, and what /proc says of one that runs.

use anyring_suite::place::Desk;
use anyring_suite::places;
use anyring_suite::process::{read_end, Ended, Group};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(10);
const REST_LIMIT: Duration = Duration::from_secs(5);
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// liburing: one accept, recv or send at a time.
    Plain,
    /// liburing: multishot accept and recv, buffers from a ring.
    Multishot,
    /// liburing: SEND_ZC.
    Zerocopy,
    /// The runtime with the crate in place of io-uring.
    TokioUring,
    /// The runtime as published.
    Monoio,
    /// The runtime as published.
    Compio,
}

impl Kind {
    /// Every server.
    pub const ALL: [Kind; 6] = [
        Kind::Plain,
        Kind::Multishot,
        Kind::Zerocopy,
        Kind::TokioUring,
        Kind::Monoio,
        Kind::Compio,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Multishot => "multishot",
            Kind::Zerocopy => "zerocopy",
            Kind::TokioUring => "tokio-uring",
            Kind::Monoio => "monoio",
            Kind::Compio => "compio",
        }
    }

    /// Whether it runs under `anyring run`, which can write statistics.
    pub fn has_statistics(self) -> bool {
        self != Kind::TokioUring
    }

    fn program(self) -> Result<PathBuf, String> {
        let file = match self {
            Kind::Plain | Kind::Multishot | Kind::Zerocopy => "echo-liburing".to_string(),
            runtime => format!("release/echo-{}", runtime.name()),
        };
        let path = places::target().join("servers").join(file);
        if path.exists() {
            return Ok(path);
        }
        Err(format!("{} does not exist; run: scripts/build-servers", path.display()))
    }

    fn command(self, desk: &Desk) -> Result<Command, String> {
        let program = self.program()?;
        if self.has_statistics() {
            let mut command = desk.command(program)?;
            command.arg(self.name());
            return Ok(command);
        }
        desk.plain_command(program)
    }
}

/// A running server.
pub struct Server {
    /// Where it listens.
    pub port: u16,
    group: Group,
    log: PathBuf,
}

impl Server {
    /// Starts it and waits until it listens.
    pub fn start(desk: &Desk, kind: Kind) -> Result<Server, String> {
        let log = desk.next_output();
        let group = Group::start(&mut kind.command(desk)?, &log)
            .map_err(|error| format!("{} did not start: {error}", kind.name()))?;
        let mut server = Server { port: 0, group, log };
        let start = Instant::now();
        while start.elapsed() < START_LIMIT && server.group.runs().unwrap_or(false) {
            let port =
                server.output().lines().find_map(|l| l.strip_prefix("listening ")?.parse().ok());
            if let Some(port) = port {
                server.port = port;
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{} does not listen; it said: {}", kind.name(), server.output()))
    }

    /// What it printed.
    pub fn output(&self) -> String {
        read_end(&self.log).unwrap_or_default()
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.group.id())).map_or(0, Iterator::count)
    }

    fn status(&self, field: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.group.id()));
        let text = text.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Threads now.
    pub fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS:") << 10
    }

    /// Descriptors when no more of them are closed.
    pub fn descriptors_at_rest(&self) -> Result<usize, String> {
        let mut last = usize::MAX;
        loop {
            let now = self.descriptors();
            match now {
                0 => return Err(format!("the server is gone; it said: {}", self.output())),
                _ if now >= last => return Ok(last),
                _ => last = now,
            }
            thread::sleep(Duration::from_millis(300));
        }
    }

    /// Waits until it has no more descriptors than `at_rest`.
    pub fn wait_for_rest(&self, at_rest: usize) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let now = self.descriptors();
            if now <= at_rest {
                return Ok(());
            }
            if start.elapsed() > REST_LIMIT {
                return Err(format!("{now} descriptors are left of {at_rest}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it with SIGTERM.
    pub fn stop(&mut self) -> Result<(), String> {
        self.group.signal(libc::SIGTERM);
        match self.group.wait(STOP_LIMIT) {
            Ok(Ended::Exited(0)) => Ok(()),
            Ok(ended) => Err(format!("SIGTERM: {ended}; it said: {}", self.output())),
            Err(error) => Err(error.to_string()),
        }
    }
}
