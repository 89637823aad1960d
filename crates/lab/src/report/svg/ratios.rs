//! Comparisons on one logarithmic axis: the ratio as a dot, its interval as a line, what was reported as a diamond.

use super::{anchor, escape, open, MARGIN, WIDTH};
use crate::run::RatioResult;
use crate::stats::Verdict;
use std::fmt::Write;

const ROW: f64 = 31.0;
const AXIS: f64 = 20.0;
/// Powers of two that the axis shows at least and at most, on each side of 1.
const LEAST: f64 = 1.0;
const MOST: f64 = 6.0;

/// The part of the axis that holds all comparisons of a page, in powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// For these comparisons.
    pub fn of<'a>(all: impl Iterator<Item = &'a RatioResult>) -> Range {
        let mut range = Range { low: -LEAST, high: LEAST };
        for result in all {
            let e = result.ratio.0;
            for value in [e.lo, e.hi].into_iter().chain(result.def.reported) {
                range.low = range.low.min(value.log2().max(-MOST));
                range.high = range.high.max(value.log2().min(MOST));
            }
        }
        range
    }

    fn x(&self, ratio: f64) -> f64 {
        let at = ratio.log2().clamp(self.low, self.high);
        MARGIN + (at - self.low) / (self.high - self.low) * (WIDTH - 2.0 * MARGIN)
    }
}

/// The class that gives a verdict its colour.
fn class(result: &RatioResult) -> &'static str {
    match result.ratio.verdict() {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "same",
    }
}

/// The plot of one experiment's comparisons.
pub fn ratios(all: &[RatioResult], range: Range) -> String {
    let bottom = ROW * all.len() as f64 + 4.0;
    let mut out = open(bottom + AXIS, "ratio of each comparison with its interval");
    for power in range.low.ceil() as i32..=range.high.floor() as i32 {
        let ratio = 2f64.powi(power);
        let at = range.x(ratio);
        let label = if power < 0 { format!("1/{}", 1 << -power) } else { format!("{ratio}") };
        let class = if power == 0 { "one" } else { "grid" };
        let _ = write!(
            out,
            r#"<path class="{class}" d="M{at:.1} 4V{bottom:.1}"/><text class="axis" x="{at:.1}" y="{:.1}" text-anchor="{}">{label}</text>"#,
            bottom + 13.0,
            anchor(at)
        );
    }
    for (i, result) in all.iter().enumerate() {
        row(&mut out, result, ROW * i as f64, range);
    }
    out + "</svg>"
}

fn row(out: &mut String, result: &RatioResult, top: f64, range: Range) {
    let (e, class) = (result.ratio.0, class(result));
    let name = result.def.name.split_once('.').map_or(result.def.name, |(_, name)| name);
    let (name, text, y) = (escape(name), top + 13.0, top + 23.0);
    let (lo, hi, median) = (range.x(e.lo), range.x(e.hi), range.x(e.median));
    let _ = write!(
        out,
        r#"<g class="{class}"><text class="name" x="{MARGIN}" y="{text}">{name}</text><text class="value" x="{:.1}" y="{text}" text-anchor="end">{:.2}</text><path class="span" d="M{lo:.1} {y}H{:.1}"/><circle cx="{median:.1}" cy="{y}" r="3.6"/></g>"#,
        WIDTH - MARGIN,
        e.median,
        hi.max(lo + 1.0)
    );
    if let Some(reported) = result.def.reported {
        let at = range.x(reported);
        let _ = write!(
            out,
            r#"<path class="reported" d="M{at:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z"><title>reported: {reported:.2}</title></path>"#,
            y - 4.5
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::RatioDef;
    use crate::stats::Ratio;

    fn result(name: &'static str, ratio: f64, reported: Option<f64>) -> RatioResult {
        let def = RatioDef { reported, ..RatioDef::value(name, "a", "b") };
        RatioResult { def, ratio: Ratio::of(&[ratio; 8], &[1.0; 8]).unwrap() }
    }

    #[test]
    fn better_is_right_of_one_and_the_reported_is_shown() {
        let all = [result("x.up", 4.0, Some(8.0)), result("x.down", 0.5, None)];
        let range = Range::of(all.iter());
        assert!(range.x(0.5) < range.x(1.0) && range.x(1.0) < range.x(4.0));
        assert_eq!(range.x(8.0), WIDTH - MARGIN);
        let svg = ratios(&all, range);
        assert!(svg.contains(r#"class="better""#) && svg.contains(r#"class="worse""#));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches(r#"class="reported""#).count(), 1);
        assert!(svg.contains(">1/2</text>") && svg.contains(">4.00</text>"));
    }

    #[test]
    fn what_is_off_the_scale_stays_inside() {
        let all = [result("x.a", 1e9, None), result("x.b", 1e-9, None)];
        let range = Range::of(all.iter());
        assert_eq!((range.low, range.high), (-MOST, MOST));
        assert_eq!((range.x(1e9), range.x(1e-9)), (WIDTH - MARGIN, MARGIN));
    }
}
