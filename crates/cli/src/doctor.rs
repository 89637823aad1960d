//! `anyring doctor`: says whether io_uring works here, why not, and what anyring would do.

use crate::child::Outcome;
use crate::failure::Failure;
use crate::features::{self, Feature};
use crate::uring::{self, Place, Verdict};
use serde_json::{json, Map, Value};
use std::fmt::Write as _;
use std::io::Write as _;

/// What was found.
struct Findings {
    release: String,
    place: Place,
    verdict: Verdict,
    features: Vec<Feature>,
    aio: Option<(u64, u64)>,
    /// This process runs under anyring already: what was found is the engine's answer.
    covered: bool,
}

/// Prints the findings.
pub fn doctor(json: bool) -> Result<(), Failure> {
    let place = Place::read();
    let findings = Findings {
        release: uring::release(),
        place,
        verdict: uring::explain(uring::try_setup(), place),
        features: features::probe_all(),
        aio: features::aio_use(),
        covered: std::env::var_os("ANYRING_FILTER").is_some(),
    };
    let text = if json { findings.json() } else { findings.text() };
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::own(format!("cannot print: {error}")))
}

impl Findings {
    fn trap_works(&self) -> bool {
        self.features.iter().any(|f| f.key == "seccomp_trap" && f.outcome.works())
    }

    /// Who would answer under `run --engine auto`.
    fn auto(&self) -> &'static str {
        match (self.verdict.works(), self.trap_works()) {
            _ if self.covered => "user",
            (true, _) => "kernel",
            (false, true) => "user",
            (false, false) => "none",
        }
    }

    fn text(&self) -> String {
        let auto = match self.auto() {
            "kernel" => "leaves io_uring to the kernel",
            "user" => "answers with its own engine",
            _ if matches!(self.verdict, Verdict::Untried(_)) => {
                "cannot tell: no process could be started to try it"
            }
            _ => "cannot help: seccomp filters that trap are not allowed here",
        };
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<18}{value}");
        };
        line("kernel", &self.release);
        line("io_uring", &self.verdict.text());
        if self.covered {
            line("anyring", "this process runs under it already; ask outside for the kernel's");
        }
        if self.place.filtered {
            line("seccomp", "this process runs under a filter");
        }
        line("anyring run", auto);
        for feature in &self.features {
            let found = match feature.outcome {
                Outcome::Works(_) => "yes".to_owned(),
                Outcome::Refused(errno) => format!("no, {}", uring::name(errno)),
                Outcome::Killed(signal) => format!("no, killed by signal {signal}"),
                Outcome::Untried(errno) => {
                    format!("unknown, no process to try it: {}", uring::name(errno))
                }
            };
            let aio = match self.aio {
                Some((used, max)) if feature.key == "kernel_aio" => {
                    format!("; {used} of {max} slots in use")
                }
                _ => String::new(),
            };
            line(feature.name, &format!("{found} ({}{aio})", feature.use_for));
        }
        text
    }

    fn json(&self) -> String {
        let features: Map<String, Value> = self
            .features
            .iter()
            .map(|f| {
                let value = match f.outcome {
                    Outcome::Works(_) => json!({"works": true}),
                    Outcome::Refused(errno) | Outcome::Untried(errno) => {
                        json!({"works": false, "errno": errno.0})
                    }
                    Outcome::Killed(signal) => json!({"works": false, "signal": signal}),
                };
                (f.key.to_owned(), value)
            })
            .collect();
        let missing = match &self.verdict {
            Verdict::Works { missing } => missing.as_slice(),
            _ => &[],
        };
        let signal = match self.verdict {
            Verdict::Kills(signal) => Some(signal),
            _ => None,
        };
        let value = json!({
            "kernel": self.release,
            "io_uring": {
                "works": self.verdict.works(),
                "reason": self.verdict.reason(),
                "text": self.verdict.text(),
                "errno": self.verdict.errno(),
                "signal": signal,
                "missing_features": missing,
                "sysctl": self.place.sysctl,
                "seccomp_filter": self.place.filtered,
            },
            "covered": self.covered,
            "auto": self.auto(),
            "features": features,
            "aio": self.aio.map(|(used, max)| json!({"nr": used, "max_nr": max})),
        });
        format!("{value:#}\n")
    }
}
