//! The submission queue and its entries.
//!
//! The program owns the tail, the backend the head. A [`SubmissionQueue`] works on a copy of the
//! tail, which it stores with release ordering when it is dropped or synchronised: the entries are
//! written before the backend, which loads the tail with acquire ordering, can see them. The head
//! is loaded with acquire ordering: a slot is written again only after the backend copied it.

use crate::memory::Sq;
use anyring_uapi::setup::{SQE128, SQ_CQ_OVERFLOW, SQ_NEED_WAKEUP, SQ_TASKRUN};
use anyring_uapi::Sqe;
use bitflags::bitflags;
use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};
use std::marker::PhantomData;
use std::sync::atomic::{fence, Ordering};

pub(crate) mod private {
    /// Keeps the traits of this crate from being implemented elsewhere.
    pub trait Sealed {}
}
use private::Sealed;

/// A kind of submission queue entry: [`Entry`] or [`Entry128`].
pub trait EntryMarker: Clone + Debug + From<Entry> + Sealed {
    /// `IORING_SETUP_*` bits that a ring of these entries is made with.
    const BUILD_FLAGS: u32;

    /// Sets the value that the completion will carry.
    fn set_user_data(&mut self, user_data: u64);

    /// The value that the completion will carry.
    fn get_user_data(&self) -> u64;
}

bitflags! {
    /// How the ring treats an entry. `IOSQE_*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Flags: u8 {
        /// The file is a slot of the table; set by operations on a
        /// [`Fixed`](crate::types::Fixed).
        #[doc(hidden)]
        const FIXED_FILE = 1 << 0;
        /// Starts after all earlier requests have completed, and later ones after this one.
        const IO_DRAIN = 1 << 1;
        /// The next entry starts when this one has succeeded; else it is cancelled.
        const IO_LINK = 1 << 2;
        /// The next entry starts when this one has completed, whatever its result.
        const IO_HARDLINK = 1 << 3;
        /// Not tried at once: goes to a worker thread.
        const ASYNC = 1 << 4;
        /// Takes its buffer from a group;
        /// [`buffer_select`](crate::cqueue::buffer_select) of the completion's flags says which.
        const BUFFER_SELECT = 1 << 5;
        /// No completion is posted on success.
        const SKIP_SUCCESS = 1 << 6;
    }
}

/// A submission queue entry of 64 bytes.
///
/// ```
/// use anyring::{opcode, squeue::Flags, types};
///
/// let entry = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), c"/etc/hostname".as_ptr())
///     .flags(libc::O_RDONLY)
///     .build()
///     .flags(Flags::IO_LINK)
///     .user_data(0x42);
/// assert_eq!(entry.get_user_data(), 0x42);
/// ```
#[repr(C)]
#[derive(Clone)]
pub struct Entry(pub(crate) Sqe);

/// A submission queue entry of 128 bytes.
///
/// ```
/// use anyring::squeue::Entry128;
/// use anyring::{cqueue, opcode, Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring = IoUring::<Entry128, cqueue::Entry>::builder().backend(Backend::User).build(4)?;
/// let nop = Entry128::from(opcode::Nop::new().build().user_data(9));
/// // SAFETY: a NOP points to nothing.
/// unsafe { ring.submission().push(&nop).expect("the queue is empty") };
/// ring.submit_and_wait(1)?;
/// assert_eq!(ring.completion().next().map(|done| done.user_data()), Some(9));
/// # Ok(())
/// # }
/// ```
#[repr(C)]
#[derive(Clone)]
pub struct Entry128(pub(crate) Entry, pub(crate) [u8; 64]);

const _: () = assert!(size_of::<Entry>() == 64 && size_of::<Entry128>() == 128);

impl Entry {
    /// Adds flags.
    #[inline]
    pub fn flags(mut self, flags: Flags) -> Entry {
        self.0.flags |= flags.bits();
        self
    }

    /// Removes all flags.
    #[inline]
    pub fn clear_flags(mut self) -> Entry {
        self.0.flags = 0;
        self
    }

