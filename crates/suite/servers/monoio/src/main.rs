//! An echo server on monoio, with io_uring as its only driver.

#[path = "../../exit_on_term.rs"]
mod exit_on_term;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use std::io;

fn main() -> io::Result<()> {
    exit_on_term::exit_on_term();
    let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        println!("listening {}", listener.local_addr()?.port());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            monoio::spawn(echo(stream));
        }
    })
}

async fn echo(mut stream: TcpStream) {
    let mut buffer: Vec<u8> = Vec::with_capacity(8192);
    loop {
        let (received, back) = stream.read(buffer).await;
        if !matches!(received, Ok(n) if n > 0) {
            return;
        }
        let (sent, back) = stream.write_all(back).await;
        if sent.is_err() {
            return;
        }
        buffer = back;
        buffer.clear();
    }
}
