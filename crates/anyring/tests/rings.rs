//! Rings of both backends, through the whole API.

mod common;

use anyring::types::{self, BufRingEntry, CancelBuilder, SubmitArgs, Timespec};
use anyring::{cqueue, opcode, register::Restriction, squeue, Backend, IoUring, Probe};
use common::{backends, completions, nop, push, ring};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

fn file_with(content: &[u8]) -> File {
    // SAFETY: a new descriptor.
    let fd = unsafe { libc::memfd_create(c"test".as_ptr(), 0) };
    assert!(fd >= 0);
    // SAFETY: ours.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn reads_and_writes() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let mut file = file_with(b"");
        let fd = types::Fd(file.as_raw_fd());
        let text = b"through the ring";
        let write = opcode::Write::new(fd, text.as_ptr(), text.len() as u32).offset(3);
        push(&mut ring, write.build().user_data(1));
        assert_eq!(ring.submit_and_wait(1).unwrap(), 1);
        assert_eq!(completions(&mut ring), [(1, text.len() as i32)]);
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content, b"\0\0\0through the ring");
    }
}

#[test]
fn many_rounds_wrap_the_indices() {
    for &backend in backends() {
        let mut ring: IoUring = IoUring::builder().backend(backend).build(4).unwrap();
        let mut next = 0;
        for round in 0..1000 {
            let n = round % 5;
            for i in 0..n.min(4) {
                push(&mut ring, nop(next + i));
            }
            assert_eq!(ring.submit_and_wait(n.min(4) as usize).unwrap(), n.min(4) as usize);
            for (user_data, result) in completions(&mut ring) {
                assert_eq!((user_data, result), (next, 0));
                next += 1;
            }
        }
        assert!(next > 1500);
    }
}

#[test]
fn registered_files_and_buffers() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let file = file_with(b"0123456789");
        ring.submitter().register_files_sparse(4).unwrap();
        assert_eq!(ring.submitter().register_files_update(2, &[file.as_raw_fd()]).unwrap(), 1);
        let mut buf = [0u8; 64];
        let iovec = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        // SAFETY: the buffer lives as long as the ring.
        unsafe { ring.submitter().register_buffers(&[iovec]).unwrap() };
        let at = buf.as_mut_ptr().wrapping_add(10);
        let read = opcode::ReadFixed::new(types::Fixed(2), at, 4, 0).offset(5);
        push(&mut ring, read.build().user_data(7));
        ring.submit_and_wait(1).unwrap();
        assert_eq!(completions(&mut ring), [(7, 4)]);
        assert_eq!(&buf[10..14], b"5678");
        ring.submitter().unregister_buffers().unwrap();
        ring.submitter().unregister_files().unwrap();
        assert_eq!(
            ring.submitter().unregister_files().unwrap_err().raw_os_error(),
            Some(libc::ENXIO)
        );
        // SAFETY: the buffer lives as long as the ring.
        unsafe {
            let error = ring.submitter().register_buffers2(&[iovec], &[]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            ring.submitter().register_buffers2(&[iovec], &[0]).unwrap();
            ring.submitter().register_buffers_update(0, &[iovec], Some(&[0])).unwrap();
        }
    }
}

#[test]
fn waits_are_bounded() {
    for &backend in backends() {
        let ring = ring(backend);
        let start = Instant::now();
        let time = Timespec::from(Duration::from_millis(20));
        let args = SubmitArgs::new().timespec(&time);
        let error = ring.submitter().submit_with_args(1, &args).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ETIME));
        assert!(start.elapsed() >= Duration::from_millis(19));
        // A signal mask goes with it: io-uring's own crate gives a size that is refused.
        // SAFETY: an empty set.
        let empty: libc::sigset_t = unsafe { std::mem::zeroed() };
        let args = SubmitArgs::new().timespec(&time).sigmask(&empty);
        let error = ring.submitter().submit_with_args(1, &args).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ETIME));
        let flags = anyring::EnterFlags::GETEVENTS;
        let error = ring.submitter().submit_with_args_and_flags(1, &args, flags).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}

#[test]
fn a_submitting_thread() {
    for &backend in backends() {
        let mut ring: IoUring =
            IoUring::builder().backend(backend).setup_sqpoll(1).build(4).unwrap();
        assert!(ring.params().is_setup_sqpoll());
        for round in 0..20 {
            push(&mut ring, nop(round));
            ring.submit_and_wait(1).unwrap();
            assert_eq!(completions(&mut ring), [(round, 0)]);
            if round % 5 == 4 {
                std::thread::sleep(Duration::from_millis(5)); // it falls asleep
            }
        }
        while !ring.submission().need_wakeup() {
            std::thread::sleep(Duration::from_millis(1));
        }
        ring.submitter().squeue_wait().unwrap();
    }
}

