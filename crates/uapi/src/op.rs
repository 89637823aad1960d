//! Opcode numbers (`enum io_uring_op`) as Linux 6.18 knows them.

/// `IORING_OP_NOP`.
pub const NOP: u8 = 0;
/// `IORING_OP_READV`.
pub const READV: u8 = 1;
/// `IORING_OP_WRITEV`.
pub const WRITEV: u8 = 2;
/// `IORING_OP_FSYNC`.
pub const FSYNC: u8 = 3;
/// `IORING_OP_READ_FIXED`.
pub const READ_FIXED: u8 = 4;
/// `IORING_OP_WRITE_FIXED`.
pub const WRITE_FIXED: u8 = 5;
/// `IORING_OP_POLL_ADD`.
pub const POLL_ADD: u8 = 6;
/// `IORING_OP_POLL_REMOVE`.
pub const POLL_REMOVE: u8 = 7;
/// `IORING_OP_SYNC_FILE_RANGE`.
pub const SYNC_FILE_RANGE: u8 = 8;
/// `IORING_OP_SENDMSG`.
pub const SENDMSG: u8 = 9;
/// `IORING_OP_RECVMSG`.
pub const RECVMSG: u8 = 10;
/// `IORING_OP_TIMEOUT`.
pub const TIMEOUT: u8 = 11;
/// `IORING_OP_TIMEOUT_REMOVE`.
pub const TIMEOUT_REMOVE: u8 = 12;
/// `IORING_OP_ACCEPT`.
pub const ACCEPT: u8 = 13;
/// `IORING_OP_ASYNC_CANCEL`.
pub const ASYNC_CANCEL: u8 = 14;
/// `IORING_OP_LINK_TIMEOUT`.
pub const LINK_TIMEOUT: u8 = 15;
/// `IORING_OP_CONNECT`.
pub const CONNECT: u8 = 16;
/// `IORING_OP_FALLOCATE`.
pub const FALLOCATE: u8 = 17;
/// `IORING_OP_OPENAT`.
pub const OPENAT: u8 = 18;
/// `IORING_OP_CLOSE`.
pub const CLOSE: u8 = 19;
/// `IORING_OP_FILES_UPDATE`.
pub const FILES_UPDATE: u8 = 20;
/// `IORING_OP_STATX`.
pub const STATX: u8 = 21;
/// `IORING_OP_READ`.
pub const READ: u8 = 22;
/// `IORING_OP_WRITE`.
pub const WRITE: u8 = 23;
/// `IORING_OP_FADVISE`.
pub const FADVISE: u8 = 24;
/// `IORING_OP_MADVISE`.
pub const MADVISE: u8 = 25;
/// `IORING_OP_SEND`.
pub const SEND: u8 = 26;
/// `IORING_OP_RECV`.
pub const RECV: u8 = 27;
/// `IORING_OP_OPENAT2`.
pub const OPENAT2: u8 = 28;
/// `IORING_OP_EPOLL_CTL`.
pub const EPOLL_CTL: u8 = 29;
/// `IORING_OP_SPLICE`.
pub const SPLICE: u8 = 30;
/// `IORING_OP_PROVIDE_BUFFERS`.
pub const PROVIDE_BUFFERS: u8 = 31;
/// `IORING_OP_REMOVE_BUFFERS`.
pub const REMOVE_BUFFERS: u8 = 32;
/// `IORING_OP_TEE`.
pub const TEE: u8 = 33;
/// `IORING_OP_SHUTDOWN`.
pub const SHUTDOWN: u8 = 34;
/// `IORING_OP_RENAMEAT`.
pub const RENAMEAT: u8 = 35;
/// `IORING_OP_UNLINKAT`.
pub const UNLINKAT: u8 = 36;
/// `IORING_OP_MKDIRAT`.
pub const MKDIRAT: u8 = 37;
/// `IORING_OP_SYMLINKAT`.
pub const SYMLINKAT: u8 = 38;
/// `IORING_OP_LINKAT`.
pub const LINKAT: u8 = 39;
/// `IORING_OP_MSG_RING`.
pub const MSG_RING: u8 = 40;
/// `IORING_OP_FSETXATTR`.
pub const FSETXATTR: u8 = 41;
/// `IORING_OP_SETXATTR`.
pub const SETXATTR: u8 = 42;
/// `IORING_OP_FGETXATTR`.
pub const FGETXATTR: u8 = 43;
/// `IORING_OP_GETXATTR`.
pub const GETXATTR: u8 = 44;
/// `IORING_OP_SOCKET`.
pub const SOCKET: u8 = 45;
/// `IORING_OP_URING_CMD`.
pub const URING_CMD: u8 = 46;
/// `IORING_OP_SEND_ZC`.
pub const SEND_ZC: u8 = 47;
/// `IORING_OP_SENDMSG_ZC`.
pub const SENDMSG_ZC: u8 = 48;
/// `IORING_OP_READ_MULTISHOT`.
pub const READ_MULTISHOT: u8 = 49;
/// `IORING_OP_WAITID`.
pub const WAITID: u8 = 50;
/// `IORING_OP_FUTEX_WAIT`.
pub const FUTEX_WAIT: u8 = 51;
/// `IORING_OP_FUTEX_WAKE`.
pub const FUTEX_WAKE: u8 = 52;
/// `IORING_OP_FUTEX_WAITV`.
pub const FUTEX_WAITV: u8 = 53;
/// `IORING_OP_FIXED_FD_INSTALL`.
pub const FIXED_FD_INSTALL: u8 = 54;
/// `IORING_OP_FTRUNCATE`.
pub const FTRUNCATE: u8 = 55;
/// `IORING_OP_BIND`.
pub const BIND: u8 = 56;
/// `IORING_OP_LISTEN`.
pub const LISTEN: u8 = 57;
/// `IORING_OP_RECV_ZC`.
pub const RECV_ZC: u8 = 58;
/// `IORING_OP_EPOLL_WAIT`.
pub const EPOLL_WAIT: u8 = 59;
/// `IORING_OP_READV_FIXED`.
pub const READV_FIXED: u8 = 60;
/// `IORING_OP_WRITEV_FIXED`.
pub const WRITEV_FIXED: u8 = 61;
/// `IORING_OP_PIPE`.
pub const PIPE: u8 = 62;

/// Number of opcodes.
pub const COUNT: usize = 63;
