//! Who does the work of a ring: the kernel's io_uring, or the engine in this process.

mod kernel;
mod report;
mod user;

use crate::memory::Mapping;
use anyring_front::settings::{Choice, ENGINE, LIBRARY_FILE, PRELOAD};
use anyring_uapi::Params;
use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Who does the work of a ring.
///
/// ```
/// use anyring::{Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// // In user space, whether or not the kernel's io_uring works:
/// let ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// assert_eq!(ring.backend(), Backend::User);
///
/// // The kernel where its io_uring works, else in user space:
/// let ring = IoUring::new(8)?;
/// println!("done by {:?}", ring.backend());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Backend {
    /// What `ANYRING_ENGINE` says (`auto`, `user` or `kernel`); without it, or with `auto`, the
    /// kernel where its io_uring works, else the engine. Found out once per process.
    #[default]
    Auto,
    /// The engine in this process.
    User,
    /// The kernel's io_uring, or whoever answers the system calls in its place.
    Kernel,
}

/// A backend that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    User,
    Kernel,
}

impl Backend {
    fn driver(self) -> io::Result<Driver> {
        static AUTOMATIC: OnceLock<Driver> = OnceLock::new();
        match self {
            Backend::User => Ok(Driver::User),
            Backend::Kernel => Ok(Driver::Kernel),
            Backend::Auto => match AUTOMATIC.get() {
                Some(driver) => Ok(*driver),
                None => {
                    let driver = automatic(variable(ENGINE), variable(PRELOAD), kernel::works)?;
                    Ok(*AUTOMATIC.get_or_init(|| driver))
                }
            },
        }
    }
}

