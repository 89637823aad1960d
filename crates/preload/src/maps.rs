//! What /proc/self/maps says about an address, read without allocating.

use crate::sys;

/// Whether `at` is in a private mapping that may be read and executed, and not written.
pub fn is_plain_code(at: usize) -> bool {
    let path = c"/proc/self/maps".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let args = [libc::AT_FDCWD as usize, path, flags, 0, 0, 0];
    // SAFETY: the path is a C string.
    let fd = unsafe { sys::call6(libc::SYS_openat, args) };
    if fd < 0 {
        return false;
    }
    let mut search = Search { at, line: Line::default(), found: false };
    let mut buf = [0u8; 1024];
    loop {
        let args = [fd as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0, 0];
        // SAFETY: the buffer is writable.
        let n = unsafe { sys::call6(libc::SYS_read, args) };
        if n <= 0 || search.found {
            break;
        }
        buf[..n as usize].iter().for_each(|&byte| search.feed(byte));
    }
    // SAFETY: the descriptor is ours.
    unsafe { sys::pass(libc::SYS_close, [fd as usize, 0, 0, 0, 0]) };
    search.found
}

/// A line is `start-end perms ...`.
#[derive(Default)]
struct Line {
    field: u8,
    start: usize,
    end: usize,
    permissions: [u8; 4],
    used: usize,
}

struct Search {
    at: usize,
    line: Line,
    found: bool,
}

impl Search {
    fn feed(&mut self, byte: u8) {
        let line = &mut self.line;
        match (line.field, byte) {
            (_, b'\n') => {
                let inside = (line.start..line.end).contains(&self.at);
                self.found |= inside && &line.permissions == b"r-xp";
                self.line = Line::default();
            }
            (0, b'-') | (1 | 2, b' ') => line.field += 1,
            (0, digit) => line.start = line.start << 4 | hex(digit),
            (1, digit) => line.end = line.end << 4 | hex(digit),
            (2, letter) if line.used < 4 => {
                line.permissions[line.used] = letter;
                line.used += 1;
            }
            _ => {}
        }
    }
}

fn hex(digit: u8) -> usize {
    (digit as char).to_digit(16).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_data() {
        let code = is_plain_code as *const () as usize;
        assert!(is_plain_code(code));
        let local = 0u8;
        assert!(!is_plain_code(&raw const local as usize));
        assert!(!is_plain_code(0));
    }

    #[test]
    fn lines_are_read_field_by_field() {
        let text = b"00401000-00402000 r-xp 00001000 fd:00 12 /a b-c\n7f00-8000 rwxp 0 0 0\n";
        for (at, found) in [(0x400fff, false), (0x401000, true), (0x401fff, true), (0x7f01, false)]
        {
            let mut search = Search { at, line: Line::default(), found: false };
            text.iter().for_each(|&byte| search.feed(byte));
            assert_eq!(search.found, found, "{at:x}");
        }
    }
}
