//! Runs an experiment: a warm-up, then rounds in which every arm takes one turn.

use crate::arm::{Measure, Plan, RatioDef, Sample, Setting, Turn, Work};
use crate::error::{Error, Result};
use crate::experiments::Experiment;
use crate::scratch::Scratch;
use crate::stats::{Estimate, Ratio};
use crate::{stop, watchdog};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::{Duration, Instant};

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Short runs.
    pub quick: bool,
    /// Runs of each arm.
    pub runs: usize,
    /// A run of an arm that takes longer is ended.
    pub limit: Duration,
    /// Where scratch folders are made.
    pub dir: std::path::PathBuf,
}

/// With `--quick` no round begins after this time.
const QUICK_LIMIT: Duration = Duration::from_secs(50);

/// An arm and its samples.
#[derive(Clone, Debug)]
pub struct ArmResult {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: crate::arm::Kind,
    /// The engine's policy, where it is not the default.
    pub policy: String,
    /// One sample a round.
    pub samples: Vec<Sample>,
}

impl ArmResult {
    /// The figures.
    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.value).collect()
    }
    /// Their median and interval.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values())
    }
    /// The latencies of all runs together.
    pub fn latency(&self) -> Option<Histogram<u64>> {
        let mut all: Option<Histogram<u64>> = None;
        for one in self.samples.iter().filter_map(|s| s.latency.as_ref()) {
            match &mut all {
                Some(sum) => sum.add(one).ok()?,
                None => all = Some(one.clone()),
            }
        }
        all
    }
    /// The median over the runs of some figure.
    pub fn median_of(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let all: Vec<f64> = self.samples.iter().filter_map(figure).collect();
        Estimate::of(&all).map(|e| e.median)
    }
    /// Names of further figures.
    pub fn extra_names(&self) -> Vec<&'static str> {
        self.samples.first().map_or_else(Vec::new, |s| s.extra.iter().map(|e| e.0).collect())
    }
    /// The median of a further figure.
    pub fn extra(&self, name: &str) -> Option<f64> {
        self.median_of(|s| s.extra.iter().find(|e| e.0 == name).map(|e| e.1))
    }
    fn series(&self, measure: Measure) -> Vec<f64> {
        let one = |s: &Sample| match measure {
            Measure::Value | Measure::Cost => s.value,
            Measure::Switches => s.switches_per_op(),
            Measure::P99 => {
                s.latency.as_ref().map_or(f64::NAN, |h| h.value_at_quantile(0.99) as f64)
            }
        };
        self.samples.iter().map(one).collect()
    }
}

/// A comparison that could be made.
#[derive(Clone, Copy, Debug)]
pub struct RatioResult {
    /// What was compared.
    pub def: RatioDef,
    /// The outcome.
    pub ratio: Ratio,
}

/// All that an experiment gave.
pub struct Outcome {
    /// Which one.
    pub experiment: &'static Experiment,
    /// What each arm gave.
    pub arms: Vec<ArmResult>,
    /// The comparisons.
    pub ratios: Vec<RatioResult>,
    /// What was left out, and how to get it.
    pub skipped: Vec<(String, String)>,
    /// Full rounds; fewer than asked for if it was stopped.
    pub rounds: usize,
}

/// Runs one experiment. `None` if it was stopped before its first round was complete.
pub fn run(experiment: &'static Experiment, request: &Request) -> Result<Option<Outcome>> {
    let start = Instant::now();
    let scratch = Scratch::new(&request.dir)?;
    let setting = setting(request, scratch.path());
    let mut plan = (experiment.prepare)(&setting)?;
    let mut arms = empty_results(&plan);
    let bar = progress(experiment.name, (plan.arms.len() * (request.runs + 1)) as u64);
    let slice = setting.slice(plan.arms.len());
    let mut rounds = 0;
    // Round 0 is the warm-up.
    for round in 0..=request.runs {
        let late = request.quick && start.elapsed() > QUICK_LIMIT;
        if (late && rounds > 0) || plan.arms.is_empty() {
            break;
        }
        let turn = Turn { slice, seed: round as u64 };
        let Some(samples) = one_round(&mut plan, turn, request.limit, &bar) else { break };
        keep(&mut plan, &mut arms, samples, round > 0);
        rounds += usize::from(round > 0);
    }
    bar.finish_and_clear();
    let ratios = compare(experiment.ratios, &arms);
    let outcome =
        Outcome { experiment, arms, ratios, skipped: std::mem::take(&mut plan.skipped), rounds };
    // Where no arm can run, that is the result.
    Ok((rounds > 0 || plan.arms.is_empty()).then_some(outcome))
}

