//! Does a static program make io_uring calls itself?
//!
//! Such a program cannot be answered, and the filter it inherits ends it with SIGSYS when it
//! makes one, so it deserves a line of warning; programs that never do deserve none. The
//! answer is a heuristic on machine code: an instruction that loads the number of
//! io_uring_setup (425) into eax or edi close before a `syscall` or a call, and another one
//! that does so with io_uring_enter (426).

use crate::program::{number, program_headers, read_at, EHDR, PHDR, PT_LOAD};
use core::ffi::c_int;

/// How far behind the load the `syscall` or call may be.
const NEAR: usize = 48;
const SETUP: u32 = 425;
const ENTER: u32 = 426;
const PF_X: u64 = 1;

/// Whether the ELF program in `fd` makes io_uring calls of its own.
pub fn makes_io_uring_calls(fd: c_int) -> bool {
    let mut head = [0; EHDR];
    if read_at(fd, &mut head, 0) != EHDR {
        return false;
    }
    let (mut setup, mut enter) = (false, false);
    program_headers(fd, &head, |phdr| {
        if number::<4>(phdr, 0) == u64::from(PT_LOAD) && number::<4>(phdr, 4) & PF_X != 0 {
            with_segment(fd, phdr, |code| {
                setup |= calls(code, SETUP);
                enter |= calls(code, ENTER);
            });
        }
    });
    setup && enter
}

/// Maps the file's part of a segment for the time of `look`.
fn with_segment(fd: c_int, phdr: &[u8; PHDR], look: impl FnOnce(&[u8])) {
    let (offset, size) = (number::<8>(phdr, 8), number::<8>(phdr, 32) as usize);
    let skip = (offset % 4096) as usize;
    let (len, at) = (size.saturating_add(skip), (offset - skip as u64) as libc::off_t);
    // SAFETY: all zeroes is a valid `stat`.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `stat` is writable.
    let known = unsafe { libc::fstat(fd, &mut stat) } == 0;
    let end = (offset as i64).checked_add(size as i64);
    // Beyond the end of the file a mapping faults.
    if size == 0 || !known || end.is_none_or(|end| end > stat.st_size) {
        return;
    }
    // SAFETY: a new mapping, of which the kernel chooses the place.
    let map = unsafe {
        libc::mmap(core::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, fd, at)
    };
    if map == libc::MAP_FAILED {
        return;
    }
    // SAFETY: the file covers the whole mapping, see above.
    look(&unsafe { core::slice::from_raw_parts(map.cast::<u8>(), len) }[skip..]);
    // SAFETY: mapped above, and `look` kept nothing of it.
    unsafe { libc::munmap(map, len) };
}

/// Whether `code` loads `nr` into eax or edi close before a `syscall` or a call.
fn calls(code: &[u8], nr: u32) -> bool {
    const MOV_EAX: u8 = 0xb8;
    const MOV_EDI: u8 = 0xbf;
    let [n0, n1, n2, n3] = nr.to_le_bytes();
    code.windows(5).enumerate().any(|(at, w)| {
        w[1] == n0
            && w[2] == n1
            && w[3] == n2
            && w[4] == n3
            && matches!(w[0], MOV_EAX | MOV_EDI)
            && leads_to_a_call(&code[at + 5..code.len().min(at + 5 + NEAR)], w[0] == MOV_EDI)
    })
}

/// `syscall`, or (where the number is an argument of `syscall(3)`) a near call.
fn leads_to_a_call(code: &[u8], argument: bool) -> bool {
    const CALL: u8 = 0xe8;
    code.windows(2).any(|w| w == [0x0f, 0x05]) || (argument && code.contains(&CALL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_before_a_syscall_count() {
        let inline = [0x90, 0xb8, 0xa9, 1, 0, 0, 0x31, 0xff, 0x0f, 0x05, 0xc3];
        assert!(calls(&inline, SETUP));
        assert!(!calls(&inline, ENTER));
        let libc = [0xbf, 0xaa, 1, 0, 0, 0x31, 0xc0, 0xe8, 1, 2, 3, 4];
        assert!(calls(&libc, ENTER));
    }

    #[test]
    fn numbers_elsewhere_do_not() {
        let mut far = vec![0xb8, 0xa9, 1, 0, 0];
        far.extend([0x90; NEAR]);
        far.extend([0x0f, 0x05]);
        assert!(!calls(&far, SETUP));
        let data = [0xa9, 1, 0, 0, 0x0f, 0x05];
        assert!(!calls(&data, SETUP));
        let other_register = [0xb9, 0xa9, 1, 0, 0, 0x0f, 0x05];
        assert!(!calls(&other_register, SETUP));
        let returns = [0xb8, 0xa9, 1, 0, 0, 0xc3];
        assert!(!calls(&returns, SETUP));
    }
}
