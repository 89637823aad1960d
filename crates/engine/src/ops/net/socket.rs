//! Questions to a socket.

use crate::host::nr;
use crate::Errno;

const SO_TYPE: u32 = 3;
const STREAM: i32 = 1;
const SEQPACKET: i32 = 5;

/// An integer option at SOL_SOCKET.
pub fn option(socket: i32, option: u32) -> Result<i32, Errno> {
    const SOL_SOCKET: usize = 1;
    let (mut value, mut len) = (0i32, 4u32);
    let args = [
        socket as usize,
        SOL_SOCKET,
        option as usize,
        &raw mut value as usize,
        &raw mut len as usize,
        0,
    ];
    // SAFETY: value and length are locals.
    unsafe { crate::host::syscall(nr::__NR_getsockopt, args) }.map(|_| value)
}

/// MSG_WAITALL goes on after a short result on sockets that are streams.
pub fn is_stream(socket: i32) -> bool {
    matches!(option(socket, SO_TYPE), Ok(STREAM | SEQPACKET))
}

/// A stream without message boundaries: what waits in it can be counted.
pub fn is_byte_stream(socket: i32) -> bool {
    option(socket, SO_TYPE) == Ok(STREAM)
}

const SO_DOMAIN: u32 = 39;

/// Internet sockets, of which version whatever.
pub fn is_inet(socket: i32) -> Result<bool, Errno> {
    const INET: i32 = 2;
    const INET6: i32 = 10;
    Ok(matches!(option(socket, SO_DOMAIN)?, INET | INET6))
}

/// Whether a socket is a TCP connection.
pub fn is_tcp(socket: i32) -> bool {
    const SO_PROTOCOL: u32 = 38;
    const TCP: i32 = 6;
    option(socket, SO_PROTOCOL) == Ok(TCP) && is_inet(socket) == Ok(true)
}

/// TCP counts the end of its stream as something that waits.
pub fn tells_end(socket: i32, done: usize, wanted: usize) -> bool {
    done == 0 && wanted > 0 && is_byte_stream(socket) && is_inet(socket) == Ok(true)
}

/// Whether bytes wait in a stream.
pub fn has_more(socket: i32) -> bool {
    const FIONREAD: usize = 0x541b;
    let mut bytes = 0i32;
    // SAFETY: the kernel writes one integer.
    let asked = unsafe {
        crate::host::syscall(
            nr::__NR_ioctl,
            [socket as usize, FIONREAD, &raw mut bytes as usize, 0, 0, 0],
        )
    };
    asked.is_ok() && bytes > 0 && is_byte_stream(socket)
}
