//! tokio, as a user would write it: its files, which are calls on its pool of blocking threads, and that
//! pool by itself.

use crate::error::{Error, Result};
use crate::reads::{Queue, Read};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// A runtime as `#[tokio::main]` makes it.
pub fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().map_err(|e| Error::io("tokio", e))
}

/// Runs `each` for 0..count, `depth` at a time: each task takes the next number and hands its state on.
pub fn for_each<S, F>(
    runtime: &Runtime,
    count: usize,
    states: Vec<S>,
    each: impl Fn(usize, S) -> F + Clone + Send + 'static,
) -> Result<Vec<S>>
where
    S: Send + 'static,
    F: Future<Output = Result<S>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for mut state in states {
        let (next, each) = (next.clone(), each.clone());
        let task = async move {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    i if i < count => state = each(i, state).await?,
                    _ => return Ok(state),
                }
            }
        };
        tasks.spawn_on(task, runtime.handle());
    }
    runtime.block_on(async {
        let mut done = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            done.push(joined.map_err(|e| Error::new(format!("tokio: {e}")))??);
        }
        Ok(done)
    })
}

/// Reads on the pool of blocking threads, each by pread(2).
pub struct TokioPool {
    // Dropped in this order: the runtime waits for calls that are going on.
    reads: JoinSet<(usize, i64)>,
    runtime: Runtime,
}

impl TokioPool {
    /// A pool with tokio's own limit of threads.
    pub fn new() -> Result<TokioPool> {
        Ok(TokioPool { reads: JoinSet::new(), runtime: runtime()? })
    }
}

impl Queue for TokioPool {
    fn queue(&mut self, read: Read) -> Result<()> {
        let Read { slot, fd, len, offset, .. } = read;
        let buf = read.buf as usize;
        let work = move || {
            // SAFETY: the buffer holds that many bytes and lives until the read has ended.
            let n = unsafe { libc::pread(fd, buf as *mut libc::c_void, len, offset as i64) };
            let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            (slot, if n < 0 { -i64::from(errno()) } else { n as i64 })
        };
        self.reads.spawn_blocking_on(work, self.runtime.handle());
        Ok(())
    }

    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()> {
        done.clear();
        let failed = |e: tokio::task::JoinError| Error::new(format!("tokio: {e}"));
        let reads = &mut self.reads;
        self.runtime.block_on(async {
            while done.len() < min as usize {
                match reads.join_next().await {
                    Some(joined) => done.push(joined.map_err(failed)?),
                    None => break,
                }
            }
            while let Some(joined) = reads.try_join_next() {
                done.push(joined.map_err(failed)?);
            }
            Ok(())
        })
    }
}
