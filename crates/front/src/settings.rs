//! The settings and their names in the environment.

use core::ffi::CStr;

/// `auto`, `user` or `kernel`.
pub const ENGINE: &CStr = c"ANYRING_ENGINE";
/// The file that gets one line of JSON per process.
pub const STATS: &CStr = c"ANYRING_STATS";
/// `NAME=VALUE,...`: the engine's policy.
pub const POLICY: &CStr = c"ANYRING_POLICY";
/// Where the launcher looks for the preload library last.
pub const LIBRARY: &CStr = c"ANYRING_LIBRARY";
/// Internal: the filter that is installed in this process already, see [`crate::layout`].
pub const FILTER: &CStr = c"ANYRING_FILTER";
/// The dynamic linker's list.
pub const PRELOAD: &CStr = c"LD_PRELOAD";
/// File name of the preload library.
pub const LIBRARY_FILE: &str = "libanyring_preload.so";

/// Who answers the program's io_uring calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The kernel where its io_uring works, else the user-space engine.
    Auto,
    /// The user-space engine.
    User,
    /// The kernel.
    Kernel,
}

impl Choice {
    /// The choice of this name.
    pub fn parse(name: &[u8]) -> Option<Choice> {
        match name {
            b"auto" => Some(Choice::Auto),
            b"user" => Some(Choice::User),
            b"kernel" => Some(Choice::Kernel),
            _ => None,
        }
    }
    /// The name of this choice.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::User => "user",
            Choice::Kernel => "kernel",
        }
    }
}

/// The value of `entry` if it is `name=value`.
pub fn value_of<'a>(entry: &'a [u8], name: &CStr) -> Option<&'a [u8]> {
    let rest = entry.strip_prefix(name.to_bytes())?;
    rest.strip_prefix(b"=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_the_whole_name() {
        assert_eq!(value_of(b"ANYRING_STATS=x=y", STATS), Some(&b"x=y"[..]));
        assert_eq!(value_of(b"ANYRING_STATS2=x", STATS), None);
        assert_eq!(value_of(b"ANYRING_STATS", STATS), None);
    }

    #[test]
    fn choices_are_named() {
        for choice in [Choice::Auto, Choice::User, Choice::Kernel] {
            assert_eq!(Choice::parse(choice.name().as_bytes()), Some(choice));
        }
        assert_eq!(Choice::parse(b"AUTO"), None);
    }
}
