//! The edges of requests and waits, on the kernel's io_uring and on ours: the same program must print the
//! same. Where the kernel's does not work, the comparison is left out.

mod common;

use common::{anyring, compile, scratch, stderr, stdout};
use std::process::Output;

fn run(engine: &str, program: &str, way: &str, limits: &str) -> Output {
    let script = format!("{limits}; exec timeout -k 2 40 '{program}' {way}");
    anyring(&["run", "--engine", engine, "--", "sh", "-c", &script]).output().unwrap()
}

fn same(way: &str, limits: &str) -> String {
    let dir = scratch(&format!("edges-{way}"));
    let flags = ["-Wno-unused-result", "-pthread"];
    let program = compile("edges.c", &dir, "edges", &flags, &["-luring"]);
    let ours = run("user", &program, way, limits);
    assert_eq!(stderr(&ours), "");
    assert!(ours.status.success(), "{:?}\n{}", ours.status, stdout(&ours));
    let kernels = run("kernel", &program, way, limits);
    if stdout(&kernels).starts_with("no ring: ") {
        println!("not compared: the kernel's io_uring does not work here");
    } else {
        assert_eq!(stdout(&ours), stdout(&kernels), "left: ours, right: the kernel's");
    }
    stdout(&ours).to_owned()
}

#[test]
fn readiness_that_no_call_finds_does_not_spin() {
    assert_eq!(same("readiness", "true"), "full -62\nroom 1\nerror queue -11\n");
}

#[test]
fn accept_on_what_does_not_listen_fails_at_once() {
    assert_eq!(same("listener", "true"), "connected -22\ndatagram -95\npipe -88\n");
}

#[test]
fn a_ring_closed_under_a_waiting_thread_serves_it_to_the_end() {
    assert_eq!(same("closed", "true"), "close 0\nwaiter 0\nread 1\n");
}

#[test]
fn a_forced_async_write_to_a_broken_pipe_raises_no_signal() {
    assert_eq!(same("pipe", "true"), "alive -32\n");
}

#[test]
fn a_callback_thread_of_the_c_library_uses_a_ring() {
    assert_eq!(same("callback", "true"), "callback 40\n");
}

#[test]
fn waits_left_by_longjmp_keep_no_descriptors() {
    assert_eq!(same("longjmp", "ulimit -Sn 200"), "all left\n");
}
