//! The completion queue and its entries.
//!
//! The backend owns the tail, the program the head. The tail is loaded with acquire ordering:
//! entries up to it are complete. A [`CompletionQueue`] works on a copy of the head, which it
//! stores with release ordering when it is dropped or synchronised: the entries before it have
//! been read when the backend, which loads the head with acquire ordering, reuses their slots.

use crate::memory::{Cq, CqWatch};
use crate::squeue::private::Sealed;
use anyring_uapi::{cqe, setup, Cqe};
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

/// A kind of completion queue entry: [`Entry`] or [`Entry32`].
pub trait EntryMarker: Clone + Debug + Into<Entry> + Sealed {
    /// `IORING_SETUP_*` bits that a ring of these entries is made with.
    const BUILD_FLAGS: u32;

    /// The value from the submission queue entry.
    fn user_data(&self) -> u64;

    /// Replaces the value from the submission queue entry.
    fn set_user_data(&mut self, user_data: u64);
}

/// A completion queue entry of 16 bytes.
///
/// ```
/// use anyring::{opcode, types, Backend, IoUring};
/// use std::io;
///
/// # fn main() -> io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
/// let mut buf = [0u8; 16];
/// let read = opcode::Read::new(types::Fd(-1), buf.as_mut_ptr(), 16).build().user_data(7);
/// // SAFETY: the buffer lives until the completion was seen.
/// unsafe { ring.submission().push(&read).expect("the queue is empty") };
/// ring.submit_and_wait(1)?;
///
/// let done = ring.completion().next().expect("one completion");
/// assert_eq!(done.user_data(), 7);
/// // Errors are negative numbers, not `io::Error`s.
/// let error = io::Error::from_raw_os_error(-done.result());
/// assert_eq!(error.raw_os_error(), Some(libc::EBADF));
/// # Ok(())
/// # }
/// ```
#[repr(C)]
#[derive(Clone)]
pub struct Entry(pub(crate) Cqe);

/// A completion queue entry of 32 bytes.
#[repr(C)]
#[derive(Clone)]
pub struct Entry32(pub(crate) Entry, pub(crate) [u64; 2]);

const _: () = assert!(size_of::<Entry>() == 16 && size_of::<Entry32>() == 32);

impl Entry {
    /// The result: as the corresponding system call's, with errors as negative numbers.
    #[inline]
    pub fn result(&self) -> i32 {
        self.0.res
    }

    /// The value from the submission queue entry.
    #[inline]
    pub fn user_data(&self) -> u64 {
        self.0.user_data
    }

    /// Replaces the value from the submission queue entry.
    #[inline]
    pub fn set_user_data(&mut self, user_data: u64) {
        self.0.user_data = user_data;
    }

    /// More about the completion: see [`buffer_select`], [`more`], [`notif`],
    /// [`sock_nonempty`] and [`buffer_more`].
    #[inline]
    pub fn flags(&self) -> u32 {
        self.0.flags
    }
}

impl Entry32 {
    /// The result: as the corresponding system call's, with errors as negative numbers.
    #[inline]
    pub fn result(&self) -> i32 {
        self.0.result()
    }

    /// The value from the submission queue entry.
    #[inline]
    pub fn user_data(&self) -> u64 {
        self.0.user_data()
    }

    /// Replaces the value from the submission queue entry.
    #[inline]
    pub fn set_user_data(&mut self, user_data: u64) {
        self.0.set_user_data(user_data);
    }

    /// More about the completion: see [`buffer_select`], [`more`], [`notif`],
    /// [`sock_nonempty`] and [`buffer_more`].
    #[inline]
    pub fn flags(&self) -> u32 {
        self.0.flags()
    }

    /// The second half of the entry.
    #[inline]
    pub fn big_cqe(&self) -> &[u64; 2] {
        &self.1
    }
}

impl Sealed for Entry {}
impl Sealed for Entry32 {}

