//! A folder for an experiment's files, removed when it ends.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// See the module's description.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder inside `dir`.
    pub fn new(dir: &Path) -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("anyring-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| {
            let path = path.display();
            Error::io(format!("cannot make {path} (name another folder with --dir)"), e)
        })?;
        Ok(Scratch(path))
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_away_with_all_that_is_in_it() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
        let error = Scratch::new(Path::new("/nonexistent")).err().unwrap();
        assert!(error.to_string().contains("--dir"), "{error}");
    }
}
