//! One page with everything: no network, readable on a phone, light and dark.

use super::svg::{self, colour, escape};
use super::{figure, grouped, sentence, text};
use crate::machine::Machine;
use crate::run::{Outcome, RatioResult};
use crate::stats::Verdict;
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
    let _ = write!(out, "<style>{STYLE}</style></head><body><h1>anyring bench</h1>");
    let machine = escape(&about.machine.line());
    let _ = write!(out, "<p class=\"soft\">{machine}</p>");
    out += "<p class=\"soft\">user is anyring's engine, kernel the kernel's io_uring. Arms take turns, so that what disturbs one disturbs all. Figures are medians \
            with the interval that holds the true median in 95 % of all cases; comparisons are made run by run.</p>";
    if outcomes.len() > 1 {
        out += "<nav>";
        for outcome in outcomes {
            let name = outcome.experiment.name;
            let _ = write!(out, "<a href=\"#{name}\">{name}</a>");
        }
        out += "</nav>";
    }
    outcomes.iter().for_each(|outcome| section(&mut out, outcome, about));
    out += "</body></html>\n";
    out
}

fn section(out: &mut String, outcome: &Outcome, about: &About<'_>) {
    let experiment = outcome.experiment;
    let name = experiment.name;
    let _ = write!(out, "<section id=\"{name}\"><h2>{name}</h2>");
    let _ = write!(out, "<p class=\"soft\">{}</p>", escape(experiment.about));
    let _ = write!(out, "<p class=\"finding\">{}</p>", escape(&finding(outcome)));
    let unit = escape(experiment.unit);
    let plot = svg::samples(&outcome.arms, experiment.unit);
    let runs = outcome.rounds;
    let _ = write!(
        out,
        "<figure>{plot}<figcaption>{unit}: {runs} runs (dots), median (line), 95 % interval (bar)</figcaption></figure>"
    );
    if let Some(plot) = svg::latencies(&outcome.arms) {
        let _ = write!(
            out,
            "<figure>{plot}<figcaption>Latency, all runs together; colours as above</figcaption></figure>"
        );
    }
    out.push_str(&arms_table(outcome));
    if !outcome.ratios.is_empty() {
        out.push_str(&ratios_table(&outcome.ratios));
    }
    if !outcome.skipped.is_empty() {
        *out += "<h3>Left out</h3><ul class=\"soft\">";
        for (arms, why) in grouped(&outcome.skipped) {
            let _ = write!(out, "<li>{}: {}</li>", escape(&arms), escape(why));
        }
        *out += "</ul>";
    }
    let _ = write!(out, "<h3>How</h3><p class=\"soft\">{}</p>", escape(experiment.method));
    let options = escape(about.options);
    let _ = write!(out, "<pre>anyring bench {name}{options}</pre></section>");
}

/// What was found, in sentences.
pub fn finding(outcome: &Outcome) -> String {
    let mut all: Vec<String> = outcome.ratios.iter().map(capitalised).collect();
    if all.is_empty() {
        let better = outcome
            .arms
            .iter()
            .filter_map(|arm| Some(format!("{}: {}", arm.name, figure(arm.estimate()?.median))));
        let better: Vec<String> = better.collect();
        all.push(format!("Medians in {}: {}", outcome.experiment.unit, better.join(", ")));
    }
    all.join(". ") + "."
}

fn capitalised(result: &RatioResult) -> String {
    let text = sentence(result);
    // Names of arms keep their case.
    match text.strip_prefix("no difference") {
        Some(rest) => format!("No difference{rest}"),
        None => text,
    }
}

fn arms_table(outcome: &Outcome) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>");
    for (i, row) in text::rows(outcome).iter().enumerate() {
        out += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match (i, column) {
                (0, _) => write!(out, "<th>{cell}</th>"),
                (_, 0) => {
                    let class = colour(i - 1);
                    write!(out, "<td><span class=\"key {class}\"></span>{cell}</td>")
                }
                _ => write!(out, "<td>{cell}</td>"),
            };
        }
        out += "</tr>";
    }
    out + "</table></div>"
}

fn ratios_table(ratios: &[RatioResult]) -> String {
    let mut out = String::from(
        "<h3>Comparisons</h3><div class=\"scroll\"><table><tr><th>name</th><th>ratio</th><th>95 %</th>\
         <th>reported</th><th>says</th></tr>",
    );
    for result in ratios {
        let e = result.ratio.0;
        let reported = result.def.reported.map_or(String::new(), |r| format!("{r:.2}"));
        let verdict = match result.ratio.verdict() {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{:.2}</td><td>{:.2} to {:.2}</td><td>{reported}</td><td>{verdict}</td></tr>",
            result.def.name, e.median, e.lo, e.hi
        );
    }
    out + "</table></div>"
}
