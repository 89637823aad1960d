//! Interposed: posix_spawn, and the exec functions with a list of arguments.

use crate::exec::{self, judge_at, with_environ, with_list};
use crate::next::{self, Strings};
use crate::state;
use anyring_front::program::{Kind, Verdict};
#[cfg(not(test))]
use core::arch::naked_asm;
use core::ffi::{c_char, c_int, CStr};
use libc::{pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

/// `posix_spawn(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attr: *const posix_spawnattr_t,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if !state::active() {
            return next::posix_spawn(pid, path, actions, attr, argv, envp);
        }
        let verdict = judge_at(libc::AT_FDCWD, CStr::from_ptr(path));
        with_environ(verdict, envp, |envp| next::posix_spawn(pid, path, actions, attr, argv, envp))
    }
}

/// `posix_spawnp(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attr: *const posix_spawnattr_t,
    argv: Strings,
    envp: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if !state::active() {
            return next::posix_spawnp(pid, file, actions, attr, argv, envp);
        }
        let verdict = judge_found(CStr::from_ptr(file));
        with_environ(verdict, envp, |envp| next::posix_spawnp(pid, file, actions, attr, argv, envp))
    }
}

/// Judges the program that a search of PATH finds.
fn judge_found(name: &CStr) -> Verdict {
    if name.to_bytes().contains(&b'/') {
        return judge_at(libc::AT_FDCWD, name);
    }
    let mut verdict = Verdict { kind: Kind::Unknown, secure: false };
    exec::for_each_candidate(name, |path| {
        // SAFETY: the path is a C string.
        let found = unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0;
        if found {
            verdict = judge_at(libc::AT_FDCWD, path);
        }
        found
    });
    verdict
}

/// A ring is closed by exec anyway, and the child that would close it earlier has SIGSYS
/// blocked, so that the trap would kill it.
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addclose(
    actions: *mut posix_spawn_file_actions_t,
    fd: c_int,
) -> c_int {
    if state::active() && state::in_ring_range(fd) {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { next::posix_spawn_file_actions_addclose(actions, fd) }
}

// execl(path, arg0, ..., NULL), execlp(file, ...), execle(path, ..., NULL, envp): arguments from
// the second on are pushed, so that with those on the stack they form one list, with the
// return address at the sixth place.
macro_rules! list_functions {
    ($($name:ident, $way:literal;)*) => {$(
        /// Executes a program with a list of arguments.
        ///
        /// # Safety
        /// As the C library's.
        #[cfg(not(test))]
        #[no_mangle]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                concat!("mov edx, ", $way),
                "call {execute}",
                "add rsp, 40",
                "ret",
                execute = sym execute_list,
            )
        }
    )*};
}

list_functions! {
    execl, "0";
    execlp, "1";
    execle, "2";
}

/// Where argument `i` is in the pushed list.
const fn place(i: usize) -> usize {
    const RETURN_ADDRESS: usize = 5;
    if i < RETURN_ADDRESS {
        i
    } else {
        i + 1
    }
}

#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn execute_list(path: *const c_char, pushed: Strings, way: c_int) -> c_int {
    const SEARCH: c_int = 1;
    const ENVIRONMENT: c_int = 2;
    // SAFETY: the caller's list ends with a null pointer, and for execle the environment follows.
    unsafe {
        let count = (0..).take_while(|&i| !(*pushed.add(place(i))).is_null()).count();
        with_list(count + 1, -1, |argv| {
            for (i, arg) in argv.iter_mut().enumerate() {
                *arg = *pushed.add(place(i));
            }
            match way {
                SEARCH => exec::execvp(path, argv.as_ptr()),
                ENVIRONMENT => {
                    let envp = (*pushed.add(place(count + 1))).cast();
                    exec::execve(path, argv.as_ptr(), envp)
                }
                _ => exec::execv(path, argv.as_ptr()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_return_address_is_skipped() {
        assert_eq!([3, 4, 5, 6].map(place), [3, 4, 6, 7]);
    }
}
