//! Files, pipes and directories for scenarios.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::sys;

/// A descriptor of the scenario's own, closed on drop.
#[derive(Debug)]
pub struct Fd(pub i32);

impl Deref for Fd {
    type Target = i32;
    fn deref(&self) -> &i32 {
        &self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        if self.0 >= 0 {
            sys::close(self.0);
        }
    }
}

/// A pipe: read end, write end.
pub fn pipe() -> (Fd, Fd) {
    pipe2(libc::O_CLOEXEC)
}

/// A pipe with flags.
pub fn pipe2(flags: i32) -> (Fd, Fd) {
    let mut p = [-1i32; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(p.as_mut_ptr(), flags) }, 0, "pipe");
    (Fd(p[0]), Fd(p[1]))
}

/// An eventfd with start value 0.
pub fn eventfd(flags: i32) -> Fd {
    // SAFETY: no memory involved.
    Fd(unsafe { libc::eventfd(0, flags | libc::EFD_CLOEXEC) })
}

/// The value of an eventfd (0 if none is there), which resets it.
pub fn eventfd_value(fd: i32) -> u64 {
    if sys::poll_now(fd, libc::POLLIN) == 0 {
        return 0;
    }
    sys::read(fd, 8).map_or(0, |b| u64::from_ne_bytes(b.try_into().unwrap_or_default()))
}

/// A directory of the scenario's own, removed on drop.
pub struct Dir {
    path: PathBuf,
}

impl Dir {
    /// Below the temporary directory.
    pub fn new() -> Dir {
        Dir::below(&std::env::temp_dir())
    }

    /// Below `parent`.
    pub fn below(parent: &Path) -> Dir {
        let mut template = crate_template(parent);
        // SAFETY: the template is NUL-terminated and writable.
        let p = unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) };
        assert!(!p.is_null(), "mkdtemp below {}", parent.display());
        template.pop();
        Dir { path: PathBuf::from(String::from_utf8(template).expect("path is text")) }
    }

    /// The path of `name` in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of `name` in it, as a C string at a lasting address.
    pub fn cpath(&self, name: &str) -> usize {
        crate::mem::cstr(&self.join(name).to_string_lossy())
    }

    /// Makes a file with this content, opened for reading and writing.
    pub fn file(&self, name: &str, content: &[u8]) -> std::fs::File {
        std::fs::write(self.join(name), content).expect("write a file");
        std::fs::OpenOptions::new().read(true).write(true).open(self.join(name)).expect("open it")
    }

    /// Makes a FIFO.
    pub fn fifo(&self, name: &str) {
        let path = self.cpath(name) as *const libc::c_char;
        // SAFETY: the path is NUL-terminated.
        let made = unsafe { libc::mkfifo(path, 0o600) };
        assert_eq!(made, 0, "mkfifo");
    }
}

impl Default for Dir {
    fn default() -> Dir {
        Dir::new()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn crate_template(parent: &Path) -> Vec<u8> {
    format!("{}/behave-XXXXXX\0", parent.display()).into_bytes()
}
