//! The experiments, one a file.

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
