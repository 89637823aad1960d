//! Scenarios of features that the engine does not offer yet: `pending.txt`.
//!
//! A line is `NAME reason` (the whole scenario may differ) or `NAME:line prefix: reason`
//! (only answers whose question starts so; the prefix ends at the last `: `). What is
//! pending must differ: once it matches, the test fails, so that the list shrinks.

/// The parsed list.
pub struct Pending {
    lines: Vec<Entry>,
}

struct Entry {
    scenario: String,
    prefix: Option<String>,
    reason: String,
}

/// What a comparison with the list in mind says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Equal.
    Same,
    /// Different where the list allows it; the reasons.
    Pending(String),
    /// Different where it must not be; both answers.
    Differs(String),
    /// Equal although listed; which lines to remove.
    Stale(String),
}

impl Pending {
    /// The crate's list.
    pub fn load() -> Result<Pending, String> {
        let path = crate::golden::crate_dir().join("pending.txt");
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Pending::parse(&text)
    }

    /// Parses a list.
    pub fn parse(text: &str) -> Result<Pending, String> {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        Ok(Pending { lines: lines.map(entry).collect::<Result<_, _>>()? })
    }

    /// Names that are listed but in no scenario.
    pub fn unknown(&self, known: impl Fn(&str) -> bool) -> Vec<String> {
        self.lines.iter().map(|e| e.scenario.clone()).filter(|n| !known(n)).collect()
    }

    /// The reason why all of `name` may differ, if it may.
    pub fn whole(&self, name: &str) -> Option<&str> {
        let entry = self.lines.iter().find(|e| e.scenario == name && e.prefix.is_none());
        entry.map(|e| e.reason.as_str())
    }

    /// Compares the answers of a scenario.
    pub fn compare(&self, name: &str, kernel: &str, engine: &str) -> Verdict {
        let entries: Vec<&Entry> = self.lines.iter().filter(|e| e.scenario == name).collect();
        let Some(text) = crate::diff::diff(kernel, engine) else {
            let stale = entries.iter().map(|e| e.show()).collect::<Vec<_>>();
            return if stale.is_empty() { Verdict::Same } else { Verdict::Stale(stale.join("\n")) };
        };
        if entries.is_empty() {
            return Verdict::Differs(text);
        }
        if let Some(whole) = entries.iter().find(|e| e.prefix.is_none()) {
            return Verdict::Pending(whole.reason.clone());
        }
        compare_lines(&entries, kernel, engine, text)
    }
}

fn compare_lines(entries: &[&Entry], kernel: &str, engine: &str, text: String) -> Verdict {
    let rest = |s: &str| {
        s.lines().filter(|l| !entries.iter().any(|e| e.covers(l))).collect::<Vec<_>>().join("\n")
    };
    if rest(kernel) != rest(engine) {
        return Verdict::Differs(text);
    }
    let part =
        |e: &Entry, s: &str| s.lines().filter(|l| e.covers(l)).collect::<Vec<_>>().join("\n");
    let stale: Vec<String> =
        entries.iter().filter(|e| part(e, kernel) == part(e, engine)).map(|e| e.show()).collect();
    if !stale.is_empty() {
        return Verdict::Stale(stale.join("\n"));
    }
    Verdict::Pending(entries.iter().map(|e| e.reason.as_str()).collect::<Vec<_>>().join("; "))
}

impl Entry {
    fn covers(&self, line: &str) -> bool {
        self.prefix.as_ref().is_none_or(|p| line.starts_with(p.as_str()))
    }
    fn show(&self) -> String {
        match &self.prefix {
            Some(p) => format!("{}:{p}: {}", self.scenario, self.reason),
            None => format!("{} {}", self.scenario, self.reason),
        }
    }
}

fn entry(line: &str) -> Result<Entry, String> {
    let bad = || format!("pending.txt: not `NAME reason` or `NAME:prefix: reason`: {line}");
    let split = line.find([' ', ':']).ok_or_else(bad)?;
    let (name, rest) = line.split_at(split);
    let (prefix, reason) = match rest.strip_prefix(':') {
        Some(r) => r.rsplit_once(": ").map(|(p, r)| (Some(p.to_owned()), r)).ok_or_else(bad)?,
        None => (None, rest),
    };
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(bad());
    }
    Ok(Entry { scenario: name.into(), prefix, reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Pending {
        Pending::parse("# why\nwhole not yet\npart:op 7: later\npart:op: 8: colon in the prefix\n")
            .expect("a list")
    }

    #[test]
    fn whole_scenarios_may_differ_and_must() {
        assert_eq!(list().compare("whole", "a\n", "b\n"), Verdict::Pending("not yet".into()));
        assert!(matches!(list().compare("whole", "a\n", "a\n"), Verdict::Stale(_)));
        assert_eq!(list().compare("other", "a\n", "a\n"), Verdict::Same);
        assert!(matches!(list().compare("other", "a\n", "b\n"), Verdict::Differs(_)));
    }

    #[test]
    fn single_answers_may_differ_and_each_must() {
        let kernel = "op 7 x: 1\nop: 8 y: 1\nz: 1\n";
        let verdict = |engine: &str| list().compare("part", kernel, engine);
        assert!(matches!(verdict("op 7 x: 2\nop: 8 y: 2\nz: 1\n"), Verdict::Pending(_)));
        assert!(matches!(verdict("op 7 x: 2\nop: 8 y: 1\nz: 1\n"), Verdict::Stale(_)));
        assert!(matches!(verdict("op 7 x: 2\nop: 8 y: 2\nz: 2\n"), Verdict::Differs(_)));
    }

    #[test]
    fn lines_without_a_reason_are_refused() {
        for bad in ["name", "name ", "name:prefix", "name:prefix: "] {
            assert!(Pending::parse(bad).is_err(), "{bad}");
        }
    }
}
