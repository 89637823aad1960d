//! Structures of zero-copy receive, as the kernel's header names them. Only the kernel can do it:
//! the user-space engine answers as a kernel without it.

#![allow(non_camel_case_types, missing_docs)]

use libc::{c_uint, c_ulonglong};

/// A memory region is the program's.
pub const IORING_MEM_REGION_TYPE_USER: c_uint = 1;
/// Where the area's number begins in an offset.
pub const IORING_ZCRX_AREA_SHIFT: u32 = 48;
/// The bits of an offset that number the area.
pub const IORING_ZCRX_AREA_MASK: u64 = !((1 << IORING_ZCRX_AREA_SHIFT) - 1);

/// A memory region.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_region_desc {
    pub user_addr: c_ulonglong,
    pub size: c_ulonglong,
    pub flags: c_uint,
    pub id: c_uint,
    pub mmap_offset: c_ulonglong,
    pub __resv: [c_ulonglong; 4],
}

/// Where the refill ring's fields are.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_offsets {
    pub head: c_uint,
    pub tail: c_uint,
    pub rqes: c_uint,
    pub __resv2: c_uint,
    pub __resv: [c_ulonglong; 2],
}

/// Memory that a device receives into.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_area_reg {
    pub addr: c_ulonglong,
    pub len: c_ulonglong,
    pub rq_area_token: c_ulonglong,
    pub flags: c_uint,
    pub dmabuf_fd: c_uint,
    pub __resv2: [c_ulonglong; 2],
}

/// A queue of a device.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_ifq_reg {
    pub if_idx: c_uint,
    pub if_rxq: c_uint,
    pub rq_entries: c_uint,
    pub flags: c_uint,
    pub area_ptr: c_ulonglong,
    pub region_ptr: c_ulonglong,
    pub offsets: io_uring_zcrx_offsets,
    pub zcrx_id: c_uint,
    pub __resv2: c_uint,
    pub __resv: [c_ulonglong; 3],
}

/// The second half of a completion.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_cqe {
    pub off: c_ulonglong,
    pub __pad: c_ulonglong,
}

/// A buffer that goes back to the device.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_rqe {
    pub off: c_ulonglong,
    pub len: c_uint,
    pub __pad: c_uint,
}
