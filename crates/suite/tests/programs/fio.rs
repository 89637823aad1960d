//! fio: random reads and writes, every written block verified. Direct ones go through kernel AIO, also on polled rings.

use std::fs;

use serde_json::Value;

use crate::Job;
use anyring_suite::place::Desk;

const BLOCKS: u64 = 4096;
const BLOCK_SIZE: u64 = 4096;
const LIMIT_SECONDS: u64 = 60;
const MIXED_SECONDS: u64 = 20;

/// Buffered and direct at two depths, then the rings' special modes.
pub fn jobs() -> Vec<Job> {
    let plain = [
        ("fio_buffered_depth1", "--direct=0", "--iodepth=1"),
        ("fio_buffered_depth32", "--direct=0", "--iodepth=32"),
        ("fio_direct_depth1", "--direct=1", "--iodepth=1"),
        ("fio_direct_depth32", "--direct=1", "--iodepth=32"),
    ];
    let mut jobs: Vec<Job> = plain
        .into_iter()
        .map(|(name, direct, depth)| {
            job(name, vec![direct, depth], &["READ", "READV"], &["WRITE", "WRITEV"])
        })
        .collect();
    for direct in ["--direct=0", "--direct=1"] {
        let options = vec![direct, "--iodepth=32", "--fixedbufs=1", "--registerfiles=1"];
        let name = if direct == "--direct=0" {
            "fio_registered_buffered"
        } else {
            "fio_registered_direct"
        };
        jobs.push(job(name, options, &["READ_FIXED"], &["WRITE_FIXED"]));
    }
    let options = vec!["--direct=1", "--iodepth=32", "--sqthread_poll=1"];
    jobs.push(job("fio_sqpoll", options, &["READ", "READV"], &["WRITE", "WRITEV"]));
    let modes: [(_, &[&str]); 4] = [
        ("fio_mixed_plain", &[]),
        ("fio_mixed_sqpoll", &["--sqthread_poll=1"]),
        ("fio_mixed_iopoll", &["--hipri=1"]),
        ("fio_mixed_iopoll_sqpoll", &["--hipri=1", "--sqthread_poll=1"]),
    ];
    jobs.extend(modes.map(|(name, mode)| mixed(name, mode)));
    jobs
}

/// Direct reads and writes of mixed sizes for some seconds, verified as they are written. The kernel may refuse to
/// poll the disk; the engine may not, so what is skipped there has to work here.
fn mixed(name: &str, mode: &'static [&'static str]) -> Job {
    Job::new(name, &["fio"], move |desk| {
        if mode.contains(&"--hipri=1") && !desk.on_engine() {
            return Ok(());
        }
        let seconds = if desk.takes_its_time() { MIXED_SECONDS } else { MIXED_SECONDS / 10 };
        let report = desk.path("report.json");
        let mut command = desk.command("fio")?;
        command
            .args(["--name=job", "--filename=data", "--ioengine=io_uring", "--rw=randrw"])
            .args(["--direct=1", "--iodepth=32", "--bsrange=4k-128k", "--size=64m"])
            .args(["--time_based", &format!("--runtime={seconds}")])
            .args(["--verify=crc32c", "--verify_fatal=1", "--verify_backlog=256"])
            .args(["--verify_state_save=0", "--output-format=json", "--output=report.json"])
            .args(mode);
        let outcome = desk.run(&mut command, LIMIT_SECONDS)?;
        let text = fs::read_to_string(&report).map_err(|e| format!("fio wrote no report: {e}"))?;
        let done =
            counts(&text).map_err(|e| format!("{e}; fio said: {}", outcome.last_lines(10)))?;
        if done.writes < 100 || done.reads < done.writes {
            return Err(format!("{} reads, {} writes", done.reads, done.writes));
        }
        desk.engine_did(&["READ", "READV"], done.reads)?;
        desk.engine_did(&["WRITE", "WRITEV"], done.writes)
    })
}

fn job(
    name: &str,
    options: Vec<&'static str>,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
) -> Job {
    Job::new(name, &["fio"], move |desk| {
        let done = run(desk, &options)?;
        desk.engine_did(reads, done.reads)?;
        desk.engine_did(writes, done.writes)
    })
}

/// What fio says it did.
struct Done {
    reads: u64,
    writes: u64,
}

fn run(desk: &Desk, options: &[&str]) -> Result<Done, String> {
    let report = desk.path("report.json");
    let mut command = desk.command("fio")?;
    command
        .args(["--name=job", "--filename=data", "--ioengine=io_uring", "--rw=randrw"])
        .arg(format!("--bs={BLOCK_SIZE}"))
        .arg(format!("--size={}", BLOCKS * BLOCK_SIZE))
        .args(["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"])
        .args(["--output-format=json", "--output=report.json"])
        .args(options);
    let outcome = desk.run(&mut command, LIMIT_SECONDS)?;
    let text =
        fs::read_to_string(&report).map_err(|error| format!("fio wrote no report: {error}"))?;
    check(&text).map_err(|error| format!("{error}; fio said: {}", outcome.last_lines(10)))
}

fn check(report: &str) -> Result<Done, String> {
    let done = counts(report)?;
    // Verifying reads every block written, so the reads are no fewer than the blocks.
    if done.writes > BLOCKS / 4 && done.reads >= BLOCKS {
        return Ok(done);
    }
    Err(format!("{} reads, {} writes", done.reads, done.writes))
}

fn counts(report: &str) -> Result<Done, String> {
    // Warnings may stand before the report itself.
    let from = report.find('{').ok_or("fio's report holds no JSON")?;
    let report: Value = serde_json::from_str(&report[from..]).map_err(|error| error.to_string())?;
    let job = &report["jobs"][0];
    let count = |side: &str| job[side]["total_ios"].as_u64().unwrap_or(0);
    match job["error"].as_i64() {
        Some(0) => Ok(Done { reads: count("read"), writes: count("write") }),
        error => Err(format!("error {error:?}")),
    }
}
