//! What the engine needs of its process: forks, threads that end, polled descriptors, and no system
//! call that is not needed.

mod common;

use anyring::{opcode, types, Backend, IoUring};
use common::{backends, completions, in_child, nop, push, ring};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Waits in `epoll_wait`; whether the descriptor is ready.
fn ready(epoll: &OwnedFd, timeout_ms: i32) -> bool {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    loop {
        // SAFETY: room for one event.
        let n = unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, timeout_ms) };
        let error = std::io::Error::last_os_error();
        if n >= 0 {
            return n == 1;
        }
        // The kernel's io_uring interrupts a thread that uses it, even to close a ring for good.
        assert_eq!(error.raw_os_error(), Some(libc::EINTR));
        assert!(backends().contains(&Backend::Kernel));
    }
}

fn epoll_with(fd: i32, events: i32) -> OwnedFd {
    // SAFETY: a new descriptor; one event is read.
    unsafe {
        let epoll = OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC));
        let mut event = libc::epoll_event { events: events as u32, u64: 0 };
        assert_eq!(libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event), 0);
        epoll
    }
}

#[test]
fn a_polled_ring_is_ready_while_completions_are_there() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let epoll = epoll_with(ring.as_raw_fd(), libc::EPOLLIN);
        assert!(!ready(&epoll, 0));
        for round in 0..50 {
            push(&mut ring, nop(round));
            push(&mut ring, nop(round));
            ring.submit().unwrap();
            assert!(ready(&epoll, 1000), "{backend:?}");
            assert!(ring.completion().next().is_some());
            assert!(ready(&epoll, 0), "{backend:?}: one is left");
            assert!(ring.completion().next().is_some());
            assert!(!ready(&epoll, 0), "{backend:?}: none is left");
        }
        // Taken in one go, and given back by `sync`.
        push(&mut ring, nop(0));
        ring.submit().unwrap();
        let mut cq = ring.completion();
        assert_eq!(cq.by_ref().count(), 1);
        assert!(ready(&epoll, 0));
        cq.sync();
        assert!(!ready(&epoll, 0));
    }
}

#[test]
fn a_polled_ring_wakes_when_something_completes_later() {
    for &backend in backends() {
        for events in [libc::EPOLLIN, libc::EPOLLIN | libc::EPOLLET] {
            let mut ring = ring(backend);
            let epoll = epoll_with(ring.as_raw_fd(), events);
            let (reader, mut writer) = UnixStream::pair().unwrap();
            for round in 0..20 {
                let mut buf = [0u8; 4];
                let fd = types::Fd(reader.as_raw_fd());
                let read = opcode::Read::new(fd, buf.as_mut_ptr(), 4).build();
                push(&mut ring, read.user_data(round));
                ring.submit().unwrap();
                assert!(!ready(&epoll, 0));
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_micros(300 * (round % 4)));
                        writer.write_all(b"data").unwrap();
                    });
                    assert!(ready(&epoll, 5000), "{backend:?}, round {round}");
                });
                assert_eq!(completions(&mut ring), [(round, 4)]);
                assert!(!ready(&epoll, 0), "{backend:?}, round {round}");
            }
        }
    }
}

#[test]
fn what_is_not_said_is_found_out() {
    if std::env::var_os("ANYRING_ENGINE").is_none() {
        let kernel = backends().contains(&Backend::Kernel);
        let expected = if kernel { Backend::Kernel } else { Backend::User };
        assert_eq!(IoUring::new(1).unwrap().backend(), expected);
    }
}

#[test]
fn a_forked_child_has_rings_of_its_own() {
    let mut parents = ring(Backend::User);
    push(&mut parents, nop(1));
    parents.submit_and_wait(1).unwrap();
    let status = in_child(|| {
        let foreign = parents.submitter().submit_and_wait(1);
        assert_eq!(foreign.unwrap_err().raw_os_error(), Some(libc::EEXIST));
        let mut own = ring(Backend::User);
        push(&mut own, nop(2));
        own.submit_and_wait(1).unwrap();
        assert_eq!(completions(&mut own), [(2, 0)]);
        drop(own);
        drop(parents);
        0
    });
    assert_eq!(status, 0);
}

#[test]
fn a_fork_leaves_the_parents_rings_alone() {
    let mut parents = ring(Backend::User);
    assert_eq!(in_child(|| 0), 0);
    push(&mut parents, nop(5));
    parents.submit_and_wait(1).unwrap();
    assert_eq!(completions(&mut parents), [(5, 0)]);
}

