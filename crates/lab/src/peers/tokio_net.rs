//! An echo server on tokio: its epoll loop, a task for each connection.

use crate::error::{Error, Result};
use crate::net::MESSAGE;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// On one thread, as the servers it is compared with.
pub fn echo(ends: &[std::net::TcpStream]) -> Result<()> {
    let failed = |e| Error::io("tokio", e);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().build().map_err(failed)?.block_on(async {
        let mut tasks = JoinSet::new();
        for end in ends {
            end.set_nonblocking(true).map_err(failed)?;
            let end = end.try_clone().map_err(failed)?;
            tasks.spawn(serve(TcpStream::from_std(end).map_err(failed)?));
        }
        while let Some(served) = tasks.join_next().await {
            served.map_err(|e| Error::new(format!("tokio: {e}")))?.map_err(failed)?;
        }
        Ok(())
    })
}

/// Receives and sends until the client has closed its connection.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buf = [0u8; MESSAGE];
    let closed =
        |e: &std::io::Error| matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    loop {
        let echoed = match stream.read(&mut buf).await {
            Ok(0) => return Ok(()),
            Ok(n) => stream.write_all(&buf[..n]).await,
            Err(e) => Err(e),
        };
        match echoed {
            Err(e) if closed(&e) => return Ok(()),
            other => other?,
        }
    }
}
