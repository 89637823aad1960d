//! Golden answers: what Linux 6.18 said, for machines where it cannot be asked.

use std::path::PathBuf;

/// Where the crate's files are: next to its sources, as they were at build time.
pub fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn path(name: &str) -> PathBuf {
    crate_dir().join("golden").join(format!("{name}.txt"))
}

/// The golden answer of a scenario.
pub fn load(name: &str) -> Result<String, String> {
    std::fs::read_to_string(path(name)).map_err(|e| {
        format!("no golden answer for {name} ({e}): run `behave --record {name}` on Linux 6.18")
    })
}

/// Writes one.
pub fn save(name: &str, answer: &str) -> Result<(), String> {
    std::fs::write(path(name), answer).map_err(|e| format!("write golden answer of {name}: {e}"))
}
