//! For each opcode a request that works, and the files and memory it needs.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::prelude::*;

/// Everything that the requests of the matrix point to; made anew for each question.
pub struct World {
    /// The ring that is asked: file table {file, empty}, one registered buffer.
    pub ring: Ring,
    other: Ring,
    dir: Dir,
    file: std::fs::File,
    data: usize,
    iov: usize,
    fixed: usize,
    msg: usize,
    pipe_full: (Fd, Fd),
    pipe_empty: (Fd, Fd),
    pair: (UnixStream, UnixStream),
    listener: TcpListener,
    client: TcpStream,
    loose: [OwnedFd; 2],
    bound: OwnedFd,
    address: usize,
    any_port: usize,
    epoll: Fd,
    futex: usize,
}

fn tcp_socket() -> OwnedFd {
    // SAFETY: no memory involved; the descriptor is fresh.
    unsafe {
        OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))
    }
}

/// 127.0.0.1 with `port` as a sockaddr_in at a lasting address.
pub fn loopback(port: u16) -> usize {
    let mut a = [0u8; 16];
    a[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    mem::bytes(&a)
}

impl World {
    /// Makes files, sockets and rings.
    pub fn new() -> World {
        let dir = Dir::new();
        let file = dir.file("f", &[b'x'; 4096]);
        dir.file("g", &[b'y'; 100]);
        let data = at(buf(64));
        let iov = mem::iovecs(&[(data, 4)]);
        let fixed = sys::pages(4096) as usize;
        let (ring, other) = (Ring::new(8, 0), Ring::new(8, 0));
        ring.reg(register::BUFFERS, mem::iovecs(&[(fixed, 4096)]), 1);
        ring.reg(register::FILES, leak([file.as_raw_fd(), -1]), 2);
        let (pipe_full, pipe_empty) = (pipe(), pipe());
        sys::write(*pipe_full.1, b"abcdefgh");
        let pair = UnixStream::pair().expect("socketpair");
        sys::write(pair.0.as_raw_fd(), b"hello");
        sys::write(pair.1.as_raw_fd(), b"hello");
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let here = listener.local_addr().expect("address");
        let client = TcpStream::connect(here).expect("connect");
        let bound = tcp_socket();
        // SAFETY: a valid sockaddr_in of 16 bytes.
        unsafe { libc::bind(bound.as_raw_fd(), loopback(0) as *const libc::sockaddr, 16) };
        // SAFETY: no memory involved.
        let epoll = Fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        World {
            msg: mem::msghdr(iov, 1),
            address: loopback(here.port()),
            any_port: loopback(0),
            loose: [tcp_socket(), tcp_socket()],
            futex: leak(0u32),
            ring,
            other,
            dir,
            file,
            data,
            iov,
            fixed,
            pipe_full,
            pipe_empty,
            pair,
            listener,
            client,
            bound,
            epoll,
        }
    }

    fn fd(&self) -> i32 {
        self.file.as_raw_fd()
    }
    fn sock(&self) -> i32 {
        self.pair.0.as_raw_fd()
    }
}

const HERE: i32 = libc::AT_FDCWD;

/// A working request of `opcode`.
pub fn base(opcode: u8, w: &World) -> Q {
    let b = q(opcode);
    match opcode {
        op::READV..=op::TIMEOUT_REMOVE => base_first(b, w),
        op::ACCEPT..=op::OPENAT2 => base_second(b, w),
        op::EPOLL_CTL..=op::LINKAT => base_third(b, w),
        op::MSG_RING..=op::SOCKET => base_xattr(b, w),
        _ => base_newest(b, w),
    }
}

fn base_first(b: Q, w: &World) -> Q {
    match b.0.opcode {
        op::READV | op::WRITEV => b.fd(w.fd()).addr(w.iov).len(1),
        op::FSYNC => b.fd(w.fd()),
        op::READ_FIXED | op::WRITE_FIXED => b.fd(w.fd()).addr(w.fixed).len(4),
        op::POLL_ADD => b.fd(*w.pipe_full.0).opf(1),
        op::POLL_REMOVE | op::TIMEOUT_REMOVE => b.addr(77),
        op::SYNC_FILE_RANGE => b.fd(w.fd()).len(10),
        op::SENDMSG | op::RECVMSG => b.fd(w.sock()).addr(w.msg),
        op::TIMEOUT => b.addr(mem::ms(1)).len(1),
        _ => b,
    }
}

fn base_second(b: Q, w: &World) -> Q {
    match b.0.opcode {
        op::ACCEPT => b.fd(w.listener.as_raw_fd()),
        op::ASYNC_CANCEL => b.addr(77),
        op::LINK_TIMEOUT => b.addr(mem::ms(1)).len(1),
        op::CONNECT => b.fd(w.loose[0].as_raw_fd()).addr(w.address).off(16),
        op::FALLOCATE => b.fd(w.fd()).addr(10),
        op::OPENAT => b.fd(HERE).addr(w.dir.cpath("f")),
        op::CLOSE => b.fd(sys::dup(w.fd())),
        op::FILES_UPDATE => b.addr(leak(w.fd())).len(1),
        op::STATX => b.fd(HERE).addr(w.dir.cpath("f")).off(at(buf(256)) as u64),
        op::READ | op::WRITE => b.fd(w.fd()).addr(w.data).len(4),
        op::FADVISE => b.fd(w.fd()).len(10),
        op::MADVISE => b.addr(sys::pages(4096) as usize).len(4096),
        op::SEND | op::RECV => b.fd(w.sock()).addr(w.data).len(4),
        op::OPENAT2 => b.fd(HERE).addr(w.dir.cpath("f")).off(leak([0u64; 3]) as u64).len(24),
        _ => b,
    }
}

fn base_third(b: Q, w: &World) -> Q {
    let (f, new) = (w.dir.cpath("f"), w.dir.cpath("new") as u64);
    match b.0.opcode {
        op::EPOLL_CTL => b.fd(*w.epoll).off(*w.pipe_full.0 as u64).len(1).addr(leak([1u32, 5, 0])),
        op::SPLICE => {
            b.fd(*w.pipe_empty.1).off(u64::MAX).addr(usize::MAX).len(4).fi(*w.pipe_full.0 as u32)
        }
        op::PROVIDE_BUFFERS => b.fd(1).addr(w.data).len(8),
        op::REMOVE_BUFFERS => b.fd(1),
        op::TEE => b.fd(*w.pipe_empty.1).len(4).fi(*w.pipe_full.0 as u32),
        op::SHUTDOWN => b.fd(w.sock()).len(2),
        op::RENAMEAT | op::LINKAT => b.fd(HERE).addr(f).off(new).len(HERE as u32),
        op::UNLINKAT => b.fd(HERE).addr(w.dir.cpath("g")),
        op::MKDIRAT => b.fd(HERE).addr(new as usize).len(0o755),
        op::SYMLINKAT => b.fd(HERE).addr(f).off(new),
        _ => b,
    }
}

fn base_xattr(b: Q, w: &World) -> Q {
    let (name, value) = (mem::cstr("user.foo"), mem::bytes(b"bar\0") as u64);
    if matches!(b.0.opcode, op::FGETXATTR | op::GETXATTR) {
        // SAFETY: three NUL-terminated or sized arguments at lasting addresses.
        unsafe {
            libc::fsetxattr(w.fd(), name as *const libc::c_char, value as *const libc::c_void, 3, 0)
        };
    }
    match b.0.opcode {
        op::MSG_RING => b.fd(w.other.fd).off(5).len(6),
        op::FSETXATTR | op::FGETXATTR => b.fd(w.fd()).addr(name).off(value).len(3),
        op::SETXATTR | op::GETXATTR => {
            b.addr(name).off(value).len(3).addr3(w.dir.cpath("f") as u64)
        }
        op::SOCKET => b.fd(libc::AF_INET).off(libc::SOCK_STREAM as u64),
        _ => b,
    }
}

fn base_newest(b: Q, w: &World) -> Q {
    let client = w.client.as_raw_fd();
    match b.0.opcode {
        op::URING_CMD => b.fd(w.sock()),
        op::SEND_ZC => b.fd(client).addr(w.data).len(4),
        op::SENDMSG_ZC => b.fd(client).addr(w.msg),
        op::READ_MULTISHOT => b.fd(*w.pipe_full.0).flags(BUFFER_SELECT),
        op::WAITID => b.fd(0).fi(4 | 1),
        op::FUTEX_WAIT | op::FUTEX_WAKE => b.fd(2).addr(w.futex).off(1).addr3(0xffff_ffff),
        op::FUTEX_WAITV => b.fd(0).addr(leak([1u64, w.futex as u64, 2])).len(1),
        op::FIXED_FD_INSTALL => b.fd(0).flags(FIXED_FILE),
        op::FTRUNCATE => b.fd(w.fd()).off(4096),
        op::BIND => b.fd(w.loose[1].as_raw_fd()).addr(w.any_port).off(16),
        op::LISTEN => b.fd(w.bound.as_raw_fd()).len(5),
        op::RECV_ZC => b.fd(w.sock()).prio(2),
        op::EPOLL_WAIT => b.fd(*w.epoll).addr(at(buf(64))).len(1),
        op::READV_FIXED | op::WRITEV_FIXED => {
            b.fd(w.fd()).addr(mem::iovecs(&[(w.fixed, 4)])).len(1)
        }
        op::PIPE => b.fd(0).addr(leak([0i32; 2])),
        _ => b,
    }
}
