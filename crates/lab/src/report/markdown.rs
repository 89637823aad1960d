//! The form for a repository: one page of tables and sentences.

use super::{finding, grouped, text};
use crate::machine::Machine;
use crate::run::Outcome;
use crate::stats::Verdict;
use std::fmt::Write;

/// The page.
pub fn page(outcomes: &[Outcome], machine: &Machine, options: &str) -> String {
    let mut out = String::from("# Results\n\n");
    let _ = writeln!(
        out,
        "One run of `anyring bench all{options}`; `user` is anyring's engine, called in process, `kernel` the kernel's\n\
         io_uring. Medians with 95 % intervals; comparisons are made run by run, and above 1 the first named is better.\n"
    );
    let _ = writeln!(out, "Machine: {}.", machine.line());
    if let Some(warning) = machine.warning() {
        let _ = writeln!(out, "\n{warning}.");
    }
    let _ = writeln!(out, "\n## Where something else is better\n");
    comparisons(&mut out, outcomes, Verdict::Worse);
    let _ = writeln!(out, "\n## Where the engine, or the idea, is better\n");
    comparisons(&mut out, outcomes, Verdict::Better);
    outcomes.iter().for_each(|outcome| section(&mut out, outcome));
    out
}

fn comparisons(out: &mut String, outcomes: &[Outcome], verdict: Verdict) {
    for outcome in outcomes {
        for result in outcome.ratios.iter().filter(|r| r.ratio.verdict() == verdict) {
            let _ = writeln!(out, "- {}", super::sentence(result, outcome.experiment.unit));
        }
    }
}

fn section(out: &mut String, outcome: &Outcome) {
    let experiment = outcome.experiment;
    let _ = writeln!(out, "\n## {}\n\n{}\n", experiment.name, finding(outcome));
    let _ = writeln!(out, "{}\n", experiment.method);
    table(out, &text::rows(outcome));
    if let Some(counters) = text::counters(outcome) {
        out.push('\n');
        table(out, &counters);
    }
    if !outcome.ratios.is_empty() {
        let _ = writeln!(out, "\n| ratio | median | 95 % | reported |\n|---|--:|--:|--:|");
    }
    for result in &outcome.ratios {
        let e = result.ratio.0;
        let reported = result.def.reported.map_or(String::new(), |r| format!("{r:.2}"));
        let (name, median) = (result.def.name, e.median);
        let _ = writeln!(out, "| {name} | {median:.2} | {:.2} to {:.2} | {reported} |", e.lo, e.hi);
    }
    let left_out = grouped(&outcome.skipped);
    if !left_out.is_empty() {
        out.push('\n');
    }
    for (arms, why) in left_out {
        let _ = writeln!(out, "- left out {arms}: {why}");
    }
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    for (i, row) in rows.iter().enumerate() {
        let _ = writeln!(out, "| {} |", row.join(" | "));
        if i == 0 {
            let _ = writeln!(out, "|---|{}", "--:|".repeat(row.len() - 1));
        }
    }
}
