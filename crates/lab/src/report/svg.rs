//! The plots, as SVG that takes its colours from the page's style.

use super::{duration, figure};
use crate::run::ArmResult;
use std::fmt::Write;

/// Width of all plots; the page scales them to its own.
const WIDTH: f64 = 360.0;
const MARGIN: f64 = 8.0;
const ROW: f64 = 30.0;
/// Colours of the page's style, used again after the last.
const COLOURS: usize = 12;

/// The class of the arm with this index.
pub fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS)
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

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

/// Each arm a row: its samples as dots, the interval as a bar, the median as a line.
pub fn samples(arms: &[ArmResult], unit: &str) -> String {
    let all = arms.iter().flat_map(ArmResult::values);
    let max = all.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let x = |value: f64| MARGIN + value / max * (WIDTH - 2.0 * MARGIN);
    let height = ROW * arms.len() as f64 + 24.0;
    let mut out = open(height, &format!("samples of each arm in {unit}"));
    let bottom = ROW * arms.len() as f64 + 4.0;
    for tick in ticks(max) {
        let (at, label) = (x(tick), figure(tick));
        let label = if tick == 0.0 { "0".into() } else { label };
        let anchor = anchor(at);
        let _ = write!(
            out,
            r#"<path class="grid" d="M{at:.1} 4V{bottom:.1}"/><text class="axis" x="{at:.1}" y="{:.1}" text-anchor="{anchor}">{label}</text>"#,
            bottom + 13.0
        );
    }
    for (i, arm) in arms.iter().enumerate() {
        let (top, colour) = (ROW * i as f64, colour(i));
        let (label, y) = (escape(&arm.name), top + 22.0);
        let _ = write!(
            out,
            r#"<g class="{colour}"><text class="name" x="{MARGIN}" y="{:.1}">{label}</text>"#,
            top + 13.0
        );
        if let Some(e) = arm.estimate() {
            let (lo, width) = (x(e.lo), (x(e.hi) - x(e.lo)).max(1.0));
            let median = x(e.median);
            let _ = write!(
                out,
                r#"<rect class="bar" x="{lo:.1}" y="{:.1}" width="{width:.1}" height="8"/><path class="median" d="M{median:.1} {:.1}v12"/>"#,
                y - 4.0,
                y - 6.0
            );
        }
        for value in arm.values() {
            let _ = write!(out, r#"<circle cx="{:.1}" cy="{y:.1}" r="1.8"/>"#, x(value));
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    out
}

fn open(height: f64, label: &str) -> String {
    let label = escape(label);
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{label}">"#)
}

fn anchor(x: f64) -> &'static str {
    match x {
        x if x < 3.0 * MARGIN => "start",
        x if x > WIDTH - 3.0 * MARGIN => "end",
        _ => "middle",
    }
}

const PERCENTILES: [(f64, &str); 5] =
    [(0.0, "min"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];
/// Decades of the distance to 100 % that the curve shows.
const DECADES: f64 = 4.0;
const PLOT_HEIGHT: f64 = 180.0;
const LEFT: f64 = 46.0;

/// Latency against percentile, both stretched so that the slow end can be read; `None` if no arm has latencies.
pub fn latencies(arms: &[ArmResult]) -> Option<String> {
    let curves: Vec<(usize, Vec<(f64, f64)>)> =
        arms.iter().enumerate().filter_map(|(i, arm)| Some((i, curve(arm)?))).collect();
    let all = || curves.iter().flat_map(|(_, points)| points.iter().map(|p| p.1));
    let max = all().fold(f64::NAN, f64::max);
    let min = all().fold(f64::NAN, f64::min);
    if curves.is_empty() || min.is_nan() || min <= 0.0 {
        return None;
    }
    let (low, high) = (min.log10().floor(), (max.log10() + 0.05).max(min.log10().floor() + 1.0));
    let x = |decade: f64| LEFT + decade / DECADES * (WIDTH - LEFT - MARGIN);
    let y = |ns: f64| MARGIN + (high - ns.log10()) / (high - low) * PLOT_HEIGHT;
    let mut out = open(PLOT_HEIGHT + 40.0, "latency of each arm against its percentile");
    for decade in low as i32..=high as i32 {
        let (at, label) = (y(10f64.powi(decade)), decade_label(decade));
        let _ = write!(
            out,
            r#"<path class="grid" d="M{LEFT} {at:.1}H{:.1}"/><text class="axis" x="{:.1}" y="{:.1}" text-anchor="end">{label}</text>"#,
            WIDTH - MARGIN,
            LEFT - 4.0,
            at + 3.5
        );
    }
    for (quantile, label) in PERCENTILES {
        let at = x(stretch(quantile));
        let _ = write!(
            out,
            r#"<path class="grid" d="M{at:.1} {MARGIN}v{PLOT_HEIGHT}"/><text class="axis" x="{at:.1}" y="{:.1}" text-anchor="{}">{label}</text>"#,
            PLOT_HEIGHT + 22.0,
            if quantile == 0.0 { "start" } else { anchor(at) }
        );
    }
    for (i, points) in &curves {
        let step = |(n, (decade, ns)): (usize, &(f64, f64))| {
            format!("{}{:.1} {:.1}", if n == 0 { 'M' } else { 'L' }, x(*decade), y(*ns))
        };
        let path: String = points.iter().enumerate().map(step).collect();
        let (class, name) = (colour(*i), escape(&arms[*i].name));
        let _ =
            write!(out, r#"<path class="curve {class}" d="{path}"><title>{name}</title></path>"#);
    }
    let _ = write!(
        out,
        r#"<text class="axis" x="{:.1}" y="{:.1}" text-anchor="end">percentile</text></svg>"#,
        WIDTH - MARGIN,
        PLOT_HEIGHT + 35.0
    );
    Some(out)
}

fn decade_label(decade: i32) -> String {
    duration(10f64.powi(decade)).replace(".00", "").replace(".0", "")
}

/// Decades that a quantile is away from the start: 0.9 is 1, 0.99 is 2.
fn stretch(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Points (decades, nanoseconds), as far as there are latencies enough for the percentile to mean something.
fn curve(arm: &ArmResult) -> Option<Vec<(f64, f64)>> {
    let latency = arm.latency().filter(|latency| !latency.is_empty())?;
    let last = (latency.len() as f64).log10().min(DECADES);
    let count = 60;
    let decades = (0..=count).map(|i| f64::from(i) / f64::from(count) * last);
    let at = |decade: f64| {
        let quantile = 1.0 - 10f64.powf(-decade);
        (decade, latency.value_at_quantile(quantile).max(1) as f64)
    };
    Some(decades.map(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::{latencies as histogram, Kind, Sample};

    fn arm(name: &str, values: &[f64], latency_ns: &[u64]) -> ArmResult {
        let one = |value: &f64| {
            let mut latency = histogram();
            latency_ns.iter().for_each(|ns| latency.record(*ns).unwrap());
            let latency = (!latency_ns.is_empty()).then_some(latency);
            Sample { value: *value, ops: 1, latency, ..Sample::default() }
        };
        let samples = values.iter().map(one).collect();
        ArmResult { name: name.into(), kind: Kind::User, policy: String::new(), samples }
    }

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
        let svg = samples(&[arm("a<b", &[1.0, 2.0], &[]), arm("c", &[0.0], &[])], "x/s");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"median\"").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"));
    }

    #[test]
    fn curves_only_where_there_are_latencies() {
        assert_eq!(latencies(&[arm("a", &[1.0], &[])]), None);
        let svg = latencies(&[arm("a", &[1.0], &[]), arm("b", &[1.0], &[500, 2000, 90_000])]);
        let svg = svg.unwrap();
        assert_eq!(svg.matches("class=\"curve").count(), 1);
        assert!(svg.contains("c1") && !svg.contains("NaN"));
    }
}
