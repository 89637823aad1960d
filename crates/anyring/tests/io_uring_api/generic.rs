//! What has no plain signature: generics, traits, and iteration, used on a ring of each crate.

macro_rules! generic {
    ($uring:ident, $builder:expr) => {{
        use std::os::fd::AsRawFd;
        use $uring::{cqueue, opcode, squeue, types, Builder, IoUring, Submitter};
        use $uring::{CompletionStatus, EnterFlags, Parameters};

        fn sqe_traits<E>()
        where
            E: squeue::EntryMarker + Clone + std::fmt::Debug + From<squeue::Entry>,
        {
        }
        fn cqe_traits<E>()
        where
            E: cqueue::EntryMarker + Clone + std::fmt::Debug + Into<cqueue::Entry>,
        {
        }
        fn shared<T: Send + Sync>(_: &T) {}
        fn error<E: std::error::Error + Clone + Eq>(_: E) {}
        fn traits<T: Clone + std::fmt::Debug>(_: &T) {}
        sqe_traits::<squeue::Entry>();
        sqe_traits::<squeue::Entry128>();
        cqe_traits::<cqueue::Entry>();
        cqe_traits::<cqueue::Entry32>();

        let nop = |n| opcode::Nop::new().build().user_data(n);
        let mut ring: IoUring<squeue::Entry128, cqueue::Entry32> = $builder.build(4).unwrap();
        shared(&ring);
        traits::<Parameters>(ring.params());
        assert!(ring.as_raw_fd() >= 0);
        let entries = [1, 2, 3].map(|n| squeue::Entry128::from(nop(n)));
        {
            let mut sq = ring.submission();
            // SAFETY: NOPs point to nothing.
            unsafe {
                sq.push_multiple(&entries).unwrap();
                let full: Result<(), squeue::PushError> = sq.push_multiple(&entries);
                error(full.unwrap_err());
                sq.push(&entries[0]).unwrap();
            }
            assert!(sq.is_full() && sq.len() == 4 && sq.capacity() == 4);
        }
        assert_eq!(ring.submit_and_wait(4).unwrap(), 4);
        // SAFETY: used while the ring lives.
        let status: CompletionStatus = unsafe { ring.completion().status() };
        assert!(!status.is_empty());
        let mut cq = ring.completion();
        assert_eq!(ExactSizeIterator::len(&cq), 4);
        let mut room = [const { std::mem::MaybeUninit::uninit() }; 3];
        let filled: &mut [cqueue::Entry32] = cq.fill(&mut room);
        assert_eq!(filled.iter().map(|done| done.user_data()).collect::<Vec<_>>(), [1, 2, 3]);
        let last = cqueue::Entry::from(cq.next().unwrap());
        assert_eq!((last.user_data(), last.result(), last.flags()), (1, 0, 0));
        drop(cq);
        assert!(status.is_empty());

        let (submitter, mut sq, mut cq): (Submitter<'_>, _, _) = ring.split();
        // SAFETY: a NOP points to nothing.
        unsafe { sq.push(&nop(9).into()).unwrap() };
        sq.sync();
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no argument.
        assert_eq!(unsafe { submitter.enter::<libc::sigset_t>(1, 1, flags, None) }.unwrap(), 1);
        cq.sync();
        assert_eq!(cq.map(|done| done.user_data()).collect::<Vec<_>>(), [9]);
        let _ = types::CancelBuilder::fd(types::Fd(0));
        let _ = types::CancelBuilder::fd(types::Fixed(0));
        let _: Builder = IoUring::builder().clone();
    }};
}

/// On a ring of anyring's engine.
pub fn ours() {
    generic!(anyring, IoUring::builder().backend(anyring::Backend::User));
}

/// On a ring of io-uring.
pub fn theirs() {
    generic!(io_uring, IoUring::builder());
}

/// io-uring needs the kernel's.
pub fn kernel_works() -> bool {
    io_uring::IoUring::new(1).is_ok()
}