#[test]
fn a_registered_ring() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let (mut submitter, mut sq, mut cq) = ring.split();
        submitter.register_ring_fd().unwrap();
        let twice = submitter.register_ring_fd().unwrap_err();
        assert_eq!(twice.raw_os_error(), Some(libc::EEXIST));
        // SAFETY: a NOP points to nothing.
        unsafe { sq.push(&nop(1)).unwrap() };
        sq.sync();
        assert_eq!(submitter.submit_and_wait(1).unwrap(), 1);
        submitter.register_files_sparse(1).unwrap();
        cq.sync();
        assert_eq!(cq.next().unwrap().user_data(), 1);
        submitter.unregister_ring_fd().unwrap();
        assert_eq!(submitter.unregister_ring_fd().unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(submitter.submit().unwrap(), 0);
    }
}

#[test]
fn a_ring_of_buffers() {
    #[repr(C, align(4096))]
    struct Ring([u8; 4096]);
    for &backend in backends() {
        let mut ring = ring(backend);
        let mut memory = Box::new(Ring([0; 4096]));
        let mut buffers = [[0u8; 16]; 2];
        let base = memory.0.as_mut_ptr().cast::<BufRingEntry>();
        for (i, buffer) in buffers.iter_mut().enumerate() {
            // SAFETY: within the page, which holds 256 entries.
            let entry = unsafe { &mut *base.add(i) };
            entry.set_addr(buffer.as_mut_ptr() as u64);
            entry.set_len(16);
            entry.set_bid(40 + i as u16);
        }
        // SAFETY: the page lives until the ring is gone.
        let made = unsafe { ring.submitter().register_buf_ring_with_flags(base as u64, 2, 5, 0) };
        made.unwrap();
        // SAFETY: within the page; the ring loads it.
        unsafe { (*BufRingEntry::tail(base).cast::<AtomicU16>()).store(2, Ordering::Release) };
        let (reader, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(b"ping").unwrap();
        let read = opcode::Read::new(types::Fd(reader.as_raw_fd()), std::ptr::null_mut(), 16)
            .buf_group(5)
            .build()
            .flags(squeue::Flags::BUFFER_SELECT);
        push(&mut ring, read);
        ring.submit_and_wait(1).unwrap();
        let done = ring.completion().next().unwrap();
        assert_eq!(done.result(), 4, "{backend:?}");
        assert_eq!(cqueue::buffer_select(done.flags()), Some(40));
        assert_eq!(&buffers[0][..4], b"ping");
        ring.submitter().unregister_buf_ring(5).unwrap();
    }
}

#[test]
fn cancels() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let (reader, _writer) = UnixStream::pair().unwrap();
        let fd = types::Fd(reader.as_raw_fd());
        for user_data in 1..=3 {
            push(&mut ring, opcode::PollAdd::new(fd, 1).build().user_data(user_data));
        }
        ring.submit().unwrap();
        ring.submitter().register_sync_cancel(None, CancelBuilder::user_data(1)).unwrap();
        push(
            &mut ring,
            opcode::AsyncCancel2::new(CancelBuilder::fd(fd).all()).build().user_data(9),
        );
        ring.submit_and_wait(4).unwrap();
        let mut done = completions(&mut ring);
        done.sort();
        let cancelled = -libc::ECANCELED;
        assert_eq!(done, [(1, cancelled), (2, cancelled), (3, cancelled), (9, 2)]);
        let none = ring.submitter().register_sync_cancel(None, CancelBuilder::user_data(1));
        assert_eq!(none.unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}

#[test]
fn restrictions_hold() {
    for &backend in backends() {
        let mut ring: IoUring =
            IoUring::builder().backend(backend).setup_r_disabled().build(4).unwrap();
        let mut only = [Restriction::sqe_op(opcode::Nop::CODE), Restriction::register_op(12)];
        ring.submitter().register_restrictions(&mut only).unwrap();
        ring.submitter().register_enable_rings().unwrap();
        push(&mut ring, nop(1));
        push(&mut ring, opcode::Close::new(types::Fd(-1)).build().user_data(2));
        ring.submit_and_wait(2).unwrap();
        assert_eq!(completions(&mut ring), [(1, 0), (2, -libc::EACCES)]);
    }
}

#[test]
fn the_other_registrations() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let submitter = ring.submitter();
        // SAFETY: a new descriptor.
        let eventfd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) };
        submitter.register_eventfd(eventfd.as_raw_fd()).unwrap();
        let mut max = [0, 0];
        submitter.register_iowq_max_workers(&mut max).unwrap();
        assert!(max[0] > 0 && max[1] > 0, "{max:?}");
        let id = submitter.register_personality().unwrap();
        submitter.unregister_personality(id).unwrap();
        assert!(submitter.unregister_personality(id).is_err());
        // SAFETY: an empty set.
        let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is ours.
        unsafe { libc::CPU_SET(0, &mut cpus) };
        submitter.register_iowq_aff(&cpus).unwrap();
        submitter.unregister_iowq_aff().unwrap();
        let mut probe = Probe::new();
        submitter.register_probe(&mut probe).unwrap();
        assert!(probe.is_supported(opcode::Read::CODE) && !probe.is_supported(200));
        push(&mut ring, nop(1));
        ring.submit().unwrap();
        let mut count = [0u8; 8];
        File::from(eventfd.try_clone().unwrap()).read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        let cq = ring.completion();
        cq.disable_eventfd();
        assert!(cq.eventfd_disabled());
        cq.enable_eventfd();
        assert!(!cq.eventfd_disabled());
        drop(cq);
        ring.submitter().unregister_eventfd().unwrap();
    }
}

