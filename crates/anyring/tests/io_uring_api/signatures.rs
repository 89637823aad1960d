//! Every function of both crates with its signature. That this compiles is the test.

/// Names each function of a crate as a value of the type that io-uring gives it.
macro_rules! signatures {
    ($uring:ident) => {
        use std::io;
        use std::mem::MaybeUninit;
        use std::os::fd::RawFd;

        pub fn cqueue<'r>() {
            use $uring::cqueue::*;
            let _: unsafe fn(&CompletionQueue<'r>) -> CompletionStatus = CompletionQueue::status;
            let _: fn(&mut CompletionQueue<'r>) = CompletionQueue::sync;
            let _: fn(&CompletionQueue<'r>) -> u32 = CompletionQueue::overflow;
            let _: fn(&CompletionQueue<'r>) -> bool = CompletionQueue::eventfd_disabled;
            let _: fn(&CompletionQueue<'r>) = CompletionQueue::disable_eventfd;
            let _: fn(&CompletionQueue<'r>) = CompletionQueue::enable_eventfd;
            let _: fn(&CompletionQueue<'r>) -> usize = CompletionQueue::capacity;
            let _: fn(&CompletionQueue<'r>) -> bool = CompletionQueue::is_empty;
            let _: fn(&CompletionQueue<'r>) -> bool = CompletionQueue::is_full;
            let _: fn(&mut CompletionQueue<'r>, &'r mut [MaybeUninit<Entry>]) -> &'r mut [Entry] =
                CompletionQueue::fill;
            let _: fn(&CompletionStatus) -> bool = CompletionStatus::is_empty;
            let _: fn(&Entry) -> i32 = Entry::result;
            let _: fn(&Entry) -> u64 = Entry::user_data;
            let _: fn(&mut Entry, u64) = Entry::set_user_data;
            let _: fn(&Entry) -> u32 = Entry::flags;
            let _: fn(&Entry32) -> i32 = Entry32::result;
            let _: fn(&Entry32) -> u64 = Entry32::user_data;
            let _: fn(&mut Entry32, u64) = Entry32::set_user_data;
            let _: fn(&Entry32) -> u32 = Entry32::flags;
            let _: fn(&Entry32) -> &[u64; 2] = Entry32::big_cqe;
            let _: fn(u32) -> bool = buffer_more;
            let _: fn(u32) -> Option<u16> = buffer_select;
            let _: fn(u32) -> bool = more;
            let _: fn(u32) -> bool = sock_nonempty;
            let _: fn(u32) -> bool = notif;
        }
        pub fn squeue<'r>() {
            use $uring::squeue::*;
            let _: fn(&mut SubmissionQueue<'r>) = SubmissionQueue::sync;
            let _: fn(&SubmissionQueue<'r>) -> bool = SubmissionQueue::need_wakeup;
            let _: fn(&SubmissionQueue<'r>) -> bool =
                SubmissionQueue::need_wakeup_after_intermittent_seqcst;
            let _: fn(&SubmissionQueue<'r>) -> u32 = SubmissionQueue::dropped;
            let _: fn(&SubmissionQueue<'r>) -> bool = SubmissionQueue::cq_overflow;
            let _: fn(&SubmissionQueue<'r>) -> bool = SubmissionQueue::taskrun;
            let _: fn(&SubmissionQueue<'r>) -> usize = SubmissionQueue::capacity;
            let _: fn(&SubmissionQueue<'r>) -> usize = SubmissionQueue::len;
            let _: fn(&SubmissionQueue<'r>) -> bool = SubmissionQueue::is_empty;
            let _: fn(&SubmissionQueue<'r>) -> bool = SubmissionQueue::is_full;
            let _: unsafe fn(&mut SubmissionQueue<'r>, &Entry) -> Result<(), PushError> =
                SubmissionQueue::push;
            let _: unsafe fn(&mut SubmissionQueue<'r>, &[Entry]) -> Result<(), PushError> =
                SubmissionQueue::push_multiple;
            let _: fn(Entry, Flags) -> Entry = Entry::flags;
            let _: fn(Entry) -> Entry = Entry::clear_flags;
            let _: fn(Entry, u64) -> Entry = Entry::user_data;
            let _: fn(&mut Entry, u64) = Entry::set_user_data;
            let _: fn(&Entry) -> u64 = Entry::get_user_data;
            let _: fn(&Entry) -> u32 = Entry::get_opcode;
            let _: fn(Entry, u16) -> Entry = Entry::personality;
            let _: fn(Entry128, Flags) -> Entry128 = Entry128::flags;
            let _: fn(Entry128) -> Entry128 = Entry128::clear_flags;
            let _: fn(Entry128, u64) -> Entry128 = Entry128::user_data;
            let _: fn(&mut Entry128, u64) = Entry128::set_user_data;
            let _: fn(&Entry128) -> u64 = Entry128::get_user_data;
            let _: fn(Entry128, u16) -> Entry128 = Entry128::personality;
            let _: fn(&Entry128) -> u32 = Entry128::get_opcode;
        }
        pub fn register<'r>() {
            use $uring::register::*;
            let _: fn() -> Probe = Probe::new;
            let _: fn(&Probe, u8) -> bool = Probe::is_supported;
            let _: fn(u8) -> Restriction = Restriction::register_op;
            let _: fn(u8) -> Restriction = Restriction::sqe_op;
            let _: fn(u8) -> Restriction = Restriction::sqe_flags_allowed;
            let _: fn(u8) -> Restriction = Restriction::sqe_flags_required;
        }
        pub fn types<'r>() {
            use $uring::types::*;
            let _: fn() -> OpenHow = OpenHow::new;
            let _: fn(OpenHow, u64) -> OpenHow = OpenHow::flags;
            let _: fn(OpenHow, u64) -> OpenHow = OpenHow::mode;
            let _: fn(OpenHow, u64) -> OpenHow = OpenHow::resolve;
            let _: fn() -> Timespec = Timespec::new;
            let _: fn(Timespec, u64) -> Timespec = Timespec::sec;
            let _: fn(Timespec, u32) -> Timespec = Timespec::nsec;
            let _: fn() -> SubmitArgs<'static, 'static> = SubmitArgs::new;
            let _: fn(SubmitArgs<'r, 'r>, &'r libc::sigset_t) -> SubmitArgs<'r, 'r> =
                SubmitArgs::sigmask;
            let _: fn(SubmitArgs<'r, 'r>, u32) -> SubmitArgs<'r, 'r> = SubmitArgs::min_wait_usec;
            let _: fn(SubmitArgs<'r, 'r>, &'r Timespec) -> SubmitArgs<'r, 'r> =
                SubmitArgs::timespec;
            let _: fn(&mut BufRingEntry, u64) = BufRingEntry::set_addr;
            let _: fn(&BufRingEntry) -> u64 = BufRingEntry::addr;
            let _: fn(&mut BufRingEntry, u32) = BufRingEntry::set_len;
            let _: fn(&BufRingEntry) -> u32 = BufRingEntry::len;
            let _: fn(&mut BufRingEntry, u16) = BufRingEntry::set_bid;
            let _: fn(&BufRingEntry) -> u16 = BufRingEntry::bid;
            let _: unsafe fn(*const BufRingEntry) -> *const u16 = BufRingEntry::tail;
            let _: fn() -> DestinationSlot = DestinationSlot::auto_target;
            let _: fn(u32) -> Result<DestinationSlot, u32> = DestinationSlot::try_from_slot_target;
            let _: fn(&'r [u8], &libc::msghdr) -> Result<RecvMsgOut<'r>, ()> = RecvMsgOut::parse;
            let _: fn(&RecvMsgOut<'r>) -> u32 = RecvMsgOut::incoming_name_len;
            let _: fn(&RecvMsgOut<'r>) -> bool = RecvMsgOut::is_name_data_truncated;
            let _: for<'x> fn(&'x RecvMsgOut<'r>) -> &'x [u8] = RecvMsgOut::name_data;
            let _: fn(&RecvMsgOut<'r>) -> u32 = RecvMsgOut::incoming_control_len;
            let _: fn(&RecvMsgOut<'r>) -> bool = RecvMsgOut::is_control_data_truncated;
            let _: for<'x> fn(&'x RecvMsgOut<'r>) -> &'x [u8] = RecvMsgOut::control_data;
            let _: fn(&RecvMsgOut<'r>) -> bool = RecvMsgOut::is_payload_truncated;
            let _: for<'x> fn(&'x RecvMsgOut<'r>) -> &'x [u8] = RecvMsgOut::payload_data;
            let _: fn(&RecvMsgOut<'r>) -> u32 = RecvMsgOut::incoming_payload_len;
            let _: fn(&RecvMsgOut<'r>) -> u32 = RecvMsgOut::flags;
            let _: fn() -> CancelBuilder = CancelBuilder::any;
            let _: fn(u64) -> CancelBuilder = CancelBuilder::user_data;
            let _: fn(CancelBuilder) -> CancelBuilder = CancelBuilder::all;
            let _: fn() -> FutexWaitV = FutexWaitV::new;
            let _: fn(FutexWaitV, u64) -> FutexWaitV = FutexWaitV::val;
            let _: fn(FutexWaitV, u64) -> FutexWaitV = FutexWaitV::uaddr;
            let _: fn(FutexWaitV, u32) -> FutexWaitV = FutexWaitV::flags;
            let _: fn() -> Napi = Napi::new;
            let _: fn(Napi, u32) -> Napi = Napi::set_busy_poll_timeout;
            let _: fn(Napi, bool) -> Napi = Napi::set_prefer_busy_poll;
            let _: fn(Napi, NapiTracking) -> Napi = Napi::set_tracking;
            let _: fn(&Napi) -> u32 = Napi::busy_poll_timeout;
            let _: fn(&Napi) -> bool = Napi::prefer_busy_poll;
        }
        pub fn root<'r>() {
            use $uring::register::Restriction;
            use $uring::types::{
                self, CancelBuilder, CloneBuffersFlags, Napi, SubmitArgs, Timespec,
            };
            use $uring::*;
            let _: fn(u32) -> io::Result<IoUring> = IoUring::new;
            let _: unsafe fn(RawFd, Parameters) -> io::Result<IoUring> = IoUring::from_fd;
            let _: fn() -> Builder = IoUring::builder;
            let _: fn(&IoUring) -> Submitter<'_> = IoUring::submitter;
            let _: fn(&IoUring) -> &Parameters = IoUring::params;
            let _: fn(&IoUring) -> io::Result<usize> = IoUring::submit;
            let _: fn(&IoUring, usize) -> io::Result<usize> = IoUring::submit_and_wait;
            let _: fn(&mut IoUring) -> (Submitter<'_>, SubmissionQueue<'_>, CompletionQueue<'_>) =
                IoUring::split;
            let _: fn(&mut IoUring) -> SubmissionQueue<'_> = IoUring::submission;
            let _: unsafe fn(&IoUring) -> SubmissionQueue<'_> = IoUring::submission_shared;
            let _: fn(&mut IoUring) -> CompletionQueue<'_> = IoUring::completion;
            let _: unsafe fn(&IoUring) -> CompletionQueue<'_> = IoUring::completion_shared;
            let _: fn(&mut Builder) -> &mut Builder = Builder::dontfork;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_iopoll;
            let _: fn(&mut Builder, u32) -> &mut Builder = Builder::setup_sqpoll;
            let _: fn(&mut Builder, u32) -> &mut Builder = Builder::setup_sqpoll_cpu;
            let _: fn(&mut Builder, u32) -> &mut Builder = Builder::setup_cqsize;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_clamp;
            let _: fn(&mut Builder, RawFd) -> &mut Builder = Builder::setup_attach_wq;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_r_disabled;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_submit_all;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_coop_taskrun;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_taskrun_flag;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_defer_taskrun;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_single_issuer;
            let _: fn(&mut Builder) -> &mut Builder = Builder::setup_no_sqarray;
            let _: fn(&Builder, u32) -> io::Result<IoUring> = Builder::build;
            let _: fn(&Parameters) -> bool = Parameters::is_setup_sqpoll;
            let _: fn(&Parameters) -> bool = Parameters::is_setup_iopoll;
            let _: fn(&Parameters) -> bool = Parameters::is_setup_single_issuer;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_single_mmap;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_nodrop;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_submit_stable;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_rw_cur_pos;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_cur_personality;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_fast_poll;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_poll_32bits;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_sqpoll_nonfixed;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_ext_arg;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_native_workers;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_resource_tagging;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_skip_cqe_on_success;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_linked_file;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_recvsend_bundle;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_min_timeout;
            let _: fn(&Parameters) -> bool = Parameters::is_feature_no_iowait;
            let _: fn(&Parameters) -> u32 = Parameters::sq_entries;
            let _: fn(&Parameters) -> u32 = Parameters::sq_thread_idle;
            let _: fn(&Parameters) -> u32 = Parameters::cq_entries;
            let _: fn(&Submitter<'r>) -> io::Result<usize> = Submitter::submit;
            let _: fn(&Submitter<'r>, usize) -> io::Result<usize> = Submitter::submit_and_wait;
            let _: fn(&Submitter<'r>, usize, &SubmitArgs<'_, '_>) -> io::Result<usize> =
                Submitter::submit_with_args;
            let _: fn(&Submitter<'r>, usize, &SubmitArgs<'_, '_>, EnterFlags) -> io::Result<usize> =
                Submitter::submit_with_args_and_flags;
            let _: fn(&Submitter<'r>) -> io::Result<usize> = Submitter::squeue_wait;
            let _: unsafe fn(&Submitter<'r>, &[libc::iovec]) -> io::Result<()> =
                Submitter::register_buffers;
            let _: unsafe fn(
                &Submitter<'r>,
                u32,
                &[libc::iovec],
                Option<&[u64]>,
            ) -> io::Result<()> = Submitter::register_buffers_update;
            let _: unsafe fn(&Submitter<'r>, &[libc::iovec], &[u64]) -> io::Result<()> =
                Submitter::register_buffers2;
            let _: fn(&Submitter<'r>, u32) -> io::Result<()> = Submitter::register_buffers_sparse;
            let _: fn(&Submitter<'r>, RawFd) -> io::Result<()> = Submitter::register_buffers_clone;
            let _: fn(&Submitter<'r>, RawFd, u32, u32, u32, CloneBuffersFlags) -> io::Result<()> =
                Submitter::register_buffers_clone_offset;
            let _: fn(&Submitter<'r>, u32) -> io::Result<()> = Submitter::register_files_sparse;
            let _: fn(&Submitter<'r>, &[RawFd]) -> io::Result<()> = Submitter::register_files;
            let _: fn(&Submitter<'r>, u32, &[RawFd]) -> io::Result<usize> =
                Submitter::register_files_update;
            let _: fn(&Submitter<'r>, RawFd) -> io::Result<()> = Submitter::register_eventfd;
            let _: fn(&Submitter<'r>, RawFd) -> io::Result<()> = Submitter::register_eventfd_async;
            let _: fn(&Submitter<'r>, &mut Probe) -> io::Result<()> = Submitter::register_probe;
            let _: fn(&Submitter<'r>) -> io::Result<u16> = Submitter::register_personality;
            let _: fn(&Submitter<'r>) -> io::Result<()> = Submitter::unregister_buffers;
            let _: fn(&Submitter<'r>) -> io::Result<()> = Submitter::unregister_files;
            let _: fn(&Submitter<'r>) -> io::Result<()> = Submitter::unregister_eventfd;
            let _: fn(&Submitter<'r>, u16) -> io::Result<()> = Submitter::unregister_personality;
            let _: fn(&Submitter<'r>, &mut [Restriction]) -> io::Result<()> =
                Submitter::register_restrictions;
            let _: fn(&Submitter<'r>) -> io::Result<()> = Submitter::register_enable_rings;
            let _: fn(&Submitter<'r>, &libc::cpu_set_t) -> io::Result<()> =
                Submitter::register_iowq_aff;
            let _: fn(&Submitter<'r>) -> io::Result<()> = Submitter::unregister_iowq_aff;
            let _: fn(&Submitter<'r>, &mut [u32; 2]) -> io::Result<()> =
                Submitter::register_iowq_max_workers;
            let _: fn(&mut Submitter<'r>) -> io::Result<()> = Submitter::register_ring_fd;
            let _: fn(&mut Submitter<'r>) -> io::Result<()> = Submitter::unregister_ring_fd;
            let _: fn(&Submitter<'r>, &mut Napi) -> io::Result<()> = Submitter::register_napi;
            let _: fn(&Submitter<'r>, &mut Napi) -> io::Result<()> = Submitter::unregister_napi;
            let _: fn(&Submitter<'r>, u32) -> io::Result<()> = Submitter::register_napi_add_id;
            let _: fn(&Submitter<'r>, u32) -> io::Result<()> = Submitter::register_napi_del_id;
            let _: unsafe fn(&Submitter<'r>, u64, u16, u16) -> io::Result<()> =
                Submitter::register_buf_ring;
            let _: unsafe fn(&Submitter<'r>, u64, u16, u16, u16) -> io::Result<()> =
                Submitter::register_buf_ring_with_flags;
            let _: fn(&Submitter<'r>, u16) -> io::Result<()> = Submitter::unregister_buf_ring;
            let _: fn(&Submitter<'r>, Option<Timespec>, CancelBuilder) -> io::Result<()> =
                Submitter::register_sync_cancel;
            let _: fn(&Submitter<'r>, &types::io_uring_zcrx_ifq_reg) -> io::Result<()> =
                Submitter::register_ifq;
        }
    };
}

#[allow(clippy::type_complexity, clippy::extra_unused_lifetimes, deprecated)]
pub mod ours {
    signatures!(anyring);
}

#[allow(clippy::type_complexity, clippy::extra_unused_lifetimes, deprecated)]
pub mod theirs {
    signatures!(io_uring);
}
