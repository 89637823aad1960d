//! Error numbers as the kernel's interfaces use them: a positive integer below 4096.
//! Application bytes and syscall results become an `Errno` without any checking of
//! which number it is.

/// A positive error number, as in `errno(3)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($value);)*
            /// The symbolic name, where it is one this engine uses itself.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Errno::$name => Some(stringify!($name)),)* _ => None }
            }
        }
    };
}

errnos! {
    /// Operation not permitted.
    PERM = 1;
    /// No such file, or no such request.
    NOENT = 2;
    /// No such process.
    SRCH = 3;
    /// Interrupted by a signal.
    INTR = 4;
    /// I/O error.
    IO = 5;
    /// No such device or address: nothing was registered.
    NXIO = 6;
    /// Argument list too long.
    TOOBIG = 7;
    /// Bad file descriptor.
    BADF = 9;
    /// No child.
    CHILD = 10;
    /// Would block.
    AGAIN = 11;
    /// Out of memory.
    NOMEM = 12;
    /// Permission denied.
    ACCES = 13;
    /// Bad address.
    FAULT = 14;
    /// Busy.
    BUSY = 16;
    /// Exists already, or the ring belongs to another task.
    EXIST = 17;
    /// Cross-device link.
    XDEV = 18;
    /// No such device.
    NODEV = 19;
    /// Not a directory.
    NOTDIR = 20;
    /// Invalid argument.
    INVAL = 22;
    /// File table overflow.
    NFILE = 23;
    /// Too many open files.
    MFILE = 24;
    /// File too large.
    FBIG = 27;
    /// Illegal seek.
    SPIPE = 29;
    /// Broken pipe.
    PIPE = 32;
    /// Result too large.
    RANGE = 34;
    /// Path too long.
    NAMETOOLONG = 36;
    /// No such syscall.
    NOSYS = 38;
    /// Too many symbolic links, or one that was not wanted.
    LOOP = 40;
    /// Timer expired.
    TIME = 62;
    /// Value too large.
    OVERFLOW = 75;
    /// File descriptor in bad state.
    BADFD = 77;
    /// Not a socket.
    NOTSOCK = 88;
    /// Operation not supported.
    OPNOTSUPP = 95;
    /// No buffer space available.
    NOBUFS = 105;
    /// Connection in progress already.
    ISCONN = 106;
    /// The time was up.
    TIMEDOUT = 110;
    /// In progress already.
    ALREADY = 114;
    /// In progress.
    INPROGRESS = 115;
    /// Cancelled.
    CANCELED = 125;
    /// The owner died.
    OWNERDEAD = 130;
}

impl Errno {
    /// The result field of a CQE: the negative number.
    pub fn res(self) -> i32 {
        -self.0
    }
    /// Splits a raw syscall return value.
    pub fn check(ret: isize) -> Result<usize, Errno> {
        if (-4095..0).contains(&ret) {
            Err(Errno(-ret as i32))
        } else {
            Ok(ret as usize)
        }
    }
}

impl core::fmt::Debug for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "E{name}"),
            None => write!(f, "errno {}", self.0),
        }
    }
}
