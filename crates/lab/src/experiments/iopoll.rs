//! Polled completions: does a finished read wait for those that were started before it?

use super::randread::RingQueue;
use super::Experiment;
use crate::arm::{Arm, Kind, Measure, Plan, RatioDef, Setting, Turn};
use crate::error::Result;
use crate::peers::kernel_aio::KernelAio;
use crate::reads::{self, DirectFile, Load};
use crate::ring::{Backend, MODERN};
use anyring_engine::aio::model::{Device, Latency};
use anyring_uapi::setup;
use std::sync::Arc;

const fn each(name: &'static str, each: &'static str, ordered: &'static str) -> RatioDef {
    RatioDef::value(name, each, ordered)
}

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "iopoll",
    about: "polled O_DIRECT reads of mixed sizes, 128 in flight, at most 32 started at once",
    method: "Random reads, one in eight of 128 KiB, the others of 4 KiB, from one thread with a ring set up with IOPOLL. c32 and c1: \
             at least 32, or 1, have to end before more are started. 'each' and 'ordered' say whether a finished read is handed over at \
             once, or waits for those before it. The arms 'user' run on the device model: latencies of 80 to 200 us (uniform, seeded) and 1 us for \
             each KiB, in virtual time, the same counts for the same seed. The arms 'disk' and the peers read a file of 256 MiB (64 with --quick) on the disk \
             of --dir. Latencies are of the 4 KiB reads. The peer is Linux AIO.",
    unit: "reads/s",
    ratios: &[
        each("iopoll.each_vs_ordered_c32", "user-each-c32", "user-ordered-c32").reported(782.0 / 725.0),
        each("iopoll.each_vs_ordered_c1", "user-each-c1", "user-ordered-c1").reported(895.0 / 880.0),
        each("iopoll.p99_4k_each_vs_ordered", "user-each-c32", "user-ordered-c32").measuring(Measure::P99),
        each("iopoll.disk_each_vs_ordered_c32", "disk-each-c32", "disk-ordered-c32").reported(782.0 / 725.0),
        each("iopoll.disk_each_vs_ordered_c1", "disk-each-c1", "disk-ordered-c1").reported(895.0 / 880.0),
        each("iopoll.disk_p99_4k_each_vs_ordered", "disk-each-c32", "disk-ordered-c32").measuring(Measure::P99),
    ],
    prepare,
};

const DEPTH: usize = 128;
const SUBMIT: usize = 32;
const LARGE_EVERY: u64 = 8;
/// A fast drive.
const DEVICE: Device =
    Device { ns_per_kib: 1_000, ..Device::new(Latency::Uniform(80_000, 200_000)) };

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
            let policy = format!("iopoll_reap={reap}");
            let (file, name) = (file.clone(), format!("user-{reap}-c{complete}"));
            plan.model(&name, &policy, DEVICE, move |backend, model, turn| {
                let mut queue = RingQueue::new(backend, DEPTH as u32, MODERN | setup::IOPOLL)?;
                reads::run_on_model(model, &mut queue, &file, &load, turn)
            });
            plan.user(&format!("disk-{reap}-c{complete}"), &policy, polled.clone());
        }
        plan.kernel(&format!("kernel-c{complete}"), polled);
        let file = file.clone();
        plan.add(Arm::new(&format!("libaio-c{complete}"), Kind::Peer, move |turn| {
            reads::run(&mut KernelAio::new(DEPTH)?, &file, &load, turn)
        }));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::path::PathBuf;
    use std::time::Duration;

    /// The whole experiment's arms on the model, twice: the same samples, and `each` ahead by what its bar asks for.
    #[test]
    fn the_model_gives_the_same_figures_for_the_same_seed() {
        let scratch = Scratch::new(std::path::Path::new("/var/tmp")).unwrap();
        let setting = Setting { quick: true, runs: 1, scratch: PathBuf::from(scratch.path()) };
        let mut plan = prepare(&setting).unwrap();
        let turn = Turn { slice: Duration::from_millis(20), seed: 7 };
        let mut figure = |name: &str| {
            let arm = plan.arms.iter_mut().find(|arm| arm.name == name).unwrap();
            let one = (arm.work)(&turn).unwrap();
            let again = (arm.work)(&turn).unwrap();
            assert_eq!((one.ops, one.value), (again.ops, again.value), "{name}");
            (one.value, one.latency.map_or(0, |l| l.value_at_quantile(0.99)))
        };
        for (complete, gain) in [(32, 1.079), (1, 1.017)] {
            let (each, ordered) = (
                figure(&format!("user-each-c{complete}")),
                figure(&format!("user-ordered-c{complete}")),
            );
            assert!(each.0 >= gain * ordered.0, "{each:?} {ordered:?}");
            assert!(each.1 < ordered.1, "p99: {each:?} {ordered:?}");
        }
    }
}