#[test]
fn a_thread_may_end_with_requests_in_flight() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let fd = types::Fd(reader.as_raw_fd());
        let mut ring = std::thread::spawn(move || {
            push(&mut ring, opcode::PollAdd::new(fd, 1).build().user_data(4));
            ring.submit().unwrap();
            ring
        })
        .join()
        .unwrap();
        writer.write_all(b"x").unwrap();
        ring.submit_and_wait(1).unwrap();
        // Linux ends it with the thread, or it lives on.
        let done = completions(&mut ring);
        assert!([[(4, 1)], [(4, -libc::ECANCELED)]].contains(&[done[0]]), "{backend:?}: {done:?}");
    }
}

#[test]
fn a_ring_may_be_dropped_with_requests_in_flight() {
    for &backend in backends() {
        let (reader, writer) = UnixStream::pair().unwrap();
        let mut buf = Box::new([0u8; 8]);
        let mut ring = ring(backend);
        let fd = types::Fd(reader.as_raw_fd());
        push(&mut ring, opcode::Read::new(fd, buf.as_mut_ptr(), 8).build());
        let read = opcode::Read::new(fd, buf.as_mut_ptr(), 8).build();
        push(&mut ring, read.flags(anyring::squeue::Flags::ASYNC));
        ring.submit().unwrap();
        drop(ring);
        drop(reader);
        // Nobody reads any more, once the requests have let go of the socket.
        let mut writer = writer;
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            writer.write_all(b"x").is_err()
        });
        assert!(gone, "{backend:?}: the socket still has a reader");
    }
}

#[test]
fn a_worker_is_interrupted() {
    for &backend in backends() {
        let mut ring = ring(backend);
        let (reader, _writer) = UnixStream::pair().unwrap();
        let mut buf = [0u8; 8];
        let fd = types::Fd(reader.as_raw_fd());
        let read = opcode::Read::new(fd, buf.as_mut_ptr(), 8).build().user_data(1);
        push(&mut ring, read.flags(anyring::squeue::Flags::ASYNC));
        ring.submit().unwrap();
        std::thread::sleep(Duration::from_millis(10));
        push(&mut ring, opcode::AsyncCancel::new(1).build().user_data(2));
        ring.submit_and_wait(2).unwrap();
        let mut done = completions(&mut ring);
        done.sort();
        assert_eq!(done.len(), 2);
        assert!([-libc::ECANCELED, -libc::EINTR].contains(&done[0].1), "{backend:?}: {done:?}");
    }
}

/// Pipes, and a splice between them that waits in a worker.
struct Stuck {
    from: (OwnedFd, OwnedFd),
    to: (OwnedFd, OwnedFd),
}

impl Stuck {
    fn new() -> Stuck {
        let pipe = || {
            let mut fds = [0; 2];
            // SAFETY: two new descriptors.
            unsafe {
                assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
                (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
            }
        };
        Stuck { from: pipe(), to: pipe() }
    }
    fn splice(&self) -> anyring::squeue::Entry {
        let (from, to) = (self.from.0.as_raw_fd(), self.to.1.as_raw_fd());
        opcode::Splice::new(types::Fd(from), -1, types::Fd(to), -1, 1).build().user_data(1)
    }
    /// Whether soon nobody holds the reading end but us.
    fn gets_free(self) -> bool {
        let mut writer = std::fs::File::from(self.from.1);
        drop(self.from.0);
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            writer.write_all(b"x").is_err()
        })
    }
}

#[test]
fn a_link_timeout_ends_a_splice_that_waits_in_a_worker() {
    // The kernel's does not.
    let mut ring = ring(Backend::User);
    let stuck = Stuck::new();
    push(&mut ring, stuck.splice().flags(anyring::squeue::Flags::IO_LINK));
    let soon = types::Timespec::new().nsec(5_000_000);
    push(&mut ring, opcode::LinkTimeout::new(&soon).build().user_data(2));
    ring.submit_and_wait(2).unwrap();
    let mut done = completions(&mut ring);
    done.sort();
    assert_eq!(done[0], (1, -libc::ECANCELED));
    assert!([-libc::EALREADY, -libc::ETIME].contains(&done[1].1), "{done:?}");
    assert!(stuck.gets_free());
}

