//! An echo server on loopback TCP.

use super::Experiment;
use crate::arm::{Arm, Kind, Plan, RatioDef, Setting, Turn};
use crate::error::{Error, Result};
use crate::net::{self, Epoll, MESSAGE};
use crate::pbuf::BufferRing;
use crate::peers;
use crate::ring::{Backend, Ring, MODERN};
use anyring_uapi::{cqe, op, sqe, Cqe, Sqe};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "echo",
    about: "an echo server, 8 loopback connections with messages of 2000 bytes; and 512 connections",
    method: "Each client sends 2000 bytes and waits for their return. One thread with epoll drives all clients; the server \
             is one thread with a ring (SINGLE_ISSUER, DEFER_TASKRUN) on the same CPUs. 'async' sets IOSQE_ASYNC on every recv and \
             send, with as many workers as CPUs. 'mshot512' is a multishot recv with a buffer ring on 512 connections. \
             The limit is an epoll loop with recv and send; peers are compio on its poll driver, and tokio, each on one thread. CPU time and switches are the server's.",
    unit: "requests/s",
    ratios: &[
        RatioDef::value("echo.async_user_vs_kernel", "user-async", "kernel-async"),
        RatioDef::value("echo.user_vs_kernel", "user", "kernel"),
        RatioDef::value("echo.user_vs_epoll", "user", "epoll"),
        RatioDef::value("echo.user_vs_compio", "user", "compio-poll"),
        RatioDef::value("echo.user_vs_tokio", "user", "tokio"),
        RatioDef::value("echo.mshot512_user_vs_kernel", "user-mshot512", "kernel-mshot512"),
        RatioDef::value("echo.batch_vs_single", "user-async-batch16", "user-async-batch1").reported(1.0723),
    ],
    prepare,
};

const FEW: usize = 8;
const MANY: usize = 512;

fn prepare(_: &Setting) -> Result<Plan> {
    let mut plan = Plan::default();
    let plain = |flags| {
        move |backend: &Arc<dyn Backend>, turn: &Turn| {
            net::measure(FEW, turn.slice, |ends| one_shot(backend, ends, flags))
        }
    };
    plan.both("", plain(0));
    plan.both("-async", plain(sqe::ASYNC));
    for batch in [16, 1] {
        let policy = format!("inline=never,wq_free_batch={batch}");
        plan.user(&format!("user-async-batch{batch}"), &policy, plain(sqe::ASYNC));
    }
    plan.both("-mshot512", |backend, turn| {
        net::measure(MANY, turn.slice, |ends| multishot(backend, ends))
    });
    for (name, count) in [("epoll", FEW), ("epoll-512", MANY)] {
        plan.add(Arm::new(name, Kind::Limit, move |turn| {
            net::measure(count, turn.slice, on_epoll)
        }));
    }
    peers::add_echo(&mut plan, FEW);
    Ok(plan)
}

const RECV: u64 = 0;
const SEND: u64 = 1 << 32;

