//! What the launcher's tests share: the built launcher and library, small C programs, and
//! filters from outside that block the kernel's io_uring for one command.
#![allow(dead_code)]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// What a filter from outside answers to the three calls.
#[derive(Clone, Copy, Debug)]
pub enum Outer {
    Errno(u16),
    Trap,
    KillProcess,
}

/// The launcher, with the preload library next to it.
pub fn launcher() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let launcher = PathBuf::from(env!("CARGO_BIN_EXE_anyring"));
        let profile = launcher.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "anyring-preload"]);
        if profile == Some("release") {
            build.arg("--release");
        }
        build.arg("--target-dir").arg(launcher.parent().unwrap().parent().unwrap());
        assert!(build.status().unwrap().success(), "the preload library does not build");
        launcher
    })
}

/// A command line of the launcher, without settings from outside.
pub fn anyring(args: &[&str]) -> Command {
    let mut command = Command::new(launcher());
    command.args(args);
    for name in ["ANYRING_ENGINE", "ANYRING_STATS", "ANYRING_POLICY", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    command
}

/// A directory for one test, empty.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Compiles a C program of tests/programs.
pub fn compile(source: &str, dir: &Path, name: &str, flags: &[&str], libs: &[&str]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = dir.join(name);
    let built = Command::new("gcc")
        .args(["-O1", "-Wall", "-Werror", "-pthread"])
        .args(flags)
        .arg("-o")
        .args([&program, &source])
        .args(libs)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().unwrap().to_owned()
}

/// Blocks the three calls for `command` with a seccomp filter.
pub fn block(command: &mut Command, how: Outer) -> &mut Command {
    let action = match how {
        Outer::Errno(errno) => 0x0005_0000 | u32::from(errno),
        Outer::Trap => 0x0003_0000,
        Outer::KillProcess => 0x8000_0000,
    };
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let filter = [
        op(0x20, 0, 0, 0),
        op(0x35, 0, 2, 425),
        op(0x25, 1, 0, 427),
        op(0x06, 0, 0, action),
        op(0x06, 0, 0, 0x7fff_0000),
    ];
    let install = move || {
        let mut filter = filter;
        let program = libc::sock_fprog { len: 5, filter: filter.as_mut_ptr() };
        // SAFETY: the program lives across the calls.
        let ret = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, 2, &program)
        };
        if ret == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(install) }
}

/// Standard output as text.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Standard error as text.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Asserts that nothing was printed on standard error, and this exit code.
pub fn assert_quiet(output: &Output, code: i32) {
    assert_eq!(stderr(output), "");
    assert_eq!(output.status.code(), Some(code), "{:?}", output.status);
}

/// The lines of a statistics file.
pub fn statistics(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
