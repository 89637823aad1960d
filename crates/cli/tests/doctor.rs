//! `doctor` names the reason for which io_uring does not work.

mod common;

use common::{anyring, assert_quiet, block, stdout, Outer};
use serde_json::Value;

fn doctor(outer: Outer) -> Value {
    let mut command = anyring(&["doctor", "--json"]);
    let output = block(&mut command, outer).output().unwrap();
    assert_quiet(&output, 0);
    serde_json::from_str(stdout(&output)).unwrap()
}

/// The sysctl comes first where it is set.
fn sysctl_is_set() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|v| v.trim() != "0")
}

#[test]
fn a_filter_with_an_error_number() {
    for errno in [1, 38, 95] {
        let found = doctor(Outer::Errno(errno));
        assert_eq!(found["io_uring"]["works"], false);
        assert_eq!(found["io_uring"]["errno"], errno);
        if !sysctl_is_set() || errno != 1 {
            assert_eq!(found["io_uring"]["reason"], "seccomp");
        }
        assert_eq!(found["auto"], "user");
        assert_eq!(found["features"]["seccomp_trap"]["works"], true);
    }
}

#[test]
fn a_filter_that_traps_or_kills() {
    for (outer, auto) in [(Outer::Trap, "user"), (Outer::KillProcess, "none")] {
        let found = doctor(outer);
        assert_eq!(found["io_uring"]["reason"], "seccomp-kill");
        assert_eq!(found["io_uring"]["signal"], libc::SIGSYS);
        assert_eq!(found["auto"], auto);
    }
}

#[test]
fn text_for_people() {
    let mut command = anyring(&["doctor"]);
    let output = block(&mut command, Outer::Errno(95)).output().unwrap();
    assert_quiet(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("a seccomp filter answers EOPNOTSUPP (errno 95)\n"), "{text}");
    assert!(text.contains("answers with its own engine\n"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}