    /// Sets the value that the completion will carry.
    #[inline]
    pub fn user_data(mut self, user_data: u64) -> Entry {
        self.0.user_data = user_data;
        self
    }

    /// Sets the value that the completion will carry, in place.
    #[inline]
    pub fn set_user_data(&mut self, user_data: u64) {
        self.0.user_data = user_data;
    }

    /// The value that the completion will carry.
    #[inline]
    pub fn get_user_data(&self) -> u64 {
        self.0.user_data
    }

    /// The number of the operation.
    #[inline]
    pub fn get_opcode(&self) -> u32 {
        self.0.opcode.into()
    }

    /// The registered credentials to act with, see
    /// [`register_personality`](crate::Submitter::register_personality).
    #[inline]
    pub fn personality(mut self, personality: u16) -> Entry {
        self.0.personality = personality;
        self
    }
}

impl Entry128 {
    /// Adds flags.
    #[inline]
    pub fn flags(mut self, flags: Flags) -> Entry128 {
        self.0 = self.0.flags(flags);
        self
    }

    /// Removes all flags.
    #[inline]
    pub fn clear_flags(mut self) -> Entry128 {
        self.0 = self.0.clear_flags();
        self
    }

    /// Sets the value that the completion will carry.
    #[inline]
    pub fn user_data(mut self, user_data: u64) -> Entry128 {
        self.0.set_user_data(user_data);
        self
    }

    /// Sets the value that the completion will carry, in place.
    #[inline]
    pub fn set_user_data(&mut self, user_data: u64) {
        self.0.set_user_data(user_data);
    }

    /// The value that the completion will carry.
    #[inline]
    pub fn get_user_data(&self) -> u64 {
        self.0.get_user_data()
    }

    /// The registered credentials to act with, see
    /// [`register_personality`](crate::Submitter::register_personality).
    #[inline]
    pub fn personality(mut self, personality: u16) -> Entry128 {
        self.0 = self.0.personality(personality);
        self
    }

    /// The number of the operation.
    #[inline]
    pub fn get_opcode(&self) -> u32 {
        self.0.get_opcode()
    }
}

impl Sealed for Entry {}
impl Sealed for Entry128 {}

impl EntryMarker for Entry {
    const BUILD_FLAGS: u32 = 0;

    #[inline]
    fn set_user_data(&mut self, user_data: u64) {
        self.0.user_data = user_data;
    }

    #[inline]
    fn get_user_data(&self) -> u64 {
        self.0.user_data
    }
}

impl EntryMarker for Entry128 {
    const BUILD_FLAGS: u32 = SQE128;

    #[inline]
    fn set_user_data(&mut self, user_data: u64) {
        self.0.set_user_data(user_data);
    }

    #[inline]
    fn get_user_data(&self) -> u64 {
        self.0.get_user_data()
    }
}

impl From<Entry> for Entry128 {
    fn from(entry: Entry) -> Entry128 {
        Entry128(entry, [0; 64])
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("op_code", &self.0.opcode)
            .field("flags", &self.0.flags)
            .field("user_data", &self.0.user_data)
            .finish_non_exhaustive()
    }
}

impl Debug for Entry128 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry128")
            .field("op_code", &self.0 .0.opcode)
            .field("flags", &self.0 .0.flags)
            .field("user_data", &self.0 .0.user_data)
            .finish_non_exhaustive()
    }
}

/// The queue is full.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushError;

impl Display for PushError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the submission queue is full: submit, then push again")
    }
}

impl Error for PushError {}

/// The submission queue of a ring, see [`IoUring::submission`](crate::IoUring::submission).
///
/// What was pushed is there for the next submission when this value is dropped, or after
/// [`sync`](Self::sync).
///
/// ```
/// use anyring::{opcode, Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
/// for i in 0..10 {
///     let nop = opcode::Nop::new().build().user_data(i);
///     // SAFETY: a NOP points to nothing.
///     while unsafe { ring.submission().push(&nop) }.is_err() {
///         // The queue is full: what is in it has to go first.
///         ring.submit()?;
///     }
/// }
/// ring.submit_and_wait(1)?;
/// # Ok(())
/// # }
/// ```
pub struct SubmissionQueue<'a, E: EntryMarker = Entry> {
    head: u32,
    tail: u32,
    queue: &'a Sq,
    entries: PhantomData<E>,
}

