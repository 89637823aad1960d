//! Reads what `anyring run --stats FILE` wrote: one JSON object a line, one line a process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The sums over all processes of one run.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// How many processes wrote a line.
    pub processes: usize,
    /// Rings made.
    pub rings: u64,
    /// CQEs posted, per opcode.
    pub posted: BTreeMap<String, u64>,
}

impl Stats {
    /// Reads and sums a statistics file.
    pub fn read(path: &Path) -> Result<Stats, String> {
        let text = fs::read_to_string(path).map_err(|error| {
            format!("no statistics were written to {}: {error}", path.display())
        })?;
        Stats::parse(&text)
    }

    fn parse(text: &str) -> Result<Stats, String> {
        let mut stats = Stats::default();
        for line in text.lines() {
            let process: Value = serde_json::from_str(line)
                .map_err(|error| format!("not JSON ({error}): {line}"))?;
            stats.add(&process);
        }
        Ok(stats)
    }

    fn add(&mut self, process: &Value) {
        self.processes += 1;
        self.rings += process["rings"].as_u64().unwrap_or(0);
        for (name, counts) in process["ops"].as_object().into_iter().flatten() {
            *self.posted.entry(name.clone()).or_default() += counts["posted"].as_u64().unwrap_or(0);
        }
    }

    /// CQEs posted for any of these opcodes.
    pub fn posted(&self, opcodes: &[&str]) -> u64 {
        opcodes.iter().filter_map(|name| self.posted.get(*name)).sum()
    }

    /// Says no if fewer than `least` CQEs were posted for `opcodes` together.
    pub fn require(&self, opcodes: &[&str], least: u64) -> Result<(), String> {
        let posted = self.posted(opcodes);
        if self.rings > 0 && posted >= least {
            return Ok(());
        }
        let names = opcodes.join("+");
        Err(format!(
            "the engine posted {posted} CQEs for {names}, at least {least} were due: {self:?}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"rings":1,"ops":{"READ":{"submitted":5,"posted":4},"NOP":{"posted":1}}}
{"rings":2,"ops":{"READ":{"submitted":6,"posted":6}}}"#;

    #[test]
    fn processes_are_summed() {
        let stats = Stats::parse(TWO).unwrap();
        assert_eq!((stats.processes, stats.rings), (2, 3));
        assert_eq!(stats.posted(&["READ"]), 10);
        assert_eq!(stats.posted(&["READ", "NOP", "WRITE"]), 11);
    }

    #[test]
    fn too_little_work_is_refused() {
        let stats = Stats::parse(TWO).unwrap();
        assert!(stats.require(&["READ"], 10).is_ok());
        assert!(stats.require(&["READ"], 11).is_err());
        assert!(stats.require(&["WRITE"], 1).is_err());
        assert!(Stats::parse("").unwrap().require(&["NOP"], 0).is_err());
        assert!(Stats::parse("{").is_err());
    }
}
