//! Turns the kernel's io_uring off for the time of one command.
//!
//! `kernel.io_uring_disabled` is global to the machine, so the earlier value must come back
//! whatever happens to us. A *keeper* process, in a session of its own, holds the lock, sets
//! the value and waits for the end of its stdin; that end comes when we close it, and also
//! when we panic, are interrupted or are killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The setting; kernels before 6.6 do not have it.
const SETTING: &str = "/proc/sys/kernel/io_uring_disabled";
/// Whoever changes the setting holds a lock on this file for that time.
const LOCK: &str = "/tmp/anyring-sysctl.lock";
/// What the keeper says once the value is set.
const READY: u8 = b'+';

/// Whether this machine lets us turn io_uring off for everybody.
pub fn available() -> bool {
    Path::new(SETTING).exists() && OpenOptions::new().write(true).open(SETTING).is_ok()
}

/// io_uring is off for the whole machine while this lives.
pub struct Off {
    keeper: Child,
    // Closing it is what tells the keeper to restore the value.
    hold: Option<ChildStdin>,
}

impl Off {
    /// Starts `keeper`, a command that calls [`keep`], and waits until io_uring is off.
    pub fn start(mut keeper: Command) -> io::Result<Off> {
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: setsid is async-signal-safe and touches no memory.
        unsafe {
            keeper.pre_exec(|| {
                if libc::setsid() < 0 {
                    Err(io::Error::last_os_error())
                } else {
                    Ok(())
                }
            })
        };
        let mut keeper = keeper.spawn()?;
        let hold = keeper.stdin.take();
        let mut answer = [0];
        let told = keeper.stdout.take().map(|mut stdout| stdout.read_exact(&mut answer));
        let off = Off { keeper, hold };
        match told {
            Some(Ok(())) if answer[0] == READY => Ok(off),
            _ => Err(io::Error::other("the keeper of the setting ended early")),
        }
    }
}

impl Drop for Off {
    fn drop(&mut self) {
        drop(self.hold.take());
        let _ = self.keeper.wait();
    }
}

/// The keeper's whole life: lock, set, wait for the end of stdin, restore.
pub fn keep() -> io::Result<()> {
    let lock = lock()?;
    let earlier = fs::read_to_string(SETTING)?;
    fs::write(SETTING, "2")?;
    let restore = Restore { earlier };
    io::stdout().write_all(&[READY])?;
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    drop(restore);
    drop(lock);
    Ok(())
}

struct Restore {
    earlier: String,
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Err(error) = fs::write(SETTING, self.earlier.trim()) {
            eprintln!("cannot restore {SETTING}: {error}; write {} to it", self.earlier.trim());
        }
    }
}

fn lock() -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(LOCK)?;
    loop {
        // SAFETY: flock takes a descriptor, which `file` keeps open, and an integer.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } == 0 {
            return Ok(file);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
