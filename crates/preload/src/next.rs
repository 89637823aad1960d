//! The functions that ours stand in front of: the next definition of each name, which is
//! usually the C library's.
//!
//! All are looked up in the constructor, so that no signal handler and no child of vfork ever
//! runs the dynamic linker; a call that comes earlier, from another library's constructor,
//! looks its function up itself. A function the C library does not have answers ENOSYS.

use crate::notify::SigEvent;
use crate::sys;
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use libc::{
    epoll_event, fd_set, gid_t, nfds_t, pid_t, pollfd, posix_spawn_file_actions_t,
    posix_spawnattr_t, pthread_attr_t, rlimit, sigaction as Sigaction, sigset_t, size_t, timespec,
    timeval, uid_t,
};

/// A list of C strings, as exec takes it.
pub type Strings = *const *const c_char;

/// What a function answers that does not exist.
trait Missing {
    fn missing() -> Self;
}

impl Missing for c_int {
    fn missing() -> c_int {
        sys::set_errno(libc::ENOSYS);
        -1
    }
}

impl Missing for i64 {
    fn missing() -> i64 {
        c_int::missing().into()
    }
}

impl Missing for usize {
    fn missing() -> usize {
        c_int::missing() as usize
    }
}

impl Missing for *mut c_void {
    fn missing() -> *mut c_void {
        usize::missing() as *mut c_void
    }
}

static READY: AtomicBool = AtomicBool::new(false);

/// Whether all functions were looked up. Before that, a function that a malloc needs at its first
/// use must not come here: the look-up may need malloc.
pub fn ready() -> bool {
    READY.load(Ordering::Relaxed)
}

fn look_up(slot: &AtomicPtr<c_void>, name: *const c_char) -> *mut c_void {
    let known = slot.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: `name` is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
    slot.store(found, Ordering::Relaxed);
    found
}

macro_rules! next {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty;)*) => {
        mod slots {
            use super::*;
            $(#[allow(non_upper_case_globals)]
            pub static $name: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());)*
        }
        /// Looks all of them up.
        pub fn look_up_all() {
            $(look_up(&slots::$name, concat!(stringify!($name), "\0").as_ptr().cast());)*
            READY.store(true, Ordering::Relaxed);
        }
        $(
            /// The next definition of this function.
            ///
            /// # Safety
            /// As that function demands.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn $name($($arg: $type),*) -> $ret {
                let name = concat!(stringify!($name), "\0").as_ptr().cast();
                let found = look_up(&slots::$name, name);
                if found.is_null() {
                    return <$ret as Missing>::missing();
                }
                // SAFETY: the C library's function of this name has this type.
                unsafe {
                    let f: unsafe extern "C" fn($($type),*) -> $ret = core::mem::transmute(found);
                    f($($arg),*)
                }
            }
        )*
    };
}

next! {
    fn close(fd: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, op: c_int, arg: usize) -> c_int;
    fn fcntl64(fd: c_int, op: c_int, arg: usize) -> c_int;
    fn mmap(addr: *mut c_void, len: size_t, prot: c_int, flags: c_int, fd: c_int, off: i64) -> *mut c_void;
    fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int;
    fn ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, len: size_t) -> c_int;
    fn __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, len: size_t) -> c_int;
    fn select(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *mut timeval) -> c_int;
    fn pselect(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn epoll_wait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int;
    fn epoll_pwait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    fn epoll_pwait2(ep: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn epoll_ctl(ep: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    fn sigaction(signal: c_int, new: *const Sigaction, old: *mut Sigaction) -> c_int;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn __sysv_signal(signal: c_int, handler: usize) -> usize;
    fn sigset(signal: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int;
    fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int;
    fn sigsuspend(mask: *const sigset_t) -> c_int;
    fn sigblock(mask: c_int) -> c_int;
    fn sigsetmask(mask: c_int) -> c_int;
    fn sighold(signal: c_int) -> c_int;
    fn sigignore(signal: c_int) -> c_int;
    fn siginterrupt(signal: c_int, flag: c_int) -> c_int;
    fn pthread_attr_setsigmask_np(attr: *mut pthread_attr_t, mask: *const sigset_t) -> c_int;
    fn posix_spawnattr_setsigmask(attr: *mut posix_spawnattr_t, mask: *const sigset_t) -> c_int;
    fn posix_spawn_file_actions_addclose(actions: *mut posix_spawn_file_actions_t, fd: c_int) -> c_int;
    fn getrlimit(what: c_uint, limit: *mut rlimit) -> c_int;
    fn setrlimit(what: c_uint, limit: *const rlimit) -> c_int;
    fn prlimit(pid: pid_t, what: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int;
    fn sysconf(name: c_int) -> i64;
    fn getdtablesize() -> c_int;
    fn setuid(id: uid_t) -> c_int;
    fn setgid(id: gid_t) -> c_int;
    fn seteuid(id: uid_t) -> c_int;
    fn setegid(id: gid_t) -> c_int;
    fn setreuid(r: uid_t, e: uid_t) -> c_int;
    fn setregid(r: gid_t, e: gid_t) -> c_int;
    fn setresuid(r: uid_t, e: uid_t, s: uid_t) -> c_int;
    fn setresgid(r: gid_t, e: gid_t, s: gid_t) -> c_int;
    fn setgroups(n: size_t, list: *const gid_t) -> c_int;
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t, attr: *const posix_spawnattr_t, argv: Strings, envp: Strings) -> c_int;
    fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t, attr: *const posix_spawnattr_t, argv: Strings, envp: Strings) -> c_int;
    fn timer_create(clock: c_int, event: *const SigEvent, timer: *mut c_void) -> c_int;
    fn mq_notify(queue: c_int, event: *const SigEvent) -> c_int;
    fn quick_exit(status: c_int) -> c_int;
}
