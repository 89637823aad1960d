//! Which filesystems are mounted where this thread looks, and of what kind.
//!
//! Read from /proc/thread-self/mountinfo, and again when that file reports a change (`poll(2)`: POLLPRI). It
//! shows the mounts below the root of the thread that opened it, in that thread's mount namespace; chroot, pivot_root, setns
//! and unshare give a thread another root mount or directory, which is how a change of the place is noticed.

use crate::fds::Fds;
use crate::host::fd::{self, OwnedFd};
use crate::host::poll;
use crate::limits::MOUNTINFO_BYTES_MAX;
use crate::Errno;
use std::collections::BTreeMap;

/// What is to be expected of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// On a local disk or in memory.
    Local,
    /// Made up by the kernel: to look something up there waits for nobody, but nothing else is known.
    Kernel,
    /// Another program or computer has to answer, or nothing is known about it.
    Remote,
}

const LOCAL: &[&[u8]] = &[
    b"ext2",
    b"ext3",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"f2fs",
    b"bcachefs",
    b"zfs",
    b"jfs",
    b"reiserfs",
    b"nilfs2",
    b"vfat",
    b"exfat",
    b"ntfs3",
    b"iso9660",
    b"udf",
    b"squashfs",
    b"erofs",
    b"tmpfs",
    b"ramfs",
    b"rootfs",
    b"overlay",
];

const KERNEL: &[&[u8]] = &[
    b"proc",
    b"sysfs",
    b"cgroup",
    b"cgroup2",
    b"devpts",
    b"devtmpfs",
    b"mqueue",
    b"debugfs",
    b"tracefs",
    b"securityfs",
    b"pstore",
    b"bpf",
    b"configfs",
    b"binfmt_misc",
    b"efivarfs",
    b"fusectl",
    b"selinuxfs",
    b"hugetlbfs",
    b"nsfs",
];

/// Nearly every machine has this automount; only who names it walks into it.
const AUTOMOUNT: &[u8] = b"/proc/sys/fs/binfmt_misc";

/// Whether a path may lead to `AUTOMOUNT`, by its look.
pub fn leads_to_automount(path: &[u8]) -> bool {
    path.starts_with(b"/proc") || path.starts_with(b"//") || path.windows(2).any(|two| two == b"..")
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    id: u64,
    point: &'a [u8],
    kind: &'a [u8],
}

/// `36 35 98:0 /root /point options [optional fields] - type source options`
fn parse(line: &[u8]) -> Option<Mount<'_>> {
    let mut words = line.split(|b| *b == b' ');
    let id = core::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let point = words.nth(3)?;
    words.find(|word| *word == b"-")?;
    Some(Mount { id, point, kind: words.next()? })
}

fn classify(kind: &[u8]) -> Class {
    match kind {
        _ if LOCAL.contains(&kind) => Class::Local,
        _ if KERNEL.contains(&kind) => Class::Kernel,
        _ => Class::Remote,
    }
}

/// The classes by mount id, and whether none beside [`AUTOMOUNT`] is remote. `None` for a table that is not understood.
fn read_table(text: &[u8]) -> Option<(BTreeMap<u64, Class>, bool)> {
    let (mut classes, mut local) = (BTreeMap::new(), true);
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let mount = parse(line)?;
        let class = classify(mount.kind);
        classes.insert(mount.id, class);
        local &= class != Class::Remote || (mount.kind == b"autofs" && mount.point == AUTOMOUNT);
    }
    Some((classes, local))
}

/// A root directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Root {
    mount: u64,
    inode: u64,
}

/// See the module's description.
#[derive(Default)]
pub struct Mounts {
    /// The open table, and whose root it shows.
    file: Option<(OwnedFd, Root)>,
    classes: BTreeMap<u64, Class>,
    local: bool,
    all_local: bool,
}

impl Mounts {
    /// Learns what has changed. Whether the table is known.
    pub fn refresh(&mut self, fds: &Fds) -> bool {
        let known = self.try_refresh(fds).is_ok();
        if !known {
            *self = Mounts::default();
        }
        known
    }

    fn try_refresh(&mut self, fds: &Fds) -> Result<(), Errno> {
        let at = fd::root()?;
        let root = Root { mount: at.id.ok_or(Errno::OPNOTSUPP)?, inode: at.inode };
        let changed = match &self.file {
            Some((file, seen)) if *seen == root => {
                poll::ready(file.raw(), poll::PRI)? & (poll::PRI | poll::ERR) != 0
            }
            _ => {
                self.file = Some((open(fds)?, root));
                true
            }
        };
        match &self.file {
            Some((file, _)) if changed => {
                let text = fd::read_all(file.raw(), MOUNTINFO_BYTES_MAX)?;
                (self.classes, self.local) = read_table(&text).ok_or(Errno::INVAL)?;
                self.all_local = !self.classes.values().any(|class| *class == Class::Remote);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether no path leads to a remote filesystem.
    pub fn paths_are_local(&self) -> bool {
        self.local
    }

    /// Nor any automount.
    pub fn all_local(&self) -> bool {
        self.all_local
    }

    /// The class of a mount that is in the table.
    pub fn class(&self, mount: u64) -> Option<Class> {
        self.classes.get(&mount).copied()
    }
}

fn open(fds: &Fds) -> Result<OwnedFd, Errno> {
    fd::open_to_read(c"/proc/thread-self/mountinfo").and_then(|low| fds.move_high(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n\
        28 27 0:25 / /run rw - tmpfs none rw\n\
        29 22 0:26 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";

    fn with(line: &str) -> Option<(BTreeMap<u64, Class>, bool)> {
        read_table(format!("{USUAL}{line}").as_bytes())
    }

    #[test]
    fn a_usual_table_is_local() {
        let (classes, local) = with("").unwrap();
        assert!(local);
        assert_eq!(classes[&27], Class::Local);
        assert_eq!(classes[&22], Class::Kernel);
        assert_eq!(classes[&29], Class::Remote);
    }

    #[test]
    fn one_remote_or_unknown_mount_is_enough() {
        for kind in ["fuse", "fuse.sshfs", "fuseblk", "nfs4", "cifs", "9p", "virtiofs", "newfs"] {
            let (classes, local) = with(&format!("77 27 0:9 / /far rw - {kind} x rw\n")).unwrap();
            assert!(!local, "{kind}");
            assert_eq!(classes[&77], Class::Remote);
        }
        assert!(!with("77 27 0:9 / /home rw - autofs x rw\n").unwrap().1);
    }

    #[test]
    fn what_is_not_understood_is_not_trusted() {
        for line in ["77\n", "x 1 0:9 / /far rw - ext4 x rw\n", "77 27 0:9 / /far rw ext4\n"] {
            assert_eq!(with(line), None, "{line}");
        }
    }

    #[test]
    fn paths_that_may_meet_the_automount() {
        for path in [&b"/proc/cpuinfo\0"[..], b"//proc/x\0", b"/tmp/../proc/x\0"] {
            assert!(leads_to_automount(path));
        }
        assert!(!leads_to_automount(b"/home/proc/x\0"));
        assert!(!leads_to_automount(b"./a.b\0"));
    }
}