impl EntryMarker for Entry {
    const BUILD_FLAGS: u32 = 0;

    #[inline]
    fn user_data(&self) -> u64 {
        self.0.user_data
    }

    #[inline]
    fn set_user_data(&mut self, user_data: u64) {
        self.0.user_data = user_data;
    }
}

impl EntryMarker for Entry32 {
    const BUILD_FLAGS: u32 = setup::CQE32;

    #[inline]
    fn user_data(&self) -> u64 {
        self.0.user_data()
    }

    #[inline]
    fn set_user_data(&mut self, user_data: u64) {
        self.0.set_user_data(user_data);
    }
}

impl From<Entry32> for Entry {
    fn from(entry: Entry32) -> Entry {
        entry.0
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("result", &self.result())
            .field("user_data", &self.user_data())
            .field("flags", &self.flags())
            .finish()
    }
}

impl Debug for Entry32 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry32")
            .field("result", &self.result())
            .field("user_data", &self.user_data())
            .field("flags", &self.flags())
            .field("big_cqe", &self.big_cqe())
            .finish()
    }
}

/// Whether the provided buffer stays with the program's group, partly filled. `IORING_CQE_F_BUF_MORE`
pub fn buffer_more(flags: u32) -> bool {
    flags & cqe::F_BUF_MORE != 0
}

/// The number of the provided buffer that was used, if one was. `IORING_CQE_F_BUFFER`
///
/// ```
/// assert_eq!(anyring::cqueue::buffer_select(0x0007_0001), Some(7));
/// assert_eq!(anyring::cqueue::buffer_select(0), None);
/// ```
pub fn buffer_select(flags: u32) -> Option<u16> {
    (flags & cqe::F_BUFFER != 0).then_some((flags >> cqe::BUFFER_SHIFT) as u16)
}

/// Whether more completions of the same entry will follow. `IORING_CQE_F_MORE`
pub fn more(flags: u32) -> bool {
    flags & cqe::F_MORE != 0
}

/// Whether the socket has more data to read. `IORING_CQE_F_SOCK_NONEMPTY`
pub fn sock_nonempty(flags: u32) -> bool {
    flags & cqe::F_SOCK_NONEMPTY != 0
}

/// Whether this is the second completion of a zero-copy send. `IORING_CQE_F_NOTIF`
pub fn notif(flags: u32) -> bool {
    flags & cqe::F_NOTIF != 0
}

/// The completion queue of a ring, see [`IoUring::completion`](crate::IoUring::completion): an
/// iterator over the completions that are there.
///
/// What was taken is given back when this value is dropped, or by [`sync`](Self::sync).
///
/// ```
/// use anyring::{opcode, Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(4)?;
/// for i in [3, 4] {
///     // SAFETY: a NOP points to nothing.
///     unsafe { ring.submission().push(&opcode::Nop::new().build().user_data(i)) }.expect("room");
/// }
/// ring.submit_and_wait(2)?;
/// let sum: u64 = ring.completion().map(|done| done.user_data()).sum();
/// assert_eq!(sum, 7);
/// # Ok(())
/// # }
/// ```
pub struct CompletionQueue<'a, E: EntryMarker = Entry> {
    head: u32,
    tail: u32,
    queue: &'a Cq,
    watch: CqWatch<'a>,
    entries: PhantomData<E>,
}

impl<'a, E: EntryMarker> CompletionQueue<'a, E> {
    /// # Safety
    /// Nobody else has one of the same ring now, and the ring's entries are of this kind.
    #[inline]
    pub(crate) unsafe fn new(queue: &'a Cq, watch: CqWatch<'a>) -> Self {
        CompletionQueue {
            head: queue.head().load(Ordering::Relaxed),
            tail: queue.tail().load(Ordering::Acquire),
            queue,
            watch,
            entries: PhantomData,
        }
    }

