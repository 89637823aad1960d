//! The client side of echo experiments: loopback TCP connections, each sending a message, and the next when
//! all of it has come back. One thread with epoll drives them all.

use crate::arm::{latencies, Sample};
use crate::error::{check, Error, Result};
use crate::usage::Usage;
use crate::watchdog;
use hdrhistogram::Histogram;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a message.
pub const MESSAGE: usize = 2000;

/// Both ends of `count` connections over loopback: the clients' and the server's.
pub fn connect(count: usize) -> Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let failed = |e| Error::io("loopback connection", e);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut ends = (Vec::new(), Vec::new());
    for _ in 0..count {
        let client = TcpStream::connect(address).map_err(failed)?;
        let (server, _) = listener.accept().map_err(failed)?;
        for end in [&client, &server] {
            end.set_nodelay(true).map_err(failed)?;
        }
        ends.0.push(client);
        ends.1.push(server);
    }
    Ok(ends)
}

/// What the clients saw.
pub struct Clients {
    requests: u64,
    elapsed: Duration,
    usage: Usage,
    latency: Histogram<u64>,
}

/// One connection's state.
struct Talk {
    stream: TcpStream,
    sent: usize,
    received: usize,
    began: Instant,
}

/// An epoll set of level-triggered descriptors.
pub struct Epoll(i32, Vec<libc::epoll_event>);

impl Epoll {
    /// An empty one.
    pub fn new() -> Result<Epoll> {
        // SAFETY: no pointer.
        let fd =
            check("epoll_create1", unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }.into())?;
        Ok(Epoll(fd as i32, vec![libc::epoll_event { events: 0, u64: 0 }; 256]))
    }
    /// Adds a descriptor for reading.
    pub fn add(&self, fd: i32, token: usize) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token as u64 };
        // SAFETY: the event is a local.
        let ret = unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, fd, &mut event) };
        check("epoll_ctl", ret.into()).map(drop)
    }
    /// Takes a descriptor out.
    pub fn remove(&self, fd: i32) -> Result<()> {
        // SAFETY: the event is not read for this operation.
        let ret = unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
        check("epoll_ctl", ret.into()).map(drop)
    }
    /// Waits; gives the tokens that are ready.
    pub fn wait(&mut self, ready: &mut Vec<usize>) -> Result<()> {
        // SAFETY: the events are writable.
        let n = unsafe { libc::epoll_wait(self.0, self.1.as_mut_ptr(), self.1.len() as i32, -1) };
        ready.clear();
        match n {
            n if n >= 0 => ready.extend(self.1[..n as usize].iter().map(|e| e.u64 as usize)),
            _ if std::io::Error::last_os_error().kind() == ErrorKind::Interrupted => {
                watchdog::check()?
            }
            _ => return Err(Error::os("epoll_wait")),
        }
        Ok(())
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        // SAFETY: this value's own descriptor.
        unsafe { libc::close(self.0) };
    }
}

/// Starts the clients; they talk until the time is up, and then close their connections.
pub fn start(streams: Vec<TcpStream>, time: Duration) -> JoinHandle<Result<Clients>> {
    std::thread::spawn(move || talk(streams, time))
}

fn talk(streams: Vec<TcpStream>, time: Duration) -> Result<Clients> {
    let mut epoll = Epoll::new()?;
    let start = Instant::now();
    let (mut talks, mut ready) = (Vec::new(), Vec::new());
    for (i, stream) in streams.into_iter().enumerate() {
        stream.set_nonblocking(true).map_err(|e| Error::io("fcntl", e))?;
        epoll.add(stream.as_raw_fd(), i)?;
        let mut talk = Talk { stream, sent: 0, received: 0, began: start };
        talk.send()?;
        talks.push(talk);
    }
    let (mut requests, mut latency) = (0, latencies());
    while start.elapsed() < time {
        epoll.wait(&mut ready)?;
        for &i in &ready {
            if talks[i].on_ready()? {
                requests += 1;
                let _ = latency.record(talks[i].began.elapsed().as_nanos() as u64);
                talks[i].send()?;
            }
        }
    }
    Ok(Clients { requests, elapsed: start.elapsed(), usage: Usage::thread(), latency })
}

impl Talk {
    /// Sends the message anew. A buffer of a loopback socket holds a whole message.
    fn send(&mut self) -> Result<()> {
        (self.sent, self.received, self.began) = (0, 0, Instant::now());
        let n = self.stream.write(&[b'm'; MESSAGE]).map_err(|e| Error::io("client send", e))?;
        self.sent = n;
        if n == MESSAGE {
            Ok(())
        } else {
            Err(Error::new("a socket buffer has no room for a message; raise net.ipv4.tcp_wmem"))
        }
    }
    /// Reads; true if the whole message is back.
    fn on_ready(&mut self) -> Result<bool> {
        let mut buf = [0u8; MESSAGE];
        match self.stream.read(&mut buf[..MESSAGE - self.received]) {
            Ok(0) => Err(Error::new("the server closed a connection")),
            Ok(n) => {
                self.received += n;
                Ok(self.received == self.sent)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(e) => Err(Error::io("client recv", e)),
        }
    }
}

/// Runs a server against `count` clients for `time`. CPU time and context switches are the server's.
pub fn measure(
    count: usize,
    time: Duration,
    server: impl FnOnce(&[TcpStream]) -> Result<()>,
) -> Result<Sample> {
    let (clients, ends) = connect(count)?;
    let before = Usage::process();
    let clients = start(clients, time);
    let served = server(&ends);
    drop(ends);
    let clients = clients.join().unwrap_or_else(|_| Err(Error::new("the clients panicked")));
    let all = Usage::process().since(before);
    served?;
    let Clients { requests, elapsed, usage, latency } = clients?;
    Ok(Sample::rate(requests, elapsed, all.since(usage)).with_latency(latency))
}
