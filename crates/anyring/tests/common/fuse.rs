//! A FUSE file system with one file, whose server answers one request at a time, when it is told to.

use std::cell::RefCell;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
/// A descriptor of the file is closed.
pub const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const FALLOCATE: u32 = 43;
const BATCH_FORGET: u32 = 42;

const ROOT: u64 = 1;
const NODE: u64 = 2;
/// What the file says of itself.
pub const FILE_SIZE: u64 = 4;
/// What is in it.
pub const CONTENT: &[u8] = b"fuse";

/// Gives the calling thread a mount namespace of its own, from which nothing gets out.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: integers and C strings.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        match libc::mount(
            c"none".as_ptr(),
            c"/".as_ptr(),
            std::ptr::null(),
            flags,
            std::ptr::null(),
        ) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Takes the file system off; whoever waits for its server gets an error.
pub fn take_off(at: &Path) -> bool {
    let at = CString::new(at.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string.
    unsafe { libc::umount2(at.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) == 0 }
}

/// See the module's description.
pub struct Fuse {
    device: File,
    seen: RefCell<Vec<u32>>,
}

struct Request {
    opcode: u32,
    unique: u64,
    node: u64,
    body: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Fuse {
    /// Mounts it, and answers INIT.
    pub fn mount(at: &Path) -> io::Result<Fuse> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let (at, options) =
            (CString::new(at.as_os_str().as_bytes()).unwrap(), CString::new(options).unwrap());
        // SAFETY: C strings.
        let result = unsafe {
            let (name, data) = (c"test".as_ptr(), options.as_ptr().cast());
            libc::mount(name, at.as_ptr(), c"fuse".as_ptr(), libc::MS_NOSUID, data)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let fuse = Fuse { device, seen: RefCell::new(Vec::new()) };
        while fuse.count(INIT) == 0 {
            fuse.answer(Duration::from_secs(1));
        }
        Ok(fuse)
    }

    /// Takes it off.
    pub fn unmount(self, at: &Path) {
        assert!(take_off(at), "{}", io::Error::last_os_error());
    }

    /// How many requests of a kind have been answered.
    pub fn count(&self, opcode: u32) -> usize {
        self.seen.borrow().iter().filter(|seen| **seen == opcode).count()
    }

    /// Answers the next request, if one comes in time.
    pub fn answer(&self, wait: Duration) {
        let mut poll =
            libc::pollfd { fd: self.device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one local pollfd.
        if unsafe { libc::poll(&raw mut poll, 1, wait.as_millis() as i32) } != 1 {
            return;
        }
        let mut bytes = vec![0u8; 256 * 1024];
        let n = (&self.device).read(&mut bytes).unwrap();
        let request = Request {
            opcode: u32::from_ne_bytes(bytes[4..8].try_into().unwrap()),
            unique: word(&bytes, 8),
            node: word(&bytes, 16),
            body: bytes[40..n].to_vec(),
        };
        self.seen.borrow_mut().push(request.opcode);
        if ![FORGET, BATCH_FORGET, INTERRUPT].contains(&request.opcode) {
            self.reply(&request);
        }
    }

    fn reply(&self, request: &Request) {
        let (error, body) = match answer_to(request) {
            Ok(body) => (0, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let mut reply = Vec::new();
        reply.extend((16 + body.len() as u32).to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(request.unique.to_ne_bytes());
        reply.extend(body);
        // The asker may have been interrupted meanwhile.
        let _ = (&self.device).write(&reply);
    }
}

fn answer_to(request: &Request) -> Result<Vec<u8>, i32> {
    match request.opcode {
        INIT => {
            // Version 7.31, the kernel's readahead, no further features; pads to the structure's 64 bytes.
            let mut body: Vec<u8> = Vec::new();
            body.extend(7u32.to_ne_bytes());
            body.extend(31u32.to_ne_bytes());
            body.extend(65536u32.to_ne_bytes());
            body.extend(0u32.to_ne_bytes());
            body.extend([16u8, 0, 12, 0]);
            body.extend(65536u32.to_ne_bytes());
            body.resize(64, 0);
            Ok(body)
        }
        LOOKUP if request.body == b"file\0" => {
            // Node, generation, and no time for which entry and attributes may be believed.
            let mut body: Vec<u8> = NODE.to_ne_bytes().to_vec();
            body.resize(40, 0);
            body.extend(attributes(NODE));
            Ok(body)
        }
        LOOKUP => Err(libc::ENOENT),
        GETATTR | SETATTR => {
            let mut body = vec![0u8; 16];
            body.extend(attributes(request.node));
            Ok(body)
        }
        OPEN | OPENDIR => Ok(vec![0; 16]),
        READ => Ok(CONTENT.to_vec()),
        RELEASE | RELEASEDIR | FSYNC | FLUSH => Ok(Vec::new()),
        FALLOCATE => Err(libc::EOPNOTSUPP),
        _ => Err(libc::ENOSYS),
    }
}

/// `struct fuse_attr`, 88 bytes.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, size): (u32, u64) =
        if node == ROOT { (libc::S_IFDIR | 0o755, 0) } else { (libc::S_IFREG | 0o644, FILE_SIZE) };
    let mut body: Vec<u8> = Vec::new();
    for value in [node, size, 1, 0, 0, 0] {
        body.extend(value.to_ne_bytes());
    }
    body.extend([0u8; 12]);
    body.extend(mode.to_ne_bytes());
    body.extend(1u32.to_ne_bytes());
    body.resize(88, 0);
    body
}
