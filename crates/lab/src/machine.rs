//! The machine that figures are from.

use serde::Serialize;
use std::fs;

/// See the module's description.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// Main memory.
    pub memory_gib: f64,
    /// The kernel's release.
    pub kernel: String,
    /// The file system of the scratch folder.
    pub filesystem: String,
    /// The load average when it began: others' work disturbs the figures.
    pub load_1min: f64,
}

impl Machine {
    /// Reads it; `dir` is where scratch folders are made.
    pub fn read(dir: &std::path::Path) -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory_kib = field(&text("/proc/meminfo"), "MemTotal")
            .and_then(|value| value.split(' ').next()?.parse::<f64>().ok());
        Machine {
            cpu: field(&text("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".into()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (memory_kib.unwrap_or(0.0) / 1024.0 / 1024.0 * 10.0).round() / 10.0,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            filesystem: filesystem(dir),
            load_1min: text("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        }
    }

    /// What to think of the figures if others were at work: arms with more threads then get more of the CPUs.
    pub fn warning(&self) -> Option<String> {
        let Machine { load_1min, cpus, .. } = self;
        (*load_1min > *cpus as f64 / 2.0).then(|| {
            format!(
                "The load was {load_1min} on {cpus} CPUs at the start: others' work is in the figures, so repeat it on a quiet machine"
            )
        })
    }

    /// On one line.
    pub fn line(&self) -> String {
        let Machine { cpu, cpus, memory_gib, kernel, filesystem, load_1min } = self;
        format!(
            "{cpu}, {cpus} CPUs, {memory_gib} GiB, Linux {kernel}, {filesystem}, load {load_1min} at the start"
        )
    }
}

fn filesystem(dir: &std::path::Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let holding = fields.filter(|(point, _)| dir.starts_with(point));
    holding.max_by_key(|(point, _)| point.len()).map_or("unknown".into(), |(_, kind)| kind.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_warned_of() {
        let machine =
            Machine { cpus: 2, load_1min: 0.9, ..Machine::read(std::path::Path::new("/")) };
        assert_eq!(machine.warning(), None);
        let busy = Machine { load_1min: 1.1, ..machine };
        assert!(busy.warning().unwrap().contains("load was 1.1 on 2 CPUs"));
    }
}