/// A recv, and when it has ended a send of what came, on each connection.
fn one_shot(backend: &Arc<dyn Backend>, ends: &[TcpStream], flags: u8) -> Result<()> {
    // Before the ring, which ends first and with it what is in flight.
    let mut bufs = vec![[0u8; MESSAGE]; ends.len()];
    let mut ring = Ring::new(backend, 2 * ends.len() as u32, MODERN)?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    ring.limit_workers(workers, workers)?;
    let mut request = |conn: usize, opcode, from: usize, len: usize, kind| Sqe {
        opcode,
        flags,
        fd: ends[conn].as_raw_fd(),
        addr: bufs[conn][from..from + len].as_mut_ptr() as u64,
        len: len as u32,
        user_data: conn as u64 | kind,
        ..Sqe::default()
    };
    let (mut open, mut cqes) = (ends.len(), Vec::new());
    // What a send that is under way has yet to send: (from, to).
    let mut sending = vec![(0usize, 0usize); ends.len()];
    (0..ends.len()).for_each(|conn| ring.push(request(conn, op::RECV, 0, MESSAGE, RECV)));
    while open > 0 {
        ring.submit_and_wait(1)?;
        ring.reap(&mut cqes);
        for cqe in cqes.drain(..) {
            let (conn, kind) = (cqe.user_data as u32 as usize, cqe.user_data & SEND);
            match (kind, received(cqe.res)?) {
                (RECV, 0) => open -= 1,
                (RECV, n) => {
                    sending[conn] = (0, n);
                    ring.push(request(conn, op::SEND, 0, n, SEND));
                }
                (_, n) => {
                    let (from, to) = &mut sending[conn];
                    *from += n;
                    let (from, left) = (*from, *to - *from);
                    ring.push(match left {
                        0 => request(conn, op::RECV, 0, MESSAGE, RECV),
                        _ => request(conn, op::SEND, from, left, SEND),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Bytes; 0 for a connection that the client has closed.
fn received(res: i32) -> Result<usize> {
    match res {
        n if n >= 0 => Ok(n as usize),
        e if [libc::ECONNRESET, libc::EPIPE].contains(&-e) => Ok(0),
        e => Err(Error::errno("recv or send", -e)),
    }
}

const GROUP: u16 = 1;

/// A multishot recv on each connection, buffers from a ring.
fn multishot(backend: &Arc<dyn Backend>, ends: &[TcpStream]) -> Result<()> {
    let mut ring = Ring::new(backend, 4 * ends.len() as u32, MODERN)?;
    let mut buffers = BufferRing::new(&ring, GROUP, 2 * ends.len(), MESSAGE)?;
    let recv = |conn: usize| Sqe {
        opcode: op::RECV,
        flags: sqe::BUFFER_SELECT,
        ioprio: RECV_MULTISHOT,
        fd: ends[conn].as_raw_fd(),
        buf_index: GROUP,
        user_data: conn as u64,
        ..Sqe::default()
    };
    let (mut open, mut cqes) = (ends.len(), Vec::new());
    (0..ends.len()).for_each(|conn| ring.push(recv(conn)));
    while open > 0 {
        ring.submit_and_wait(1)?;
        ring.reap(&mut cqes);
        for cqe in cqes.drain(..) {
            if cqe.user_data & SEND != 0 {
                received(cqe.res)?;
                buffers.give_back((cqe.user_data >> 33) as u16);
                continue;
            }
            let conn = cqe.user_data as usize;
            let n = match cqe.res {
                e if e == -libc::ENOBUFS => usize::MAX,
                res => received(res)?,
            };
            if let Some(send) = echo_back(&cqe, ends, &buffers) {
                ring.push(send);
            }
            match n {
                0 => open -= 1,
                _ if cqe.flags & cqe::F_MORE == 0 => ring.push(recv(conn)),
                _ => {}
            }
        }
    }
    Ok(())
}

const RECV_MULTISHOT: u16 = 1 << 1;

fn echo_back(cqe: &Cqe, ends: &[TcpStream], buffers: &BufferRing) -> Option<Sqe> {
    if cqe.res <= 0 || cqe.flags & cqe::F_BUFFER == 0 {
        return None;
    }
    let id = (cqe.flags >> cqe::BUFFER_SHIFT) as u16;
    Some(Sqe {
        opcode: op::SEND,
        fd: ends[cqe.user_data as usize].as_raw_fd(),
        addr: buffers.address(id),
        len: cqe.res as u32,
        op_flags: libc::MSG_WAITALL as u32,
        user_data: SEND | u64::from(id) << 33,
        ..Sqe::default()
    })
}

/// The same server by hand: readiness, then recv and send.
fn on_epoll(ends: &[TcpStream]) -> Result<()> {
    let mut epoll = Epoll::new()?;
    for (conn, end) in ends.iter().enumerate() {
        end.set_nonblocking(true).map_err(|e| Error::io("fcntl", e))?;
        epoll.add(end.as_raw_fd(), conn)?;
    }
    let (mut open, mut ready, mut buf) = (ends.len(), Vec::new(), [0u8; MESSAGE]);
    while open > 0 {
        epoll.wait(&mut ready)?;
        for &conn in &ready {
            let mut end = &ends[conn];
            let n = match end.read(&mut buf) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => 0,
            };
            // Clients that have closed in between are noticed by the next read.
            if n == 0 || end.write_all(&buf[..n]).is_err() {
                open -= 1;
                epoll.remove(end.as_raw_fd())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use std::time::Duration;

    #[test]
    fn every_server_echoes() {
        let user: Arc<dyn Backend> = Arc::new(User::new("").unwrap());
        let time = Duration::from_millis(200);
        let run = |server: &dyn Fn(&[TcpStream]) -> Result<()>| {
            let sample = net::measure(4, time, server).unwrap();
            assert!(sample.ops >= 4, "{}", sample.ops);
        };
        run(&|ends| one_shot(&user, ends, 0));
        run(&|ends| one_shot(&user, ends, sqe::ASYNC));
        run(&|ends| multishot(&user, ends));
        run(&on_epoll);
        #[cfg(feature = "peers")]
        run(&crate::peers::compio_poll::echo);
        #[cfg(feature = "peers")]
        run(&crate::peers::tokio_net::echo);
    }
}
