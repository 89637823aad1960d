//! `bench` from the outside: the list, the forms of its reports, and what Ctrl-C leaves.

mod common;

use common::{anyring, assert_quiet, stdout};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anyring-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_list_names_every_experiment() {
    let output = anyring(&["bench", "list"]).output().unwrap();
    assert_quiet(&output, 0);
    for name in ["maildir", "nop", "echo", "lazy-wake", "iopoll", "randread", "coldread", "idle"] {
        assert!(stdout(&output).lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn reports_have_their_form() {
    let folder = Folder::new("bench-form");
    let (json, html) = (folder.file("r.json"), folder.file("r.html"));
    let dir = folder.file("");
    let args = ["bench", "maildir", "--quick", "--runs", "2"];
    let mut command = anyring(&args);
    command.args(["--json", &json, "--html", &html, "--dir", &dir]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["experiment"], "maildir");
    assert!(report["machine"]["kernel"].is_string());
    let arms = report["arms"].as_array().unwrap();
    let user = arms.iter().find(|arm| arm["name"] == "user-qd32").unwrap();
    assert_eq!(user["unit"], "files/s");
    assert_eq!(user["policy"], "");
    assert_eq!(user["samples"].as_array().unwrap().len(), 2);
    assert!(user["median"].is_number() && user["ci95"].as_array().unwrap().len() == 2);
    let ratios = report["ratios"].as_array().unwrap();
    let ratio = ratios.iter().find(|r| r["name"] == "maildir.user_vs_threads").unwrap();
    assert!(ratio["median"].is_number() && ratio["ci95"].as_array().unwrap().len() == 2);
    assert_eq!(ratio["reported"], Value::Null);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("anyring bench maildir --quick --runs 2"));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2, "scratch files are left");
}

#[test]
fn interrupting_keeps_what_is_finished() {
    let folder = Folder::new("bench-stop");
    let (json, html, dir) = (folder.file("r.json"), folder.file("r.html"), folder.file(""));
    let mut command = anyring(&["bench", "nop", "--quick", "--runs", "1000", "--json", &json]);
    command.args(["--html", &html, "--dir", &dir]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    // SAFETY: sends a signal to the child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("stopping when this run has ended"), "{stderr}");
    assert!(stderr.ends_with("kept what was finished\n"), "{stderr}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert!(!report["arms"][0]["samples"].as_array().unwrap().is_empty());
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("<section id=\"nop\">") && page.contains("<circle"));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2, "scratch files are left");
}

#[test]
fn interrupting_all_keeps_the_experiments_before() {
    let folder = Folder::new("bench-stop-all");
    let (json, dir) = (folder.file("r.json"), folder.file(""));
    let mut command = anyring(&["bench", "all", "--quick", "--runs", "1", "--json", &json]);
    command.args(["--dir", &dir]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Read until the end: a closed pipe would disturb the child.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("maildir: ")), "{:?}", child.wait());
    // SAFETY: sends a signal to the child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report[0]["experiment"], "maildir");
    assert!(report.as_array().unwrap().len() < 4, "it went on");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "scratch files are left");
}

#[test]
fn a_folder_that_is_not_there() {
    let output = anyring(&["bench", "nop", "--dir", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.starts_with("anyring: cannot make /nonexistent/") && text.contains("--dir"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}

/// Before anything is measured, and without a trace.
#[test]
fn a_report_that_cannot_be_written_is_refused_at_once() {
    let folder = Folder::new("bench-unwritable");
    let (missing, html) = (folder.file("none/r.json"), folder.file("r.html"));
    let mut command = anyring(&["bench", "nop", "--quick", "--runs", "1"]);
    let output = command.args(["--html", &html, "--json", &missing]).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cannot write") && told.contains("none/r.json"), "{told}");
    assert_eq!(stdout(&output), "");
    assert!(!PathBuf::from(&html).exists());
}
