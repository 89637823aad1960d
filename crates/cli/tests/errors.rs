//! Every error is one line on standard error that names the command, and an exit code as
//! env(1) and timeout(1) use it.

mod common;

use common::{anyring, block, compile, launcher, scratch, stderr, stdout, Outer};
use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};
use std::process::{Command, Output};

fn assert_error(output: &Output, code: i32, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("anyring: "), "{text}");
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(stdout(output), "");
}

fn run(args: &[&str]) -> Output {
    anyring(&[&["run"], args].concat()).output().unwrap()
}

#[test]
fn a_missing_program() {
    assert_error(
        &run(&["--", "no-such-program-here"]),
        127,
        &["'no-such-program-here'", "No such"],
    );
    assert_error(&run(&["--", "/no/such/program"]), 127, &["'/no/such/program'"]);
    assert_error(&run(&["--", ""]), 127, &["''"]);
}

#[test]
fn files_that_are_not_programs() {
    let dir = scratch("not-programs");
    let plain = dir.join("plain");
    fs::write(&plain, "echo").unwrap();
    assert_error(&run(&["--", plain.to_str().unwrap()]), 126, &["Permission denied"]);
    assert_error(&run(&["--", dir.to_str().unwrap()]), 126, &["Permission denied"]);
    assert_error(&run(&["--", "/dev/null/x"]), 126, &["Not a directory"]);
}

#[test]
fn wrong_command_lines() {
    assert_error(&run(&[]), 125, &["PROGRAM"]);
    assert_error(&anyring(&[]).output().unwrap(), 125, &["no command"]);
    assert_error(&run(&["--engine", "turbo", "--", "true"]), 125, &["turbo", "auto, user, kernel"]);
    let mut command = anyring(&["run", "--", "true"]);
    command.env("ANYRING_ENGINE", "turbo");
    assert_error(&command.output().unwrap(), 125, &["turbo"]);
    assert_error(
        &run(&["--policy", "fast", "--", "true"]),
        125,
        &["'fast' is not understood", "lazy_wake"],
    );
    let stats = ["--stats", "/no/such/dir/file", "--", "true"];
    assert_error(&run(&stats), 125, &["'/no/such/dir/file'", "No such"]);
}

#[test]
fn a_static_program() {
    let dir = scratch("static-program");
    let program = compile("static.c", &dir, "plain", &["-static"], &[]);
    assert_error(
        &run(&["--engine", "user", "--", &program]),
        126,
        &[&program, "statically linked"],
    );
    let mut blocked = anyring(&["run", "--", &program]);
    block(&mut blocked, Outer::Errno(1));
    assert_error(&blocked.output().unwrap(), 126, &["statically linked"]);
    assert_eq!(run(&["--engine", "kernel", "--", &program]).status.code(), Some(5));
}

#[test]
fn a_program_for_another_architecture() {
    let dir = scratch("other-architecture");
    let program = dir.join("elf32");
    let mut header = vec![0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16] = 2;
    header[18] = 3;
    fs::write(&program, header).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    assert_error(&run(&["--engine", "user", "--", program]), 126, &["another architecture"]);
}

#[test]
fn a_set_user_id_program() {
    // SAFETY: takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can give a file away");
        return;
    }
    let dir = scratch("set-user-id");
    let program = compile("calls.c", &dir, "calls", &[], &[]);
    let mut command = anyring(&["run", "--engine", "user", "--", &program]);
    assert!(command.status().unwrap().success());
    chown(&program, Some(65534), None).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_error(&command.output().unwrap(), 126, &["set-user-id"]);
    // A script takes nothing from its own bits, and its interpreter has none.
    let script = dir.join("script");
    fs::write(&script, "#!/bin/sh\nexit 3\n").unwrap();
    chown(&script, Some(65534), None).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4755)).unwrap();
    let ran = run(&["--engine", "user", "--", script.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(3));
}

#[test]
fn no_trap_allowed() {
    let mut command = anyring(&["run", "--", "true"]);
    block(&mut command, Outer::KillProcess);
    assert_error(&command.output().unwrap(), 125, &["seccomp", "--engine kernel"]);
}

#[test]
fn no_library() {
    let copy = scratch("no-library").join("anyring");
    fs::copy(launcher(), &copy).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(args).env_remove("ANYRING_LIBRARY");
        command
    };
    let run = ["run", "--engine", "user", "--", "true"];
    // Another test's fork may hold the fresh copy open for writing for a moment.
    let busy = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ExecutableFileBusy;
    while command(&["--version"]).output().as_ref().is_err_and(busy) {
        std::thread::yield_now();
    }
    assert_error(
        &command(&run).output().unwrap(),
        125,
        &["libanyring_preload.so", "ANYRING_LIBRARY"],
    );
    let library = launcher().with_file_name("libanyring_preload.so");
    assert!(command(&run).env("ANYRING_LIBRARY", library).status().unwrap().success());
}
