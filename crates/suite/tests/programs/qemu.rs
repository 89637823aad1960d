//! qemu-img: its I/O benchmark and a conversion, both with aio=io_uring.

use std::fs;
use std::io::Write;

use anyring_suite::process::Outcome;

use crate::Job;
use anyring_suite::place::Desk;

const IMAGE_BYTES: u64 = 32 << 20;
const REQUESTS: u64 = 2000;
const LIMIT_SECONDS: u64 = 60;

/// bench in both cache modes, reading and writing, and convert.
pub fn jobs() -> Vec<Job> {
    let needs = &["qemu-img"];
    vec![
        Job::new("qemu_bench_none", needs, |desk| bench(desk, "none")),
        Job::new("qemu_bench_writeback", needs, |desk| bench(desk, "writeback")),
        Job::new("qemu_convert", needs, convert),
    ]
}

fn bench(desk: &Desk, cache: &str) -> Result<(), String> {
    let image = write_image(desk)?;
    for write in [false, true] {
        let mut command = desk.command("qemu-img")?;
        command
            .args(["bench", "-i", "io_uring", "-f", "raw", "-t", cache, "-d", "32", "-s", "4096"]);
        command.args(["-c", &REQUESTS.to_string()]);
        if write {
            command.args(["-w", "--pattern=65"]);
        }
        let outcome = desk.run(command.arg("source.img"), LIMIT_SECONDS)?;
        no_fallback(&outcome)?;
        if !outcome.output.contains("Run completed") {
            return Err(format!("the run did not complete: {}", outcome.output));
        }
    }
    check_written(desk, &image)?;
    desk.engine_did(&["READ", "READV"], REQUESTS)?;
    desk.engine_did(&["WRITE", "WRITEV"], REQUESTS)
}

/// The benchmark writes its pattern from the start of the image, one request after another.
fn check_written(desk: &Desk, before: &[u8]) -> Result<(), String> {
    let after = fs::read(desk.path("source.img")).map_err(|error| error.to_string())?;
    let end = (REQUESTS * 4096) as usize;
    if after[..end].iter().any(|byte| *byte != 65) {
        return Err("a block lacks the pattern that was written".to_string());
    }
    match after[end..] == before[end..] {
        true => Ok(()),
        false => Err("blocks past the written ones have changed".to_string()),
    }
}

fn convert(desk: &Desk) -> Result<(), String> {
    let image = write_image(desk)?;
    let target = desk.path("target.img");
    let file = fs::File::create(&target).map_err(|error| error.to_string())?;
    file.set_len(IMAGE_BYTES).map_err(|error| error.to_string())?;
    let options =
        |name: &str| format!("driver=raw,file.driver=file,file.filename={name},file.aio=io_uring");
    let mut command = desk.command("qemu-img")?;
    command.args(["convert", "-n", "--image-opts", &options("source.img")]);
    command.args(["--target-image-opts", &options("target.img")]);
    no_fallback(&desk.run(&mut command, LIMIT_SECONDS)?)?;
    if fs::read(&target).map_err(|error| error.to_string())? != image {
        return Err("the converted image differs from its source".to_string());
    }
    desk.engine_did(&["READ", "READV"], 1)?;
    desk.engine_did(&["WRITE", "WRITEV"], 1)
}

fn no_fallback(outcome: &Outcome) -> Result<(), String> {
    match outcome.output.contains("falling back") {
        true => Err(format!("qemu-img gave io_uring up: {}", outcome.last_lines(4))),
        false => Ok(()),
    }
}

/// An image no two sectors of which are alike, and none of zeros.
fn write_image(desk: &Desk) -> Result<Vec<u8>, String> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut image = Vec::with_capacity(IMAGE_BYTES as usize);
    while (image.len() as u64) < IMAGE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        image.extend_from_slice(&state.to_le_bytes());
    }
    fs::File::create(desk.path("source.img"))
        .and_then(|mut file| file.write_all(&image))
        .map_err(|error| error.to_string())?;
    Ok(image)
}
