//! Where the preload library is.

use crate::failure::Failure;
use anyring_front::settings::{LIBRARY, LIBRARY_FILE};
use std::path::{Path, PathBuf};

/// Next to this program, then in `../lib/anyring/`, then where ANYRING_LIBRARY says.
pub fn find() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().ok();
    let dir = own.as_deref().and_then(Path::parent);
    let beside = dir.map(|dir| dir.join(LIBRARY_FILE));
    let installed = dir.map(|dir| dir.join("../lib/anyring").join(LIBRARY_FILE));
    let named = std::env::var_os(LIBRARY.to_str().unwrap_or_default()).map(PathBuf::from);
    for candidate in [beside, installed, named].into_iter().flatten() {
        if candidate.is_file() {
            return usable(candidate);
        }
    }
    Err(Failure::own(format!(
        "{LIBRARY_FILE} not found next to this program or in ../lib/anyring; set ANYRING_LIBRARY \
         to its path"
    )))
}

/// As an absolute path that LD_PRELOAD can name.
fn usable(path: PathBuf) -> Result<PathBuf, Failure> {
    let shown = path.display().to_string();
    let path = path
        .canonicalize()
        .map_err(|error| Failure::own(format!("cannot use '{shown}': {error}")))?;
    if path.as_os_str().as_encoded_bytes().iter().any(|b| b":; \t\n$".contains(b)) {
        return Err(Failure::own(format!(
            "'{}': LD_PRELOAD cannot name a path with a colon, blank or dollar sign; move it",
            path.display()
        )));
    }
    Ok(path)
}
