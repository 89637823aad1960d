//! Load for an echo server on loopback: every byte that comes back is compared with what was sent.
//!
//! Each connection sends a stream of its own, whose bytes follow from the connection's number and their position, and
//! keeps at most a window of it unanswered. When it has sent its share it ends its side, reads until the server
//! ends the other, and gives way to a new connection. All of it is bounded by time, and happens on the calling thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes of a connection that may be on their way.
const WINDOW: u64 = 16 * 1024;
/// A share is this many bytes, shifted by 0 to 6.
const SHARE_MIN: u64 = 64 * 1024;
/// Time for what is on its way when the load is over.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
/// Time between two calls of the caller's function.
const TICK: Duration = Duration::from_millis(50);

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The server's port on 127.0.0.1.
    pub port: u16,
    /// Connections at a time.
    pub connections: usize,
    /// For how long.
    pub time: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Bytes that came back right.
    pub bytes: u64,
    /// Connections that ended as they should.
    pub connections: u64,
}

/// Runs the load. `tick` is called some times a second with the time that has passed.
pub fn run(load: &Load, mut tick: impl FnMut(Duration)) -> Result<Done, String> {
    let mut client = Client::new(load)?;
    let (start, mut next_tick) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < load.time {
        client.turn()?;
        if start.elapsed() >= next_tick {
            tick(start.elapsed());
            next_tick = start.elapsed() + TICK;
        }
    }
    client.drain()?;
    Ok(client.done)
}

/// The eight bytes of a stream at eight times `word`.
fn pattern(stream: u64, word: u64) -> [u8; 8] {
    let mut z = (stream << 40 ^ word).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ z >> 27).to_le_bytes()
}

/// Fills `out` with a stream's bytes from `position` on.
fn fill(stream: u64, position: u64, out: &mut [u8]) {
    let mut at = position;
    let mut rest = out;
    while !rest.is_empty() {
        let skip = (at % 8) as usize;
        let n = rest.len().min(8 - skip);
        let (now, later) = rest.split_at_mut(n);
        now.copy_from_slice(&pattern(stream, at / 8)[skip..skip + n]);
        at += n as u64;
        rest = later;
    }
}

struct Connection {
    socket: TcpStream,
    stream: u64,
    share: u64,
    sent: u64,
    received: u64,
    /// Its writing side is shut.
    shut: bool,
    /// A write would block.
    full: bool,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum State {
    Open,
    Over,
}

impl Connection {
    fn open(port: u16, stream: u64) -> Result<Connection, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = TcpStream::connect_timeout(&address, Duration::from_secs(5))
            .map_err(|error| format!("connecting to port {port}: {error}"))?;
        socket.set_nonblocking(true).map_err(|error| error.to_string())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        let share = SHARE_MIN << (pattern(stream, 0)[0] % 7);
        Ok(Connection { socket, stream, share, sent: 0, received: 0, shut: false, full: false })
    }

    fn fault(&self, what: &str) -> String {
        format!(
            "connection {}: {what} after {} of {} bytes had come back",
            self.stream, self.received, self.sent
        )
    }

    /// Sends what the window allows; messages are of all sizes up to it.
    fn send(&mut self) -> Result<(), String> {
        let mut buffer = [0u8; WINDOW as usize];
        self.full = false;
        while self.sent < self.share {
            let room = (WINDOW - (self.sent - self.received)).min(self.share - self.sent);
            let size = room.min(1 + u64::from(pattern(self.stream, self.sent)[1]) * 64);
            if size == 0 {
                return Ok(());
            }
            let message = &mut buffer[..size as usize];
            fill(self.stream, self.sent, message);
            match self.socket.write(message) {
                Ok(n) => self.sent += n as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.full = true;
                    return Ok(());
                }
                Err(error) => return Err(self.fault(&format!("a send failed ({error})"))),
            }
        }
        if !self.shut {
            self.shut = true;
            self.socket.shutdown(Shutdown::Write).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Reads and compares what is there.
    fn receive(&mut self) -> Result<State, String> {
        let mut buffer = [0u8; WINDOW as usize];
        let mut expected = [0u8; WINDOW as usize];
        loop {
            let n = match self.socket.read(&mut buffer) {
                Ok(0) if self.shut && self.received == self.sent => return Ok(State::Over),
                Ok(0) => return Err(self.fault("the server ended it")),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(State::Open),
                Err(error) => return Err(self.fault(&format!("a receive failed ({error})"))),
            };
            if n as u64 > self.sent - self.received {
                return Err(self.fault("more came back than was sent"));
            }
            fill(self.stream, self.received, &mut expected[..n]);
            if let Some(at) = (0..n).find(|&at| buffer[at] != expected[at]) {
                return Err(self.fault(&format!("a wrong byte came at {at} of the next {n}")));
            }
            self.received += n as u64;
        }
    }
}

struct Client {
    load: Load,
    epoll: OwnedFd,
    open: Vec<Option<Connection>>,
    streams: u64,
    done: Done,
}

impl Client {
    fn new(load: &Load) -> Result<Client, String> {
        // SAFETY: integer arguments only.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(format!("epoll_create1: {}", std::io::Error::last_os_error()));
        }
        // SAFETY: the call returned a new descriptor that nobody else owns.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let open = Vec::with_capacity(load.connections);
        let mut client = Client { load: *load, epoll, open, streams: 0, done: Done::default() };
        for index in 0..load.connections {
            client.open.push(None);
            client.connect(index)?;
        }
        Ok(client)
    }

