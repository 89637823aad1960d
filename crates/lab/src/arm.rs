//! What is compared: an experiment has arms, an arm gives one sample a run, and ratios name the
//! pairs of arms that answer a question.

use crate::error::{Error, Result};
use crate::ring::{Backend, Kernel, Ring, User, MODERN};
use crate::usage::Usage;
use anyring_engine::aio::model::{Device, Model};
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How much an experiment may do.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The short form: less data, less time.
    pub quick: bool,
    /// Runs of each arm after the warm-up.
    pub runs: usize,
    /// A folder of the experiment's own, on a disk; removed afterwards.
    pub scratch: PathBuf,
}

impl Setting {
    /// Bounds of what the timed runs of one experiment with `--quick` take together, with room for
    /// preparation and for the last run to end.
    const QUICK_TOTAL: Duration = Duration::from_secs(40);
    const QUICK_SLICE: Duration = Duration::from_millis(800);
    const SLICE: Duration = Duration::from_secs(2);

    /// How long one run of a timed arm lasts if there are `arms` of them.
    pub fn slice(&self, arms: usize) -> Duration {
        if !self.quick {
            return Setting::SLICE;
        }
        let turns = arms.max(1) * (self.runs + 1);
        (Setting::QUICK_TOTAL / turns as u32).min(Setting::QUICK_SLICE)
    }
}

/// What one run of an arm is given.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// How long a timed run lasts.
    pub slice: Duration,
    /// The same for all arms of one round, another in each round.
    pub seed: u64,
}

/// One run of an arm.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The figure, in the experiment's unit.
    pub value: f64,
    /// Operations it is made of.
    pub ops: u64,
    /// CPU time and context switches of what was measured.
    pub usage: Usage,
    /// How long single operations took, in nanoseconds.
    pub latency: Option<Histogram<u64>>,
    /// Further figures by name: wake-ups, most workers, threads.
    pub extra: Vec<(&'static str, f64)>,
}

impl Sample {
    /// A sample whose figure is operations a second.
    pub fn rate(ops: u64, elapsed: Duration, usage: Usage) -> Sample {
        let value = ops as f64 / elapsed.as_secs_f64();
        Sample { value, ops, usage, ..Sample::default() }
    }
    /// Adds another sample whose figure is operations a second; further figures stay as they are.
    pub fn join(&mut self, other: Sample) -> Result<()> {
        let seconds = |s: &Sample| s.ops as f64 / s.value;
        let elapsed = seconds(self) + seconds(&other);
        self.ops += other.ops;
        self.value = self.ops as f64 / elapsed;
        self.usage = self.usage.plus(other.usage);
        match (&mut self.latency, other.latency) {
            (Some(all), Some(more)) => all.add(more).map_err(|e| Error::new(e.to_string())),
            _ => Ok(()),
        }
    }
    /// With latencies.
    pub fn with_latency(mut self, latency: Histogram<u64>) -> Sample {
        self.latency = Some(latency);
        self
    }
    /// Voluntary context switches for one operation.
    pub fn switches_per_op(&self) -> f64 {
        self.usage.voluntary as f64 / self.ops.max(1) as f64
    }
}

/// A histogram for latencies of up to a minute, three digits exact.
pub fn latencies() -> Histogram<u64> {
    let max_ns = 60_000_000_000;
    Histogram::new_with_bounds(1, max_ns, 3).unwrap_or_else(|_| unreachable!("constants"))
}

/// What kind of thing an arm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The engine.
    User,
    /// The kernel's io_uring.
    Kernel,
    /// What could at best be reached.
    Limit,
    /// What a user would pick instead.
    Peer,
}

/// The work of one run.
pub type Work = Box<dyn FnMut(&Turn) -> Result<Sample> + Send>;

/// One of the things that are compared.
pub struct Arm {
    /// Its name, as ratios and reports use it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The engine's policy, where it is not the default.
    pub policy: String,
    /// One run.
    pub work: Work,
}

impl Arm {
    /// An arm that uses no ring.
    pub fn new(
        name: &str,
        kind: Kind,
        work: impl FnMut(&Turn) -> Result<Sample> + Send + 'static,
    ) -> Arm {
        Arm { name: name.into(), kind, policy: String::new(), work: Box::new(work) }
    }
}

/// What a ratio compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The arms' figures; more is better.
    Value,
    /// The arms' figures; less is better.
    Cost,
    /// Voluntary context switches for each operation.
    Switches,
    /// 99th percentile of the latency.
    P99,
}

/// A pair of arms whose comparison answers a question. Above 1, the first is better.
#[derive(Clone, Copy, Debug)]
pub struct RatioDef {
    /// Its name in reports.
    pub name: &'static str,
    /// The arm that comes first.
    pub first: &'static str,
    /// The other arm.
    pub second: &'static str,
    /// What is compared.
    pub measure: Measure,
    /// The ratio that was reported by those who had the idea.
    pub reported: Option<f64>,
}

impl RatioDef {
    /// A comparison of figures.
    pub const fn value(name: &'static str, first: &'static str, second: &'static str) -> RatioDef {
        RatioDef { name, first, second, measure: Measure::Value, reported: None }
    }
    /// A comparison of something else.
    pub const fn measuring(self, measure: Measure) -> RatioDef {
        RatioDef { measure, ..self }
    }
    /// With what was reported.
    pub const fn reported(self, ratio: f64) -> RatioDef {
        RatioDef { reported: Some(ratio), ..self }
    }
}

