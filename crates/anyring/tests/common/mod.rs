//! Shared by the tests: backends, and forked children.

#![allow(dead_code)]

use anyring::{opcode, Backend, IoUring};
use std::io;
use std::sync::OnceLock;

/// The backends that work here; says so if one does not.
pub fn backends() -> &'static [Backend] {
    static FOUND: OnceLock<&[Backend]> = OnceLock::new();
    FOUND.get_or_init(|| {
        let kernel = IoUring::<anyring::squeue::Entry>::builder().backend(Backend::Kernel).build(1);
        match kernel {
            Ok(_) => &[Backend::User, Backend::Kernel],
            Err(error) => {
                eprintln!("skipped on the kernel's io_uring: {error}");
                &[Backend::User]
            }
        }
    })
}

/// A ring of 8 entries.
pub fn ring(backend: Backend) -> IoUring {
    IoUring::builder().backend(backend).build(8).unwrap()
}

/// Pushes an entry whose pointers stay valid.
pub fn push(ring: &mut IoUring, entry: anyring::squeue::Entry) {
    // SAFETY: the tests keep what they point to.
    unsafe { ring.submission().push(&entry).unwrap() };
}

/// A NOP with this user data.
pub fn nop(user_data: u64) -> anyring::squeue::Entry {
    opcode::Nop::new().build().user_data(user_data)
}

/// User data and result of what is there.
pub fn completions(ring: &mut IoUring) -> Vec<(u64, i32)> {
    ring.completion().map(|done| (done.user_data(), done.result())).collect()
}

/// Runs `body` in a forked child; its exit status.
pub fn in_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `body` and leaves; the C library lets it allocate.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "{}", io::Error::last_os_error());
        if pid == 0 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            libc::_exit(result.unwrap_or(99));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -libc::WTERMSIG(status)
        }
    }
}
