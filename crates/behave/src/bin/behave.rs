//! `behave SCENARIO` asks one scenario in this process. `--list` names them, `--compare`
//! runs kernel and engine side by side, `--record` writes golden answers.

use std::process::ExitCode;

use anyring_behave::pending::{Pending, Verdict};
use anyring_behave::run::{self, On};
use anyring_behave::scenario::{Cx, Scenario};
use anyring_behave::{golden, scenarios, sys};

const USAGE: &str = "behave SCENARIO | --list | --compare [PATTERN] | --record [PATTERN]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let pattern = args.get(1).map_or("", String::as_str);
    let result = match args.first().map(String::as_str) {
        Some("--list") => list(),
        Some("--compare") => compare(pattern),
        Some("--record") => record(pattern),
        Some(name) if !name.starts_with('-') && args.len() == 1 => ask(name),
        _ => Err(format!("usage: {USAGE}")),
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("behave: {e}");
            ExitCode::from(125)
        }
    }
}

fn list() -> Result<ExitCode, String> {
    for s in scenarios::all() {
        println!("{:<32} {}", s.name, s.about);
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(name: &str) -> Result<ExitCode, String> {
    let s =
        scenarios::find(name).ok_or_else(|| format!("no scenario {name}: see behave --list"))?;
    // What stops a scenario is an answer too: one line, no backtrace.
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let why = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("unknown reason");
        println!("!! stopped: {}", why.lines().collect::<Vec<_>>().join(" "));
    }));
    sys::alarm(s.seconds);
    (s.run)(&mut Cx::new(s.name));
    Ok(ExitCode::SUCCESS)
}

fn matching(pattern: &str) -> impl Iterator<Item = &'static Scenario> + '_ {
    scenarios::all().filter(move |s| s.name.contains(pattern))
}

fn own_path() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|e| format!("own path: {e}"))
}

/// Kernel (or, without one, the golden answer) and engine side by side.
fn compare(pattern: &str) -> Result<ExitCode, String> {
    let (me, pending, live) = (own_path()?, Pending::load()?, run::kernel_has_io_uring());
    let (mut same, mut differ, mut wait) = (0, 0, 0);
    for s in matching(pattern) {
        let kernel = if live {
            run::scenario(&me, s.name, s.seconds, On::Kernel)?
        } else {
            golden::load(s.name)?
        };
        let engine = run::scenario(&me, s.name, s.seconds, On::Engine)?;
        match pending.compare(s.name, &kernel, &engine) {
            Verdict::Same => same += 1,
            Verdict::Pending(why) => {
                wait += 1;
                println!("pending {}: {why}", s.name);
            }
            Verdict::Stale(lines) => {
                same += 1;
                println!("same    {}: remove from pending.txt:\n{lines}", s.name);
            }
            Verdict::Differs(text) => {
                differ += 1;
                println!("DIFFERS {}: {}\n{text}", s.name, s.about);
            }
        }
    }
    let oracle = if live { "the running kernel" } else { "golden answers" };
    println!("{same} same, {differ} differ, {wait} pending; against {oracle}");
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Three runs must agree and end well before an answer is golden.
fn record(pattern: &str) -> Result<ExitCode, String> {
    if !run::kernel_has_io_uring() || !run::kernel_is_golden_series() {
        return Err("golden answers are recorded on Linux 6.18 with io_uring on".into());
    }
    let (me, mut unstable) = (own_path()?, 0);
    for s in matching(pattern) {
        let runs: Vec<String> = (0..3)
            .map(|_| run::scenario(&me, s.name, s.seconds, On::Kernel))
            .collect::<Result<_, _>>()?;
        let died = runs.iter().find(|r| r.contains("!! "));
        let differ = runs.iter().find_map(|r| anyring_behave::diff::diff(&runs[0], r));
        match died.cloned().or(differ) {
            Some(text) => {
                unstable += 1;
                println!("NOT RECORDED {}:\n{text}", s.name);
            }
            None => golden::save(s.name, &runs[0])?,
        }
    }
    println!("{unstable} not recorded");
    Ok(if unstable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
