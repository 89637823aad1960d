//! A program's io_uring calls reach the engine on every way they can take, in the program and in
//! its children; and nothing else of the program changes.

mod common;

use common::{anyring, assert_quiet, block, compile, scratch, statistics, stderr, stdout, Outer};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

/// An answer that can only come from the filter outside.
const OUTER: Outer = Outer::Errno(95);

/// Runs calls.c under a filter from outside; the results it printed.
fn calls(name: &str, ways: &[&str]) -> (Output, Vec<serde_json::Value>) {
    let dir = scratch(name);
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let stats = dir.join("stats");
    let mut command = anyring(&["run", "--stats", stats.to_str().unwrap(), "--", &program]);
    command.args(ways);
    let output = block(&mut command, OUTER).output().unwrap();
    assert_quiet(&output, 0);
    (output, statistics(&stats))
}

/// What the engine answers to io_uring_enter without a descriptor.
fn answers(output: &Output) -> Vec<(&str, i64)> {
    stdout(output)
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(way, ret)| (way, ret.parse().unwrap()))
        .collect()
}

fn assert_all_from_the_engine(output: &Output, count: usize) {
    let answers = answers(output);
    assert_eq!(answers.len(), count, "{answers:?}");
    for (way, ret) in answers {
        assert_eq!(ret, -i64::from(libc::EBADF), "{way}");
    }
}

fn sum(lines: &[serde_json::Value], key: &str) -> u64 {
    lines.iter().map(|line| line[key].as_u64().unwrap()).sum()
}

#[test]
fn inline_and_libc_calls() {
    let (output, lines) = calls("inline-libc", &["inline", "libc", "inline"]);
    assert_all_from_the_engine(&output, 3);
    assert_eq!(lines.len(), 1);
    assert_eq!((sum(&lines, "traps"), sum(&lines, "direct")), (2, 1));
    assert_eq!((&lines[0]["engine"], &lines[0]["comm"]), (&"user".into(), &"calls".into()));
}

#[test]
fn a_trap_leaves_errno_alone() {
    let (output, _) = calls("errno", &["errno"]);
    assert_eq!(stdout(&output), "errno 77\n");
}

#[test]
fn masks_threads_and_forks() {
    let (output, lines) = calls("masked", &["masked", "thread", "fork"]);
    assert_all_from_the_engine(&output, 3);
    assert_eq!(lines.len(), 2, "the forked child has counters of its own");
    assert_eq!(sum(&lines, "traps"), 3);
}

#[test]
fn executed_programs_even_with_a_clean_environment() {
    let ways = ["vfork", "spawn", "spawn-clean", "execl", "execvp", "system", "popen"];
    let (output, lines) = calls("exec", &ways);
    assert_all_from_the_engine(&output, ways.len());
    assert_eq!(lines.len(), ways.len(), "the settings were carried on");
    assert_eq!(sum(&lines, "traps"), ways.len() as u64);
}

#[test]
fn long_argument_lists() {
    let (output, lines) = calls("execle", &["execle-clean"]);
    assert_all_from_the_engine(&output, 6);
    assert_eq!((sum(&lines, "traps"), sum(&lines, "direct")), (3, 3));
}

#[test]
fn the_programs_own_sigsys_handler() {
    let (output, _) = calls("sigsys", &["sigsys"]);
    let text = stdout(&output);
    assert_eq!(text, format!("handler 31 kept 1\nafter -{}\n", libc::EBADF));
}

#[test]
fn the_programs_own_filter_that_traps() {
    let (output, _) = calls("own-filter", &["own-filter"]);
    let text = stdout(&output);
    assert_eq!(text, format!("emulated 42\nafter -{}\nkilled by 31\n", libc::EBADF));
}

#[test]
fn every_filter_from_outside_is_outranked() {
    let dir = scratch("outer");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    for outer in [1, 38, 95].map(Outer::Errno).into_iter().chain([Outer::Trap]) {
        let mut command = anyring(&["run", "--", &program, "inline", "libc"]);
        let output = block(&mut command, outer).output().unwrap();
        assert_quiet(&output, 0);
        assert_all_from_the_engine(&output, 2);
    }
}

#[test]
fn kernel_leaves_the_calls_alone() {
    let dir = scratch("kernel");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let stats = dir.join("stats");
    let args = ["run", "--engine", "kernel", "--stats", stats.to_str().unwrap(), "--", &program];
    let mut command = anyring(&args);
    command.args(["inline", "libc"]);
    let output = block(&mut command, OUTER).output().unwrap();
    assert_quiet(&output, 0);
    assert_eq!(stdout(&output), "inline -95\nlibc -95\n");
    let lines = statistics(&stats);
    assert_eq!((&lines[0]["engine"], lines.len()), (&"kernel".into(), 1));
}

#[test]
fn a_launcher_under_a_launcher() {
    let dir = scratch("nested");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let launcher = common::launcher().to_str().unwrap();
    for inner in ["auto", "user", "kernel"] {
        let args = ["run", "--", launcher, "run", "--engine", inner, "--", &program, "inline"];
        let output = block(&mut anyring(&args), OUTER).output().unwrap();
        assert_quiet(&output, 0);
        assert_all_from_the_engine(&output, 1);
    }
}