fn setting(request: &Request, scratch: &Path) -> Setting {
    Setting { quick: request.quick, runs: request.runs, scratch: scratch.to_owned() }
}

fn empty_results(plan: &Plan) -> Vec<ArmResult> {
    let one = |arm: &crate::arm::Arm| ArmResult {
        name: arm.name.clone(),
        kind: arm.kind,
        policy: arm.policy.clone(),
        samples: Vec::new(),
    };
    plan.arms.iter().map(one).collect()
}

/// `None` if it was stopped in between: a round that is not complete does not count.
fn one_round(
    plan: &mut Plan,
    turn: Turn,
    limit: Duration,
    bar: &ProgressBar,
) -> Option<Vec<Result<Sample>>> {
    let mut samples = Vec::new();
    for arm in &mut plan.arms {
        if stop::asked() {
            return None;
        }
        bar.set_message(arm.name.clone());
        let (work, sample) = watchdog::run(std::mem::replace(&mut arm.work, gone()), turn, limit);
        arm.work = work.unwrap_or_else(gone);
        samples.push(sample);
        bar.inc(1);
    }
    Some(samples)
}

/// Adds the samples of a round to the results. An arm that failed is left out from now on, and its
/// error is the reason given.
fn keep(plan: &mut Plan, arms: &mut Vec<ArmResult>, samples: Vec<Result<Sample>>, counts: bool) {
    for (arm, sample) in std::mem::take(&mut plan.arms).into_iter().zip(samples) {
        match sample {
            Ok(sample) => {
                let result = arms.iter_mut().find(|result| result.name == arm.name);
                if let (Some(result), true) = (result, counts) {
                    result.samples.push(sample);
                }
                plan.arms.push(arm);
            }
            Err(error) => {
                arms.retain(|result| result.name != arm.name);
                plan.skip(&arm.name, format!("failed: {error}"));
            }
        }
    }
}

/// Stands in while an arm's work is with its thread.
fn gone() -> Work {
    Box::new(|_| Err(Error::new("its earlier run has not ended")))
}

/// The comparisons that can be made with these arms.
pub fn compare(defs: &[RatioDef], arms: &[ArmResult]) -> Vec<RatioResult> {
    let find = |name| arms.iter().find(|arm| arm.name == name);
    let one = |def: &RatioDef| {
        let (first, second) = (find(def.first)?, find(def.second)?);
        let (first, second) = (first.series(def.measure), second.series(def.measure));
        let ratio = match def.measure {
            Measure::Value => Ratio::of(&first, &second),
            Measure::Cost | Measure::Switches | Measure::P99 => Ratio::of(&second, &first),
        };
        ratio.map(|ratio| RatioResult { def: *def, ratio })
    };
    defs.iter().filter_map(one).collect()
}

