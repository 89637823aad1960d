//! `show-stats FILE`: prints what `anyring run --stats FILE` wrote as a table.

use std::process::ExitCode;

use serde_json::Value;

const COLUMNS: [&str; 6] = ["submitted", "posted", "inline", "polled", "worker", "aio"];

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: show-stats FILE");
        return ExitCode::from(125);
    };
    let shown = std::fs::read_to_string(&path)
        .map_err(|error| error.to_string())
        .and_then(|text| text.lines().try_for_each(show_line));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "show-stats: {}: {error}; was it written by anyring run --stats?",
                path.to_string_lossy()
            );
            ExitCode::FAILURE
        }
    }
}

/// One process; those that made no ring are left out.
fn show_line(line: &str) -> Result<(), String> {
    let process: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if process["rings"].as_u64().unwrap_or(0) > 0 {
        show_counters(&process);
        show_operations(&process);
    }
    Ok(())
}

fn show_counters(process: &Value) {
    let fields = process.as_object().into_iter().flatten();
    let plain = fields.filter(|(_, value)| !value.is_object() && !value.is_array());
    let texts: Vec<String> = plain
        .map(|(name, value)| {
            format!("{name} {}", value.as_str().map_or(value.to_string(), String::from))
        })
        .collect();
    println!("{}", texts.join(", "));
}

fn show_operations(process: &Value) {
    print!("{:16}", "operation");
    COLUMNS.iter().for_each(|column| print!("{column:>11}"));
    println!();
    for (name, counts) in process["ops"].as_object().into_iter().flatten() {
        print!("{name:16}");
        COLUMNS.iter().for_each(|column| print!("{:>11}", counts[*column].as_u64().unwrap_or(0)));
        println!();
    }
}
