//! docs/COMPAT.md, made from the tables the engine itself works by.

use crate::ops::table::OPS;
use crate::ops::Support;
use crate::ring::setup::FEATURES;
use core::fmt::Write;

const FEATURE_NAMES: [&str; 18] = [
    "SINGLE_MMAP",
    "NODROP",
    "SUBMIT_STABLE",
    "RW_CUR_POS",
    "CUR_PERSONALITY",
    "FAST_POLL",
    "POLL_32BITS",
    "SQPOLL_NONFIXED",
    "EXT_ARG",
    "NATIVE_WORKERS",
    "RSRC_TAGS",
    "CQE_SKIP",
    "LINKED_FILE",
    "REG_REG_RING",
    "RECVSEND_BUNDLE",
    "MIN_TIMEOUT",
    "RW_ATTR",
    "NO_IOWAIT",
];

/// The page, in Markdown.
pub fn page() -> String {
    let mut out = String::from(HEAD);
    for def in &OPS {
        let (works, note) = match def.support {
            Support::Full => ("yes", ""),
            Support::Partial(note) => ("partly", note),
            Support::None => ("no", "answers -EINVAL, and the probe says so"),
        };
        let _ = writeln!(out, "| {} | {} | {works} | {note} |", def.code, def.name);
    }
    out.push_str("\n## Features\n\n| bit | name | advertised |\n|---|---|---|\n");
    for (bit, name) in FEATURE_NAMES.iter().enumerate() {
        let set = if FEATURES & (1 << bit) != 0 { "yes" } else { "no" };
        let _ = writeln!(out, "| {bit} | {name} | {set} |");
    }
    out.push_str(TAIL);
    out
}

const HEAD: &str = "# What works

Made from the engine's own tables by `ANYRING_UPDATE=1 cargo test -p anyring-engine compat`; do not
edit. The measure is Linux 6.18. What is not listed as working is not advertised: the probe, the
feature bits and the errors are those of a kernel without it.

## Operations

| number | name | works | note |
|---|---|---|---|
";

const TAIL: &str = "
## What differs from the kernel by design

- A ring's descriptor is an eventfd with a high number. It can be mapped, polled, duplicated and
  closed; it cannot be passed to another process, and a forked child cannot use its parent's ring:
  it gets -EEXIST.
- Registered buffers are not pinned and not charged to RLIMIT_MEMLOCK. A buffer that was unmapped
  gives -EFAULT from the request that uses it. File-backed memory can be registered.
- O_DIRECT transfers at an offset go through kernel AIO. Without it (a sandbox that refuses io_setup, fs.aio-max-nr used
  up) they go to workers, and the statistics count them as `aio_refused`. Like the kernel's, they cannot be cancelled once
  they have been handed over. One that would have to wait when it is handed over goes to a worker; if the program has closed
  its file by the time that turns out, it ends with -EAGAIN.
- With IOPOLL the completions of O_DIRECT transfers are taken from the memory that kernel AIO shares with the process,
  without a system call each; the device itself still interrupts. So polled transfers work on disks for which Linux answers
  -EOPNOTSUPP. A wait in which nothing ends for 100 us goes on asleep.
- Completions of requests that waited are posted by a thread that waits in enter, or else by a
  background thread; the kernel posts them when the submitting thread next enters the kernel for
  whatever reason. Several events of a multishot poll that come before anybody looked are one.
- A worker that is interrupted by a cancel gives -ECANCELED where Linux 6.18 may give -EINTR or
  -512.
- SEND_ZC and SENDMSG_ZC copy, and say so where REPORT_USAGE asks; the notification follows the result
  at once. ARCHITECTURE.md says why.
- CQE_F_SOCK_NONEMPTY may be missing where bytes wait, once a ring's sockets had nothing left after 32
  receives in a row that filled their buffers; then one in 16 is asked (`sample_inq=off`: all are).
- Zero-copy receive, NAPI and device commands answer as a kernel without them.
";

#[cfg(test)]
mod tests {
    #[test]
    fn compat_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMPAT.md");
        let made = super::page();
        if std::env::var_os("ANYRING_UPDATE").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            there == made,
            "docs/COMPAT.md is old: ANYRING_UPDATE=1 cargo test -p anyring-engine compat"
        );
    }
}
