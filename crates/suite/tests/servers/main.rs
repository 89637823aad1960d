//! Echo servers under load, with io_uring blocked: liburing in C and two Rust runtimes as published under
//! `anyring run`, and tokio-uring with the crate in place of its io-uring.
//!
//! Of each it is asked, with 8 and with 512 connections: does every byte come back, does the number of descriptors return
//! to what it was, does its memory stay flat, is there no thread per connection, does SIGTERM end it.
//! ANYRING_LOAD_SECONDS says how long the load lasts (5). `kernel::` is the same without anyring, which shows
//! that the checks are right.

mod server;

use anyring_suite::load::{self, Load};
use anyring_suite::place::{Desk, Place};
use anyring_suite::sandbox::Answer;
use libtest_mimic::{Arguments, Failed, Trial};
use server::{Kind, Server};
use std::process::ExitCode;
use std::time::Duration;

const COUNTS: [usize; 2] = [8, 512];
const PLACES: [Place; 2] = [Place::Kernel, Place::Sandbox(Answer::Eperm)];
const SECONDS: u64 = 5;
/// Workers and the reactor, and what a runtime starts for itself.
const THREADS_MAX: u64 = 16;
/// Bytes that memory may grow by between the first third of the load and its end.
const GROWTH_MAX: u64 = 4 << 20;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let mut trials = Vec::new();
    for place in PLACES {
        for kind in Kind::ALL {
            trials.extend(COUNTS.map(|count| trial(place, kind, count)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(place: Place, kind: Kind, count: usize) -> Trial {
    let name = format!("{}::{}::{count}", place.name(), kind.name());
    let trial = Trial::test(name, move || {
        let desk = Desk::new(place, &format!("{}-{count}", kind.name())).map_err(Failed::from)?;
        check(&desk, kind, count).map_err(|error| Failed::from(format!("{error}\n{}", desk.hint())))
    });
    match place.unfit() {
        Some(why) => trial.with_kind(why).with_ignored_flag(true),
        None => trial,
    }
}

fn seconds() -> Result<u64, String> {
    match std::env::var("ANYRING_LOAD_SECONDS") {
        Ok(text) => text.parse().map_err(|_| format!("ANYRING_LOAD_SECONDS={text}: not a number")),
        Err(_) => Ok(SECONDS),
    }
}

fn check(desk: &Desk, kind: Kind, connections: usize) -> Result<(), String> {
    let time = Duration::from_secs(seconds()?);
    let mut server = Server::start(desk, kind)?;
    let load = Load { port: server.port, connections: 8, time: Duration::from_millis(300) };
    load::run(&load, |_| {}).map_err(|error| format!("the first few connections: {error}"))?;
    let at_rest = server.descriptors_at_rest()?;

    let (mut threads, mut early, mut late) = (0, 0, 0);
    let load = Load { connections, time, ..load };
    let done = load::run(&load, |elapsed| {
        threads = threads.max(server.threads());
        late = server.resident();
        if elapsed < time / 3 {
            early = late;
        }
    })
    .map_err(|error| format!("{error}; the server said: {}", server.output()))?;
    if done.bytes < 1 << 20 || done.connections < connections as u64 {
        return Err(format!("this was no load: {done:?}"));
    }
    if threads == 0 || threads > THREADS_MAX {
        return Err(format!("{threads} threads for {connections} connections"));
    }
    if early == 0 || late > early + GROWTH_MAX {
        return Err(format!("memory grew from {early} to {late} bytes"));
    }
    server.wait_for_rest(at_rest)?;
    server.stop()?;
    if kind.has_statistics() {
        desk.engine_did(&["RECV", "READ"], done.bytes / (1 << 20))?;
        desk.engine_did(&["SEND", "SEND_ZC", "WRITE", "SENDMSG"], done.bytes / (1 << 20))?;
    }
    println!(
        "{}, {connections}: {} MiB, {} connections, {threads} threads, {} KiB then {} KiB",
        kind.name(),
        done.bytes >> 20,
        done.connections,
        early >> 10,
        late >> 10
    );
    Ok(())
}
