use std::fmt;

/// Reads a buffer that a [`RecvMsgMulti`](crate::opcode::RecvMsgMulti) filled.
///
/// The buffer starts with four integers (length of the name, of the control data and of the
/// payload as they arrived, and flags); then come room for the name, room for the control data,
/// as much as the `msghdr` asked for, and the payload.
pub struct RecvMsgOut<'buf> {
    head: Head,
    name: &'buf [u8],
    control: &'buf [u8],
    payload: &'buf [u8],
}

/// `struct io_uring_recvmsg_out`
#[derive(Clone, Copy, Debug)]
struct Head {
    name_len: u32,
    control_len: u32,
    payload_len: u32,
    flags: u32,
}

const HEAD_LEN: usize = 16;

/// As much of `room` as `incoming` bytes fill.
fn filled(room: &[u8], incoming: u32) -> &[u8] {
    &room[..room.len().min(incoming as usize)]
}

impl Head {
    fn read(bytes: &[u8]) -> Head {
        let word = |i: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[4 * i..4 * i + 4]);
            u32::from_ne_bytes(word)
        };
        Head { name_len: word(0), control_len: word(1), payload_len: word(2), flags: word(3) }
    }
}

impl<'buf> RecvMsgOut<'buf> {
    /// Reads `buffer`, the whole provided buffer or as much of it as was filled; `msghdr` is the
    /// one of the request. The error means that the buffer is too short for what it says.
    #[allow(clippy::result_unit_err)]
    pub fn parse(buffer: &'buf [u8], msghdr: &libc::msghdr) -> Result<Self, ()> {
        let (head, rest) = buffer.split_at_checked(HEAD_LEN).ok_or(())?;
        let head = Head::read(head);
        let (name, rest) = rest.split_at_checked(msghdr.msg_namelen as usize).ok_or(())?;
        #[allow(clippy::unnecessary_cast)]
        let (control, payload) = rest.split_at_checked(msghdr.msg_controllen as usize).ok_or(())?;
        Ok(RecvMsgOut {
            head,
            name: filled(name, head.name_len),
            control: filled(control, head.control_len),
            payload: filled(payload, head.payload_len),
        })
    }

    /// Length of the sender's address as it arrived, which may be more than there was room for.
    pub fn incoming_name_len(&self) -> u32 {
        self.head.name_len
    }

    /// Whether the address is incomplete.
    pub fn is_name_data_truncated(&self) -> bool {
        self.head.name_len as usize > self.name.len()
    }

    /// The sender's address, as `msg_name` would hold it.
    pub fn name_data(&self) -> &[u8] {
        self.name
    }

    /// Length of the control data as it arrived, which may be more than there was room for.
    pub fn incoming_control_len(&self) -> u32 {
        self.head.control_len
    }

    /// Whether the control data is incomplete.
    pub fn is_control_data_truncated(&self) -> bool {
        self.head.flags & libc::MSG_CTRUNC as u32 != 0
    }

    /// The control data, as `msg_control` would hold it.
    pub fn control_data(&self) -> &[u8] {
        self.control
    }

    /// Whether the payload is incomplete: there was more than fits the buffer.
    pub fn is_payload_truncated(&self) -> bool {
        self.head.flags & libc::MSG_TRUNC as u32 != 0
    }

    /// The payload.
    pub fn payload_data(&self) -> &[u8] {
        self.payload
    }

    /// Length of the payload as it arrived, which may be more than there was room for.
    pub fn incoming_payload_len(&self) -> u32 {
        self.head.payload_len
    }

    /// `MSG_*` bits, as `msg_flags` would hold them.
    pub fn flags(&self) -> u32 {
        self.head.flags
    }
}

impl fmt::Debug for RecvMsgOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMsgOut").field("head", &self.head).finish_non_exhaustive()
    }
}
