//! MariaDB: a table filled, read back, and found whole after kill -9.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyring_suite::process::{read_end, Ended, Group};
use std::path::PathBuf;

use crate::Job;
use anyring_suite::place::Desk;

const ROWS: u64 = 100_000;
const BATCHES: u64 = 10;
const START_LIMIT: Duration = Duration::from_secs(40);
const STOP_LIMIT: Duration = Duration::from_secs(40);
const LIMIT_SECONDS: u64 = 60;

/// Fill, read back, kill, recover.
pub fn job() -> Job {
    Job::new("mariadb", &["mariadbd", "mariadb", "mariadb-install-db"], run)
}

fn run(desk: &Desk) -> Result<(), String> {
    install(desk)?;
    let mut server = Server::start(desk)?;
    fill(&server)?;
    let before = fingerprint(&server)?;
    server.kill_amid_a_transaction()?;

    let server = Server::start(desk)?;
    let checked = server.ask("CHECK TABLE kept EXTENDED")?;
    if !checked.contains("status\tOK") {
        return Err(format!("CHECK TABLE says: {checked}"));
    }
    let after = fingerprint(&server)?;
    if after != before {
        return Err(format!("after the crash the table holds {after}, before it held {before}"));
    }
    server.stop()?;
    desk.engine_did(&["READ", "READV"], 1)?;
    desk.engine_did(&["WRITE", "WRITEV"], 1)
}

fn install(desk: &Desk) -> Result<(), String> {
    let mut command = Command::new("mariadb-install-db");
    command.arg("--no-defaults").arg(format!("--datadir={}", desk.path("data").display()));
    command.args(["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    desk.run(&mut command, LIMIT_SECONDS).map(|_| ())
}

/// Ten transactions, each committed by itself.
fn fill(server: &Server) -> Result<(), String> {
    server.ask(
        "CREATE TABLE kept (id INT PRIMARY KEY, third INT, body VARBINARY(200), KEY (third)) ENGINE=InnoDB",
    )?;
    for batch in 0..BATCHES {
        let (first, last) = (batch * ROWS / BATCHES + 1, (batch + 1) * ROWS / BATCHES);
        server.ask(&format!(
            "INSERT INTO kept SELECT seq, seq DIV 3, REPEAT(SHA1(seq), 4) FROM seq_{first}_to_{last}"
        ))?;
    }
    let wrong = server
        .ask("SELECT COUNT(*) FROM kept WHERE body <> REPEAT(SHA1(id), 4) OR third <> id DIV 3")?;
    match wrong.trim() {
        "0" => Ok(()),
        wrong => Err(format!("{wrong} rows do not hold what was written")),
    }
}

/// Count and checksum of all rows.
fn fingerprint(server: &Server) -> Result<String, String> {
    let found = server.ask("SELECT COUNT(*), SUM(CRC32(CONCAT(id, third, body))) FROM kept")?;
    match found.starts_with(&format!("{ROWS}\t")) {
        true => Ok(found.trim().to_string()),
        false => Err(format!("the table holds {found}, {ROWS} rows were written")),
    }
}

/// A running server on the desk's data folder.
struct Server<'a> {
    desk: &'a Desk,
    group: Group,
    log: PathBuf,
}

impl<'a> Server<'a> {
    /// Starts it and waits until it answers. Its log must say that it uses io_uring.
    fn start(desk: &'a Desk) -> Result<Server<'a>, String> {
        let mut command = desk.command("mariadbd")?;
        command.arg("--no-defaults").arg(format!("--datadir={}", desk.path("data").display()));
        command.arg(format!("--pid-file={}", desk.path("server.pid").display()));
        command.args(["--user=root", "--skip-networking", "--socket=server.sock"]);
        command.args(["--innodb-use-native-aio=1", "--innodb-flush-log-at-trx-commit=1"]);
        // A small pool makes it read and write pages all the time.
        command.args(["--innodb-buffer-pool-size=8M", "--skip-log-bin"]);
        let log = desk.next_output();
        let group = Group::start(&mut command, &log).map_err(|error| error.to_string())?;
        let server = Server { desk, group, log };
        server.wait_until_ready()?;
        server.check_log()?;
        Ok(server)
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline && self.group.runs().unwrap_or(false) {
            if self.log().contains("ready for connections") {
                return self.ask("CREATE DATABASE IF NOT EXISTS suite").map(|_| ());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(format!("mariadbd does not come up:\n{}", self.log()))
    }

    /// Older servers name the library, newer ones the kernel's interface.
    fn check_log(&self) -> Result<(), String> {
        let log = self.log();
        let used = ["Using io_uring", "Using liburing"].iter().any(|line| log.contains(line));
        match used && !log.contains("falling back") {
            true => Ok(()),
            false => Err(format!("mariadbd does not say that it uses io_uring:\n{log}")),
        }
    }

    fn log(&self) -> String {
        read_end(&self.log).unwrap_or_default()
    }

    fn client(&self, statement: &str) -> Command {
        let mut command = Command::new("mariadb");
        command.args([
            "--no-defaults",
            "--socket=data/server.sock",
            "--user=root",
            "-N",
            "-B",
            "-e",
            statement,
        ]);
        if !statement.starts_with("CREATE DATABASE") {
            command.arg("suite");
        }
        command.current_dir(self.desk.path(""));
        command
    }

    fn ask(&self, statement: &str) -> Result<String, String> {
        let answer = self.desk.run(&mut self.client(statement), LIMIT_SECONDS);
        answer.map(|outcome| outcome.output).map_err(|error| {
            format!("'{statement}' failed: {error}\nthe server's log:\n{}", self.log())
        })
    }

    /// Kills it with SIGKILL while a transaction is open whose rows must then be gone.
    fn kill_amid_a_transaction(&mut self) -> Result<(), String> {
        let open = "BEGIN; DELETE FROM kept WHERE id % 2 = 0; SELECT 'deleted'; SELECT SLEEP(60)";
        let output = self.desk.next_output();
        let _client = Group::start(self.client(open).arg("--unbuffered"), &output)
            .map_err(|error| error.to_string())?;
        let deadline = Instant::now() + START_LIMIT;
        while !read_end(&output).unwrap_or_default().contains("deleted") {
            if Instant::now() > deadline {
                return Err(format!("the open transaction does not proceed:\n{}", self.log()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let pid = std::fs::read_to_string(self.desk.path("server.pid"))
            .map_err(|error| error.to_string())?;
        let pid: i32 = pid.trim().parse().map_err(|_| format!("no process id: {pid}"))?;
        // SAFETY: kill takes no pointers; the server wrote this id and still runs.
        if unsafe { libc::kill(pid, libc::SIGKILL) } != 0 {
            return Err(format!("mariadbd ({pid}) is gone before it was killed:\n{}", self.log()));
        }
        match self.group.wait(STOP_LIMIT).map_err(|error| error.to_string())? {
            // The launcher passes the signal on, in one of the two usual ways.
            Ended::Signaled(9) | Ended::Exited(137) => Ok(()),
            ended => Err(format!("after kill -9 the command ended with {ended}")),
        }
    }

    fn stop(mut self) -> Result<(), String> {
        self.ask("SHUTDOWN")?;
        match self.group.wait(STOP_LIMIT).map_err(|error| error.to_string())? {
            Ended::Exited(0) => Ok(()),
            ended => Err(format!("after SHUTDOWN mariadbd ended with {ended}:\n{}", self.log())),
        }
    }
}
