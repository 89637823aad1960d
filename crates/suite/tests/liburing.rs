//! liburing's own test programs, each a test of its own, on our engine.
//!
//! Environment:
//! - `ANYRING_LIBURING_ON=kernel` runs them on the kernel's io_uring instead.
//! - `ANYRING_LIBURING_RECORD=replace|merge` writes the results into the table; `merge` calls
//!   a program unstable whose result differs from the recorded one.
//! - `ANYRING_LIBURING_TESTS` is the folder of the built programs.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyring_suite::expected::{Row, Table, Verdict};
use anyring_suite::places;
use anyring_suite::process::{self, Outcome};
use libtest_mimic::{Arguments, Failed, Trial};

const LIMIT: Duration = Duration::from_secs(30);
/// Programs that need longer than [`LIMIT`] where they pass.
const LIMIT_LONG: Duration = Duration::from_secs(75);
/// Programs known not to end are not given their full time.
const LIMIT_HANGING: Duration = Duration::from_secs(5);

const EXEC_TARGET: &str = "exec-target.t";

const SLOW: &[&str] = &["multicqes_drain", "poll-mshot-update", "poll-race-mshot", "send-zerocopy"];

/// Whose io_uring answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Kernel,
    Engine,
}

/// What every test shares.
struct Suite {
    side: Side,
    recording: bool,
    programs: PathBuf,
    table: Table,
    results: Mutex<BTreeMap<String, Outcome>>,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    match prepare() {
        Ok(suite) => run(&arguments, Arc::new(suite)),
        Err(error) => {
            eprintln!("liburing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<Suite, String> {
    let on_kernel = env::var("ANYRING_LIBURING_ON").is_ok_and(|side| side == "kernel");
    let side = if on_kernel { Side::Kernel } else { Side::Engine };
    let programs = match env::var_os("ANYRING_LIBURING_TESTS") {
        Some(folder) => PathBuf::from(folder),
        None => places::target().join("liburing/src/test"),
    };
    if !programs.is_dir() {
        return Err("its tests are not built; run: scripts/build-liburing".to_string());
    }
    if side == Side::Engine {
        places::anyring()?;
    }
    let recording = env::var_os("ANYRING_LIBURING_RECORD").is_some();
    let table = Table::read(&table_path())?;
    Ok(Suite { side, recording, programs, table, results: Mutex::default() })
}

fn table_path() -> PathBuf {
    places::repository().join("crates/suite/liburing-expected.tsv")
}

fn run(arguments: &Arguments, suite: Arc<Suite>) -> ExitCode {
    let names: BTreeSet<String> =
        built(&suite.programs).into_iter().chain(suite.table.rows.keys().cloned()).collect();
    let trials = names.into_iter().map(|name| trial(name, suite.clone())).collect();
    let conclusion = libtest_mimic::run(arguments, trials);
    if !arguments.list {
        suite.report();
    }
    conclusion.exit_code()
}

/// The names of the programs that were built.
fn built(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0))
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".t").map(String::from))
        .collect()
}

fn trial(name: String, suite: Arc<Suite>) -> Trial {
    Trial::test(name.clone(), move || suite.check(&name).map_err(Failed::from))
}

impl Suite {
    /// Runs one program and compares it with the table. A program that was to pass and did
    /// not is run once more, since many of them measure time; both runs are reported.
    fn check(&self, name: &str) -> Result<(), String> {
        let expected = self.expected(name);
        let mut outcome = self.execute(name)?;
        if !self.recording && expected.regressed_to(Verdict::of(&outcome)) {
            eprintln!("{name}: {}; once more", outcome.ended);
            outcome = self.execute(name)?;
        }
        let seen = Verdict::of(&outcome);
        let message = format!(
            "expected {expected}, got {seen}: {} after {:.1} s; its last lines:\n{}",
            outcome.ended,
            outcome.elapsed.as_secs_f64(),
            outcome.last_lines(12)
        );
        self.results.lock().map_err(|_| "a test panicked")?.insert(name.to_string(), outcome);
        match self.recording || !expected.regressed_to(seen) {
            true => Ok(()),
            false => Err(message),
        }
    }

