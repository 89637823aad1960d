//! stress-ng: its io-uring stressor, verifying what it does.

use crate::Job;

const SECONDS: u64 = 5;

/// Two stressors for five seconds.
pub fn job() -> Job {
    Job::new("stress_ng", &["stress-ng"], |desk| {
        let mut command = desk.command("stress-ng")?;
        command.args(["--io-uring", "2", "--verify", "--metrics", "-t", &SECONDS.to_string()]);
        let outcome = desk.run(&mut command, SECONDS + 30)?;
        let failed =
            ["fail:", "skipped", "error:"].iter().any(|word| outcome.output.contains(word));
        if failed || !outcome.output.contains("successful run completed") {
            return Err(format!("stress-ng is not content:\n{}", outcome.last_lines(12)));
        }
        if bogo_ops(&outcome.output) == 0 {
            return Err(format!("stress-ng did nothing:\n{}", outcome.last_lines(12)));
        }
        desk.engine_did(&["READV", "READ"], 1)?;
        desk.engine_did(&["WRITEV", "WRITE"], 1)?;
        desk.engine_did(&["FSYNC", "NOP", "CLOSE", "STATX"], 1)
    })
}

/// The count in the stressor's line of metrics.
fn bogo_ops(output: &str) -> u64 {
    let mut words =
        output.lines().filter(|line| line.contains("metrc:")).flat_map(str::split_whitespace);
    words.find(|word| *word == "io-uring");
    words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
