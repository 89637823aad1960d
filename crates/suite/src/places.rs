//! Where things are: the target folder, the `anyring` binary, scratch folders.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The repository's root.
pub fn repository() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap_or(Path::new("."))
}

/// The target folder this program was built in.
pub fn target() -> PathBuf {
    let own = env::current_exe().ok();
    let folder = own.as_deref().and_then(|path| {
        path.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists()).map(Path::to_path_buf)
    });
    folder.unwrap_or_else(|| repository().join("target"))
}

/// The `anyring` command: ANYRING_BIN, or the release build.
pub fn anyring() -> Result<PathBuf, String> {
    let path = match env::var_os("ANYRING_BIN") {
        Some(path) => PathBuf::from(path),
        None => target().join("release/anyring"),
    };
    if path.exists() {
        return Ok(path);
    }
    Err(format!("{} does not exist; run: cargo build --release", path.display()))
}

/// A helper program of this crate, from the same build as the caller.
pub fn helper(name: &str) -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    found.into_iter().find(|path| path.exists()).ok_or_else(|| {
        format!("{name} is not built; run: cargo build -p anyring-suite --bin {name}")
    })
}

/// A program found in PATH or where Debian puts daemons.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A folder of one's own that is removed when this is dropped.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes an empty scratch folder below the target folder, which is on a real disk: a
/// temporary file system would not take O_DIRECT.
pub fn scratch(name: &str) -> io::Result<Scratch> {
    let path = target().join("scratch").join(format!("{name}-{}", std::process::id()));
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    fs::create_dir_all(&path)?;
    Ok(Scratch { path })
}
