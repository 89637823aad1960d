use crate::squeue::Entry;
use anyring_uapi::{op, Sqe};

/// Does nothing, and completes with 0: measures the ring itself.
///
/// ```
/// use anyring::{opcode, Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// let nop = opcode::Nop::new().build().user_data(1);
/// // SAFETY: a NOP points to nothing.
/// unsafe { ring.submission().push(&nop).expect("the queue is empty") };
/// ring.submit_and_wait(1)?;
/// let done = ring.completion().next().expect("one completion");
/// assert_eq!((done.user_data(), done.result()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Nop {}

#[allow(clippy::new_without_default)]
impl Nop {
    /// The number of the operation, for [`Probe::is_supported`](crate::Probe::is_supported).
    pub const CODE: u8 = op::NOP;

    /// A NOP.
    #[inline]
    pub fn new() -> Nop {
        Nop {}
    }

    /// The finished entry.
    #[inline]
    pub fn build(self) -> Entry {
        Entry(Sqe { opcode: Nop::CODE, fd: super::define::NO_FILE, ..Default::default() })
    }
}