    fn expected(&self, name: &str) -> Verdict {
        let row = self.table.rows.get(name).cloned().unwrap_or_default();
        match self.side {
            Side::Kernel => row.kernel,
            Side::Engine => row.engine,
        }
    }

    fn limit(&self, name: &str) -> Duration {
        match self.expected(name) {
            Verdict::Timeout if !self.recording => LIMIT_HANGING,
            _ if SLOW.contains(&name) => LIMIT_LONG,
            _ => LIMIT,
        }
    }

    fn execute(&self, name: &str) -> Result<Outcome, String> {
        let program = self.programs.join(format!("{name}.t"));
        if !program.exists() {
            return Err(format!(
                "{} was not built; see target/liburing/build.log",
                program.display()
            ));
        }
        let scratch = places::scratch(&format!("liburing-{name}")).map_err(|e| e.to_string())?;
        let work = scratch.path().join("work");
        fs::create_dir(&work).map_err(|error| error.to_string())?;
        // Two of them execute this one, and skip that part where they do not find it.
        let target = self.programs.join(EXEC_TARGET);
        symlink(target, work.join(EXEC_TARGET)).map_err(|error| error.to_string())?;
        let mut command = self.command(&program)?;
        command.current_dir(&work);
        let output = scratch.path().join("output");
        process::run(&mut command, self.limit(name), &output).map_err(|error| error.to_string())
    }

    fn command(&self, program: &Path) -> Result<Command, String> {
        if self.side == Side::Kernel {
            return Ok(Command::new(program));
        }
        let mut command = Command::new(places::anyring()?);
        command.args(["run", "--engine", "user", "--"]).arg(program);
        Ok(command)
    }

    fn report(&self) {
        let Ok(results) = self.results.lock() else {
            return;
        };
        for (name, outcome) in results.iter() {
            let (expected, seen) = (self.expected(name), Verdict::of(outcome));
            if !self.recording && expected != seen && !expected.regressed_to(seen) {
                println!("note: {name} gives {seen}, the table says {expected}");
            }
            if seen == Verdict::Pass && outcome.elapsed > self.limit(name) / 2 {
                println!(
                    "note: {name} took {:.0} s, more than half its time",
                    outcome.elapsed.as_secs_f64()
                );
            }
        }
        let passed =
            results.values().filter(|outcome| Verdict::of(outcome) == Verdict::Pass).count();
        let place = if self.side == Side::Engine { "engine" } else { "kernel" };
        println!(
            "liburing: {passed} of {} pass on the {place} (kernel: {})",
            results.len(),
            self.table.kernel_passes()
        );
        if self.recording {
            self.record(&results);
        }
    }

    fn record(&self, results: &BTreeMap<String, Outcome>) {
        let merge = env::var("ANYRING_LIBURING_RECORD").is_ok_and(|how| how == "merge");
        let mut table = self.table.clone();
        for (name, outcome) in results {
            let row = table.rows.entry(name.clone()).or_default();
            note_result(row, self.side, outcome, merge);
        }
        if let Err(error) = table.write(&table_path()) {
            eprintln!("liburing: cannot write {}: {error}", table_path().display());
        }
    }
}

fn note_result(row: &mut Row, side: Side, outcome: &Outcome, merge: bool) {
    let cell = match side {
        Side::Kernel => &mut row.kernel,
        Side::Engine => &mut row.engine,
    };
    let seen = Verdict::of(outcome);
    *cell = if merge { cell.merge(seen) } else { seen };
    let skipped_inside = seen == Verdict::Pass && outcome.output.to_lowercase().contains("skip");
    if skipped_inside && row.note.is_empty() {
        row.note = "exits with 0 after skipping a part".to_string();
    }
}
