//! Interposed: the exec family. What is executed is covered too, even if the program passes a
//! clean environment: the filter survives exec, so a program without the handler would die of
//! its first io_uring call.
//!
//! A static or secure-exec program, or one of another architecture or C library, cannot load the
//! library. It gets the program's environment unchanged; if it looks as if it made io_uring calls
//! itself, one line says what will happen.
//!
//! All of this may run in a child of vfork, on its parent's memory: no allocation, and buffers on
//! the stack unless they are unusually large.

use crate::state;
use crate::sys::{self, complain, to_libc};
use crate::{limits, next::Strings, report, start};
use anyring_front::env::{self, Carried, Environ};
use anyring_front::layout::{Inherited, TEXT_LEN};
use anyring_front::program::{self, Kind, Verdict};
use anyring_front::{scan, settings};
use core::ffi::{c_char, c_int, CStr};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed, Ordering::*};

const ENTRY_LEN: usize = "ANYRING_FILTER=".len() + TEXT_LEN + 1;
const ENTRY_START: usize = ENTRY_LEN - 1 - TEXT_LEN;

/// `ANYRING_FILTER=...`, which is part of the environment and rewritten in place.
static ENTRY: [AtomicU8; ENTRY_LEN] = [const { AtomicU8::new(0) }; ENTRY_LEN];
static CARRIED: AtomicPtr<Carried<'static>> = AtomicPtr::new(ptr::null_mut());

extern "C" {
    static environ: Strings;
}

/// The program's environment.
fn own_environ() -> Strings {
    // SAFETY: the C library's variable, read as the C library does.
    unsafe { environ }
}

/// Remembers what goes on into executed programs; `false` if the library's own path is unknown.
/// Called by the constructor.
pub fn remember(startup: Environ, filter: Inherited) -> bool {
    write_entry(filter);
    // SAFETY: the entry is terminated and stays.
    unsafe { libc::putenv(ENTRY.as_ptr() as *mut c_char) };
    let Some(library) = library_path() else { return false };
    let settings = start::settings_of(startup).map(|entry| {
        // Copied, because programs overwrite their first environment to change their title.
        entry.map(|entry| &*Box::leak(Box::<CStr>::from(entry)))
    });
    // SAFETY: terminated, and stays.
    let filter = unsafe { CStr::from_ptr(ENTRY.as_ptr() as *const c_char) };
    CARRIED.store(Box::leak(Box::new(Carried { library, filter, settings })), Release);
    true
}

fn library_path() -> Option<&'static [u8]> {
    // SAFETY: all zeroes is a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let here = library_path as *const () as *const core::ffi::c_void;
    let buf = Vec::leak(vec![0u8; libc::PATH_MAX as usize]);
    // SAFETY: the buffer is as large as realpath demands, and the name is a C string.
    unsafe {
        if libc::dladdr(here, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        if libc::realpath(info.dli_fname, buf.as_mut_ptr().cast()).is_null() {
            return None;
        }
    }
    CStr::from_bytes_until_nul(buf).ok().map(CStr::to_bytes)
}

fn write_entry(filter: Inherited) {
    let name = settings::FILTER.to_bytes().iter().chain(b"=");
    for (place, &byte) in ENTRY.iter().zip(name.chain(&filter.text())) {
        place.store(byte, Relaxed);
    }
}

/// The soft limit of RLIMIT_NOFILE that executed programs shall have; 0: as it is.
pub fn set_nofile_soft(soft: u64) {
    let layout = state::layout();
    let text = Inherited {
        ring_base: layout.ring_base as u32,
        ring_end: layout.ring_end as u32,
        nofile_soft: u32::try_from(soft).unwrap_or(u32::MAX),
    }
    .text();
    for (place, byte) in ENTRY[ENTRY_START..].iter().zip(text) {
        place.store(byte, Relaxed);
    }
}

