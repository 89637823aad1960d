//! `fuzzdiff --seed N --count M`: plays M generated sequences of SQEs, one per seed from
//! N on, on the kernel and on the engine, and prints those whose answers differ.
//! `--child` plays them in this process.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyring_behave::{diff, fuzz, run, sys};

/// Seeds that one child process plays.
const BATCH: u64 = 20;
/// Seconds that one sequence may take.
const SEQUENCE_SECONDS: u32 = 15;

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|(seed, count, child)| {
        if child {
            play(seed, count);
            return Ok(ExitCode::SUCCESS);
        }
        compare(seed, count)
    }) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("fuzzdiff: {e}");
            ExitCode::from(125)
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<(u64, u64, bool), String> {
    let (mut seed, mut count, mut child) = (1, 100, false);
    while let Some(a) = args.next() {
        let mut number = || {
            let v = args.next().ok_or_else(|| format!("{a} needs a number"))?;
            v.parse::<u64>().map_err(|e| format!("{a} {v}: {e}"))
        };
        match a.as_str() {
            "--seed" => seed = number()?,
            "--count" => count = number()?,
            "--child" => child = true,
            _ => return Err(format!("unknown argument {a}; usage: fuzzdiff --seed N --count M")),
        }
    }
    Ok((seed, count, child))
}

/// Plays in this process. Each sequence has its own alarm.
fn play(seed: u64, count: u64) {
    // SAFETY: no memory involved: broken pipes and size limits are results, not deaths.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let l = libc::rlimit { rlim_cur: 4 << 20, rlim_max: 4 << 20 };
        libc::setrlimit(libc::RLIMIT_FSIZE, &l);
    }
    for s in seed..seed + count {
        sys::alarm(SEQUENCE_SECONDS);
        println!("seed {s}");
        for line in fuzz::play::play(s) {
            println!("{line}");
        }
        println!("end of {s}");
    }
}

/// Answers by seed; a sequence that did not end says so.
type Answers = BTreeMap<u64, String>;

fn answers(on: run::On, seed: u64, count: u64) -> Result<Answers, String> {
    let me = std::env::current_exe().map_err(|e| format!("own path: {e}"))?;
    let mut all = Answers::new();
    let mut next = seed;
    while next < seed + count {
        let mut cmd = match on {
            run::On::Kernel => Command::new(&me),
            run::On::Engine => {
                let mut c = Command::new(run::launcher()?);
                c.args(["run", "--engine", "user", "--"]).arg(&me);
                c
            }
        };
        let n = BATCH.min(seed + count - next);
        cmd.args(["--child", "--seed", &next.to_string(), "--count", &n.to_string()]);
        let limit = Duration::from_secs(u64::from(SEQUENCE_SECONDS) * n + 5);
        let (text, status) = run::run_limited(cmd, limit)?;
        let done = split(&text, &mut all);
        if done == 0 {
            return Err(format!("seed {next} on {on:?} said nothing ({status})"));
        }
        // A sequence that killed its process is not played again.
        next += done;
    }
    Ok(all)
}

/// Sorts a child's lines by seed; how many seeds it began.
fn split(text: &str, all: &mut Answers) -> u64 {
    let (mut seeds, mut now) = (0, 0);
    for line in text.lines() {
        if let Some(s) = line.strip_prefix("seed ") {
            now = s.parse().unwrap_or(0);
            seeds += 1;
            all.insert(now, "  did not end\n".into());
        } else if line.starts_with("end of ") {
            let said = all.entry(now).or_default();
            *said = said.replace("  did not end\n", "");
        } else {
            let said = all.entry(now).or_default();
            said.push_str(line);
            said.push('\n');
        }
    }
    seeds
}

fn compare(seed: u64, count: u64) -> Result<ExitCode, String> {
    if !run::kernel_has_io_uring() {
        println!("skipped: the kernel's io_uring is not available here to compare with");
        return Ok(ExitCode::SUCCESS);
    }
    let mut bad = Vec::new();
    for from in (seed..seed + count).step_by(BATCH as usize) {
        let n = BATCH.min(seed + count - from);
        let (kernel, engine) =
            (answers(run::On::Kernel, from, n)?, answers(run::On::Engine, from, n)?);
        for s in from..from + n {
            let of = |a: &Answers| a.get(&s).cloned().unwrap_or_else(|| "  not played\n".into());
            if diff::diff(&of(&kernel), &of(&engine)).is_some() {
                bad.extend(confirm(s)?);
            }
        }
    }
    println!("{count} sequences from seed {seed}: {} differ{}", bad.len(), list(&bad));
    Ok(if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(bad: &[u64]) -> String {
    if bad.is_empty() {
        return String::new();
    }
    format!(
        " (fuzzdiff --seed {} --count 1)",
        bad.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
    )
}

/// Plays a differing seed again, on both, alone: a busy machine may have been too slow.
/// A difference that shows again is printed.
fn confirm(seed: u64) -> Result<Option<u64>, String> {
    let kernel = answers(run::On::Kernel, seed, 1)?;
    let engine = answers(run::On::Engine, seed, 1)?;
    let of = |a: &Answers| a.get(&seed).cloned().unwrap_or_default();
    Ok(diff::diff(&of(&kernel), &of(&engine)).map(|text| {
        println!("seed {seed} (- kernel, + engine):\n{text}");
        seed
    }))
}
