//! A ring as a program without any library drives it: three calls and shared memory.

use std::sync::atomic::{AtomicU32, Ordering};

use anyring_uapi::enter::{GeteventsArg, Timespec, EXT_ARG, GETEVENTS};
use anyring_uapi::{setup, Cqe, Params, Sqe};

use crate::errno_name::res;
use crate::mem;
use crate::sqe::Q;
use crate::sys;

/// A ring of this process. Dropping it unmaps it and closes its descriptor.
pub struct Ring {
    /// Its descriptor.
    pub fd: i32,
    /// What setup filled in.
    pub p: Params,
    /// Start of the shared rings.
    pub base: *mut u8,
    /// Bytes mapped at `base`.
    pub base_len: usize,
    /// Start of the SQEs.
    pub sqes: *mut u8,
    mapped: bool,
}

// SAFETY: the raw pointers are to shared memory that lives until drop; scenarios that
// use a ring from two threads take turns.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Raw setup: the result, and the parameters as the call left them.
pub fn raw_setup(entries: u32, mut p: Params) -> (i64, Params) {
    let r = sys::setup(entries, std::ptr::from_mut(&mut p) as usize);
    (r, p)
}

/// Parameters with only flags.
pub fn flags(flags: u32) -> Params {
    Params { flags, ..Params::default() }
}

impl Ring {
    /// A ring of `entries` with setup `flags`; a refusal ends the scenario with a message.
    pub fn new(entries: u32, flag_bits: u32) -> Ring {
        Ring::with(entries, flags(flag_bits))
            .unwrap_or_else(|e| panic!("setup of flags {flag_bits:#x}: {}", res(e)))
    }

    /// A ring with the CQ's size given.
    pub fn sized(entries: u32, cq: u32, flag_bits: u32) -> Ring {
        let p = Params { cq_entries: cq, ..flags(flag_bits | setup::CQSIZE) };
        Ring::with(entries, p).unwrap_or_else(|e| panic!("setup with {cq} CQEs: {}", res(e)))
    }

    /// A ring with full control of the parameters.
    pub fn with(entries: u32, p: Params) -> Result<Ring, i64> {
        let (fd, p) = raw_setup(entries, p);
        if fd < 0 {
            return Err(fd);
        }
        Ring::map(fd as i32, p).map_err(i64::from)
    }

    fn map(fd: i32, p: Params) -> Result<Ring, i32> {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let cqe = if p.flags & setup::CQE32 != 0 { 32 } else { 16 };
        let array =
            if p.flags & setup::NO_SQARRAY != 0 { 0 } else { p.sq_off.array + 4 * p.sq_entries };
        let base_len = array.max(p.cq_off.cqes + p.cq_entries * cqe) as usize;
        let base = sys::mmap(fd, base_len, rw, libc::MAP_SHARED, setup::OFF_SQ_RING)?;
        let mut ring = Ring { fd, p, base, base_len, sqes: base, mapped: true };
        ring.sqes = sys::mmap(fd, ring.sqes_len(), rw, libc::MAP_SHARED, setup::OFF_SQES)?;
        ring.fill_array();
        Ok(ring)
    }

    /// A ring in memory that the program brought (NO_MMAP).
    pub fn in_memory(fd: i32, p: Params, base: *mut u8, sqes: *mut u8) -> Ring {
        let ring = Ring { fd, p, base, base_len: 0, sqes, mapped: false };
        ring.fill_array();
        ring
    }

    /// Maps the memory of a ring that was resized; the old one goes.
    pub fn remap(&mut self, p: Params) {
        match Ring::map(self.fd, p) {
            Ok(new) => {
                let mut old = std::mem::replace(self, new);
                // The descriptor stays with the new one.
                old.fd = -1;
            }
            Err(e) => panic!("mmap of a resized ring: {}", res(e)),
        }
    }

