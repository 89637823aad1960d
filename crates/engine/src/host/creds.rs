//! A thread's own credentials. Linux keeps them per thread; the calls made here change the calling thread alone.

use super::{nr, syscall};
use crate::Errno;

/// Users, groups, supplementary groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    users: [u32; 3],
    groups: [u32; 3],
    supplementary: Vec<u32>,
}

impl Ids {
    /// The calling thread's.
    pub fn current() -> Result<Ids, Errno> {
        let (mut users, mut groups) = ([0u32; 3], [0u32; 3]);
        let at = |v: &mut [u32; 3]| v.each_mut().map(|p| p as *mut u32 as usize);
        let (u, g) = (at(&mut users), at(&mut groups));
        // SAFETY: each call fills three integers of a local array, or a buffer of the size asked for before.
        let supplementary = unsafe {
            syscall(nr::__NR_getresuid, [u[0], u[1], u[2], 0, 0, 0])?;
            syscall(nr::__NR_getresgid, [g[0], g[1], g[2], 0, 0, 0])?;
            let n = syscall(nr::__NR_getgroups, [0, 0, 0, 0, 0, 0])?;
            let mut list = vec![0u32; n];
            let n = syscall(nr::__NR_getgroups, [n, list.as_mut_ptr() as usize, 0, 0, 0, 0])?;
            list.truncate(n);
            list
        };
        Ok(Ids { users, groups, supplementary })
    }

    /// Changes the calling thread's effective user and groups; the real and saved ones stay, so that the way back is open.
    pub fn apply(&self) {
        let keep = u32::MAX as usize;
        let list = &self.supplementary;
        // SAFETY: integers, and a list that the kernel reads. Raising back first makes the group calls possible.
        unsafe {
            let _ = syscall(nr::__NR_setresuid, [keep, 0, keep, 0, 0, 0]);
            let _ = syscall(nr::__NR_setgroups, [list.len(), list.as_ptr() as usize, 0, 0, 0, 0]);
            let _ = syscall(nr::__NR_setresgid, [keep, self.groups[1] as usize, keep, 0, 0, 0]);
            let _ = syscall(nr::__NR_setresuid, [keep, self.users[1] as usize, keep, 0, 0, 0]);
        }
    }
}
