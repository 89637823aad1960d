//! Programs from Debian that use io_uring, doing real work on our engine.
//!
//! Each job runs in several places: where the kernel's io_uring works and anyring is not
//! there (so the checks themselves are known to be right), with `kernel.io_uring_disabled=2`
//! (under `with-io-uring-off`), and in sandboxes that answer the three calls in four ways.
//! Everywhere but in the first, anyring's statistics must show that the engine did the work.
//!
//! `cargo test -p anyring-suite --test programs -- eperm::` runs one place alone.

mod fio;
mod mariadb;
mod node;
mod plocate;
mod qemu;
mod stress_ng;

use std::process::ExitCode;

use anyring_suite::place::{Desk, Place};
use libtest_mimic::{Arguments, Failed, Trial};

/// What a job does at its desk; it fails with a message.
type Work = Box<dyn Fn(&Desk) -> Result<(), String> + Send>;

/// One program's work, with its checks.
struct Job {
    name: String,
    /// Why the job cannot be done on this machine.
    missing: Option<String>,
    run: Work,
}

impl Job {
    /// A job that needs these programs to be installed.
    fn new(
        name: impl Into<String>,
        needs: &[&str],
        run: impl Fn(&Desk) -> Result<(), String> + Send + 'static,
    ) -> Job {
        let absent = needs.iter().find(|need| anyring_suite::places::program(need).is_none());
        let missing = absent.map(|need| format!("{need} is not installed"));
        Job { name: name.into(), missing, run: Box::new(run) }
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let trials = Place::ALL
        .into_iter()
        .flat_map(|place| jobs().into_iter().map(move |job| trial(place, job)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn jobs() -> Vec<Job> {
    let mut jobs = fio::jobs();
    jobs.extend(qemu::jobs());
    jobs.extend([mariadb::job(), node::job(), plocate::job(), stress_ng::job()]);
    jobs
}

fn trial(place: Place, job: Job) -> Trial {
    let name = format!("{}::{}", place.name(), job.name);
    // A missing program of Debian's is a failure, except for Node, which Debian 12 has only
    // in a version without io_uring.
    let absent = job.missing.clone().filter(|_| job.name == node::NAME);
    let ignored = place.unfit().or(absent);
    let reason = ignored.clone();
    let trial = Trial::test(name.clone(), move || {
        if let Some(why) = reason.or(job.missing.clone()) {
            return Err(Failed::from(why));
        }
        let desk = Desk::new(place, &job.name).map_err(Failed::from)?;
        (job.run)(&desk).map_err(|error| Failed::from(format!("{error}\n{}", desk.hint())))
    });
    match ignored {
        Some(why) => trial.with_kind(why).with_ignored_flag(true),
        None => trial,
    }
}
