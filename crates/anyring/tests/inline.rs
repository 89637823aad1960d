//! A submitter is never held by a file system whose server it may be itself, and at most once by a slow one.
//!
//! Needs root, /dev/fuse and fanotify; says so where one is missing. A watchdog ends the program if a submitter is held.

mod common;
#[path = "common/fuse.rs"]
mod fuse;

use anyring::{opcode, squeue, types, Backend, IoUring};
use common::{backends, completions, push};
use fuse::Fuse;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Mutex, MutexGuard};
use std::time::Duration;

/// One test at a time: they share an engine, which remembers the mounts of one namespace, and one test has its own.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Ends the process unless it is dropped in time, after `free` has let go who is held.
struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

impl Watchdog {
    fn new(what: &'static str, free: impl FnOnce() + Send + 'static) -> Watchdog {
        let (alive, watched) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if watched.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                eprintln!("{what}: still held after 30 s");
                free();
                std::process::abort();
            }
        });
        Watchdog(alive)
    }
}

/// A folder that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anyring-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn statx(path: &CStr, dir: i32, into: &mut libc::statx) -> squeue::Entry {
    let into = std::ptr::from_mut(into).cast();
    opcode::Statx::new(types::Fd(dir), path.as_ptr(), into)
        .flags(libc::AT_EMPTY_PATH)
        .mask(libc::STATX_BASIC_STATS)
        .build()
}

fn new_statx() -> Box<libc::statx> {
    // SAFETY: all-zero is a valid statx.
    Box::new(unsafe { std::mem::zeroed() })
}

/// Whether an operation is over when the call that submitted it returns.
fn ends_inline(ring: &mut IoUring, entry: squeue::Entry, result: i32) -> bool {
    push(ring, entry);
    assert_eq!(ring.submit().unwrap(), 1);
    let mut done = completions(ring);
    let inline = !done.is_empty();
    if !inline {
        ring.submit_and_wait(1).unwrap();
        done = completions(ring);
    }
    assert_eq!(done, [(0, result)]);
    inline
}

/// Submits, and only then plays the server until the operation is over: its result. A submitter that waited for the
/// server would wait for itself.
fn served_by_the_submitter(ring: &mut IoUring, server: &Fuse, entry: squeue::Entry) -> i32 {
    push(ring, entry);
    assert_eq!(ring.submit().unwrap(), 1);
    loop {
        if let Some((_, result)) = completions(ring).first() {
            return *result;
        }
        server.answer(Duration::from_millis(10));
    }
}

#[test]
fn a_fuse_server_may_be_the_submitter() {
    let _alone = alone();
    let folder = Folder::new("fuse");
    for &backend in backends() {
        // Mounts are this thread's own.
        let result = std::thread::scope(|s| {
            s.spawn(|| fuse::own_mounts().map(|()| fuse_server(backend, &folder.0))).join().unwrap()
        });
        if let Err(error) = result {
            return eprintln!("skipped: no mount namespace of our own: {error}");
        }
    }
}

fn fuse_server(backend: Backend, folder: &Path) {
    let mut ring: IoUring = IoUring::builder().backend(backend).build(8).unwrap();
    let (local, mut stat) = (c_path(folder), new_statx());
    let look = |stat: &mut libc::statx| statx(&local, libc::AT_FDCWD, stat);
    // By the third at the latest the engine has seen that this is quick here.
    let inline = (0..3).any(|_| ends_inline(&mut ring, look(&mut stat), 0));
    assert!(inline || backend == Backend::Kernel);

    let server = match Fuse::mount(folder) {
        Ok(server) => server,
        Err(error) => return eprintln!("skipped: no FUSE: {error}"),
    };
    let mounted = folder.to_path_buf();
    let _watchdog = Watchdog::new("a submitter that is a FUSE server", move || {
        fuse::take_off(&mounted);
    });
    let mut serve = |entry| served_by_the_submitter(&mut ring, &server, entry);
    let (file, none) = (c_path(&folder.join("file")), c_path(&folder.join("none")));
    let here = types::Fd(libc::AT_FDCWD);
    assert_eq!(serve(statx(&none, libc::AT_FDCWD, &mut stat)), -libc::ENOENT);
    assert_eq!(serve(statx(&file, libc::AT_FDCWD, &mut stat)), 0);
    assert_eq!(stat.stx_size, fuse::FILE_SIZE);
    assert_eq!(serve(opcode::UnlinkAt::new(here, file.as_ptr()).build()), -libc::ENOSYS);
    assert_eq!(serve(opcode::MkDirAt::new(here, none.as_ptr()).build()), -libc::ENOSYS);
    let fd = serve(opcode::OpenAt::new(here, file.as_ptr()).flags(libc::O_RDWR).build());
    assert!(fd >= 0, "{fd}");

    let opened = types::Fd(fd);
    assert_eq!(serve(statx(c"", fd, &mut stat)), 0);
    assert_eq!(serve(opcode::Fsync::new(opened).build()), 0);
    assert_eq!(serve(opcode::Ftruncate::new(opened, 3).build()), 0);
    assert_eq!(serve(opcode::Fallocate::new(opened, 10).build()), -libc::EOPNOTSUPP);
    let mut buf = [0u8; 8];
    let read = opcode::Read::new(opened, buf.as_mut_ptr(), buf.len() as u32);
    assert_eq!(serve(read.build().flags(squeue::Flags::ASYNC)), fuse::CONTENT.len() as i32);
    assert_eq!(&buf[..fuse::CONTENT.len()], fuse::CONTENT);
    assert_eq!(serve(opcode::Close::new(opened).build()), 0);
    assert!(server.count(fuse::FLUSH) > 0, "close flushes");

    server.unmount(folder);
    let inline = (0..3).any(|_| ends_inline(&mut ring, look(&mut stat), 0));
    assert!(inline || backend == Backend::Kernel);
}