#[test]
fn rings_without_an_index_array_and_with_a_larger_cq() {
    for &backend in backends() {
        let mut ring: IoUring = IoUring::builder()
            .backend(backend)
            .setup_no_sqarray()
            .setup_cqsize(64)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .dontfork()
            .build(4)
            .unwrap();
        assert_eq!(ring.completion().capacity(), 64);
        for n in 0..4 {
            push(&mut ring, nop(n));
        }
        assert!(ring.submission().is_full());
        ring.submit_and_wait(4).unwrap();
        assert_eq!(completions(&mut ring).len(), 4);
    }
}

#[test]
fn more_completions_than_room() {
    for &backend in backends() {
        let mut ring: IoUring =
            IoUring::builder().backend(backend).setup_cqsize(4).build(4).unwrap();
        for n in 0..12 {
            push(&mut ring, nop(n));
            ring.submit().unwrap();
        }
        assert!(ring.submission().cq_overflow());
        let mut seen = Vec::new();
        while seen.len() < 12 {
            seen.extend(completions(&mut ring).into_iter().map(|(user_data, _)| user_data));
            ring.submit().unwrap(); // brings the others in
        }
        assert_eq!(seen, (0..12).collect::<Vec<_>>());
        assert!(!ring.submission().cq_overflow());
    }
}

#[test]
fn a_ring_that_was_made_elsewhere() {
    for &backend in backends() {
        let first: IoUring = ring(backend);
        let params = first.params().clone();
        // SAFETY: `first` is forgotten: the descriptor has one owner. (Its mappings stay.)
        let mut second = unsafe { IoUring::from_fd(first.as_raw_fd(), params).unwrap() };
        std::mem::forget(first);
        assert_eq!(second.backend(), backend);
        push(&mut second, nop(3));
        second.submit_and_wait(1).unwrap();
        assert_eq!(completions(&mut second), [(3, 0)]);
    }
}

#[test]
fn messages_between_rings() {
    for &backend in backends() {
        let (mut from, mut to) = (ring(backend), ring(backend));
        let to_fd = types::Fd(to.as_raw_fd());
        push(&mut from, opcode::MsgRingData::new(to_fd, 11, 22, None).build());
        from.submit_and_wait(1).unwrap();
        assert_eq!(completions(&mut from), [(0, 0)]);
        assert_eq!(completions(&mut to), [(22, 11)]);
    }
}

#[test]
fn many_threads_with_rings() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 100;
    for &backend in backends() {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| std::thread::spawn(move || rounds(backend, thread, ROUNDS)))
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

/// One read by a worker, one that waits for a writer, a timeout and a NOP, again and again; a new
/// ring now and then.
fn rounds(backend: Backend, thread: u64, rounds: u64) {
    let file = file_with(b"0123456789");
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let time = Timespec::from(Duration::from_micros(50));
    let mut ring = ring(backend);
    for round in 0..rounds {
        if round % 32 == 31 {
            ring = common::ring(backend);
        }
        let (mut at_once, mut later) = ([0u8; 4], [0u8; 4]);
        let fd = types::Fd(file.as_raw_fd());
        let by_worker = opcode::Read::new(fd, at_once.as_mut_ptr(), 4).offset(round % 6).build();
        push(&mut ring, by_worker.flags(squeue::Flags::ASYNC).user_data(1));
        let fd = types::Fd(reader.as_raw_fd());
        push(&mut ring, opcode::Read::new(fd, later.as_mut_ptr(), 4).build().user_data(2));
        push(&mut ring, opcode::Timeout::new(&time).build().user_data(3));
        push(&mut ring, nop(4));
        ring.submit().unwrap();
        writer.write_all(&(thread as u32).to_ne_bytes()).unwrap();
        let mut done = Vec::new();
        // A wake-up that got lost shows as a wait that only its time limit ends.
        let patience = Timespec::from(Duration::from_secs(10));
        while done.len() < 4 {
            let start = Instant::now();
            let waited =
                ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&patience));
            let slept = start.elapsed() > Duration::from_secs(9);
            assert!(
                waited.is_ok() && !slept,
                "{backend:?}, round {round}, after {done:?}: {waited:?}"
            );
            done.extend(completions(&mut ring));
        }
        done.sort();
        assert_eq!(done, [(1, 4), (2, 4), (3, -libc::ETIME), (4, 0)], "{backend:?}");
        assert_eq!(later, (thread as u32).to_ne_bytes());
        assert_eq!(at_once[0], b'0' + (round % 6) as u8);
    }
}
