//! The mail folder read by tokio.

use super::Maildir;
use crate::arm::Plan;
use std::sync::Arc;

const ARMS: [&str; 2] = ["tokio-fs-qd32", "tokio-pool-qd32"];

/// Adds the arms.
#[cfg(not(feature = "peers"))]
pub fn add(plan: &mut Plan, _: &Arc<Maildir>) {
    crate::peers::skip(plan, &ARMS);
}

#[cfg(feature = "peers")]
pub use built_in::add;

#[cfg(feature = "peers")]
mod built_in {
    use super::*;
    use crate::arm::{latencies, Arm, Kind, Sample};
    use crate::error::{Error, Result};
    use crate::experiments::maildir::{passes, read_file, SIZE_MAX};
    use crate::peers::tokio_pool::{for_each, runtime};
    use crate::usage::Usage;
    use hdrhistogram::Histogram;
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::time::Instant;
    use tokio::io::AsyncReadExt;

    const DEPTH: usize = 32;

    /// Adds the arms.
    pub fn add(plan: &mut Plan, mail: &Arc<Maildir>) {
        for (name, closure) in ARMS.into_iter().zip([false, true]) {
            let mail = mail.clone();
            plan.add(Arm::new(name, Kind::Peer, move |turn| {
                passes(turn, || read_all(&mail, closure))
            }));
        }
    }

    /// What a task has read so far.
    struct Part {
        bytes: u64,
        latency: Histogram<u64>,
        buf: Vec<u8>,
    }

    /// Every file is a closure, or four calls of tokio's own.
    pub fn read_all(mail: &Arc<Maildir>, closure: bool) -> Result<Sample> {
        let runtime = runtime()?;
        let part = |_| Part { bytes: 0, latency: latencies(), buf: vec![0; SIZE_MAX as usize] };
        let parts = (0..DEPTH).map(part).collect();
        let (paths, count) = (mail.clone(), mail.paths.len());
        let (start, before) = (Instant::now(), Usage::process());
        let done = for_each(&runtime, count, parts, move |i, mut part: Part| {
            let mail = paths.clone();
            async move {
                let began = Instant::now();
                part.bytes += match closure {
                    true => in_closure(mail, i, &mut part.buf).await?,
                    false => by_its_files(&mail.paths[i], &mut part.buf).await?,
                };
                let _ = part.latency.record(began.elapsed().as_nanos() as u64);
                Ok(part)
            }
        })?;
        let (elapsed, usage) = (start.elapsed(), Usage::process().since(before));
        mail.check(done.iter().map(|part| part.bytes).sum())?;
        let mut latency = latencies();
        for part in done {
            latency.add(part.latency).map_err(|e| Error::new(e.to_string()))?;
        }
        Ok(Sample::rate(count as u64, elapsed, usage).with_latency(latency))
    }

    async fn in_closure(mail: Arc<Maildir>, i: usize, buf: &mut Vec<u8>) -> Result<u64> {
        let mut own = std::mem::take(buf);
        let call = move || (read_file(&mail.paths[i], &mut own), own);
        let joined = tokio::task::spawn_blocking(call).await;
        let (bytes, own) = joined.map_err(|e| Error::new(format!("tokio: {e}")))?;
        *buf = own;
        bytes
    }

    async fn by_its_files(path: &CStr, buf: &mut [u8]) -> Result<u64> {
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let failed = |e| Error::io(path.display(), e);
        let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
        let len = file.metadata().await.map_err(failed)?.len() as usize;
        let read = file.read(&mut buf[..len]).await.map_err(failed)?;
        Ok(read as u64)
    }
}

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn both_forms_read_every_byte() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let mail = Arc::new(Maildir::make(scratch.path(), 100).unwrap());
        for closure in [true, false] {
            let sample = built_in::read_all(&mail, closure).unwrap();
            assert_eq!((sample.ops, sample.latency.unwrap().len()), (100, 100));
        }
    }
}