fn progress(name: &str, turns: u64) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    let style =
        ProgressStyle::with_template("{prefix:10} {wide_bar} {pos}/{len} {eta:>4} {msg:24}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::{Arm, Kind};
    use crate::stats::Verdict;
    use std::sync::{Arc, Mutex};

    const LIMIT: Duration = Duration::from_secs(1);

    fn arm(name: &str, log: &Arc<Mutex<String>>, value: f64) -> Arm {
        let (log, name2) = (log.clone(), name.to_owned());
        Arm::new(name, Kind::Limit, move |_| {
            log.lock().unwrap().push_str(&name2);
            Ok(Sample { value, ops: 1, ..Sample::default() })
        })
    }

    #[test]
    fn arms_take_turns() {
        let log = Arc::new(Mutex::new(String::new()));
        let mut plan = Plan::default();
        ["a", "b", "c"].iter().for_each(|name| plan.add(arm(name, &log, 1.0)));
        let turn = Turn { slice: Duration::ZERO, seed: 0 };
        for _ in 0..2 {
            let samples = one_round(&mut plan, turn, LIMIT, &ProgressBar::hidden());
            assert_eq!(samples.map(|s| s.len()), Some(3));
        }
        assert_eq!(*log.lock().unwrap(), "abcabc");
    }

    #[test]
    fn a_failing_arm_is_left_out_and_the_reason_given() {
        let log = Arc::new(Mutex::new(String::new()));
        let mut plan = Plan::default();
        plan.add(Arm::new("bad", Kind::Limit, |_| Err(Error::new("no luck"))));
        plan.add(arm("good", &log, 1.0));
        let mut arms = empty_results(&plan);
        let turn = Turn { slice: Duration::ZERO, seed: 0 };
        for round in 0..3 {
            let samples = one_round(&mut plan, turn, LIMIT, &ProgressBar::hidden()).unwrap();
            keep(&mut plan, &mut arms, samples, round > 0);
        }
        assert_eq!(arms.len(), 1);
        assert_eq!((arms[0].name.as_str(), arms[0].samples.len()), ("good", 2));
        assert_eq!(plan.skipped, [("bad".into(), "failed: no luck".into())]);
    }

    #[test]
    fn after_an_arm_that_hangs_the_rest_goes_on() {
        let log = Arc::new(Mutex::new(String::new()));
        let mut plan = Plan::default();
        plan.add(arm("a", &log, 1.0));
        plan.add(Arm::new("hangs", Kind::Limit, |_| {
            let mut epoll = crate::net::Epoll::new()?;
            let mut ready = Vec::new();
            while ready.is_empty() {
                epoll.wait(&mut ready)?;
            }
            Ok(Sample::default())
        }));
        plan.add(arm("b", &log, 1.0));
        let mut arms = empty_results(&plan);
        let turn = Turn { slice: Duration::ZERO, seed: 0 };
        for _ in 0..2 {
            let samples = one_round(&mut plan, turn, LIMIT, &ProgressBar::hidden()).unwrap();
            keep(&mut plan, &mut arms, samples, true);
        }
        assert_eq!(*log.lock().unwrap(), "abab");
        assert_eq!(plan.skipped, [("hangs".into(), "failed: no end within 1 s, stopped".into())]);
        let kept: Vec<_> = arms.iter().map(|a| (a.name.as_str(), a.samples.len())).collect();
        assert_eq!(kept, [("a", 2), ("b", 2)]);
    }

    #[test]
    fn an_experiment_without_arms_says_why() {
        static NONE: Experiment = Experiment {
            name: "none",
            about: "nothing",
            method: "",
            unit: "x/s",
            ratios: &[],
            prepare: |_| {
                let mut plan = Plan::default();
                plan.skip("a", "it is not here");
                plan.add(Arm::new("b", Kind::Limit, |_| Err(Error::new("no luck"))));
                Ok(plan)
            },
        };
        let dir = std::env::temp_dir();
        let outcome = run(&NONE, &Request { quick: true, runs: 3, limit: LIMIT, dir }).unwrap();
        let outcome = outcome.unwrap();
        assert_eq!((outcome.arms.len(), outcome.rounds), (0, 0));
        let text = crate::report::text::outcome(&outcome);
        assert!(text.contains("skipped a: it is not here\nskipped b: failed: no luck\n"), "{text}");
        assert_eq!(crate::report::finding(&outcome), "Nothing could be measured here.");
    }

    #[test]
    fn above_one_the_first_is_better_whatever_is_measured() {
        let result = |name: &str, value| ArmResult {
            name: name.into(),
            kind: Kind::Limit,
            policy: String::new(),
            samples: vec![Sample { value, ops: 1, ..Sample::default() }; 8],
        };
        let arms = [result("a", 4.0), result("b", 2.0)];
        let defs = [
            RatioDef::value("v", "a", "b"),
            RatioDef::value("c", "a", "b").measuring(Measure::Cost),
            RatioDef::value("none", "a", "missing"),
        ];
        let results = compare(&defs, &arms);
        assert_eq!(results.len(), 2);
        assert_eq!(results[0].ratio.0.median, 2.0);
        assert_eq!(results[0].ratio.verdict(), Verdict::Better);
        assert_eq!(results[1].ratio.0.median, 0.5);
        assert_eq!(results[1].ratio.verdict(), Verdict::Worse);
    }
}
