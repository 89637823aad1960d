//! Interposed: calls that change the process's credentials. The C library applies them to the
//! threads it knows; the engine's workers still have the old ones and must be replaced.

use crate::sys::SignalsOff;
use crate::{next, state};
use core::ffi::c_int;
use libc::{gid_t, uid_t};

/// Whether the call of this number changes credentials.
pub fn changes(nr: i64) -> bool {
    matches!(
        nr,
        libc::SYS_setuid
            | libc::SYS_setgid
            | libc::SYS_setreuid
            | libc::SYS_setregid
            | libc::SYS_setresuid
            | libc::SYS_setresgid
            | libc::SYS_setgroups
    )
}

/// The credentials have changed.
pub fn changed() {
    if let Some(engine) = state::process().own_engine() {
        let _signals = SignalsOff::new();
        engine.credentials_changed();
    }
}

macro_rules! setters {
    ($(fn $name:ident($($arg:ident: $type:ty),*);)*) => {$(
        /// Changes credentials.
        ///
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(test), no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            // SAFETY: the caller's.
            let ret = unsafe { next::$name($($arg),*) };
            if ret == 0 && state::active() {
                changed();
            }
            ret
        }
    )*};
}

setters! {
    fn setuid(id: uid_t);
    fn setgid(id: gid_t);
    fn seteuid(id: uid_t);
    fn setegid(id: gid_t);
    fn setreuid(r: uid_t, e: uid_t);
    fn setregid(r: gid_t, e: gid_t);
    fn setresuid(r: uid_t, e: uid_t, s: uid_t);
    fn setresgid(r: gid_t, e: gid_t, s: gid_t);
    fn setgroups(n: usize, list: *const gid_t);
}