#[test]
fn workers_that_wait_for_ever_hold_nothing_up() {
    let (rings, threads): (Vec<Stuck>, Vec<Stuck>) =
        (0..4).map(|_| (Stuck::new(), Stuck::new())).unzip();
    for stuck in rings {
        let mut ring = ring(Backend::User);
        push(&mut ring, stuck.splice());
        ring.submit().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        drop(ring);
        assert!(stuck.gets_free(), "the ring is gone");
    }
    for stuck in threads {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut ring = ring(Backend::User);
                push(&mut ring, stuck.splice());
                ring.submit().unwrap();
                std::thread::sleep(Duration::from_millis(2));
                // Its thread ends, the ring does not.
                std::mem::forget(ring);
            });
        });
        assert!(stuck.gets_free(), "the thread is gone");
    }
}

#[test]
fn a_process_with_waiting_workers_ends() {
    let status = in_child(|| {
        let mut ring = ring(Backend::User);
        let stuck: Vec<Stuck> = (0..3).map(|_| Stuck::new()).collect();
        for stuck in &stuck {
            push(&mut ring, stuck.splice());
        }
        ring.submit().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        7
    });
    assert_eq!(status, 7);
}

/// Lets the thread do nothing but end: every other system call kills it.
fn allow_only_exit() {
    const fn op(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    let mut program = [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_exit as u32),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: the program is read.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

#[test]
fn a_nop_needs_no_system_call() {
    let status = in_child(|| {
        let mut ring: IoUring = ring(Backend::User);
        push(&mut ring, nop(0));
        ring.submit_and_wait(1).unwrap();
        allow_only_exit();
        let mut seen = completions(&mut ring).len();
        for round in 0..1000 {
            push(&mut ring, nop(round));
            if ring.submit_and_wait(1).is_ok() {
                seen += ring.completion().count();
            }
        }
        // SAFETY: ends this thread, the only one.
        unsafe { libc::syscall(libc::SYS_exit, i32::from(seen != 1001)) };
        unreachable!()
    });
    assert_eq!(status, 0, "-31 is a system call that was made");
}

/// What the processes of a run appended to the file.
fn lines_written(name: &str, child: impl FnOnce(&str)) -> Vec<String> {
    let path = std::env::temp_dir().join(format!("anyring-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    child(path.to_str().unwrap());
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    text.lines().map(String::from).collect()
}

/// This test program again, with one test only and the statistics going to `path`; its standard error.
fn again(test: &str, path: &str) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--test-threads=1", "--nocapture"]);
    let output = command.env("ANYRING_STATS", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "run by the tests of statistics"]
fn uses_the_engine_and_exits() {
    let mut ring = ring(Backend::User);
    for round in 0..3 {
        push(&mut ring, nop(round));
    }
    ring.submit_and_wait(3).unwrap();
    // Its number is not the lowest, where a program expects its own files.
    let (end, _other) = UnixStream::pair().unwrap();
    assert!(end.as_raw_fd() < 100);
    // A child that makes a ring of its own, and one that does not.
    for own in [true, false] {
        // SAFETY: the child makes a ring and exits, as programs do that fork early.
        match unsafe { libc::fork() } {
            0 => {
                if own {
                    let mut ring: IoUring =
                        IoUring::builder().backend(Backend::User).build(2).unwrap();
                    push(&mut ring, nop(9));
                    ring.submit_and_wait(1).unwrap();
                    drop(ring);
                    // As daemons do: the file has to be opened again.
                    // SAFETY: closes descriptors that nobody uses any more.
                    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
                }
                // SAFETY: ends the child, with its exit handlers.
                unsafe { libc::exit(0) }
            }
            child => {
                // SAFETY: waits for the child.
                assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
            }
        }
    }
}

#[test]
fn the_line_of_statistics_is_written_at_exit() {
    let lines = lines_written("stats", |path| {
        again("uses_the_engine_and_exits", path);
    });
    assert_eq!(lines.len(), 2, "{lines:?}");
    let (child, own) = (&lines[0], &lines[1]);
    assert!(child.contains("\"NOP\":{\"submitted\":1,\"posted\":1,"), "{child}");
    assert!(own.contains("\"engine\":\"user\",\"rings\":1,"), "{own}");
    assert!(own.contains("\"NOP\":{\"submitted\":3,\"posted\":3,"), "{own}");
    assert!(lines.iter().all(|line| line.starts_with('{') && line.ends_with("}}")), "{lines:?}");
}

#[test]
fn statistics_that_cannot_be_written_do_not_stop_the_program() {
    let stderr = again("uses_the_engine_and_exits", "/nonexistent/x");
    // The child with a ring of its own does not repeat it.
    let line = "anyring: cannot write statistics to '/nonexistent/x': No such file";
    assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
}
