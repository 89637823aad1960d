//! Latency against percentile, both stretched so that the slow end can be read.

use super::{anchor, class, escape, open, MARGIN, WIDTH};
use crate::report::duration;
use crate::run::ArmResult;
use std::fmt::Write;

const PERCENTILES: [(f64, &str); 5] =
    [(0.0, "min"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];
/// Decades of the distance to 100 % that the curve shows.
const DECADES: f64 = 4.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 46.0;

/// Points (decades away from the start, nanoseconds).
type Curve = Vec<(f64, f64)>;

/// The plot; `None` if no arm has latencies.
pub fn latencies(arms: &[ArmResult]) -> Option<String> {
    let curves: Vec<(usize, Curve)> =
        arms.iter().enumerate().filter_map(|(i, arm)| Some((i, curve(arm)?))).collect();
    let all = || curves.iter().flat_map(|(_, points)| points.iter().map(|p| p.1));
    let max = all().fold(f64::NAN, f64::max);
    let min = all().fold(f64::NAN, f64::min);
    if curves.is_empty() || min.is_nan() || min <= 0.0 {
        return None;
    }
    let low = min.log10().floor();
    let high = (max.log10() + 0.05).max(low + 1.0);
    let y = |ns: f64| MARGIN + (high - ns.log10()) / (high - low) * HEIGHT;
    let mut out = open(HEIGHT + 38.0, "latency of each arm against its percentile");
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
    percentile_axis(&mut out);
    for (i, points) in &curves {
        let step = |(n, (decade, ns)): (usize, &(f64, f64))| {
            format!("{}{:.1} {:.1}", if n == 0 { 'M' } else { 'L' }, x(*decade), y(*ns))
        };
        let path: String = points.iter().enumerate().map(step).collect();
        let (class, name) = (class(arms, *i), escape(&arms[*i].name));
        let _ =
            write!(out, r#"<path class="curve {class}" d="{path}"><title>{name}</title></path>"#);
    }
    Some(out + "</svg>")
}

fn percentile_axis(out: &mut String) {
    for (quantile, label) in PERCENTILES {
        let at = x(stretch(quantile));
        let _ = write!(
            out,
            r#"<path class="grid" d="M{at:.1} {MARGIN}v{HEIGHT}"/><text class="axis" x="{at:.1}" y="{:.1}" text-anchor="{}">{label}</text>"#,
            HEIGHT + 21.0,
            if quantile == 0.0 { "start" } else { anchor(at) }
        );
    }
    let _ = write!(
        out,
        r#"<text class="axis" x="{:.1}" y="{:.1}" text-anchor="end">percentile</text>"#,
        WIDTH - MARGIN,
        HEIGHT + 33.0
    );
}

fn x(decade: f64) -> f64 {
    LEFT + decade / DECADES * (WIDTH - LEFT - MARGIN)
}

/// Which curve is whose: a piece of the line and the name, for each arm with latencies.
pub fn legend(arms: &[ArmResult]) -> String {
    let mut out = String::from("<p class=\"legend\">");
    for (i, arm) in arms.iter().enumerate().filter(|(_, arm)| curve(arm).is_some()) {
        let (class, name) = (class(arms, i), escape(&arm.name));
        let _ = write!(
            out,
            r#"<span><svg class="line" viewBox="0 0 26 8" aria-hidden="true"><path class="curve {class}" d="M1 4h24"/></svg>{name}</span> "#
        );
    }
    out + "</p>"
}

fn decade_label(decade: i32) -> String {
    duration(10f64.powi(decade)).replace(".00", "").replace(".0", "")
}

/// Decades that a quantile is away from the start: 0.9 is 1, 0.99 is 2.
fn stretch(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// As far as there are latencies enough for the percentile to mean something.
fn curve(arm: &ArmResult) -> Option<Curve> {
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
    use super::super::tests::arm;
    use super::*;
    use crate::arm::Kind;

    #[test]
    fn curves_only_where_there_are_latencies() {
        let without = arm("a", Kind::User, &[1.0], &[]);
        assert_eq!(latencies(std::slice::from_ref(&without)), None);
        let arms = [without, arm("b", Kind::Kernel, &[1.0], &[500, 2000, 90_000])];
        let svg = latencies(&arms).unwrap();
        assert_eq!(svg.matches("class=\"curve").count(), 1);
        assert!(svg.contains("kernel d0") && !svg.contains("NaN"));
        assert!(legend(&arms).contains("b</span>") && !legend(&arms).contains("a</span>"));
    }
}
