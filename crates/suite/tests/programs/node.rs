//! Node with UV_USE_IO_URING=1: mixed file operations through fs/promises.

use std::fs;
use std::process::Command;

use anyring_suite::places;

use crate::Job;
use anyring_suite::place::Desk;

/// The job's name.
pub const NAME: &str = "node";

const OPERATIONS: u64 = 20_000;
const LIMIT_SECONDS: u64 = 90;

const SCRIPT: &str = r#"
import { promises as fs } from 'node:fs';

const files = 50, rounds = 5000, lanes = 8;
const content = n => Buffer.alloc(100 + n * 37, `file ${n};`);
for (let n = 0; n < files; n++) await fs.writeFile(`f${n}`, content(n));

let next = 0, done = 0;
async function lane() {
  while (next < rounds) {
    const n = next++ % files, wanted = content(n);
    const { size } = await fs.stat(`f${n}`);
    if (size !== wanted.length) throw new Error(`size of f${n}: ${size}`);
    const file = await fs.open(`f${n}`);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(size), 0, size, 0);
    if (bytesRead !== size || !buffer.equals(wanted)) throw new Error(`content of f${n}`);
    await file.close();
    done += 4;
  }
}
await Promise.all(Array.from({ length: lanes }, lane));
console.log(`done ${done}`);
"#;

/// 20,000 stat, open, read and close, with the content checked.
pub fn job() -> Job {
    let mut job = Job::new(NAME, &["node"], run);
    job.missing = job.missing.or_else(without_io_uring);
    job
}

/// libuv uses io_uring for files since 1.45.
fn without_io_uring() -> Option<String> {
    let node = places::program("node")?;
    let output = Command::new(node).args(["-p", "process.versions.uv"]).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0u32));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    ((major, minor) < (1, 45)).then(|| format!("Node's libuv {version} has no io_uring"))
}

fn run(desk: &Desk) -> Result<(), String> {
    fs::write(desk.path("work.mjs"), SCRIPT).map_err(|error| error.to_string())?;
    let mut command = desk.command("node")?;
    command.arg("work.mjs").env("UV_USE_IO_URING", "1");
    let outcome = desk.run(&mut command, LIMIT_SECONDS)?;
    if !outcome.output.contains(&format!("done {OPERATIONS}")) {
        return Err(format!("Node did not finish its work: {}", outcome.last_lines(10)));
    }
    // libuv hands an operation to its threads when its ring happens to be full.
    for opcodes in [&["STATX"][..], &["OPENAT"], &["READ", "READV"], &["CLOSE"]] {
        desk.engine_did(opcodes, OPERATIONS / 4 / 2)?;
    }
    Ok(())
}
