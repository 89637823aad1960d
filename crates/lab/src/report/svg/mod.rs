//! The plots, as SVG that takes its colours from the page's style.

mod latencies;
mod ratios;
mod samples;

pub use latencies::{latencies, legend};
pub use ratios::{ratios, Range};
pub use samples::samples;

use crate::arm::Kind;
use crate::run::ArmResult;

/// Width of all plots; the page scales them to its own.
const WIDTH: f64 = 360.0;
const MARGIN: f64 = 8.0;
/// Dashes that tell curves of one colour apart.
const DASHES: usize = 5;

/// The classes of an arm: the colour of its kind, and how its curve is dashed.
pub fn class(arms: &[ArmResult], index: usize) -> String {
    let kind = arms[index].kind;
    let before = arms[..index].iter().filter(|arm| arm.kind == kind).count();
    format!("{} d{}", kind_class(kind), before % DASHES)
}

/// The class that gives things of this kind their colour.
pub fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Kernel => "kernel",
        Kind::Limit => "limit",
        Kind::Peer => "peer",
    }
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(height: f64, label: &str) -> String {
    let label = escape(label);
    format!(
        r#"<svg class="plot" viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{label}">"#
    )
}

/// How a label of an axis is aligned, so that it stays inside.
fn anchor(x: f64) -> &'static str {
    match x {
        x if x < 3.0 * MARGIN => "start",
        x if x > WIDTH - 3.0 * MARGIN => "end",
        _ => "middle",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::arm::{latencies as histogram, Sample};

    pub fn arm(name: &str, kind: Kind, values: &[f64], latency_ns: &[u64]) -> ArmResult {
        let one = |value: &f64| {
            let mut latency = histogram();
            latency_ns.iter().for_each(|ns| latency.record(*ns).unwrap());
            let latency = (!latency_ns.is_empty()).then_some(latency);
            Sample { value: *value, ops: 1, latency, ..Sample::default() }
        };
        let samples = values.iter().map(one).collect();
        ArmResult { name: name.into(), kind, policy: String::new(), samples }
    }

    #[test]
    fn curves_of_one_colour_differ() {
        let kinds = [Kind::User, Kind::Kernel, Kind::User, Kind::Peer];
        let arms = kinds.map(|kind| arm("a", kind, &[1.0], &[]));
        let classes: Vec<_> = (0..4).map(|i| class(&arms, i)).collect();
        assert_eq!(classes, ["user d0", "kernel d0", "user d1", "peer d0"]);
    }
}