    fn fill_array(&self) {
        if self.p.flags & setup::NO_SQARRAY == 0 {
            for i in 0..self.p.sq_entries {
                self.store(self.p.sq_off.array + 4 * i, i);
            }
        }
    }

    fn sqe_size(&self) -> usize {
        if self.p.flags & setup::SQE128 != 0 {
            128
        } else {
            64
        }
    }

    fn sqes_len(&self) -> usize {
        self.p.sq_entries as usize * self.sqe_size()
    }

    /// Size of one CQE slot.
    pub fn cqe_size(&self) -> usize {
        if self.p.flags & setup::CQE32 != 0 {
            32
        } else {
            16
        }
    }

    fn word(&self, off: u32) -> &AtomicU32 {
        // SAFETY: offsets come from setup and lie inside the mapping, aligned to 4.
        unsafe { AtomicU32::from_ptr(self.base.add(off as usize).cast()) }
    }
    /// Reads a shared word.
    pub fn load(&self, off: u32) -> u32 {
        self.word(off).load(Ordering::Acquire)
    }
    /// Writes a shared word.
    pub fn store(&self, off: u32, v: u32) {
        self.word(off).store(v, Ordering::Release);
    }
    /// SQ head.
    pub fn sq_head(&self) -> u32 {
        self.load(self.p.sq_off.head)
    }
    /// SQ tail.
    pub fn sq_tail(&self) -> u32 {
        self.load(self.p.sq_off.tail)
    }
    /// SQ flags.
    pub fn sq_flags(&self) -> u32 {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.load(self.p.sq_off.flags)
    }
    /// CQEs ready.
    pub fn ready(&self) -> u32 {
        self.load(self.p.cq_off.tail).wrapping_sub(self.load(self.p.cq_off.head))
    }
    /// The SQ's count of dropped entries.
    pub fn dropped(&self) -> u32 {
        self.load(self.p.sq_off.dropped)
    }
    /// The CQ's count of lost entries.
    pub fn overflow(&self) -> u32 {
        self.load(self.p.cq_off.overflow)
    }

    /// Queues an SQE without submitting it.
    pub fn push(&self, q: Q) {
        let tail = self.sq_tail();
        let slot = (tail & (self.p.sq_entries - 1)) as usize;
        // SAFETY: the slot is inside the SQE mapping; the program owns it until submit.
        unsafe { self.sqes.add(slot * self.sqe_size()).cast::<Sqe>().write_volatile(q.0) };
        self.store(self.p.sq_off.tail, tail.wrapping_add(1));
    }

    /// Queues several.
    pub fn push_all(&self, qs: &[Q]) {
        qs.iter().for_each(|q| self.push(*q));
    }

    /// enter with plain arguments.
    pub fn enter(&self, n: u32, min: u32, flags: u32) -> i64 {
        sys::enter(self.fd, n, min, flags, 0, 8)
    }

    /// enter with an argument.
    pub fn enter_arg(&self, n: u32, min: u32, flags: u32, arg: usize, size: usize) -> i64 {
        sys::enter(self.fd, n, min, flags, arg, size)
    }

    /// Submits what was queued.
    pub fn submit(&self) -> i64 {
        self.enter(self.sq_tail().wrapping_sub(self.sq_head()), 0, 0)
    }

    /// Waits until `n` CQEs are there, `ms` milliseconds at most.
    pub fn wait(&self, n: u32, ms: i64) -> i64 {
        let ts = mem::leak(Timespec { sec: ms / 1000, nsec: ms % 1000 * 1_000_000 });
        let arg = mem::leak(GeteventsArg { ts: ts as u64, ..Default::default() });
        self.enter_arg(0, n, GETEVENTS | EXT_ARG, arg, size_of::<GeteventsArg>())
    }

    /// Takes all CQEs out of the CQ.
    pub fn take(&self) -> Vec<Cqe> {
        let mut out = Vec::new();
        let mut head = self.load(self.p.cq_off.head);
        while head != self.load(self.p.cq_off.tail) {
            out.push(self.cqe_at(head));
            head = head.wrapping_add(1);
        }
        self.store(self.p.cq_off.head, head);
        out
    }

