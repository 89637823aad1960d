//! CONNECT.

use super::{must_be_zero, socket as sock, Ctx, Issue, Op, OpDef};
use crate::host::{fd, nr, poll, user};
use crate::req::Req;
use crate::Errno;
use anyring_uapi::{op, Sqe};

/// Bytes of the largest socket address.
pub const SOCKADDR_MAX: usize = 128;

/// CONNECT.
#[derive(Debug)]
pub struct Connect {
    addr: Vec<u8>,
    /// The handshake was started by an earlier attempt.
    in_progress: bool,
}

/// Copies a socket address.
pub fn read_address(addr: u64, len: u64) -> Result<Vec<u8>, Errno> {
    if len > SOCKADDR_MAX as u64 {
        return Err(Errno::INVAL);
    }
    user::read_vec(addr as usize, len as usize)
}

fn prep(sqe: &Sqe) -> Result<Op, Errno> {
    must_be_zero(&[
        sqe.len as u64,
        sqe.op_flags as u64,
        sqe.buf_index as u64,
        sqe.file_index as u64,
    ])?;
    Ok(Op::Connect(Connect {
        addr: read_address(sqe.addr, sqe.off & 0xffff_ffff)?,
        in_progress: false,
    }))
}

fn issue(req: &mut Req, ctx: &mut Ctx<'_>) -> Issue {
    let socket = req.file.raw();
    let Op::Connect(c) = &mut req.op else { return Issue::err(Errno::INVAL) };
    let args = [socket as usize, c.addr.as_ptr() as usize, c.addr.len(), 0, 0, 0];
    if ctx.may_block() {
        // SAFETY: the address is a copy.
        return Issue::from_result(unsafe { ctx.call(nr::__NR_connect, args) });
    }
    let status = match fd::status_flags(socket) {
        Ok(status) => status,
        Err(e) => return Issue::err(e),
    };
    // The handshake is started without waiting, whatever the socket's mode; its mode is put back at once.
    let blocking = status & nr::O_NONBLOCK == 0;
    if blocking {
        let _ = fd::set_status_flags(socket, status | nr::O_NONBLOCK);
    }
    // SAFETY: the address is a copy.
    let result = unsafe { ctx.call(nr::__NR_connect, args) };
    if blocking {
        let _ = fd::set_status_flags(socket, status);
    }
    match result {
        Err(Errno::INPROGRESS | Errno::ALREADY) => {
            c.in_progress = true;
            Issue::Poll(poll::OUT)
        }
        // The second call fetches how the handshake ended; a socket that is connected says so.
        Err(Errno::ISCONN | Errno::BADFD) if c.in_progress => outcome(socket),
        // A full backlog of a unix socket: nothing to poll for.
        Err(Errno::AGAIN) => Issue::Worker,
        other => Issue::from_result(other),
    }
}

/// How the handshake ended.
fn outcome(socket: i32) -> Issue {
    const SO_ERROR: u32 = 4;
    match sock::option(socket, SO_ERROR) {
        Ok(error) => Issue::Done(-error, 0),
        Err(e) => Issue::err(e),
    }
}

/// CONNECT.
pub const CONNECT: OpDef =
    OpDef { unbound: true, ..OpDef::new("CONNECT", op::CONNECT, prep, issue) };