    fn connect(&mut self, index: usize) -> Result<(), String> {
        self.streams += 1;
        let mut connection = Connection::open(self.load.port, self.streams)?;
        connection.send()?;
        self.watch(libc::EPOLL_CTL_ADD, index, &connection)?;
        self.open[index] = Some(connection);
        Ok(())
    }

    fn watch(&self, how: i32, index: usize, connection: &Connection) -> Result<(), String> {
        let wanted = if connection.full { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        let mut event = libc::epoll_event { events: wanted as u32, u64: index as u64 };
        // SAFETY: the event is a local.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), how, connection.socket.as_raw_fd(), &mut event)
        };
        if result == 0 {
            return Ok(());
        }
        Err(format!("epoll_ctl: {}", std::io::Error::last_os_error()))
    }

    /// Which connections are ready, within a tick.
    fn ready(&self) -> Vec<usize> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        // SAFETY: the events are writable and as many as said.
        let n = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                128,
                TICK.as_millis() as i32,
            )
        };
        events[..n.max(0) as usize].iter().map(|event| event.u64 as usize).collect()
    }

    /// Serves the connections that are ready; the places of those that are over are returned.
    fn serve(&mut self) -> Result<Vec<usize>, String> {
        let mut over = Vec::new();
        for index in self.ready() {
            let Some(mut connection) = self.open[index].take() else { continue };
            let (before, was_full) = (connection.received, connection.full);
            let state = connection.receive()?;
            self.done.bytes += connection.received - before;
            if state == State::Over {
                self.done.connections += 1;
                over.push(index);
                continue;
            }
            connection.send()?;
            if connection.full != was_full {
                self.watch(libc::EPOLL_CTL_MOD, index, &connection)?;
            }
            self.open[index] = Some(connection);
        }
        Ok(over)
    }

    fn turn(&mut self) -> Result<(), String> {
        for index in self.serve()? {
            self.connect(index)?;
        }
        Ok(())
    }

    /// No connection sends any more; each must get back what it sent.
    fn drain(&mut self) -> Result<(), String> {
        for connection in self.open.iter_mut().flatten() {
            connection.share = connection.sent;
            connection.send()?;
        }
        let start = Instant::now();
        while let Some(left) = self.open.iter().flatten().next() {
            if start.elapsed() > DRAIN_LIMIT {
                return Err(left.fault("nothing more came"));
            }
            self.serve()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that echoes, with `change` applied to what it echoes.
    fn server(change: fn(&mut Vec<u8>)) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || echo(stream, change));
            }
        });
        port
    }

    fn echo(mut stream: TcpStream, change: fn(&mut Vec<u8>)) {
        let mut buffer = [0u8; 4096];
        while let Ok(n) = stream.read(&mut buffer) {
            let mut bytes = buffer[..n].to_vec();
            change(&mut bytes);
            if n == 0 || stream.write_all(&bytes).is_err() {
                return;
            }
        }
    }

    fn load(port: u16) -> Result<Done, String> {
        run(&Load { port, connections: 3, time: Duration::from_millis(200) }, |_| {})
    }

    #[test]
    fn an_echo_is_counted() {
        let done = load(server(|_| {})).unwrap();
        assert!(done.bytes > 0 && done.connections >= 3, "{done:?}");
    }

    #[test]
    fn a_changed_byte_is_found() {
        let error = load(server(|bytes| bytes.iter_mut().last().into_iter().for_each(|b| *b ^= 1)));
        assert!(error.unwrap_err().contains("wrong byte"));
    }

    #[test]
    fn a_lost_byte_is_found() {
        let error = load(server(|bytes| bytes.truncate(bytes.len().saturating_sub(1))));
        assert!(error.is_err());
    }

    #[test]
    fn positions_do_not_depend_on_where_a_message_begins() {
        let (mut whole, mut part) = ([0u8; 64], [0u8; 20]);
        fill(5, 0, &mut whole);
        fill(5, 13, &mut part);
        assert_eq!(whole[13..33], part);
    }
}
