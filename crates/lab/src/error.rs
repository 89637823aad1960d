//! One kind of error: a line that says what is wrong.

use std::fmt;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// What may fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }
    /// What the last libc call said, after what was being done.
    pub fn os(what: impl fmt::Display) -> Error {
        Error::io(what, std::io::Error::last_os_error())
    }
    /// An I/O error, after what was being done.
    pub fn io(what: impl fmt::Display, error: std::io::Error) -> Error {
        Error(format!("{what}: {error}"))
    }
    /// An errno, after what was being done.
    pub fn errno(what: impl fmt::Display, errno: i32) -> Error {
        Error::io(what, std::io::Error::from_raw_os_error(errno))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Turns what a libc function returned into a result.
pub fn check(what: impl fmt::Display, ret: i64) -> Result<i64> {
    if ret < 0 {
        Err(Error::os(what))
    } else {
        Ok(ret)
    }
}
