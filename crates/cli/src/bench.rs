//! `anyring bench`: the lab on the command line.

use crate::failure::Failure;
use anyring_lab::experiments::{self, Experiment};
use anyring_lab::machine::Machine;
use anyring_lab::run::{self, Outcome, Request};
use anyring_lab::{report, stop};
use clap::builder::PossibleValuesParser;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `bench` was asked to do.
#[derive(Args)]
pub struct Bench {
    /// An experiment; all: all of them, one after the other; list: says what each does
    #[arg(value_parser = names())]
    experiment: String,
    /// At most a minute for each experiment
    #[arg(long)]
    quick: bool,
    /// Runs of each arm; below 6 nothing can be concluded [default: 10; with --quick: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Longest time for one run of an arm, which is ended then and left out [default: 60; with --quick: 15]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    limit: Option<u64>,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a report with plots as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write tables and findings as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Folder for the experiments' files; on the disk that is to be measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    dir: PathBuf,
}

fn names() -> PossibleValuesParser {
    let own = experiments::ALL.iter().map(|experiment| experiment.name);
    PossibleValuesParser::new(own.chain(["all", "list"]))
}

/// Runs it.
pub fn bench(request: &Bench) -> Result<(), Failure> {
    if request.experiment == "list" {
        list();
        return Ok(());
    }
    for path in [&request.json, &request.html, &request.markdown].into_iter().flatten() {
        check_writable(path)?;
    }
    let machine = Machine::read(&request.dir);
    println!("{}", machine.line());
    if let Some(warning) = machine.warning() {
        println!("{warning}");
    }
    stop::install();
    let mut outcomes = Vec::new();
    let result = run_all(request, &mut outcomes);
    // Whatever was finished is kept, also if a later experiment failed.
    write_reports(request, &outcomes, &machine)?;
    result
}

fn list() {
    for Experiment { name, about, .. } in experiments::ALL {
        println!("{name:10} {about}");
    }
}

fn run_all(request: &Bench, outcomes: &mut Vec<Outcome>) -> Result<(), Failure> {
    let runs = request.runs.map_or(if request.quick { 7 } else { 10 }, usize::from);
    let limit = Duration::from_secs(request.limit.unwrap_or(if request.quick { 15 } else { 60 }));
    let settings = Request { quick: request.quick, runs, limit, dir: request.dir.clone() };
    for experiment in experiments::ALL {
        if request.experiment != "all" && request.experiment != experiment.name {
            continue;
        }
        match run::run(experiment, &settings) {
            Ok(Some(outcome)) => {
                print!("{}", report::text::outcome(&outcome));
                outcomes.push(outcome);
            }
            Ok(None) => {}
            // The others may well run.
            Err(error) if !outcomes.is_empty() => {
                println!("\n{}: left out: {error}", experiment.name);
            }
            Err(error) => return Err(Failure::own(error.to_string())),
        }
        if stop::asked() {
            let kept = if outcomes.is_empty() { "nothing" } else { "kept what" };
            return Err(Failure { message: format!("stopped; {kept} was finished"), code: 130 });
        }
    }
    Ok(())
}

/// Writes what was asked for, if there is anything to tell. One that cannot be written does not keep the others from it.
fn write_reports(request: &Bench, outcomes: &[Outcome], machine: &Machine) -> Result<(), Failure> {
    if outcomes.is_empty() {
        return Ok(());
    }
    let mut result = Ok(());
    if let Some(path) = &request.json {
        let mut all: Vec<_> =
            outcomes.iter().map(|outcome| report::json::outcome(outcome, machine)).collect();
        let value = match (request.experiment.as_str(), all.len()) {
            ("all", _) | (_, 0) => serde_json::Value::Array(all),
            _ => all.remove(0),
        };
        result = result.and(write(path, &format!("{value:#}\n")));
    }
    if let Some(path) = &request.html {
        let options = options(request);
        let about = report::html::About { machine, options: &options };
        result = result.and(write(path, &report::html::page(outcomes, &about)));
    }
    if let Some(path) = &request.markdown {
        let page = report::markdown::page(outcomes, machine, &options(request));
        result = result.and(write(path, &page));
    }
    result
}

/// The options that make a run what it is, to repeat it.
fn options(request: &Bench) -> String {
    let quick = if request.quick { " --quick" } else { "" };
    let runs = request.runs.map_or(String::new(), |runs| format!(" --runs {runs}"));
    format!("{quick}{runs}")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::own(format!("cannot write {}: {error}", path.display()))
}

/// Told before the measuring rather than after it. What is there stays as it is.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let is_there = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| cannot_write(path, &error))?;
    if !is_there {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}
