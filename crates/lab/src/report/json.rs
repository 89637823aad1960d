//! The machine-readable form.

use crate::machine::Machine;
use crate::run::{ArmResult, Outcome, RatioResult};
use serde_json::{json, Map, Value};

/// Percentiles that are written out.
pub const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// One experiment.
pub fn outcome(outcome: &Outcome, machine: &Machine) -> Value {
    let skipped = outcome.skipped.iter().map(|(name, why)| json!({"name": name, "reason": why}));
    json!({
        "experiment": outcome.experiment.name,
        "machine": machine,
        "arms": outcome.arms.iter().map(|a| arm(a, outcome.experiment.unit)).collect::<Vec<_>>(),
        "ratios": outcome.ratios.iter().map(ratio).collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
    })
}

fn arm(arm: &ArmResult, unit: &str) -> Value {
    let estimate = arm.estimate();
    json!({
        "name": arm.name,
        "policy": arm.policy,
        "unit": unit,
        "samples": arm.values(),
        "median": estimate.map(|e| e.median),
        "ci95": estimate.map(|e| [e.lo, e.hi]),
        "figures": figures(arm),
    })
}

/// Medians of what was measured beside the main figure.
fn figures(arm: &ArmResult) -> Value {
    let mut all = Map::new();
    let per_op = |total: f64, ops: u64| Some(total / ops.max(1) as f64);
    let cpu = arm.median_of(|s| per_op(s.usage.cpu_s * 1e6, s.ops));
    let forced = arm.median_of(|s| per_op(s.usage.involuntary as f64, s.ops));
    all.insert("cpu_us_per_op".into(), json!(cpu));
    all.insert("switches_per_op".into(), json!(arm.median_of(|s| Some(s.switches_per_op()))));
    all.insert("involuntary_switches_per_op".into(), json!(forced));
    for name in arm.extra_names() {
        all.insert(name.into(), json!(arm.extra(name)));
    }
    if let Some(latency) = arm.latency() {
        let at = |(name, q): (&str, f64)| (name.into(), json!(latency.value_at_quantile(q)));
        all.insert("latency_ns".into(), Value::Object(PERCENTILES.map(at).into_iter().collect()));
    }
    Value::Object(all)
}

fn ratio(ratio: &RatioResult) -> Value {
    let e = ratio.ratio.0;
    json!({
        "name": ratio.def.name,
        "median": e.median,
        "ci95": [e.lo, e.hi],
        "reported": ratio.def.reported,
    })
}
