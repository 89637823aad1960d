//! Registered credentials (personalities): a snapshot of the registering thread's user and groups.

use crate::host::creds::Ids;
use crate::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A snapshot.
#[derive(Debug, PartialEq, Eq)]
pub struct Creds {
    ids: Ids,
}

impl Creds {
    /// Of the calling thread.
    pub fn snapshot() -> Result<Creds, Errno> {
        Ok(Creds { ids: Ids::current()? })
    }
    /// Makes the calling thread act with these credentials until the guard is dropped. Only threads of the engine do this.
    pub fn assume(&self) -> Assumed {
        let before = Ids::current().ok();
        self.ids.apply();
        Assumed { before }
    }
}

/// Restores the former credentials when dropped.
pub struct Assumed {
    before: Option<Ids>,
}

impl Drop for Assumed {
    fn drop(&mut self) {
        if let Some(ids) = &self.before {
            ids.apply();
        }
    }
}

/// The registered ones of a ring.
#[derive(Default)]
pub struct Personalities {
    by_id: BTreeMap<u16, Arc<Creds>>,
    last: u16,
}

impl Personalities {
    /// Registers; ids go round from 1 to 65535.
    pub fn add(&mut self, creds: Creds) -> Result<u16, Errno> {
        for _ in 0..=u16::MAX {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.by_id.contains_key(&self.last) {
                self.by_id.insert(self.last, Arc::new(creds));
                return Ok(self.last);
            }
        }
        Err(Errno::NOMEM)
    }
    /// Removes; EINVAL for an unknown id.
    pub fn remove(&mut self, id: u32) -> Result<(), Errno> {
        let id = u16::try_from(id).map_err(|_| Errno::INVAL)?;
        self.by_id.remove(&id).map(drop).ok_or(Errno::INVAL)
    }
    /// Looks one up.
    pub fn get(&self, id: u16) -> Option<Arc<Creds>> {
        self.by_id.get(&id).cloned()
    }
}