    /// A view that says whether there are completions and borrows nothing.
    ///
    /// # Safety
    /// It must not be used after the ring is dropped.
    #[inline]
    pub unsafe fn status(&self) -> CompletionStatus {
        CompletionStatus { head: self.queue.head(), tail: self.queue.tail() }
    }

    /// Gives back what was taken, and learns what arrived.
    #[inline]
    pub fn sync(&mut self) {
        self.give_back();
        self.tail = self.queue.tail().load(Ordering::Acquire);
    }

    #[inline]
    fn give_back(&self) {
        self.queue.head().store(self.head, Ordering::Release);
        if self.head == self.tail {
            self.watch.emptied();
        }
    }

    /// How many completions were lost, on a backend without
    /// [`is_feature_nodrop`](crate::Parameters::is_feature_nodrop).
    pub fn overflow(&self) -> u32 {
        self.queue.overflow().load(Ordering::Acquire)
    }

    /// Whether signals to the registered eventfd are switched off.
    pub fn eventfd_disabled(&self) -> bool {
        self.queue.flags().load(Ordering::Acquire) & cqe::CQ_EVENTFD_DISABLED != 0
    }

    /// Switches signals to the eventfd off, see
    /// [`Submitter::register_eventfd`](crate::Submitter::register_eventfd).
    pub fn disable_eventfd(&self) {
        self.queue.flags().fetch_or(cqe::CQ_EVENTFD_DISABLED, Ordering::Release);
    }

    /// Switches signals to the eventfd on.
    pub fn enable_eventfd(&self) {
        self.queue.flags().fetch_and(!cqe::CQ_EVENTFD_DISABLED, Ordering::Release);
    }

    /// How many completions there is room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.queue.entries() as usize
    }

    /// Whether none is there.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room for another.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// Takes as many completions as there are and fit; gives them as a slice.
    #[inline]
    pub fn fill<'b>(&mut self, entries: &'b mut [MaybeUninit<E>]) -> &'b mut [E] {
        let n = self.len().min(entries.len());
        for entry in &mut entries[..n] {
            // SAFETY: at most `len` are taken.
            entry.write(unsafe { self.take() });
        }
        // SAFETY: the first `n` have just been written, and MaybeUninit<E> lies in memory as E does.
        unsafe { std::slice::from_raw_parts_mut(entries.as_mut_ptr().cast::<E>(), n) }
    }

    /// # Safety
    /// The queue is not empty.
    #[inline]
    unsafe fn take(&mut self) -> E {
        // SAFETY: the entry is complete (the tail is beyond it), stays until the head is stored,
        // and is of type E; the backend wrote plain integers.
        let entry = unsafe { (*self.queue.entry::<E>(self.head)).clone() };
        self.head = self.head.wrapping_add(1);
        entry
    }
}

impl<E: EntryMarker> Drop for CompletionQueue<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.give_back();
    }
}

impl<E: EntryMarker> Iterator for CompletionQueue<'_, E> {
    type Item = E;

    #[inline]
    fn next(&mut self) -> Option<E> {
        // SAFETY: checked.
        (self.head != self.tail).then(|| unsafe { self.take() })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<E: EntryMarker> ExactSizeIterator for CompletionQueue<'_, E> {
    #[inline]
    fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }
}

/// Says whether completions are there, by two loads; see [`CompletionQueue::status`].
///
/// The answer may be old when it is used: it is a hint to look, nothing to synchronise by.
pub struct CompletionStatus {
    head: *const AtomicU32,
    tail: *const AtomicU32,
}

impl CompletionStatus {
    /// Whether nothing is there beyond what was taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // SAFETY: the ring lives, see `CompletionQueue::status`.
        let (head, tail) = unsafe { (&*self.head, &*self.tail) };
        head.load(Ordering::Relaxed) == tail.load(Ordering::Relaxed)
    }
}

impl Debug for CompletionStatus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionStatus").finish_non_exhaustive()
    }
}
