//! The form for a terminal.

use super::{duration, figure, grouped, sentence};
use crate::ring::COUNTER_NAMES;
use crate::run::{ArmResult, Outcome};
use std::fmt::Write;

/// One experiment.
pub fn outcome(outcome: &Outcome) -> String {
    let mut out = String::new();
    let experiment = outcome.experiment;
    let _ =
        writeln!(out, "\n{}: {} ({} runs)\n", experiment.name, experiment.about, outcome.rounds);
    out += &table(&rows(outcome));
    out.push('\n');
    if let Some(counters) = counters(outcome) {
        out += &table(&counters);
        out.push('\n');
    }
    for result in &outcome.ratios {
        let _ = write!(out, "{}: {}", result.def.name, sentence(result, experiment.unit));
        let _ = match result.def.reported {
            Some(reported) => writeln!(out, "; reported: {reported:.2}"),
            None => writeln!(out),
        };
    }
    for (names, why) in grouped(&outcome.skipped) {
        let _ = writeln!(out, "skipped {names}: {why}");
    }
    out
}

/// Heading and cells of the table of arms.
pub fn rows(outcome: &Outcome) -> Vec<Vec<String>> {
    let heading = ["arm", outcome.experiment.unit, "95 %", "CPU/op", "switches/op", "p50", "p99"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    rows.extend(outcome.arms.iter().map(row));
    rows
}

fn row(arm: &ArmResult) -> Vec<String> {
    let e = arm.estimate();
    let cpu = arm.median_of(|s| Some(s.usage.cpu_s * 1e9 / s.ops.max(1) as f64));
    let switches = arm.median_of(|s| Some(s.switches_per_op()));
    let latency = arm.latency();
    let at = |q| latency.as_ref().map(|h| duration(h.value_at_quantile(q) as f64));
    [
        Some(arm.name.clone()),
        e.map(|e| figure(e.median)),
        e.map(|e| format!("{} to {}", figure(e.lo), figure(e.hi))),
        cpu.map(duration),
        switches.map(figure),
        at(0.5),
        at(0.99),
    ]
    .map(Option::unwrap_or_default)
    .to_vec()
}

/// Heading and cells of the table of what the engine counted, without columns that have no figure; `None` if no
/// arm has any.
pub fn counters(outcome: &Outcome) -> Option<Vec<Vec<String>>> {
    let has = |arm: &ArmResult, name| arm.extra(name).is_some();
    let names: Vec<_> =
        COUNTER_NAMES.iter().filter(|n| outcome.arms.iter().any(|arm| has(arm, n.0))).collect();
    let with = |arm: &&ArmResult| names.iter().any(|n| has(arm, n.0));
    let mut rows = vec![std::iter::once("counted by the engine")
        .chain(names.iter().map(|n| n.1))
        .map(String::from)
        .collect()];
    for arm in outcome.arms.iter().filter(with) {
        let cells = names.iter().map(|n| arm.extra(n.0).map(figure).unwrap_or_default());
        rows.push(std::iter::once(arm.name.clone()).chain(cells).collect());
    }
    (rows.len() > 1).then_some(rows)
}

/// Columns that have a cell below their heading.
pub fn used_columns(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).filter(|&c| rows[1..].iter().any(|row| !row[c].is_empty())).collect()
}

/// Columns side by side: the first left-aligned, the others right-aligned. Columns without cells are left out.
fn table(rows: &[Vec<String>]) -> String {
    let used: Vec<(usize, usize)> = used_columns(rows)
        .into_iter()
        .map(|c| (c, rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0)))
        .collect();
    let mut out = String::new();
    for row in rows {
        let cells = used.iter().map(|&(c, width)| match c {
            0 => format!("{:<width$}", row[c]),
            _ => format!("{:>width$}", row[c]),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_go() {
        let rows = |rows: &[&[&str]]| -> Vec<Vec<String>> {
            rows.iter().map(|row| row.iter().map(|c| c.to_string()).collect()).collect()
        };
        let text = table(&rows(&[&["arm", "n", "p50"], &["µ", "12.5", ""]]));
        assert_eq!(text, "arm     n\nµ    12.5\n");
    }
}
