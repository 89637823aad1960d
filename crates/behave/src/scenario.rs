//! What a scenario is: a name, a sentence, and a function that says lines.
//!
//! Lines are the answers. They hold no descriptors, process ids or times, so that two
//! runs on the same implementation are equal.

use std::io::Write;

use anyring_uapi::setup::{DEFER_TASKRUN, SINGLE_ISSUER};

/// One question or a group that belongs together.
pub struct Scenario {
    /// Unique name, `topic_detail`.
    pub name: &'static str,
    /// What is asked.
    pub about: &'static str,
    /// Asks.
    pub run: fn(&mut Cx),
    /// Seconds until the process is killed.
    pub seconds: u32,
}

/// Where a scenario says its answers.
pub struct Cx {
    prefix: String,
    /// The scenario's own name, for rows of a matrix that share a function.
    pub name: &'static str,
}

impl Cx {
    /// For the scenario `name`.
    pub fn new(name: &'static str) -> Cx {
        Cx { prefix: String::new(), name }
    }

    /// Says one answer. Each line is flushed: after a hang the last one tells where.
    pub fn say(&mut self, what: &str, answer: impl std::fmt::Display) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}{what}: {answer}", self.prefix);
        let _ = out.flush();
    }

    /// Asks the same on a default ring and on a SINGLE_ISSUER|DEFER_TASKRUN ring; the
    /// argument is the setup flags.
    pub fn both_setups(&mut self, mut ask: impl FnMut(&mut Cx, u32)) {
        for (label, flags) in [("default/", 0), ("defer/", SINGLE_ISSUER | DEFER_TASKRUN)] {
            self.prefix = label.into();
            ask(self, flags);
        }
        self.prefix.clear();
    }
}

/// Builds a [`Scenario`] from a function: `scenario!(name, "what it asks")`.
#[macro_export]
macro_rules! scenario {
    ($f:ident, $about:literal) => {
        $crate::scenario!($f, $about, 10)
    };
    ($f:ident, $about:literal, $seconds:literal) => {
        $crate::scenario::Scenario {
            name: stringify!($f),
            about: $about,
            run: $f,
            seconds: $seconds,
        }
    };
}
