//! Each arm a row: its samples as dots, the interval as a bar, the median as a line and in figures.

use super::{anchor, class, escape, open, MARGIN, WIDTH};
use crate::report::figure;
use crate::run::ArmResult;
use std::fmt::Write;

const ROW: f64 = 31.0;
const AXIS: f64 = 20.0;

/// About four round numbers from 0 to `max`.
fn ticks(max: f64) -> Vec<f64> {
    if !(max > 0.0 && max.is_finite()) {
        return vec![0.0];
    }
    let rough = max / 4.0;
    let magnitude = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * magnitude);
    let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick <= max * 1.001).collect()
}

/// The plot.
pub fn samples(arms: &[ArmResult], unit: &str) -> String {
    let largest = arms.iter().flat_map(ArmResult::values).fold(0.0, f64::max);
    let max = if largest > 0.0 { largest } else { 1.0 };
    let x = |value: f64| MARGIN + value / max * (WIDTH - 2.0 * MARGIN);
    let bottom = ROW * arms.len() as f64 + 4.0;
    let mut out = open(bottom + AXIS, &format!("samples of each arm in {unit}"));
    for tick in ticks(largest) {
        let at = x(tick);
        let label = if tick == 0.0 { "0".into() } else { figure(tick) };
        let label = label.replace(".00", "").replace(".0 ", " ");
        let _ = write!(
            out,
            r#"<path class="grid" d="M{at:.1} 4V{bottom:.1}"/><text class="axis" x="{at:.1}" y="{:.1}" text-anchor="{}">{label}</text>"#,
            bottom + 13.0,
            anchor(at)
        );
    }
    for (i, arm) in arms.iter().enumerate() {
        row(&mut out, arm, &class(arms, i), ROW * i as f64, x);
    }
    out + "</svg>"
}

fn row(out: &mut String, arm: &ArmResult, class: &str, top: f64, x: impl Fn(f64) -> f64) {
    let (name, text, y) = (escape(&arm.name), top + 13.0, top + 23.0);
    let _ = write!(
        out,
        r#"<g class="{class}"><text class="name" x="{MARGIN}" y="{text}">{name}</text>"#
    );
    if let Some(e) = arm.estimate() {
        let (lo, median) = (x(e.lo), x(e.median));
        let width = (x(e.hi) - lo).max(1.0);
        let _ = write!(
            out,
            r#"<text class="value" x="{:.1}" y="{text}" text-anchor="end">{}</text><rect class="bar" x="{lo:.1}" y="{:.1}" width="{width:.1}" height="9" rx="2"/><path class="median" d="M{median:.1} {:.1}v13"/>"#,
            WIDTH - MARGIN,
            figure(e.median),
            y - 4.5,
            y - 6.5
        );
    }
    for value in arm.values() {
        let _ = write!(out, r#"<circle cx="{:.1}" cy="{y}" r="1.9"/>"#, x(value));
    }
    out.push_str("</g>");
}

#[cfg(test)]
mod tests {
    use super::super::tests::arm;
    use super::*;
    use crate::arm::Kind;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(100.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(ticks(7.0), [0.0, 2.0, 4.0, 6.0]);
        for max in [0.003, 1.0, 9.99e6] {
            assert!((2..=6).contains(&ticks(max).len()), "{max}");
        }
        assert_eq!(ticks(0.0), [0.0]);
    }

    #[test]
    fn every_sample_has_its_dot() {
        let arms = [arm("a<b", Kind::User, &[1.0, 2.0], &[]), arm("c", Kind::Kernel, &[0.0], &[])];
        let svg = samples(&arms, "x/s");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"median\"").count(), 2);
        assert!(svg.contains("a&lt;b") && svg.contains(">1.50</text>") && !svg.contains("NaN"));
    }

    #[test]
    fn nothing_but_zeroes_can_be_drawn() {
        let svg = samples(&[arm("a", Kind::User, &[0.0], &[])], "x");
        assert!(svg.contains("cx=\"8.0\"") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
