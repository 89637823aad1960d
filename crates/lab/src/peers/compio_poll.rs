//! compio on its poll driver, which it uses where io_uring is not to be had.

use crate::error::{Error, Result};
use crate::net::MESSAGE;
use crate::reads::{DirectFile, Queue, Read};
use compio::buf::{IoBuf, IoBufMut, SetLen};
use compio::driver::{DriverType, ProactorBuilder};
use compio::fs::{File, OpenOptions};
use compio::io::{AsyncRead, AsyncReadAt, AsyncWriteExt};
use compio::net::TcpStream;
use compio::runtime::{Runtime, RuntimeBuilder};
use compio::BufResult;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A runtime of one thread.
fn runtime() -> Result<Runtime> {
    let mut proactor = ProactorBuilder::new();
    proactor.driver_type(DriverType::Poll);
    let mut builder = RuntimeBuilder::new();
    builder.with_proactor(proactor).build().map_err(|e| Error::io("compio", e))
}

/// An echo server: a task for each connection.
pub fn echo(ends: &[std::net::TcpStream]) -> Result<()> {
    let failed = |e| Error::io("compio", e);
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for end in ends {
            let end = end.try_clone().map_err(failed)?;
            let stream = TcpStream::from_std(end).map_err(failed)?;
            tasks.push(runtime.spawn(serve(stream)));
        }
        for task in tasks {
            let served = task.await.map_err(|_| Error::new("compio: a task panicked"))?;
            served.map_err(failed)?;
        }
        Ok(())
    })
}

/// Receives and sends until the client has closed its connection.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buf = Vec::with_capacity(MESSAGE);
    loop {
        let BufResult(received, filled) = stream.read(buf).await;
        match received {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(e) if is_closed(&e) => return Ok(()),
            Err(e) => return Err(e),
        }
        let BufResult(sent, mut back) = stream.write_all(filled).await;
        match sent {
            Ok(()) => {}
            Err(e) if is_closed(&e) => return Ok(()),
            Err(e) => return Err(e),
        }
        back.clear();
        buf = back;
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// A buffer of the caller's.
struct Target {
    start: *mut u8,
    len: usize,
}

impl IoBuf for Target {
    fn as_init(&self) -> &[u8] {
        &[]
    }
}

impl SetLen for Target {
    /// What was read is known by its result.
    unsafe fn set_len(&mut self, _: usize) {}
}

impl IoBufMut for Target {
    fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the buffer holds that many bytes, lives until the read has ended, and no other read has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.len) }
    }
}

/// Reads that have ended, and who waits for them.
#[derive(Default)]
struct Ended {
    list: RefCell<Vec<(usize, i64)>>,
    waiter: RefCell<Option<Waker>>,
}

/// Reads of a file: on this driver, calls on a pool of threads.
pub struct Reads {
    ended: Rc<Ended>,
    file: File,
    runtime: Runtime,
}

impl Reads {
    /// Opens the file once more, as compio's own.
    pub fn new(file: &DirectFile) -> Result<Reads> {
        let runtime = runtime()?;
        let path = format!("/proc/self/fd/{}", file.fd());
        let open =
            async { OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).await };
        let file = runtime.block_on(open).map_err(|e| Error::io(&path, e))?;
        Ok(Reads { ended: Rc::default(), file, runtime })
    }
}

impl Queue for Reads {
    fn queue(&mut self, read: Read) -> Result<()> {
        let (file, ended) = (self.file.clone(), self.ended.clone());
        let task = async move {
            let target = Target { start: read.buf, len: read.len };
            let BufResult(result, _) = file.read_at(target, read.offset).await;
            let failed = |e: std::io::Error| -i64::from(e.raw_os_error().unwrap_or(libc::EIO));
            ended.list.borrow_mut().push((read.slot, result.map_or_else(failed, |n| n as i64)));
            ended.waiter.take().into_iter().for_each(Waker::wake);
        };
        self.runtime.spawn(task).detach();
        Ok(())
    }

    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()> {
        let ended = &self.ended;
        self.runtime.block_on(poll_fn(|context| match ended.list.borrow().len() {
            n if n >= min as usize => Poll::Ready(()),
            _ => {
                ended.waiter.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        }));
        done.clear();
        done.append(&mut ended.list.borrow_mut());
        Ok(())
    }
}
