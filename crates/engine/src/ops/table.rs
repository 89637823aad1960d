//! The table of operations, in the order of their numbers.

use super::{
    cancel, epoll, fd_install, files_update, futex, kbuf, msg_ring, net, nop, open, path, pipe,
    poll, read_multishot, rw, splice, sync, timeout, waitid, xattr,
};
use super::{OpDef, Support};
use anyring_uapi::op;

/// All rows.
pub static OPS: [OpDef; op::COUNT] = [
    nop::NOP,
    rw::READV,
    rw::WRITEV,
    sync::FSYNC,
    rw::READ_FIXED,
    rw::WRITE_FIXED,
    poll::POLL_ADD,
    poll::POLL_REMOVE,
    sync::SYNC_FILE_RANGE,
    net::msg::SENDMSG,
    net::msg::RECVMSG,
    timeout::TIMEOUT,
    timeout::TIMEOUT_REMOVE,
    net::ACCEPT,
    cancel::ASYNC_CANCEL,
    timeout::LINK_TIMEOUT,
    net::CONNECT,
    sync::FALLOCATE,
    open::OPENAT,
    open::CLOSE,
    files_update::FILES_UPDATE,
    path::STATX,
    rw::READ,
    rw::WRITE,
    sync::FADVISE,
    sync::MADVISE,
    net::SEND,
    net::RECV,
    open::OPENAT2,
    epoll::EPOLL_CTL,
    splice::SPLICE,
    kbuf::PROVIDE_BUFFERS,
    kbuf::REMOVE_BUFFERS,
    splice::TEE,
    net::SHUTDOWN,
    path::RENAMEAT,
    path::UNLINKAT,
    path::MKDIRAT,
    path::SYMLINKAT,
    path::LINKAT,
    msg_ring::MSG_RING,
    xattr::FSETXATTR,
    xattr::SETXATTR,
    xattr::FGETXATTR,
    xattr::GETXATTR,
    net::SOCKET,
    net::command::URING_CMD,
    net::SEND_ZC,
    net::SENDMSG_ZC,
    read_multishot::READ_MULTISHOT,
    waitid::WAITID,
    futex::FUTEX_WAIT,
    futex::FUTEX_WAKE,
    futex::FUTEX_WAITV,
    fd_install::FIXED_FD_INSTALL,
    sync::FTRUNCATE,
    net::BIND,
    net::LISTEN,
    OpDef::unsupported("RECV_ZC", op::RECV_ZC),
    epoll::EPOLL_WAIT,
    rw::READV_FIXED,
    rw::WRITEV_FIXED,
    pipe::PIPE,
];

const _: () = {
    let mut i = 0;
    while i < op::COUNT {
        assert!(OPS[i].code as usize == i, "a row stands at the wrong place");
        i += 1;
    }
};

/// The row of an opcode that works here.
#[inline]
pub fn supported(opcode: u8) -> Option<&'static OpDef> {
    OPS.get(opcode as usize).filter(|def| def.support != Support::None)
}