    /// Waits again and again until `n` CQEs came, 2 s at most each: a fired timeout or a
    /// batch of task work may end one wait early.
    pub fn collect(&self, n: usize) -> Vec<Cqe> {
        let mut out = self.take();
        while out.len() < n && self.wait((n - out.len()) as u32, 2000) == 0 {
            out.extend(self.take());
        }
        out
    }

    /// Submits and collects: text in the order the CQEs came.
    pub fn gather(&self, n: usize) -> String {
        let s = self.submit();
        format!("{} {}", res(s), show(&self.collect(n)))
    }

    /// The CQE at an index of the CQ.
    pub fn cqe_at(&self, index: u32) -> Cqe {
        let slot = (index & (self.p.cq_entries - 1)) as usize;
        let off = self.p.cq_off.cqes as usize + slot * self.cqe_size();
        // SAFETY: the masked slot lies inside the mapping.
        unsafe { self.base.add(off).cast::<Cqe>().read_volatile() }
    }

    /// Takes all CQEs, as text in the order they came.
    pub fn cqes(&self) -> String {
        show(&self.take())
    }

    /// Takes all CQEs, as text ordered by user_data: where the order is not a promise.
    pub fn cqes_sorted(&self) -> String {
        show_sorted(self.take())
    }

    /// Submits, waits for `n` CQEs (at most 2 s) and tells all: for answers that will come.
    pub fn go(&self, n: u32) -> String {
        self.submit_wait(n, 2000)
    }

    /// Submits and waits 50 ms: for answers that will not come.
    pub fn brief(&self, n: u32) -> String {
        self.submit_wait(n, 50)
    }

    /// Submits, waits, tells: `submitted result [cqes]`.
    pub fn submit_wait(&self, n: u32, ms: i64) -> String {
        let s = self.submit();
        let w = self.wait(n, ms);
        format!("{} {} {}", res(s), res(w), self.cqes())
    }

    /// As [`Ring::go`], with the CQEs ordered by user_data.
    pub fn go_sorted(&self, n: u32) -> String {
        let s = self.submit();
        let w = self.wait(n, 2000);
        format!("{} {} {}", res(s), res(w), self.cqes_sorted())
    }

    /// Pushes one SQE, submits, waits for one CQE.
    pub fn one(&self, q: Q) -> String {
        self.push(q);
        self.go(1)
    }

    /// Submits and waits in one call without EXT_ARG (the other wait flavour), bounded by
    /// the scenario's alarm only.
    pub fn go_plain(&self, n: u32) -> String {
        let s = self.enter(self.sq_tail().wrapping_sub(self.sq_head()), n, GETEVENTS);
        format!("{} {}", res(s), self.cqes())
    }

    /// register.
    pub fn reg(&self, op: u32, arg: usize, nr: u32) -> i64 {
        sys::register(self.fd, op, arg, nr)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.mapped {
            sys::munmap(self.base, self.base_len);
            sys::munmap(self.sqes, self.sqes_len());
        }
        if self.fd >= 0 {
            sys::close(self.fd);
        }
    }
}

/// CQEs as text: `[ud:res ud:res/flags]`.
pub fn show(cqes: &[Cqe]) -> String {
    let one = |c: &Cqe| match c.flags {
        0 => format!("{}:{}", c.user_data, res(c.res)),
        f => format!("{}:{}/{f:#x}", c.user_data, res(c.res)),
    };
    format!("[{}]", cqes.iter().map(one).collect::<Vec<_>>().join(" "))
}

/// CQEs as text, ordered by user_data, then result.
pub fn show_sorted(mut cqes: Vec<Cqe>) -> String {
    cqes.sort_by_key(|c| (c.user_data, c.res, c.flags));
    show(&cqes)
}
