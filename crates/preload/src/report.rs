//! When a process writes its line of statistics ([`anyring_front::stats`]).
//!
//! A process that made no io_uring call writes nothing. One that executes another program writes
//! before that; if exec then fails it writes again at its end, with the sums of both: of a
//! process's lines the last one counts.

use crate::state;
use crate::sys::{self, SignalsOff};
use anyring_engine::Stats;
use anyring_front::stats::{self, Process};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

pub use anyring_front::stats::{descriptor, owns, remember};

/// Opens the file. Called by the constructor.
pub fn open(path: Option<&[u8]>, private_min: i32) {
    let Some(path) = path.filter(|path| !path.is_empty()) else { return };
    if !stats::open(sys::pass, path, private_min) {
        sys::complain(&[b"cannot write statistics to '", path, b"'"]);
    }
}

/// Writes the line, once.
pub fn at_exit() {
    let process = state::process();
    if is_due() && !process.reported.swap(true, AcqRel) {
        write_line();
    }
}

/// Writes the line before exec.
pub fn before_exec() {
    if is_due() && !state::process().reported.load(Acquire) {
        write_line();
    }
}

/// A process that made an io_uring call, and is not a child of vfork.
fn is_due() -> bool {
    if !stats::wanted() {
        return false;
    }
    let process = state::process();
    process.own_engine().is_some() || process.used_the_kernel()
}

fn write_line() {
    let _signals = SignalsOff::new();
    let process = state::process();
    let (engine, counts) = match process.own_engine() {
        Some(engine) => ("user", engine.stats()),
        None => ("kernel", Stats::default()),
    };
    let calls = Some([process.traps.load(Relaxed), process.direct.load(Relaxed)]);
    stats::write_line(sys::pass, Process { engine, calls }, &counts);
}
