//! The small set of files, paths and memory that a sequence uses, made anew for each.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::fixture::{eventfd, pipe, Dir, Fd};
use crate::mem;
use crate::ring::Ring;
use crate::sys;
use anyring_uapi::register;

/// A stream or file with at most one outstanding request: with two, which of them gets
/// the data is nobody's promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    /// Regular file, 8192 bytes.
    File,
    /// Regular file opened for reading.
    ReadOnly,
    /// A pipe with 8 bytes in it.
    Full,
    /// An empty pipe.
    Empty,
    /// One end of a socket pair with 8 bytes to receive.
    Socket,
    /// One end of a socket pair with nothing to receive.
    Silent,
    /// A listening socket without clients.
    Listener,
    /// An eventfd with value 0.
    Event,
    /// An unconnected stream socket.
    Loose,
    /// A number that is not open.
    Closed,
    /// Paths in the directory.
    Paths,
    /// The provided buffers and registered tables.
    Tables,
    /// Nothing that others share.
    Nothing,
}

/// See the module.
pub struct World {
    /// Directory of all paths.
    pub dir: Dir,
    file: std::fs::File,
    read_only: std::fs::File,
    full: (Fd, Fd),
    empty: (Fd, Fd),
    socket: (UnixStream, UnixStream),
    silent: (UnixStream, UnixStream),
    listener: TcpListener,
    event: Fd,
    loose: OwnedFd,
    epoll: Fd,
    /// A page that is registered as buffer 0.
    pub fixed: usize,
    /// An address that nobody listens on.
    pub refused: usize,
}

impl World {
    /// Makes everything.
    pub fn new() -> World {
        let dir = Dir::new();
        let file = dir.file("f", &[b'x'; 8192]);
        let read_only = std::fs::File::open(dir.join("f")).expect("open");
        let (full, empty) = (pipe(), pipe());
        sys::write(*full.1, b"abcdefgh");
        let pair = || UnixStream::pair().expect("socketpair");
        let (socket, silent) = (pair(), pair());
        sys::write(socket.1.as_raw_fd(), b"abcdefgh");
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        // SAFETY: no memory involved; both descriptors are fresh.
        let (loose, epoll) = unsafe {
            (
                OwnedFd::from_raw_fd(libc::socket(
                    libc::AF_INET,
                    libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                    0,
                )),
                Fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)),
            )
        };
        let refused = {
            let l = TcpListener::bind("127.0.0.1:0").expect("listen");
            crate::scenarios::loopback(l.local_addr().expect("address").port())
        };
        World {
            fixed: sys::pages(4096) as usize,
            event: eventfd(0),
            refused,
            dir,
            file,
            read_only,
            full,
            empty,
            socket,
            silent,
            listener,
            loose,
            epoll,
        }
    }

    /// Registers the tables: files {file, full pipe, empty slot, socket}, buffers {page, empty}.
    pub fn register(&self, r: &Ring) {
        let files = [self.fd(Thing::File), self.fd(Thing::Full), -1, self.fd(Thing::Socket)];
        r.reg(register::FILES, mem::leak(files), 4);
        r.reg(register::BUFFERS, mem::iovecs(&[(self.fixed, 4096), (0, 0)]), 2);
    }

    /// The descriptor of a thing (its reading end).
    pub fn fd(&self, t: Thing) -> i32 {
        match t {
            Thing::File => self.file.as_raw_fd(),
            Thing::ReadOnly => self.read_only.as_raw_fd(),
            Thing::Full => *self.full.0,
            Thing::Empty => *self.empty.0,
            Thing::Socket => self.socket.0.as_raw_fd(),
            Thing::Silent => self.silent.0.as_raw_fd(),
            Thing::Listener => self.listener.as_raw_fd(),
            Thing::Event => *self.event,
            Thing::Loose => self.loose.as_raw_fd(),
            Thing::Paths | Thing::Tables | Thing::Nothing | Thing::Closed => 999,
        }
    }

    /// The descriptor to write to.
    pub fn writing(&self, t: Thing) -> i32 {
        match t {
            Thing::Full => *self.full.1,
            Thing::Empty => *self.empty.1,
            _ => self.fd(t),
        }
    }

    /// The epoll set.
    pub fn epoll(&self) -> i32 {
        *self.epoll
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// A buffer of `len` bytes that ends where memory ends: what goes beyond it is a fault,
/// not a change of other memory.
pub fn guarded(len: usize) -> usize {
    let p = sys::pages(8192);
    // SAFETY: the second page is ours and unused.
    sys::munmap(unsafe { p.add(4096) }, 4096);
    p as usize + 4096 - len
}