#[test]
fn settings_come_from_the_environment_too() {
    let dir = scratch("environment");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let library = common::launcher().with_file_name("libanyring_preload.so");
    let mut command = std::process::Command::new(&program);
    command.arg("inline").env("LD_PRELOAD", &library).env("ANYRING_ENGINE", "user");
    let output = block(&mut command, OUTER).output().unwrap();
    assert_quiet(&output, 0);
    assert_all_from_the_engine(&output, 1);
    command.env("ANYRING_ENGINE", "turbo");
    let output = command.output().unwrap();
    assert_eq!(stderr(&output).lines().count(), 1);
    assert!(stderr(&output).starts_with("anyring: ANYRING_ENGINE is 'turbo'"));
    assert_all_from_the_engine(&output, 1);
}

#[test]
fn exit_codes_and_signals_are_the_programs() {
    for engine in ["kernel", "user"] {
        let run = |script: &str| {
            anyring(&["run", "--engine", engine, "--", "sh", "-c", script]).output().unwrap()
        };
        assert_quiet(&run("exit 7"), 7);
        assert_quiet(&run("exit 125"), 125);
        assert_eq!(run("kill -TERM $$").status.signal(), Some(libc::SIGTERM));
        assert_eq!(run("kill -SYS $$").status.signal(), Some(libc::SIGSYS));
        // A broken pipe still ends the program.
        assert_quiet(&run("(while echo x; do :; done; echo bad >&2) | head -1"), 0);
    }
}

#[test]
fn the_limit_of_open_files_is_the_programs() {
    let script = "ulimit -Sn 300; ulimit -n; sh -c 'ulimit -n'";
    let output = anyring(&["run", "--engine", "user", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(stdout(&output), "300\n300\n");
}

fn static_child(name: &str, flags: &[&str], arg: &str) -> Output {
    let dir = scratch(name);
    let program = compile("static.c", &dir, "static", &[&["-static"], flags].concat(), &[]);
    let script = format!("'{program}' {arg}; exit $?");
    anyring(&["run", "--engine", "user", "--", "sh", "-c", &script]).output().unwrap()
}

#[test]
fn a_static_child_without_io_uring_runs_as_if_alone() {
    let output = static_child("static-child", &[], "");
    assert_quiet(&output, 5);
    assert_eq!(stdout(&output), "done\n");
}

#[test]
fn a_static_child_with_io_uring_gets_a_line() {
    let line = |output: &Output| {
        let text = stderr(output).to_owned();
        assert!(text.starts_with("anyring: '"), "{text}");
        assert!(text.lines().next().unwrap().contains("makes io_uring calls itself"), "{text}");
    };
    let output = static_child("static-uring", &["-DCALLS"], "");
    line(&output);
    assert_eq!(output.status.code(), Some(5), "it may never make one");
    let output = static_child("static-uring-call", &["-DCALLS"], "x");
    line(&output);
    assert_eq!(output.status.code(), Some(128 + libc::SIGSYS));
}

#[test]
fn the_statistics_file_may_be_named_relatively() {
    let dir = scratch("relative");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let script = format!("cd / && '{program}' libc");
    let mut command =
        anyring(&["run", "--engine", "user", "--stats", "here", "--", "sh", "-c", &script]);
    assert_quiet(&command.current_dir(&dir).output().unwrap(), 0);
    assert_eq!(statistics(&Path::new(&dir).join("here")).len(), 1);
}

/// Runs registers.c with `threads` threads; traps and direct calls.
fn hot_site(name: &str, policy: &str, threads: u64) -> (u64, u64) {
    let dir = scratch(name);
    let program = compile("registers.c", &dir, "registers", &[], &[]);
    let stats = dir.join("stats");
    let stats_arg = stats.to_str().unwrap();
    let args = ["run", "--engine", "user", "--policy", policy, "--stats", stats_arg, "--"];
    let output = anyring(&args).arg(&program).arg(threads.to_string()).output().unwrap();
    assert_eq!(stdout(&output), format!("ok -{}\n", libc::EBADF), "{}", stderr(&output));
    assert_quiet(&output, 0);
    let lines = statistics(&stats);
    (sum(&lines, "traps"), sum(&lines, "direct"))
}

#[test]
fn a_hot_site_is_rewritten_and_keeps_all_a_system_call_keeps() {
    let (traps, direct) = hot_site("hot-site", "rewrite=on", 1);
    assert_eq!((traps, traps + direct), (8, 2000));
}

#[test]
fn a_site_is_rewritten_under_running_threads() {
    let (traps, direct) = hot_site("hot-threads", "rewrite=on", 8);
    assert_eq!(traps + direct, 16_000);
    assert!(direct > 0);
}

#[test]
fn rewriting_can_be_switched_off() {
    assert_eq!(hot_site("hot-off", "rewrite=off", 1), (2000, 0));
}