/// An experiment, ready to run.
#[derive(Default)]
pub struct Plan {
    /// The arms, in the order they take turns.
    pub arms: Vec<Arm>,
    /// What is left out, and how to get it.
    pub skipped: Vec<(String, String)>,
}

impl Plan {
    /// Adds an arm.
    pub fn add(&mut self, arm: Arm) {
        self.arms.push(arm);
    }
    /// Leaves an arm out.
    pub fn skip(&mut self, name: &str, why: impl Into<String>) {
        self.skipped.push((name.into(), why.into()));
    }

    /// Adds an arm of the engine with this policy, if this build has it.
    pub fn user(
        &mut self,
        name: &str,
        policy: &str,
        work: impl FnMut(&Arc<dyn Backend>, &Turn) -> Result<Sample> + Send + 'static,
    ) {
        match User::new(policy) {
            Ok(user) => self.ring(name, Kind::User, policy, Arc::new(user), work),
            Err(error) => self.skip(name, error.to_string()),
        }
    }

    /// Adds an arm of the engine on a model of a device, which starts anew with each run's seed.
    pub fn model(
        &mut self,
        name: &str,
        policy: &str,
        device: Device,
        mut work: impl FnMut(&Arc<dyn Backend>, &Model, &Turn) -> Result<Sample> + Send + 'static,
    ) {
        if let Err(error) = User::new(policy) {
            return self.skip(name, error.to_string());
        }
        let with = policy.to_owned();
        let work: Work = Box::new(move |turn| {
            let model = Arc::new(Model::new(device, turn.seed));
            let user: Arc<dyn Backend> = Arc::new(User::with_model(&with, model.clone())?);
            let mut sample = work(&user, &model, turn)?;
            let counts = model.counts();
            let per_op = |n: u64| n as f64 / sample.ops.max(1) as f64;
            sample.extra.push(("sleeps_per_op", per_op(counts.sleeps)));
            sample.extra.push(("submit_calls_per_op", per_op(counts.calls)));
            Ok(sample)
        });
        self.add(Arm { name: name.into(), kind: Kind::User, policy: policy.into(), work });
    }

    /// Adds an arm of the kernel's io_uring, if it works here.
    pub fn kernel(
        &mut self,
        name: &str,
        work: impl FnMut(&Arc<dyn Backend>, &Turn) -> Result<Sample> + Send + 'static,
    ) {
        let kernel: Arc<dyn Backend> = Arc::new(Kernel);
        match Ring::new(&kernel, 1, MODERN) {
            Ok(_) => self.ring(name, Kind::Kernel, "", kernel, work),
            Err(error) => self.skip(
                name,
                format!(
                    "{error}; 'anyring doctor' says why the kernel's io_uring is not to be had"
                ),
            ),
        }
    }

    /// Adds the same work on both backends: `user` or `kernel` and then `suffix`.
    pub fn both(
        &mut self,
        suffix: &str,
        work: impl FnMut(&Arc<dyn Backend>, &Turn) -> Result<Sample> + Clone + Send + 'static,
    ) {
        self.user(&format!("user{suffix}"), "", work.clone());
        self.kernel(&format!("kernel{suffix}"), work);
    }

    fn ring(
        &mut self,
        name: &str,
        kind: Kind,
        policy: &str,
        backend: Arc<dyn Backend>,
        mut work: impl FnMut(&Arc<dyn Backend>, &Turn) -> Result<Sample> + Send + 'static,
    ) {
        let about_workers = policy.contains("wq_");
        let work: Work = Box::new(move |turn| {
            let before = backend.counters();
            let mut sample = work(&backend, turn)?;
            if let (Some(before), Some(now)) = (before, backend.counters()) {
                if about_workers && now.wq_items == before.wq_items {
                    return Err(Error::new(
                        "no request went to a worker, so that its policy changes nothing",
                    ));
                }
                sample.extra.extend(now.figures(&before, sample.ops));
            }
            Ok(sample)
        });
        self.add(Arm { name: name.into(), kind, policy: policy.into(), work });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_about_workers_without_work_for_them_is_no_result() {
        let mut plan = Plan::default();
        plan.user("idle", "wq_locking=split", |_, _| Ok(Sample::default()));
        plan.user("plain", "", |_, _| Ok(Sample::default()));
        let turn = Turn { slice: Duration::ZERO, seed: 0 };
        let [idle, plain] = &mut plan.arms[..] else { panic!("two arms") };
        let error = (idle.work)(&turn).unwrap_err().to_string();
        assert!(error.starts_with("no request went to a worker"), "{error}");
        assert!((plain.work)(&turn).is_ok());
    }

    #[test]
    fn joined_samples_are_as_one() {
        let sample = |ops, ms| {
            let mut latency = latencies();
            latency.record(ms).unwrap();
            let usage = Usage { voluntary: 3, ..Usage::default() };
            Sample::rate(ops, Duration::from_millis(ms), usage).with_latency(latency)
        };
        let mut all = sample(100, 1000);
        all.join(sample(500, 2000)).unwrap();
        assert!((all.value - 200.0).abs() < 1e-9);
        assert_eq!((all.ops, all.usage.voluntary, all.latency.unwrap().len()), (600, 6, 2));
    }

    #[test]
    fn quick_runs_fit_into_their_minute() {
        let setting = |runs| Setting { quick: true, runs, scratch: PathBuf::new() };
        for (arms, runs) in [(2, 7), (12, 7), (9, 100)] {
            let total = setting(runs).slice(arms) * (arms * (runs + 1)) as u32;
            assert!(total <= Duration::from_secs(41), "{arms} arms, {runs} runs: {total:?}");
        }
    }
}