/// Calls `f` with the environment for the program judged.
///
/// # Safety
/// `envp` is null or an environment.
pub unsafe fn with_environ<R>(verdict: Verdict, envp: Strings, f: impl FnOnce(Strings) -> R) -> R {
    // SAFETY: null, or made by `remember` and never freed.
    let carried = unsafe { CARRIED.load(Acquire).as_ref() };
    let Some(carried) = carried.filter(|_| verdict.covered()) else { return f(envp) };
    // SAFETY: the caller's.
    let given = unsafe { Environ::new(envp) };
    let mut entries = [ptr::null(); 512];
    let mut text = [0u8; 4096];
    let (count, len) = env::sizes(given, carried);
    if count <= entries.len() && len <= text.len() {
        env::build(given, carried, &mut entries, &mut text);
        return f(entries.as_ptr());
    }
    let size = count * size_of::<*const c_char>() + len;
    let at = sys::map(size);
    if at == 0 {
        return f(envp);
    }
    // SAFETY: our own mapping, large enough for both, unmapped when `f` has returned.
    unsafe {
        let entries = core::slice::from_raw_parts_mut(at as *mut *const c_char, count);
        let text = core::slice::from_raw_parts_mut(entries.as_mut_ptr_range().end.cast(), len);
        env::build(given, carried, entries, text);
        let ret = f(at as Strings);
        sys::unmap(at, size);
        ret
    }
}

/// Says so if a program that cannot be covered seems to make io_uring calls.
pub fn warn(verdict: Verdict, fd: c_int, path: &CStr) {
    if verdict.kind == Kind::Static && scan::makes_io_uring_calls(fd) {
        complain(&[
            b"'",
            path.to_bytes(),
            b"' is static and makes io_uring calls itself: anyring cannot answer them, and such \
              a call will end it with SIGSYS; use a dynamically linked build",
        ]);
    }
}

/// Judges the program, and warns.
pub fn judge_at(dir: c_int, path: &CStr) -> Verdict {
    let unknown = Verdict { kind: Kind::Unknown, secure: false };
    let Ok(fd) = program::Fd::open_at(dir, path) else { return unknown };
    let verdict = program::judge(fd.number());
    warn(verdict, fd.number(), path);
    verdict
}

/// Calls exec, which returns only if it fails; a raw result.
fn execute(call: impl FnOnce() -> isize) -> isize {
    report::before_exec();
    let raised = limits::lower_for_exec();
    let ret = call();
    limits::raise_after_exec(raised);
    ret
}

/// execve; a raw result.
///
/// # Safety
/// As execve.
unsafe fn execve_raw(path: *const c_char, argv: Strings, envp: Strings) -> isize {
    // SAFETY: the caller's.
    let call = |envp: Strings| unsafe {
        sys::call6(libc::SYS_execve, [path as usize, argv as usize, envp as usize, 0, 0, 0])
    };
    if !state::active() || path.is_null() {
        report::before_exec();
        return call(envp);
    }
    // SAFETY: the caller's.
    unsafe {
        let verdict = judge_at(libc::AT_FDCWD, CStr::from_ptr(path));
        with_environ(verdict, envp, |envp| execute(|| call(envp)))
    }
}

/// `execve(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: the caller's.
    to_libc(unsafe { execve_raw(path, argv, envp) }) as c_int
}

/// `execv(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe { execve(path, argv, own_environ()) }
}

/// `execveat(2)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn execveat(
    dir: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's.
    let call = |envp: Strings| unsafe {
        let a = [dir as usize, path as usize, argv as usize, envp as usize, flags as usize, 0];
        sys::call6(libc::SYS_execveat, a)
    };
    if !state::active() || path.is_null() {
        report::before_exec();
        return to_libc(call(envp)) as c_int;
    }
    // SAFETY: the caller's.
    unsafe {
        let name = CStr::from_ptr(path);
        let verdict = if name.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            let verdict = program::judge(dir);
            warn(verdict, dir, c"fd");
            verdict
        } else {
            judge_at(dir, name)
        };
        to_libc(with_environ(verdict, envp, |envp| execute(|| call(envp)))) as c_int
    }
}

/// `fexecve(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    if argv.is_null() || envp.is_null() {
        return to_libc(-(libc::EINVAL as isize)) as c_int;
    }
    // SAFETY: the caller's.
    unsafe { execveat(fd, c"".as_ptr(), argv, envp, libc::AT_EMPTY_PATH) }
}

