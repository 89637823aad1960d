//! The table of expected results of liburing's test programs.
//!
//! Tab-separated: name, result on the kernel's io_uring, result on our engine, note.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::process::{Ended, Outcome};

/// Exit status with which a liburing test says that it was skipped.
const EXIT_SKIP: i32 = 77;

const HEADER: &str = "# name\tkernel\tengine\tnote";

/// The result of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It exited with 0.
    Pass,
    /// It exited with 77.
    Skip,
    /// It exited with something else, or a signal killed it.
    Fail,
    /// It did not end in time.
    Timeout,
    /// Sometimes it passes, sometimes not (only in the table).
    Unstable,
    /// Never run (only in the table).
    Unknown,
}

const NAMES: [(Verdict, &str); 6] = [
    (Verdict::Pass, "pass"),
    (Verdict::Skip, "skip"),
    (Verdict::Fail, "fail"),
    (Verdict::Timeout, "timeout"),
    (Verdict::Unstable, "unstable"),
    (Verdict::Unknown, "-"),
];

impl Verdict {
    /// The verdict on a finished program.
    pub fn of(outcome: &Outcome) -> Verdict {
        match outcome.ended {
            Ended::Exited(0) => Verdict::Pass,
            Ended::Exited(EXIT_SKIP) => Verdict::Skip,
            Ended::Exited(_) | Ended::Signaled(_) => Verdict::Fail,
            Ended::TimedOut => Verdict::Timeout,
        }
    }

    /// Whether a program that was to give `self` and gave `seen` went backwards.
    pub fn regressed_to(self, seen: Verdict) -> bool {
        match self {
            Verdict::Pass => seen != Verdict::Pass,
            Verdict::Skip => !matches!(seen, Verdict::Pass | Verdict::Skip),
            _ => false,
        }
    }

    /// This verdict and another run's together.
    pub fn merge(self, seen: Verdict) -> Verdict {
        match (self, seen) {
            (Verdict::Unknown, seen) => seen,
            (earlier, seen) if earlier == seen => seen,
            (Verdict::Fail | Verdict::Timeout, Verdict::Fail | Verdict::Timeout) => Verdict::Fail,
            _ => Verdict::Unstable,
        }
    }

    fn from_name(name: &str) -> Option<Verdict> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(verdict, _)| verdict == self).map_or("-", |(_, name)| name);
        f.write_str(name)
    }
}

/// What one program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// On the kernel's io_uring.
    pub kernel: Verdict,
    /// On our engine.
    pub engine: Verdict,
    /// Why, in a few words.
    pub note: String,
}

impl Default for Row {
    fn default() -> Self {
        Row { kernel: Verdict::Unknown, engine: Verdict::Unknown, note: String::new() }
    }
}

/// The whole table, by program name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// One row a program.
    pub rows: BTreeMap<String, Row>,
}

impl Table {
    /// Reads a table; a missing file is an empty table.
    pub fn read(path: &Path) -> Result<Table, String> {
        match fs::read_to_string(path) {
            Ok(text) => Table::parse(&text).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Table::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Table, String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows = lines.map(parse_row).collect::<Result<_, _>>()?;
        Ok(Table { rows })
    }

    /// Writes the table, replacing the file as a whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("tsv.new");
        fs::write(&beside, self.to_string())?;
        fs::rename(beside, path)
    }

    /// How many programs pass on the kernel's io_uring.
    pub fn kernel_passes(&self) -> usize {
        self.rows.values().filter(|row| row.kernel == Verdict::Pass).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for (name, row) in &self.rows {
            let line = format!("{name}\t{}\t{}\t{}", row.kernel, row.engine, row.note);
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn parse_row(line: &str) -> Result<(String, Row), String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, kernel, engine, note @ ..] = fields.as_slice() else {
        return Err(format!("a row needs name, kernel and engine, tab-separated: {line}"));
    };
    let verdict = |name: &str| {
        Verdict::from_name(name).ok_or_else(|| format!("'{name}' is no result in: {line}"))
    };
    let note = note.join(" ");
    Ok((name.to_string(), Row { kernel: verdict(kernel)?, engine: verdict(engine)?, note }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_survives_writing_and_reading() {
        let text = "# name\tkernel\tengine\tnote\na\tpass\tunstable\tslow clock\nb\tskip\t-\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.rows["a"].note, "slow clock");
        assert_eq!(table.rows["b"].engine, Verdict::Unknown);
        assert_eq!(Table::parse(&table.to_string()).unwrap(), table);
        assert_eq!(table.to_string(), text);
    }

    #[test]
    fn wrong_rows_are_refused() {
        assert!(Table::parse("a\tpass").is_err());
        assert!(Table::parse("a\tpass\tgreen\t").is_err());
    }

    #[test]
    fn only_a_worse_result_is_a_regression() {
        assert!(Verdict::Pass.regressed_to(Verdict::Timeout));
        assert!(Verdict::Pass.regressed_to(Verdict::Skip));
        assert!(Verdict::Skip.regressed_to(Verdict::Fail));
        assert!(!Verdict::Skip.regressed_to(Verdict::Pass));
        assert!(!Verdict::Fail.regressed_to(Verdict::Timeout));
        assert!(!Verdict::Unstable.regressed_to(Verdict::Fail));
    }

    #[test]
    fn differing_runs_are_unstable() {
        assert_eq!(Verdict::Unknown.merge(Verdict::Pass), Verdict::Pass);
        assert_eq!(Verdict::Pass.merge(Verdict::Fail), Verdict::Unstable);
        assert_eq!(Verdict::Timeout.merge(Verdict::Fail), Verdict::Fail);
    }
}
