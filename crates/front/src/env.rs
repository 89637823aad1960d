//! The environment that carries anyring into a program that is executed, even where the
//! program that executes it passes a clean one.
//!
//! Built into memory of the caller: this runs after fork and vfork. What the program set
//! itself wins, except for LD_PRELOAD, where our library is put first, and for the internal
//! variable.

use crate::settings::{value_of, ENGINE, FILTER, POLICY, PRELOAD, STATS};
use core::ffi::{c_char, CStr};
use core::ptr;

/// What is carried on.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    /// Absolute path of the preload library.
    pub library: &'a [u8],
    /// `ANYRING_FILTER=...`
    pub filter: &'a CStr,
    /// `ANYRING_ENGINE=...`, `ANYRING_STATS=...`, `ANYRING_POLICY=...`, as far as they are set.
    pub settings: [Option<&'a CStr>; 3],
}

/// The names of [`Carried::settings`].
pub const SETTINGS: [&CStr; 3] = [ENGINE, STATS, POLICY];

/// An environment as exec takes it.
#[derive(Clone, Copy)]
pub struct Environ(*const *const c_char);

impl Environ {
    /// # Safety
    /// `entries` is null, or a null-terminated array of C strings that outlives the value.
    pub unsafe fn new(entries: *const *const c_char) -> Environ {
        Environ(entries)
    }

    /// The entries.
    pub fn iter(self) -> impl Iterator<Item = &'static CStr> {
        let mut next = self.0;
        core::iter::from_fn(move || {
            // SAFETY: within the array, see `new`.
            if next.is_null() || unsafe { *next }.is_null() {
                return None;
            }
            // SAFETY: as above; the entry is a C string.
            let entry = unsafe { CStr::from_ptr(*next) };
            // SAFETY: not past the terminator.
            next = unsafe { next.add(1) };
            Some(entry)
        })
    }

    /// The value of the first entry of this name.
    pub fn get(self, name: &CStr) -> Option<&'static [u8]> {
        self.iter().find_map(|entry| value_of(entry.to_bytes(), name))
    }
}

/// What [`build`] needs: entries with the terminator, and bytes of text.
pub fn sizes(env: Environ, carried: &Carried) -> (usize, usize) {
    let list = env.get(PRELOAD).map_or(0, <[u8]>::len);
    let own = SETTINGS.len() + 3;
    (env.iter().count() + own, PRELOAD.to_bytes().len() + carried.library.len() + list + 3)
}

/// Writes the environment into `entries`, with the text of LD_PRELOAD in `text`; `false` if they
/// are smaller than [`sizes`] says.
pub fn build(
    env: Environ,
    carried: &Carried,
    entries: &mut [*const c_char],
    text: &mut [u8],
) -> bool {
    let (count, len) = sizes(env, carried);
    if entries.len() < count || text.len() < len {
        return false;
    }
    preload_entry(env.get(PRELOAD).unwrap_or(&[]), carried.library, text);
    let mut used = 0;
    let mut push = |entry: *const c_char| {
        entries[used] = entry;
        used += 1;
    };
    push(text.as_ptr().cast());
    push(carried.filter.as_ptr());
    for (name, setting) in SETTINGS.iter().zip(carried.settings) {
        if let (Some(setting), None) = (setting, env.get(name)) {
            push(setting.as_ptr());
        }
    }
    for entry in env.iter() {
        let bytes = entry.to_bytes();
        if value_of(bytes, PRELOAD).is_none() && value_of(bytes, FILTER).is_none() {
            push(entry.as_ptr());
        }
    }
    push(ptr::null());
    true
}

/// `LD_PRELOAD=library:rest of the list`. The list is separated by colons or blanks.
fn preload_entry(list: &[u8], library: &[u8], text: &mut [u8]) {
    let mut used = 0;
    let mut push = |bytes: &[u8]| {
        text[used..used + bytes.len()].copy_from_slice(bytes);
        used += bytes.len();
    };
    push(PRELOAD.to_bytes());
    push(b"=");
    push(library);
    for item in list.split(|b| matches!(b, b':' | b' ')) {
        if !item.is_empty() && item != library {
            push(b":");
            push(item);
        }
    }
    push(b"\0");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    const LIB: &[u8] = b"/opt/lib/libanyring_preload.so";

    fn built(env: &[&str], settings: [Option<&CStr>; 3]) -> Vec<String> {
        let strings: Vec<CString> = env.iter().map(|e| CString::new(*e).unwrap()).collect();
        let mut pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        pointers.push(ptr::null());
        // SAFETY: terminated, and alive until the end of this function.
        let env = unsafe { Environ::new(pointers.as_ptr()) };
        let carried = Carried { library: LIB, filter: c"ANYRING_FILTER=f", settings };
        let (count, len) = sizes(env, &carried);
        let mut entries = vec![ptr::null(); count];
        let mut text = vec![0; len];
        assert!(!build(env, &carried, &mut entries[..count - 1], &mut text));
        assert!(build(env, &carried, &mut entries, &mut text));
        // SAFETY: `build` terminates the array, and the text it points to is alive.
        let result = unsafe { Environ::new(entries.as_ptr()) };
        result.iter().map(|e| e.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_clean_environment_gets_everything() {
        assert_eq!(
            built(&[], [Some(c"ANYRING_ENGINE=user"), Some(c"ANYRING_STATS=/s"), None]),
            [
                "LD_PRELOAD=/opt/lib/libanyring_preload.so",
                "ANYRING_FILTER=f",
                "ANYRING_ENGINE=user",
                "ANYRING_STATS=/s",
            ]
        );
    }

    #[test]
    fn what_the_program_set_wins() {
        let env = ["A=1", "ANYRING_ENGINE=auto", "ANYRING_FILTER=old", "B=2"];
        assert_eq!(
            built(&env, [Some(c"ANYRING_ENGINE=user"), None, None]),
            [
                "LD_PRELOAD=/opt/lib/libanyring_preload.so",
                "ANYRING_FILTER=f",
                "A=1",
                "ANYRING_ENGINE=auto",
                "B=2",
            ]
        );
    }

    #[test]
    fn the_library_is_listed_once_and_first() {
        let env = ["LD_PRELOAD=/a.so:/opt/lib/libanyring_preload.so /b.so", "LD_PRELOAD=/c.so"];
        assert_eq!(
            built(&env, [None; 3]),
            ["LD_PRELOAD=/opt/lib/libanyring_preload.so:/a.so:/b.so", "ANYRING_FILTER=f"]
        );
    }
}
