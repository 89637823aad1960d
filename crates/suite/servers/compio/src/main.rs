//! An echo server on compio, with io_uring as its only driver.

#[path = "../../exit_on_term.rs"]
mod exit_on_term;

use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use std::io;

fn main() -> io::Result<()> {
    exit_on_term::exit_on_term();
    compio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening {}", listener.local_addr()?.port());
        loop {
            let (stream, _) = listener.accept().await?;
            compio::runtime::spawn(echo(stream)).detach();
        }
    })
}

async fn echo(mut stream: TcpStream) {
    let mut buffer: Vec<u8> = Vec::with_capacity(8192);
    loop {
        let compio::BufResult(received, back) = stream.read(buffer).await;
        if !matches!(received, Ok(n) if n > 0) {
            return;
        }
        let compio::BufResult(sent, back) = stream.write_all(back).await;
        if sent.is_err() {
            return;
        }
        buffer = back;
        buffer.clear();
    }
}