impl<'a, E: EntryMarker> SubmissionQueue<'a, E> {
    /// # Safety
    /// Nobody else has one of the same ring now, and the ring's entries are of this kind.
    #[inline]
    pub(crate) unsafe fn new(queue: &'a Sq) -> Self {
        SubmissionQueue {
            head: queue.head().load(Ordering::Acquire),
            tail: queue.tail().load(Ordering::Relaxed),
            queue,
            entries: PhantomData,
        }
    }

    /// Makes what was pushed visible, and learns what was consumed.
    #[inline]
    pub fn sync(&mut self) {
        self.queue.tail().store(self.tail, Ordering::Release);
        self.head = self.queue.head().load(Ordering::Acquire);
    }

    /// With [`setup_sqpoll`](crate::Builder::setup_sqpoll): whether the polling thread sleeps, so
    /// that a submission must wake it.
    #[inline]
    pub fn need_wakeup(&self) -> bool {
        // Between the store of the tail and the load of the flag; pairs with the fence of the
        // polling thread between its store of the flag and its load of the tail.
        fence(Ordering::SeqCst);
        self.need_wakeup_after_intermittent_seqcst()
    }

    /// As [`need_wakeup`](Self::need_wakeup), where the caller put a `SeqCst` fence after the
    /// last change of the queue.
    #[inline]
    pub fn need_wakeup_after_intermittent_seqcst(&self) -> bool {
        self.flag(SQ_NEED_WAKEUP)
    }

    fn flag(&self, bit: u32) -> bool {
        self.queue.flags().load(Ordering::Relaxed) & bit != 0
    }

    /// How many invalid entries were skipped.
    pub fn dropped(&self) -> u32 {
        self.queue.dropped().load(Ordering::Acquire)
    }

    /// Whether completions wait for room in the completion queue.
    pub fn cq_overflow(&self) -> bool {
        self.queue.flags().load(Ordering::Acquire) & SQ_CQ_OVERFLOW != 0
    }

    /// With [`setup_taskrun_flag`](crate::Builder::setup_taskrun_flag): whether completions wait
    /// for a call that collects them.
    pub fn taskrun(&self) -> bool {
        self.queue.flags().load(Ordering::Acquire) & SQ_TASKRUN != 0
    }

    /// How many entries there is room for in all.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.queue.entries() as usize
    }

    /// How many entries wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// Adds an entry; an error if there is no room.
    ///
    /// # Safety
    /// What the entry points to must be valid until its operation has completed.
    #[inline]
    pub unsafe fn push(&mut self, entry: &E) -> Result<(), PushError> {
        if self.is_full() {
            return Err(PushError);
        }
        // SAFETY: there is room.
        unsafe { self.put(entry) };
        Ok(())
    }

    /// Adds entries; an error, and none is added, if there is no room for all.
    ///
    /// # Safety
    /// What the entries point to must be valid until their operations have completed.
    #[inline]
    pub unsafe fn push_multiple(&mut self, entries: &[E]) -> Result<(), PushError> {
        if self.capacity() - self.len() < entries.len() {
            return Err(PushError);
        }
        for entry in entries {
            // SAFETY: there is room.
            unsafe { self.put(entry) };
        }
        Ok(())
    }

    /// # Safety
    /// The queue is not full.
    #[inline]
    unsafe fn put(&mut self, entry: &E) {
        // SAFETY: the slot at the tail is free, and the entries of this ring are of type E.
        unsafe { self.queue.slot::<E>(self.tail).write(entry.clone()) };
        self.tail = self.tail.wrapping_add(1);
    }
}

impl<E: EntryMarker> Drop for SubmissionQueue<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.queue.tail().store(self.tail, Ordering::Release);
    }
}

impl<E: EntryMarker> Debug for SubmissionQueue<'_, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmissionQueue")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}
