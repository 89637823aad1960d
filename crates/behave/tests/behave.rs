//! Every scenario on the kernel's io_uring and on the engine, one after the other.
//!
//! `kernel::NAME` compares the running kernel with the golden answer (ignored where it has
//! no io_uring or is of another series). `engine::NAME` compares the engine with the
//! running kernel of the golden series, or else with the golden answer.

use std::path::Path;

use anyring_behave::pending::{Pending, Verdict};
use anyring_behave::run::{self, On};
use anyring_behave::scenario::Scenario;
use anyring_behave::{diff, golden, scenarios};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

fn main() {
    let mut args = Arguments::from_args();
    // Timing answers need the machine for themselves.
    args.test_threads = Some(1);
    let live = run::kernel_has_io_uring() && run::kernel_is_golden_series();
    let pending: &'static Pending =
        Box::leak(Box::new(Pending::load().unwrap_or_else(|e| panic!("{e}"))));
    let mut trials = vec![Trial::test("pending_names_exist", || no_unknown(pending))];
    for s in scenarios::all() {
        trials.push(Trial::ignorable_test(format!("kernel::{}", s.name), move || kernel(s, live)));
        trials.push(Trial::ignorable_test(format!("engine::{}", s.name), move || {
            engine(s, live, pending)
        }));
    }
    trials.push(Trial::ignorable_test("fuzzdiff::quick_seeds", move || fuzz(live, pending)));
    libtest_mimic::run(&args, trials).exit();
}

/// A fixed set of generated sequences, kernel and engine side by side.
fn fuzz(live: bool, pending: &Pending) -> Result<Completion, Failed> {
    if !live {
        return Ok(Completion::ignored_with("no io_uring of Linux 6.18 here"));
    }
    let mut cmd = std::process::Command::new(env!("CARGO_BIN_EXE_fuzzdiff"));
    cmd.args(["--seed", "1", "--count", "40"]);
    let (text, status) = run::run_limited(cmd, std::time::Duration::from_secs(300))?;
    match (status.success(), pending.whole("fuzzdiff")) {
        (true, None) => Ok(Completion::Completed),
        (true, Some(_)) => Err("no sequence differs: remove fuzzdiff from pending.txt".into()),
        (false, Some(why)) => Ok(Completion::ignored_with(format!("pending: {why}"))),
        (false, None) => Err(text.into()),
    }
}

fn behave() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_behave"))
}

fn no_unknown(pending: &Pending) -> Result<(), Failed> {
    let unknown = pending.unknown(|n| n == "fuzzdiff" || scenarios::find(n).is_some());
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(format!("pending.txt names no scenario: {}", unknown.join(", ")).into())
    }
}

fn kernel(s: &Scenario, live: bool) -> Result<Completion, Failed> {
    if !live {
        return Ok(Completion::ignored_with("no io_uring of Linux 6.18 here"));
    }
    // One more try: a busy machine can delay an answer beyond a scenario's patience.
    let mut text = None;
    for _ in 0..2 {
        let now = run::scenario(behave(), s.name, s.seconds, On::Kernel)?;
        text = diff::diff(&golden::load(s.name)?, &now);
        if text.is_none() {
            return Ok(Completion::Completed);
        }
    }
    Err(format!("{}\n- golden, + running kernel\n{}", s.about, text.unwrap_or_default()).into())
}

fn engine(s: &Scenario, live: bool, pending: &Pending) -> Result<Completion, Failed> {
    let oracle = if live {
        run::scenario(behave(), s.name, s.seconds, On::Kernel)?
    } else {
        golden::load(s.name)?
    };
    let answer = run::scenario(behave(), s.name, s.seconds, On::Engine)?;
    match pending.compare(s.name, &oracle, &answer) {
        Verdict::Same => Ok(Completion::Completed),
        Verdict::Pending(why) => Ok(Completion::ignored_with(format!("pending: {why}"))),
        Verdict::Differs(text) => Err(format!("{}\n- kernel, + engine\n{text}", s.about).into()),
        Verdict::Stale(lines) => Err(format!("now equal: remove from pending.txt\n{lines}").into()),
    }
}
