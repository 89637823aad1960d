//! Polled completions: does a finished read wait for those that were started before it?

use super::randread::RingQueue;
use super::Experiment;
use crate::arm::{Arm, Kind, Measure, Plan, RatioDef, Setting, Turn};
use crate::error::Result;
use crate::peers::kernel_aio::KernelAio;
use crate::reads::{self, DirectFile, Load};
use crate::ring::{Backend, MODERN};
use anyring_uapi::setup;
use std::sync::Arc;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "iopoll",
    about: "polled O_DIRECT reads of mixed sizes, 128 in flight, at most 32 started at once",
    method: "Random reads of a file of 256 MiB (64 with --quick) on the disk of --dir, one in eight of 128 KiB, the others of 4 KiB, \
             from one thread with a ring set up with IOPOLL. c32 and c1: at least 32, or 1, have to end before more are started. 'each' and \
             'ordered' say whether a finished read is handed over at once, or waits for those before it. Latencies are of the 4 KiB reads. \
             The peer is Linux AIO.",
    unit: "reads/s",
    ratios: &[
        RatioDef::value("iopoll.each_vs_ordered_c32", "user-each-c32", "user-ordered-c32").reported(782.0 / 725.0),
        RatioDef::value("iopoll.each_vs_ordered_c1", "user-each-c1", "user-ordered-c1").reported(895.0 / 880.0),
        RatioDef::value("iopoll.p99_4k_each_vs_ordered", "user-each-c32", "user-ordered-c32").measuring(Measure::P99),
    ],
    prepare,
};

const DEPTH: usize = 128;
const SUBMIT: usize = 32;
const LARGE_EVERY: u64 = 8;

fn prepare(setting: &Setting) -> Result<Plan> {
    let len = if setting.quick { 64 << 20 } else { 256 << 20 };
    let file = Arc::new(DirectFile::make(&setting.scratch, len)?);
    let mut plan = Plan::default();
    for complete in [32, 1] {
        let load = Load { depth: DEPTH, submit: SUBMIT, complete, large_every: LARGE_EVERY };
        let polled = {
            let file = file.clone();
            move |backend: &Arc<dyn Backend>, turn: &Turn| {
                let mut queue = RingQueue::new(backend, DEPTH as u32, MODERN | setup::IOPOLL)?;
                reads::run(&mut queue, &file, &load, turn)
            }
        };
        for reap in ["each", "ordered"] {
            let (name, policy) =
                (format!("user-{reap}-c{complete}"), format!("iopoll_reap={reap}"));
            plan.user(&name, &policy, polled.clone());
        }
        plan.both(&format!("-c{complete}"), polled);
        let file = file.clone();
        plan.add(Arm::new(&format!("libaio-c{complete}"), Kind::Peer, move |turn| {
            reads::run(&mut KernelAio::new(DEPTH)?, &file, &load, turn)
        }));
    }
    Ok(plan)
}
