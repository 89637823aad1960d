//! Memory whose address is handed to a ring. It is never freed: a scenario is a short
//! process, and a late write into freed memory would be a bug of the test.

/// Puts a value at an address that stays valid.
pub fn leak<T>(v: T) -> usize {
    Box::into_raw(Box::new(v)) as usize
}

/// A zeroed buffer.
pub fn buf(len: usize) -> &'static mut [u8] {
    Vec::leak(vec![0u8; len])
}

/// The address of a slice.
pub fn at<T>(s: &[T]) -> usize {
    s.as_ptr() as usize
}

/// A copy of bytes at a lasting address.
pub fn bytes(b: &[u8]) -> usize {
    at(Vec::leak(b.to_vec()))
}

/// A NUL-terminated copy of a string.
pub fn cstr(s: &str) -> usize {
    let mut v = s.as_bytes().to_vec();
    v.push(0);
    at(Vec::leak(v))
}

/// A timespec of `ms` milliseconds.
pub fn ms(ms: i64) -> usize {
    ts(ms / 1000, ms % 1000 * 1_000_000)
}

/// A timespec.
pub fn ts(sec: i64, nsec: i64) -> usize {
    leak(anyring_uapi::enter::Timespec { sec, nsec })
}

/// An array of iovecs (address, length).
pub fn iovecs(v: &[(usize, usize)]) -> usize {
    at(Vec::leak(v.to_vec()))
}

/// A msghdr without name or control over one iovec array.
pub fn msghdr(iov: usize, iovlen: usize) -> usize {
    leak([0u64, 0, iov as u64, iovlen as u64, 0, 0, 0])
}

/// Text of bytes, non-printing ones escaped.
pub fn text(b: &[u8]) -> String {
    b.escape_ascii().to_string()
}

/// An address that is never mapped, for -EFAULT.
pub const BAD: usize = 8;
