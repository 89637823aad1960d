//! All scenarios, by topic.

use crate::scenario::Scenario;

mod matrix;
mod matrix_base;
mod setup;

const TOPICS: &[&[Scenario]] = &[setup::SCENARIOS, matrix::SCENARIOS];

/// Every scenario.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    TOPICS.iter().flat_map(|t| t.iter())
}

/// One by name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().find(|s| s.name == name)
}
