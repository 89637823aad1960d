//! One page with everything: no network, readable on a phone, light and dark.

use super::svg::{self, escape};
use super::{finding, grouped, text, verdict_word};
use crate::arm::Kind;
use crate::machine::Machine;
use crate::run::{Outcome, RatioResult};
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// What the page says besides the figures.
pub struct About<'a> {
    /// Where the figures are from.
    pub machine: &'a Machine,
    /// Arguments that all experiments were run with, such as `--quick`.
    pub options: &'a str,
}

/// The page.
pub fn page(outcomes: &[Outcome], about: &About<'_>) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
    // Without an icon of its own a browser asks the server for one.
    out += "<link rel=\"icon\" href=\"data:,\"><title>anyring bench</title>";
    let _ = write!(out, "<style>{STYLE}</style></head><body>");
    header(&mut out, about);
    overview(&mut out, outcomes);
    outcomes.iter().for_each(|outcome| section(&mut out, outcome, about));
    out += "</body></html>\n";
    out
}

fn header(out: &mut String, about: &About<'_>) {
    *out += "<header><h1>anyring bench</h1><p>An io_uring in user space, compared with the \
             kernel's, with the limit, and with what else one could use.</p><ul class=\"kinds\">";
    let kinds = [
        (Kind::User, "anyring's engine"),
        (Kind::Kernel, "the kernel's io_uring"),
        (Kind::Limit, "the limit: plain calls"),
        (Kind::Peer, "peers"),
    ];
    for (kind, name) in kinds {
        let class = svg::kind_class(kind);
        let _ = write!(out, "<li><span class=\"key {class}\"></span>{name}</li>");
    }
    *out += "</ul>";
    machine(out, about.machine);
    *out += "</header>";
}

fn machine(out: &mut String, machine: &Machine) {
    let Machine { cpu, cpus, memory_gib, kernel, filesystem, load_1min } = machine;
    let facts = [
        ("Processor", format!("{cpu}, {cpus} CPUs")),
        ("Memory", format!("{memory_gib} GiB")),
        ("Kernel", format!("Linux {kernel}")),
        ("File system", filesystem.clone()),
        ("Load at the start", load_1min.to_string()),
    ];
    *out += "<dl class=\"machine\">";
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    *out += "</dl>";
    if let Some(warning) = machine.warning() {
        let _ = write!(out, "<p class=\"worse\">{}.</p>", escape(&warning));
    }
}

/// All comparisons on the same axis, an experiment a card.
fn overview(out: &mut String, outcomes: &[Outcome]) {
    let range = svg::Range::of(outcomes.iter().flat_map(|outcome| &outcome.ratios));
    *out += "<h2 class=\"first\">At a glance</h2><div class=\"cards\">";
    for outcome in outcomes {
        let name = outcome.experiment.name;
        let _ = write!(out, "<div class=\"card\"><h3><a href=\"#{name}\">{name}</a></h3>");
        match outcome.ratios.is_empty() {
            true => {
                let _ = write!(out, "<p>{}</p>", escape(&finding(outcome)));
            }
            false => out.push_str(&svg::ratios(&outcome.ratios, range)),
        }
        *out += "</div>";
    }
    *out += "</div><p class=\"soft\">Right of 1 the first named is better, left of it the other. \
             <span class=\"better\">●</span> better, <span class=\"worse\">●</span> worse, \
             <span class=\"same\">●</span> no difference can be told; the line is the 95 % interval, \
             <span class=\"reported\">◇</span> what was reported by those who had the idea.</p>";
}

fn section(out: &mut String, outcome: &Outcome, about: &About<'_>) {
    let experiment = outcome.experiment;
    let name = experiment.name;
    let _ = write!(out, "<section id=\"{name}\"><h2>{name}</h2>");
    let _ = write!(out, "<p class=\"soft\">{}</p>", escape(experiment.about));
    let _ = write!(out, "<p class=\"finding\">{}</p>", escape(&finding(outcome)));
    if !outcome.arms.is_empty() {
        plots(out, outcome);
        out.push_str(&arms_table(outcome));
    }
    if let Some(rows) = text::counters(outcome) {
        out.push_str(&table(&rows, |cell, _, _| escape(cell)));
    }
    if !outcome.ratios.is_empty() {
        out.push_str(&ratios_table(&outcome.ratios));
    }
    left_out(out, outcome);
    let _ = write!(out, "<h3>How</h3><p class=\"soft\">{}</p>", escape(experiment.method));
    let machine = escape(&about.machine.line());
    let _ = write!(out, "<p class=\"soft\">On {machine}. To repeat it:</p>");
    let options = escape(about.options);
    let _ = write!(out, "<pre>anyring bench {name}{options}</pre></section>");
}

fn plots(out: &mut String, outcome: &Outcome) {
    let unit = escape(outcome.experiment.unit);
    let plot = svg::samples(&outcome.arms, outcome.experiment.unit);
    let runs = outcome.rounds;
    let _ = write!(
        out,
        "<div class=\"plots\"><figure>{plot}<figcaption>{unit}: {runs} runs (dots), median (line \
         and figure), 95 % interval (bar)</figcaption></figure>"
    );
    if let Some(plot) = svg::latencies(&outcome.arms) {
        let legend = svg::legend(&outcome.arms);
        let _ = write!(
            out,
            "<figure>{plot}{legend}<figcaption>Latency by percentile, all runs together\
             </figcaption></figure>"
        );
    }
    *out += "</div>";
}

fn left_out(out: &mut String, outcome: &Outcome) {
    if outcome.skipped.is_empty() {
        return;
    }
    *out += "<h3>Left out</h3><ul class=\"soft\">";
    for (arms, why) in grouped(&outcome.skipped) {
        let _ = write!(out, "<li>{}: {}</li>", escape(&arms), escape(why));
    }
    *out += "</ul>";
}

fn arms_table(outcome: &Outcome) -> String {
    let key = |i: usize| svg::kind_class(outcome.arms[i].kind);
    table(&text::rows(outcome), |cell, row, column| match (row, column) {
        (1.., 0) => format!("<span class=\"key {}\"></span>{}", key(row - 1), escape(cell)),
        _ => escape(cell),
    })
}

/// A table whose cells are made by `cell(text, row, column)`. Columns without cells are left out.
fn table(rows: &[Vec<String>], cell: impl Fn(&str, usize, usize) -> String) -> String {
    let used = text::used_columns(rows);
    let mut out = String::from("<div class=\"scroll\"><table>");
    for (i, row) in rows.iter().enumerate() {
        out += "<tr>";
        let tag = if i == 0 { "th" } else { "td" };
        for &column in &used {
            let _ = write!(out, "<{tag}>{}</{tag}>", cell(&row[column], i, column));
        }
        out += "</tr>";
    }
    out + "</table></div>"
}

fn ratios_table(ratios: &[RatioResult]) -> String {
    let heading = ["comparison", "ratio", "95 %", "reported", "the first is"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for result in ratios {
        let e = result.ratio.0;
        rows.push(vec![
            result.def.name.into(),
            format!("{:.2}", e.median),
            format!("{:.2} to {:.2}", e.lo, e.hi),
            result.def.reported.map_or(String::new(), |r| format!("{r:.2}")),
            verdict_word(result).into(),
        ]);
    }
    table(&rows, |cell, _, _| escape(cell))
}
