//! plocate: finds a name in a database that updatedb built.

use std::fs;
use std::process::Command;

use crate::Job;
use anyring_suite::place::Desk;

const FILES: usize = 2000;
const LIMIT_SECONDS: u64 = 30;

/// Finds one name among many, and one name that existed when the database was built.
pub fn job() -> Job {
    Job::new("plocate", &["plocate", "updatedb.plocate"], run)
}

fn run(desk: &Desk) -> Result<(), String> {
    let tree = desk.path("tree");
    for number in 0..FILES {
        let folder = tree.join(format!("folder-{}", number % 40));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::write(folder.join(format!("hay-{number}")), "").map_err(|error| error.to_string())?;
    }
    let needle = tree.join("folder-7/needle-in-the-hay");
    let gone = tree.join("folder-8/needle-that-went");
    for file in [&needle, &gone] {
        fs::write(file, "").map_err(|error| error.to_string())?;
    }
    build_database(desk)?;
    fs::remove_file(&gone).map_err(|error| error.to_string())?;

    let both = find(desk, &[])?;
    let mut wanted = [needle.clone(), gone].map(|path| path.display().to_string());
    wanted.sort();
    if both != wanted {
        return Err(format!("found {both:?}, wanted {wanted:?}"));
    }
    // With -e it looks whether the files are there still, with statx on the ring.
    let existing = find(desk, &["-e"])?;
    if existing != [needle.display().to_string()] {
        return Err(format!("with -e found {existing:?}, wanted {needle:?} alone"));
    }
    desk.engine_did(&["READ", "READV"], 2)?;
    desk.engine_did(&["STATX"], 1)
}

fn build_database(desk: &Desk) -> Result<(), String> {
    let mut command = Command::new("updatedb.plocate");
    command.args([
        "-l",
        "0",
        "-o",
        "names.db",
        "--prunepaths",
        "",
        "--prunefs",
        "",
        "--prunenames",
        "",
    ]);
    command.arg("-U").arg(desk.path("tree")).current_dir(desk.path(""));
    desk.run(&mut command, LIMIT_SECONDS).map(|_| ())
}

fn find(desk: &Desk, options: &[&str]) -> Result<Vec<String>, String> {
    let mut command = desk.set_id_command("plocate")?;
    command.args(options).args(["-d", "names.db", "needle"]);
    let outcome = desk.run(&mut command, LIMIT_SECONDS)?;
    let mut found: Vec<String> = outcome.output.lines().map(String::from).collect();
    found.sort();
    Ok(found)
}