/// Opens of a file are asked for; whoever holds this answers.
struct Gate(OwnedFd);

impl Gate {
    fn on(path: &CStr) -> io::Result<Gate> {
        // SAFETY: integers only; the path is a C string.
        unsafe {
            let fd = libc::fanotify_init(libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let gate = Gate(OwnedFd::from_raw_fd(fd));
            let (add, what) = (libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM);
            match libc::fanotify_mark(fd, add, what, libc::AT_FDCWD, path.as_ptr()) {
                0 => Ok(gate),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Waits for somebody who opens, and lets them.
    fn open(&self, after: Duration) {
        // SAFETY: all-zero is a valid event; the reads and writes are of its size.
        unsafe {
            let mut event: libc::fanotify_event_metadata = std::mem::zeroed();
            let size = size_of_val(&event);
            let n = libc::read(self.0.as_raw_fd(), (&raw mut event).cast(), size);
            assert_eq!(n, size as isize, "{}", io::Error::last_os_error());
            std::thread::sleep(after);
            let answer = libc::fanotify_response { fd: event.fd, response: libc::FAN_ALLOW };
            libc::write(self.0.as_raw_fd(), (&raw const answer).cast(), size_of_val(&answer));
            libc::close(event.fd);
        }
    }
}

/// Somebody looks at every open of a local file, and takes his time.
#[test]
fn a_slow_file_holds_a_submitter_once() {
    let _alone = alone();
    let folder = Folder::new("slow");
    let path = folder.0.join("file");
    std::fs::write(&path, b"x").unwrap();
    let path = c_path(&path);
    let gate = match Gate::on(&path) {
        Ok(gate) => gate,
        Err(error) => return eprintln!("skipped: no fanotify: {error}"),
    };
    let _watchdog = Watchdog::new("a submitter that has been held before", || ());
    let mut ring: IoUring = IoUring::builder().backend(Backend::User).build(8).unwrap();
    let open = || {
        let here = types::Fd(libc::AT_FDCWD);
        opcode::OpenAt::new(here, path.as_ptr()).flags(libc::O_RDONLY).build()
    };
    // The first is answered by somebody else, and late.
    std::thread::scope(|s| {
        s.spawn(|| gate.open(Duration::from_millis(50)));
        push(&mut ring, open());
        ring.submit_and_wait(1).unwrap();
    });
    let mut opened: Vec<i32> = completions(&mut ring).iter().map(|(_, fd)| *fd).collect();
    // The others are answered by the submitter, which must not be held for that.
    for _ in 0..20 {
        push(&mut ring, open());
        assert_eq!(ring.submit().unwrap(), 1);
        assert_eq!(completions(&mut ring), []);
        gate.open(Duration::from_millis(1));
        ring.submit_and_wait(1).unwrap();
        opened.extend(completions(&mut ring).iter().map(|(_, fd)| *fd));
    }
    assert_eq!(opened.len(), 21);
    for fd in opened {
        assert!(fd >= 0, "{fd}");
        // SAFETY: opened above.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}
