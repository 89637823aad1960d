//! What programs do with rings besides using them, on the kernel's io_uring and on ours: the same
//! program must print the same. Where the kernel's does not work, the comparison is left out.

mod common;

use common::{anyring, compile, scratch, stderr, stdout};
use std::process::Output;

fn run(engine: &str, program: &str, way: &str) -> Output {
    // As most programs find it: a soft limit below the hard one.
    let script = format!("ulimit -Sn 1024; exec '{program}' {way}");
    anyring(&["run", "--engine", engine, "--", "sh", "-c", &script]).output().unwrap()
}

/// The text our engine gives, which is the kernel's.
fn same(way: &str) -> String {
    let dir = scratch(&format!("rings-{way}"));
    let flags = ["-Wno-nonnull", "-Wno-unused-result"];
    let program = compile("rings.c", &dir, "rings", &flags, &["-luring"]);
    let ours = run("user", &program, way);
    assert_eq!(stderr(&ours), "");
    assert!(ours.status.success(), "{:?}\n{}", ours.status, stdout(&ours));
    let kernels = run("kernel", &program, way);
    if stdout(&kernels).starts_with("no ring: ") {
        println!("not compared: the kernel's io_uring does not work here");
    } else {
        assert_eq!(stdout(&ours), stdout(&kernels), "left: ours, right: the kernel's");
    }
    stdout(&ours).to_owned()
}

#[test]
fn a_forked_child_starts_afresh_and_the_parent_goes_on() {
    assert_eq!(same("forked"), "before 0\nchild's own 0\nchild 0\nafter 0\n");
}

#[test]
fn a_forked_child_that_uses_the_parents_ring_gets_an_answer() {
    assert_eq!(same("forked-use"), "child 0\nafter 0\n");
}

#[test]
fn duplicates_keep_a_ring_alive() {
    let text = same("duplicates");
    assert!(text.ends_with("through the low copy 0\nclose 0\nclosed -1\n"), "{text}");
}

#[test]
fn a_drained_ring_is_not_ready() {
    let text = same("readiness");
    assert!(text.contains("drained 0\ndrained poll 0\nfull 1\n"), "{text}");
}

#[test]
fn closing_everything_closes_rings_and_not_the_engine() {
    let text = same("ranges");
    assert!(text.ends_with("closed -9\nnew 0\n"), "{text}");
    assert_eq!(same("loop-close"), "kept 0\n");
}

#[test]
fn the_raised_limit_stays_hidden() {
    let text = same("limits");
    assert!(text.starts_with("own 500 500 500\n500\nsystem 0\n"), "{text}");
    assert!(text.ends_with("new ring 0\n400\n"), "{text}");
}

#[test]
fn low_numbers_stay_free() {
    assert_eq!(same("lowest"), "next 0\n");
}

#[test]
fn spawned_and_vforked_children_leave_the_parents_ring_alone() {
    assert_eq!(same("spawned"), "spawn 0\nchild 768\nring 0\n");
    assert_eq!(same("vforked"), "child 768\nring 0\n");
}

#[test]
fn a_signal_handler_may_use_a_ring() {
    let text = same("signals");
    assert_eq!(text, "wait -4\nhandled 1\nin the handler 0\nring 0\nsecond 0\n");
}

#[test]
fn threads_come_and_go() {
    let text = same("threads");
    assert_eq!(text.matches("meanwhile 0\n").count(), 20, "{text}");
    assert!(!text.contains("failed"), "{text}");
}

#[test]
fn workers_follow_a_change_of_identity() {
    // SAFETY: takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become somebody else");
        return;
    }
    assert_eq!(same("identity"), "before 0\nsetgid 0\nsetuid 0\nshadow -13\n");
}

#[test]
fn other_files_at_a_rings_number_are_mapped_as_such() {
    let text = same("maps");
    assert!(text.ends_with("mapped a file there 1\nclosed 0\nclosed 9\n"), "{text}");
}