fn variable(name: &CStr) -> Option<OsString> {
    std::env::var_os(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// What [`Backend::Auto`] means with these values of ANYRING_ENGINE and LD_PRELOAD.
fn automatic(
    engine: Option<OsString>,
    preload: Option<OsString>,
    kernel_works: impl Fn() -> bool,
) -> io::Result<Driver> {
    let choice = match &engine {
        None => Choice::Auto,
        Some(name) => Choice::parse(name.as_bytes()).ok_or_else(|| {
            let text = format!("ANYRING_ENGINE is {name:?}: set it to auto, user or kernel");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?,
    };
    // Under the preload library the setting is the library's, which answers the system calls.
    let preloaded = preload.is_some_and(|list| contains(list.as_bytes(), LIBRARY_FILE.as_bytes()));
    Ok(match choice {
        Choice::Kernel => Driver::Kernel,
        Choice::User if !preloaded => Driver::User,
        Choice::Auto | Choice::User if kernel_works() => Driver::Kernel,
        _ => Driver::User,
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A ring's descriptor, closed with the value.
#[derive(Debug)]
pub(crate) struct Descriptor {
    driver: Driver,
    number: RawFd,
    /// The engine's ring, where the engine does the work.
    ring: Option<user::Ring>,
}

impl Descriptor {
    /// Makes a ring.
    pub(crate) fn setup(
        backend: Backend,
        entries: u32,
        params: &mut Params,
    ) -> io::Result<Descriptor> {
        let driver = backend.driver()?;
        let number = match driver {
            Driver::User => user::setup(entries, params)?,
            Driver::Kernel => kernel::setup(entries, params)?,
        };
        let ring = (driver == Driver::User).then(|| user::Ring::of(number)).flatten();
        Ok(Descriptor { driver, number, ring })
    }

    /// Takes over the descriptor of a ring that exists.
    pub(crate) fn adopt(number: RawFd) -> Descriptor {
        let ring = user::Ring::of(number);
        let driver = if ring.is_some() { Driver::User } else { Driver::Kernel };
        Descriptor { driver, number, ring }
    }

    /// Who does the work.
    pub(crate) fn backend(&self) -> Backend {
        match self.driver {
            Driver::User => Backend::User,
            Driver::Kernel => Backend::Kernel,
        }
    }

    /// The number.
    #[inline]
    pub(crate) fn number(&self) -> RawFd {
        self.number
    }

    /// Maps a region of the ring.
    pub(crate) fn map(&self, len: usize, offset: u64) -> io::Result<Mapping> {
        const PROT: i32 = libc::PROT_READ | libc::PROT_WRITE;
        const FLAGS: i32 = libc::MAP_SHARED | libc::MAP_POPULATE;
        let addr = match self.driver {
            Driver::User => user::map(self.number, len, PROT, FLAGS, offset)?,
            Driver::Kernel => kernel::map(self.number, len, PROT, FLAGS, offset)?,
        };
        let addr = NonNull::new(addr as *mut u8)
            .ok_or_else(|| io::Error::other("the ring was mapped at address 0"))?;
        // SAFETY: just mapped.
        Ok(unsafe { Mapping::new(addr, len) })
    }

    /// `io_uring_enter(2)`; `index` is the registered index of this ring, if it has one.
    ///
    /// # Safety
    /// As the system call's: `arg` is what the flags say.
    #[inline]
    pub(crate) unsafe fn enter(
        &self,
        index: Option<u32>,
        call: [u32; 3],
        arg: (usize, usize),
    ) -> io::Result<usize> {
        if let (Some(ring), None) = (&self.ring, index) {
            return ring.enter(self.number, call, arg);
        }
        let [to_submit, min_complete, mut flags] = call;
        let mut fd = self.number as u32;
        if let Some(index) = index {
            fd = index;
            flags |= anyring_uapi::enter::REGISTERED_RING;
        }
        let call = [fd, to_submit, min_complete, flags];
        match self.driver {
            Driver::User => user::enter(call, arg),
            // SAFETY: the caller's.
            Driver::Kernel => unsafe { kernel::enter(call, arg) },
        }
    }

    /// `io_uring_register(2)`.
    ///
    /// # Safety
    /// As the system call's: `arg` and `nr` are what the operation says.
    pub(crate) unsafe fn register(
        &self,
        index: Option<u32>,
        op: u32,
        arg: usize,
        nr: u32,
    ) -> io::Result<u32> {
        let (fd, op) = match index {
            Some(index) => (index, op | anyring_uapi::register::USE_REGISTERED_RING),
            None => (self.number as u32, op),
        };
        match self.driver {
            Driver::User => user::register(fd, op, arg, nr),
            // SAFETY: the caller's.
            Driver::Kernel => unsafe { kernel::register(fd, op, arg, nr) },
        }
    }

    /// Somebody asked for the number, maybe to poll it. Whether that must be kept up to date.
    pub(crate) fn watch(&self) -> bool {
        let ours = self.driver == Driver::User;
        if ours {
            user::watch(self.number);
        }
        ours
    }

    /// The completions of a watched ring were all taken.
    #[cold]
    pub(crate) fn emptied(&self) {
        if self.driver == Driver::User {
            user::emptied(self.number);
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        match self.driver {
            Driver::User => user::close(self.number),
            Driver::Kernel => kernel::close(self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(engine: &str, preload: &str, works: bool) -> Driver {
        let value = |text: &str| (!text.is_empty()).then(|| OsString::from(text));
        automatic(value(engine), value(preload), || works).unwrap()
    }

    #[test]
    fn the_kernel_where_it_works() {
        assert_eq!(chosen("", "", true), Driver::Kernel);
        assert_eq!(chosen("", "", false), Driver::User);
        assert_eq!(chosen("auto", "", false), Driver::User);
    }

    #[test]
    fn the_setting_decides() {
        assert_eq!(chosen("user", "", true), Driver::User);
        assert_eq!(chosen("kernel", "", false), Driver::Kernel);
        let error = automatic(Some("fast".into()), None, || true).unwrap_err();
        assert!(error.to_string().contains("auto, user or kernel"), "{error}");
    }

    #[test]
    fn the_preload_library_answers_where_it_can() {
        let list = "/x.so:/opt/libanyring_preload.so";
        assert_eq!(chosen("user", list, true), Driver::Kernel);
        assert_eq!(chosen("user", list, false), Driver::User);
        assert_eq!(chosen("user", "/x.so", true), Driver::User);
    }
}
