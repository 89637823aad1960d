//! Structures of zero-copy receive, as the kernel's header names them. Only the kernel can do it:
//! the user-space engine answers as a kernel without it.

#![allow(non_camel_case_types)]

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
    /// Where it is in the program's memory.
    pub user_addr: c_ulonglong,
    /// Bytes.
    pub size: c_ulonglong,
    /// Kind, or options.
    pub flags: c_uint,
    /// Number of the region.
    pub id: c_uint,
    /// Out: where to map it.
    pub mmap_offset: c_ulonglong,
    /// Zero.
    pub __resv: [c_ulonglong; 4],
}

/// Where the refill ring's fields are.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_offsets {
    /// Of the index that the kernel moves.
    pub head: c_uint,
    /// Of the index that the program moves.
    pub tail: c_uint,
    /// Of the entries.
    pub rqes: c_uint,
    /// Zero.
    pub __resv2: c_uint,
    /// Zero.
    pub __resv: [c_ulonglong; 2],
}

/// Memory that a device receives into.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_area_reg {
    /// Address.
    pub addr: c_ulonglong,
    /// Bytes.
    pub len: c_ulonglong,
    /// Out: what offsets into the area begin with.
    pub rq_area_token: c_ulonglong,
    /// Kind, or options.
    pub flags: c_uint,
    /// A DMA buffer to use instead of memory.
    pub dmabuf_fd: c_uint,
    /// Zero.
    pub __resv2: [c_ulonglong; 2],
}

/// A queue of a device.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_ifq_reg {
    /// Number of the network device.
    pub if_idx: c_uint,
    /// Number of its queue.
    pub if_rxq: c_uint,
    /// Entries of the refill ring.
    pub rq_entries: c_uint,
    /// Kind, or options.
    pub flags: c_uint,
    /// Address of an [`io_uring_zcrx_area_reg`].
    pub area_ptr: c_ulonglong,
    /// Address of an [`io_uring_region_desc`].
    pub region_ptr: c_ulonglong,
    /// Out: where the refill ring's fields are.
    pub offsets: io_uring_zcrx_offsets,
    /// Out: number of the registration.
    pub zcrx_id: c_uint,
    /// Zero.
    pub __resv2: c_uint,
    /// Zero.
    pub __resv: [c_ulonglong; 3],
}

/// The second half of a completion.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_cqe {
    /// Offset into the area, with the area's number.
    pub off: c_ulonglong,
    /// Zero.
    pub __pad: c_ulonglong,
}

/// A buffer that goes back to the device.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct io_uring_zcrx_rqe {
    /// Offset into the area, with the area's number.
    pub off: c_ulonglong,
    /// Bytes.
    pub len: c_uint,
    /// Zero.
    pub __pad: c_uint,
}
