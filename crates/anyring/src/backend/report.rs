//! The line of statistics of a process whose rings the engine serves: with ANYRING_STATS set it is
//! appended at exit, as under `anyring run --stats`. A forked child that makes a ring of its own writes its own.

use super::user;
use anyring_front::settings::STATS;
use anyring_front::stats::{self, Process};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Opens the file and sees to it that the line is written; `private_min` is where the engine's
/// descriptors begin. The caller calls it once at a time.
pub(super) fn prepare(private_min: i32) {
    let path = std::env::var_os(OsStr::from_bytes(STATS.to_bytes())).unwrap_or_default();
    if path.is_empty() || stats::wanted() {
        return;
    }
    if !stats::open(call, path.as_bytes(), private_min) {
        let error = io::Error::last_os_error();
        eprintln!("anyring: cannot write statistics to '{}': {error}", path.to_string_lossy());
        return;
    }
    // SAFETY: the function may run at any exit.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if let Some(engine) = user::existing() {
        let process = Process { engine: "user", calls: None };
        stats::write_line(call, process, &engine.stats());
    }
}

/// See [`stats::Call`].
unsafe fn call(nr: i64, a: [usize; 5]) -> isize {
    // SAFETY: the caller's.
    match unsafe { libc::syscall(nr, a[0], a[1], a[2], a[3], a[4]) } {
        -1 => -(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) as isize),
        ret => ret as isize,
    }
}
