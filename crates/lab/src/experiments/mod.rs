//! The experiments, one a file.

mod cached;
mod coldread;
mod echo;
mod idle;
mod iopoll;
mod lazy_wake;
mod maildir;
mod nop;
mod randread;

use crate::arm::{Plan, RatioDef, Setting};
use crate::error::Result;

/// An experiment.
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line: what it does.
    pub about: &'static str,
    /// How it is done, for the report.
    pub method: &'static str,
    /// What the arms' figures are.
    pub unit: &'static str,
    /// The comparisons.
    pub ratios: &'static [RatioDef],
    /// Makes what it needs, and the arms.
    pub prepare: fn(&Setting) -> Result<Plan>,
}

/// All of them, in the order of `all`.
pub const ALL: &[Experiment] = &[
    maildir::EXPERIMENT,
    nop::EXPERIMENT,
    cached::EXPERIMENT,
    echo::EXPERIMENT,
    lazy_wake::EXPERIMENT,
    iopoll::EXPERIMENT,
    randread::EXPERIMENT,
    coldread::EXPERIMENT,
    idle::EXPERIMENT,
];

/// An experiment by its name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::path::Path;

    /// Names that reports are read by, and whether a figure was published that ours stands beside.
    const NAMES: [(&str, bool); 23] = [
        ("maildir.user_vs_kernel", false),
        ("maildir.user_vs_kernel_qd128", false),
        ("maildir.user_vs_threads", false),
        ("maildir.split_vs_coarse", true),
        ("nop.b1_user_vs_kernel", false),
        ("nop.b32_user_vs_kernel", false),
        ("nop.async_user_vs_kernel", false),
        ("cached.user_vs_kernel", false),
        ("cached.async_user_vs_kernel", false),
        ("echo.async_user_vs_kernel", false),
        ("echo.user_vs_kernel", false),
        ("echo.user_vs_epoll", false),
        ("echo.mshot512_user_vs_kernel", false),
        ("echo.batch_vs_single", true),
        ("lazy_wake.qd8_switches", true),
        ("lazy_wake.qd32_switches", true),
        ("lazy_wake.zc_switches", true),
        ("iopoll.each_vs_ordered_c32", true),
        ("iopoll.each_vs_ordered_c1", true),
        ("iopoll.p99_4k_each_vs_ordered", false),
        ("randread.user_vs_kernel", false),
        ("randread.user_vs_libaio", false),
        ("randread.user_vs_posixaio", false),
    ];

    fn all_ratios() -> impl Iterator<Item = (&'static Experiment, &'static RatioDef)> {
        ALL.iter().flat_map(|experiment| experiment.ratios.iter().map(move |r| (experiment, r)))
    }

    #[test]
    fn every_name_is_there_once_and_in_its_experiment() {
        for (name, reported) in NAMES {
            let found: Vec<_> = all_ratios().filter(|(_, ratio)| ratio.name == name).collect();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].1.reported.is_some(), reported, "{name}");
        }
        for (experiment, ratio) in all_ratios() {
            let (prefix, _) = ratio.name.split_once('.').unwrap();
            assert_eq!(prefix, experiment.name.replace('-', "_"), "{}", ratio.name);
        }
    }

    /// A comparison whose arm has another name would silently be missing from reports.
    #[test]
    fn every_compared_arm_is_made_or_left_out_with_a_reason() {
        for experiment in ALL {
            let scratch = Scratch::new(Path::new("/var/tmp")).unwrap();
            let setting = Setting { quick: true, runs: 1, scratch: scratch.path().to_owned() };
            let plan = (experiment.prepare)(&setting).unwrap();
            let made = plan.arms.iter().map(|arm| &arm.name);
            let known: Vec<_> = made.chain(plan.skipped.iter().map(|skipped| &skipped.0)).collect();
            for ratio in experiment.ratios {
                for arm in [ratio.first, ratio.second] {
                    assert!(known.iter().any(|name| *name == arm), "{}: {arm}", ratio.name);
                }
            }
            let mut names = known.clone();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), known.len(), "{}: two arms have one name", experiment.name);
        }
    }
}
