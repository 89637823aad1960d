//! An echo server on tokio-uring.

#[path = "../../exit_on_term.rs"]
mod exit_on_term;

use std::io;
use tokio_uring::buf::BoundedBuf;
use tokio_uring::net::{TcpListener, TcpStream};

fn main() -> io::Result<()> {
    exit_on_term::exit_on_term();
    tokio_uring::start(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
        println!("listening {}", listener.local_addr()?.port());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio_uring::spawn(echo(stream));
        }
    })
}

async fn echo(stream: TcpStream) {
    let mut buffer = vec![0u8; 8192];
    loop {
        let (received, back) = stream.read(buffer).await;
        let n = match received {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        let (sent, slice) = stream.write_all(back.slice(..n)).await;
        if sent.is_err() {
            return;
        }
        buffer = slice.into_inner();
    }
}
