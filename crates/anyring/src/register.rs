//! What registrations take and give.

use anyring_uapi::register;
use std::fmt::{self, Debug, Formatter};
use std::os::fd::RawFd;

/// In a list of files for
/// [`register_files_update`](crate::Submitter::register_files_update): leaves that slot as it is.
pub const SKIP_FILE: RawFd = -2;

/// Which operations the backend does.
///
/// ```
/// use anyring::{opcode, Backend, IoUring, Probe};
///
/// # fn main() -> std::io::Result<()> {
/// let ring: IoUring = IoUring::builder().backend(Backend::User).build(1)?;
/// let mut probe = Probe::new();
/// ring.submitter().register_probe(&mut probe)?;
/// assert!(probe.is_supported(opcode::Read::CODE));
/// assert!(!probe.is_supported(255));
/// # Ok(())
/// # }
/// ```
pub struct Probe(Box<ProbeMemory>);

/// `struct io_uring_probe` with room for every opcode.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProbeMemory {
    head: register::Probe,
    ops: [register::ProbeOp; Probe::COUNT],
}

impl Probe {
    pub(crate) const COUNT: usize = 256;

    /// One that knows of no operation yet.
    pub fn new() -> Probe {
        let op = register::ProbeOp { op: 0, resv: 0, flags: 0, resv2: 0 };
        let head = register::Probe { last_op: 0, ops_len: 0, resv: 0, resv2: [0; 3] };
        Probe(Box::new(ProbeMemory { head, ops: [op; Probe::COUNT] }))
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        std::ptr::from_mut(&mut *self.0).cast()
    }

    /// Whether the operation of this number works.
    pub fn is_supported(&self, opcode: u8) -> bool {
        // As many entries as there are opcodes, in their order.
        self.0.ops[..usize::from(self.0.head.ops_len)]
            .get(usize::from(opcode))
            .is_some_and(|entry| entry.flags & register::PROBE_SUPPORTED != 0)
    }
}

impl Default for Probe {
    fn default() -> Probe {
        Probe::new()
    }
}

impl Debug for Probe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let supported = (0..=u8::MAX).filter(|&opcode| self.is_supported(opcode));
        f.debug_tuple("Probe").field(&supported.collect::<Vec<_>>()).finish()
    }
}

/// Something that a restricted ring may do, see
/// [`register_restrictions`](crate::Submitter::register_restrictions).
#[repr(transparent)]
#[derive(Debug)]
pub struct Restriction(register::Restriction);

impl Restriction {
    fn new(opcode: u16, value: u8) -> Restriction {
        Restriction(register::Restriction { opcode, value, resv: 0, resv2: [0; 3] })
    }

    /// This registration.
    pub fn register_op(op: u8) -> Restriction {
        Restriction::new(0, op)
    }

    /// This operation.
    pub fn sqe_op(op: u8) -> Restriction {
        Restriction::new(1, op)
    }

    /// Entries with these [flags](crate::squeue::Flags).
    pub fn sqe_flags_allowed(flags: u8) -> Restriction {
        Restriction::new(2, flags)
    }

    /// Only entries with these [flags](crate::squeue::Flags).
    pub fn sqe_flags_required(flags: u8) -> Restriction {
        Restriction::new(3, flags)
    }
}