/// `execvp(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe { execvpe(file, argv, own_environ()) }
}

/// `execvpe(3)`
///
/// # Safety
/// As the C library's.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let name = CStr::from_ptr(file);
        if name.is_empty() {
            return to_libc(-(libc::ENOENT as isize)) as c_int;
        }
        if name.to_bytes().contains(&b'/') {
            return to_libc(execute_or_interpret(name, argv, envp)) as c_int;
        }
        let mut denied = false;
        let mut last = -(libc::ENOENT as isize);
        for_each_candidate(name, |path| {
            last = execute_or_interpret(path, argv, envp);
            denied |= last == -(libc::EACCES as isize);
            let go_on = [libc::EACCES, libc::ENOENT, libc::ENOTDIR, libc::ESTALE, libc::ENODEV];
            !go_on.contains(&(-last as c_int)) && last != -(libc::ETIMEDOUT as isize)
        });
        let failed_search = last == -(libc::ENOENT as isize) || last == -(libc::ENOTDIR as isize);
        if denied && failed_search {
            last = -(libc::EACCES as isize);
        }
        to_libc(last) as c_int
    }
}

/// Calls `f` with every place of PATH where `name` may be, until it says `true`.
pub fn for_each_candidate(name: &CStr, mut f: impl FnMut(&CStr) -> bool) {
    // SAFETY: the name is a C string, and the value is used before the program can change it.
    let list = unsafe {
        let value = libc::getenv(c"PATH".as_ptr());
        if value.is_null() {
            c"/bin:/usr/bin"
        } else {
            CStr::from_ptr(value)
        }
    };
    let name = name.to_bytes();
    let mut path = [0u8; libc::PATH_MAX as usize];
    for dir in list.to_bytes().split(|&b| b == b':') {
        let len = dir.len() + usize::from(!dir.is_empty()) + name.len();
        if len >= path.len() {
            continue;
        }
        let mut used = 0;
        let slash: &[u8] = if dir.is_empty() { b"" } else { b"/" };
        for part in [dir, slash, name, b"\0"] {
            path[used..used + part.len()].copy_from_slice(part);
            used += part.len();
        }
        if let Ok(path) = CStr::from_bytes_until_nul(&path) {
            if f(path) {
                return;
            }
        }
    }
}

/// execve, and a file the kernel does not recognise is a shell script; a raw result.
///
/// # Safety
/// As execve.
unsafe fn execute_or_interpret(path: &CStr, argv: Strings, envp: Strings) -> isize {
    // SAFETY: the caller's.
    unsafe {
        // Only a file that is there is worth the preparations for exec.
        let a = [libc::AT_FDCWD as usize, path.as_ptr() as usize, libc::F_OK as usize, 0, 0, 0];
        let there = sys::call6(libc::SYS_faccessat, a);
        if there < 0 {
            return there;
        }
        let ret = execve_raw(path.as_ptr(), argv, envp);
        if ret != -(libc::ENOEXEC as isize) {
            return ret;
        }
        let count = (0..).take_while(|&i| !(*argv.add(i)).is_null()).count();
        with_list(count + 3, -(libc::ENOMEM as isize), |list| {
            list[0] = c"/bin/sh".as_ptr();
            list[1] = path.as_ptr();
            for i in 1..count {
                list[i + 1] = *argv.add(i);
            }
            list[count.max(1) + 1] = ptr::null();
            execve_raw(c"/bin/sh".as_ptr(), list.as_ptr(), envp)
        })
    }
}

/// Calls `f` with room for `len` pointers: on the stack, or mapped if they are many. Without
/// memory, `none` is the result.
pub fn with_list<R>(len: usize, none: R, f: impl FnOnce(&mut [*const c_char]) -> R) -> R {
    let mut list = [ptr::null(); 256];
    if len <= list.len() {
        return f(&mut list[..len]);
    }
    let size = len * size_of::<*const c_char>();
    let at = sys::map(size);
    if at == 0 {
        return none;
    }
    // SAFETY: our own mapping, unmapped when `f` has returned.
    unsafe {
        let ret = f(core::slice::from_raw_parts_mut(at as *mut *const c_char, len));
        sys::unmap(at, size);
        ret
    }
}
