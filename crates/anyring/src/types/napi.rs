//! Busy polling of network devices. Only the kernel can do it: the user-space engine answers as a
//! kernel without it.

/// Which queues the kernel polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NapiTracking {
    /// Those that requests of the ring used.
    Dynamic,
    /// Those that were added one by one.
    Static,
    /// None.
    Inactive,
}

/// Settings of busy polling, see
/// [`Submitter::register_napi`](crate::Submitter::register_napi). `struct io_uring_napi`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Napi {
    busy_poll_to: u32,
    prefer_busy_poll: u8,
    opcode: u8,
    pad: [u8; 2],
    op_param: u32,
    resv: u32,
}

/// `IO_URING_NAPI_REGISTER_OP` and the two that follow it.
const ADD_ID: u8 = 1;
const DEL_ID: u8 = 2;

impl Napi {
    /// No timeout, no preference, dynamic tracking.
    pub const fn new() -> Self {
        Napi { busy_poll_to: 0, prefer_busy_poll: 0, opcode: 0, pad: [0; 2], op_param: 0, resv: 0 }
    }

    /// Sets how long to poll, in microseconds.
    pub const fn set_busy_poll_timeout(mut self, micros: u32) -> Self {
        self.busy_poll_to = micros;
        self
    }

    /// Sets whether polling is preferred to interrupts.
    pub const fn set_prefer_busy_poll(mut self, enabled: bool) -> Self {
        self.prefer_busy_poll = enabled as u8;
        self
    }

    /// Sets which queues are polled.
    pub const fn set_tracking(mut self, strategy: NapiTracking) -> Self {
        self.op_param = match strategy {
            NapiTracking::Dynamic => 0,
            NapiTracking::Static => 1,
            NapiTracking::Inactive => 255,
        };
        self
    }

    /// How long to poll, in microseconds.
    pub const fn busy_poll_timeout(&self) -> u32 {
        self.busy_poll_to
    }

    /// Whether polling is preferred to interrupts.
    pub const fn prefer_busy_poll(&self) -> bool {
        self.prefer_busy_poll != 0
    }

    pub(crate) fn add(id: u32) -> Self {
        Napi { opcode: ADD_ID, op_param: id, ..Napi::new() }
    }

    pub(crate) fn del(id: u32) -> Self {
        Napi { opcode: DEL_ID, op_param: id, ..Napi::new() }
    }
}
