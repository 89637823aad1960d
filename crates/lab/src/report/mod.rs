//! What was found, for people and for programs.

pub mod html;
pub mod json;
pub mod markdown;
pub mod svg;
pub mod text;

use crate::arm::Measure;
use crate::run::{Outcome, RatioResult};
use crate::stats::Verdict;

/// What was left out, arms with the same reason together: (arms, reason).
pub fn grouped(skipped: &[(String, String)]) -> Vec<(String, &str)> {
    let mut groups: Vec<(String, &str)> = Vec::new();
    for (name, why) in skipped {
        match groups.iter_mut().find(|group| group.1 == why) {
            Some(group) => group.0 = format!("{}, {name}", group.0),
            None => groups.push((name.clone(), why)),
        }
    }
    groups
}

/// A figure with as many digits as say something.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.2} M", value / 1e6),
        v if v >= 1e4 => format!("{:.1} k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A duration given in nanoseconds.
pub fn duration(ns: f64) -> String {
    match ns {
        v if v < 1e3 => format!("{v:.0} ns"),
        v if v < 1e6 => format!("{} µs", figure(v / 1e3)),
        v => format!("{} ms", figure(v / 1e6)),
    }
}

/// What a comparison says of the first, in a word or two.
pub fn verdict_word(result: &RatioResult) -> &'static str {
    match result.ratio.verdict() {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no different",
    }
}

/// What an experiment found, in one sentence: its first comparison, and how the others ended.
pub fn finding(outcome: &Outcome) -> String {
    let unit = outcome.experiment.unit;
    if outcome.arms.is_empty() {
        return "Nothing could be measured here.".into();
    }
    let Some((first, others)) = outcome.ratios.split_first() else {
        let arms = outcome.arms.iter();
        let one = |arm: &crate::run::ArmResult| {
            Some(format!("{} for {}", figure(arm.estimate()?.median), arm.name))
        };
        return format!("{unit}: {}.", arms.filter_map(one).collect::<Vec<_>>().join(", "));
    };
    let mut text = sentence(first, unit);
    // Names of arms keep their case.
    if let Some(rest) = text.strip_prefix("no difference") {
        text = format!("No difference{rest}");
    }
    if let Some(reported) = first.def.reported {
        text += &format!(", reported: {reported:.2}");
    }
    let count = |verdict| others.iter().filter(|r| r.ratio.verdict() == verdict).count();
    let [won, lost, tied] = [Verdict::Better, Verdict::Worse, Verdict::NoDifference].map(count);
    let counts = [("wins", won), ("loses", lost), ("ties", tied)];
    let counts: Vec<String> =
        counts.iter().filter(|c| c.1 > 0).map(|(word, n)| format!("{word} {n}")).collect();
    if !counts.is_empty() {
        let (n, list) = (others.len(), counts.join(", "));
        text += &format!("; of {n} other comparisons the first named {list}");
    }
    text + "."
}

/// A ratio as a sentence; `unit` is that of the arms' figures.
pub fn sentence(result: &RatioResult, unit: &str) -> String {
    let e = result.ratio.0;
    let (first, second) = (result.def.first, result.def.second);
    let (better, worse, r, lo, hi) = match result.ratio.verdict() {
        Verdict::NoDifference => {
            let few = if e.is_sure() {
                String::new()
            } else {
                format!(" from {} runs, 6 are the least", e.samples)
            };
            return format!(
                "no difference can be told between {first} and {second}{few} (ratio {:.2}, 95 %: {:.2} to {:.2})",
                e.median, e.lo, e.hi
            );
        }
        Verdict::Better => (first, second, e.median, e.lo, e.hi),
        Verdict::Worse => (second, first, 1.0 / e.median, 1.0 / e.hi, 1.0 / e.lo),
    };
    let interval = format!("(95 %: {lo:.2} to {hi:.2})");
    match result.def.measure {
        Measure::Value => format!("{better} reaches {r:.2} times the {unit} of {worse} {interval}"),
        Measure::Cost => format!("{better} needs {r:.2} times less than {worse} {interval}"),
        Measure::Switches => {
            format!("{better} makes {r:.2} times fewer context switches than {worse} {interval}")
        }
        Measure::P99 => {
            format!("{better} has a p99 latency {r:.2} times shorter than {worse} {interval}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::RatioDef;
    use crate::stats::Ratio;

    fn say(first: f64, second: f64, runs: usize) -> String {
        let def = RatioDef::value("x.a_vs_b", "a", "b");
        let ratio = Ratio::of(&vec![first; runs], &vec![second; runs]).unwrap();
        sentence(&RatioResult { def, ratio }, "files/s")
    }

    #[test]
    fn sentences_name_the_better_one_first() {
        assert_eq!(say(4.0, 2.0, 8), "a reaches 2.00 times the files/s of b (95 %: 2.00 to 2.00)");
        assert_eq!(say(2.0, 4.0, 8), "b reaches 2.00 times the files/s of a (95 %: 2.00 to 2.00)");
        let few =
            "no difference can be told between a and b from 3 runs, 6 are the least (ratio 0.50";
        assert!(say(2.0, 4.0, 3).starts_with(few));
        assert!(
            say(2.0, 2.0, 8).starts_with("no difference can be told between a and b (ratio 1.00")
        );
    }

    fn outcome(name: &str, ratios: &[f64]) -> Outcome {
        let experiment = crate::experiments::find(name).unwrap();
        let ratio = |(def, ratio): (&RatioDef, &f64)| RatioResult {
            def: *def,
            ratio: Ratio::of(&[*ratio; 8], &[1.0; 8]).unwrap(),
        };
        let ratios = experiment.ratios.iter().zip(ratios).map(ratio).collect();
        let arm = crate::run::ArmResult {
            name: "a".into(),
            kind: crate::arm::Kind::User,
            policy: String::new(),
            samples: Vec::new(),
        };
        Outcome { experiment, arms: vec![arm], ratios, skipped: Vec::new(), rounds: 8 }
    }

    #[test]
    fn a_finding_is_one_sentence() {
        let text = finding(&outcome("nop", &[2.0, 0.5, 1.0]));
        assert_eq!(
            text,
            "user-b1 reaches 2.00 times the NOPs/s of kernel-b1 (95 %: 2.00 to 2.00); of 2 other \
             comparisons the first named loses 1, ties 1."
        );
        let text = finding(&outcome("lazy-wake", &[2.0]));
        assert!(text.ends_with(" (95 %: 2.00 to 2.00), reported: 2.00."), "{text}");
    }

    #[test]
    fn the_same_reason_is_given_once() {
        let skipped = [("a", "x"), ("b", "y"), ("c", "x")].map(|(a, b)| (a.into(), b.into()));
        assert_eq!(grouped(&skipped), [("a, c".into(), "x"), ("b".into(), "y")]);
    }

    #[test]
    fn figures_are_short() {
        let all: Vec<String> =
            [0.0, 0.01234, 1.0, 56.78, 123.4, 12_345.0, 3_456_789.0].map(figure).into();
        assert_eq!(all, ["0.00", "0.0123", "1.00", "56.8", "123", "12.3 k", "3.46 M"]);
        assert_eq!(duration(1234.0), "1.23 µs");
        assert_eq!(duration(56e6), "56.0 ms");
    }
}
