use anyring_uapi::setup;
use std::fmt::{self, Debug, Formatter};

/// What a ring was made with, and what its backend can do. `struct io_uring_params`
///
/// ```
/// use anyring::{Backend, IoUring};
///
/// # fn main() -> std::io::Result<()> {
/// let ring: IoUring = IoUring::builder().backend(Backend::User).build(8)?;
/// assert_eq!(ring.params().sq_entries(), 8);
/// assert!(ring.params().is_feature_nodrop());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[repr(transparent)]
pub struct Parameters(pub(crate) anyring_uapi::Params);

/// A method for each bit.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident: $field:ident & $bit:ident;)*) => {
        impl Parameters {
            $($(#[$doc])*
            pub fn $name(&self) -> bool {
                self.0.$field & setup::$bit != 0
            })*
        }
    };
}

bits! {
    /// A thread submits for the program, see [`Builder::setup_sqpoll`](crate::Builder::setup_sqpoll).
    is_setup_sqpoll: flags & SQPOLL;
    /// Completions are polled for, see [`Builder::setup_iopoll`](crate::Builder::setup_iopoll).
    is_setup_iopoll: flags & IOPOLL;
    /// One thread submits, see
    /// [`Builder::setup_single_issuer`](crate::Builder::setup_single_issuer).
    is_setup_single_issuer: flags & SINGLE_ISSUER;
    /// Both queues lie in one mapping.
    is_feature_single_mmap: features & FEAT_SINGLE_MMAP;
    /// No completion is lost: what finds the queue full waits for room.
    is_feature_nodrop: features & FEAT_NODROP;
    /// What entries point to, except data buffers, may change once they were submitted.
    is_feature_submit_stable: features & FEAT_SUBMIT_STABLE;
    /// The offset −1 uses and moves the file position.
    is_feature_rw_cur_pos: features & FEAT_RW_CUR_POS;
    /// Requests act with the credentials of the thread that submits.
    is_feature_cur_personality: features & FEAT_CUR_PERSONALITY;
    /// A request that would wait is polled for and needs no worker.
    is_feature_fast_poll: features & FEAT_FAST_POLL;
    /// Poll requests take 32 bits of events.
    is_feature_poll_32bits: features & FEAT_POLL_32BITS;
    /// A polling thread works on descriptors that are not registered, too.
    is_feature_sqpoll_nonfixed: features & FEAT_SQPOLL_NONFIXED;
    /// A wait can be bounded, see
    /// [`submit_with_args`](crate::Submitter::submit_with_args).
    is_feature_ext_arg: features & FEAT_EXT_ARG;
    /// Workers are threads of the process.
    is_feature_native_workers: features & FEAT_NATIVE_WORKERS;
    /// Registered files and buffers carry tags and can be changed in place.
    is_feature_resource_tagging: features & FEAT_RSRC_TAGS;
    /// [`SKIP_SUCCESS`](crate::squeue::Flags::SKIP_SUCCESS) works.
    is_feature_skip_cqe_on_success: features & FEAT_CQE_SKIP;
    /// The file of a linked request is looked up when it starts.
    is_feature_linked_file: features & FEAT_LINKED_FILE;
    /// Several buffers can be sent or received by one request.
    is_feature_recvsend_bundle: features & FEAT_RECVSEND_BUNDLE;
    /// [`min_wait_usec`](crate::types::SubmitArgs::min_wait_usec) works.
    is_feature_min_timeout: features & FEAT_MIN_TIMEOUT;
    /// [`NO_IOWAIT`](crate::EnterFlags::NO_IOWAIT) is known.
    is_feature_no_iowait: features & FEAT_NO_IOWAIT;
}

impl Parameters {
    /// Entries of the submission queue.
    pub fn sq_entries(&self) -> u32 {
        self.0.sq_entries
    }

    /// Milliseconds after which an idle polling thread sleeps.
    pub fn sq_thread_idle(&self) -> u32 {
        self.0.sq_thread_idle
    }

    /// Entries of the completion queue.
    pub fn cq_entries(&self) -> u32 {
        self.0.cq_entries
    }

    /// Whether registrations can name a registered ring.
    pub(crate) fn registers_by_index(&self) -> bool {
        self.0.features & setup::FEAT_REG_REG_RING != 0
    }
}

impl Debug for Parameters {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("sq_entries", &self.0.sq_entries)
            .field("cq_entries", &self.0.cq_entries)
            .field("flags", &format_args!("{:#x}", self.0.flags))
            .field("features", &format_args!("{:#x}", self.0.features))
            .finish_non_exhaustive()
    }
}
