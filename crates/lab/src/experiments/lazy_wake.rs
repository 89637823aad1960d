//! Waking a thread that waits for several completions only when they are all there.

use super::Experiment;
use crate::arm::{latencies, Measure, Plan, RatioDef, Sample, Setting, Turn};
use crate::device::{Device, Latency};
use crate::error::{Error, Result};
use crate::net;
use crate::reads::{self, DirectFile, Load};
use crate::ring::{Backend, Ring, MODERN};
use crate::usage::Usage;
use anyring_engine::aio::model::{self, Model};
use anyring_uapi::cqe::F_MORE;
use anyring_uapi::{op, Cqe, Sqe};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

const fn switches(name: &'static str, on: &'static str, off: &'static str) -> RatioDef {
    RatioDef::value(name, on, off).measuring(Measure::Switches)
}

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "lazy-wake",
    about: "context switches of a thread that waits for 8 or 32 completions",
    method: "A thread starts 8 or 32 requests, waits for all, and starts anew. 'qd' arms: O_DIRECT reads of 4 KiB from the device \
             model, which end after 0.2 to 2 ms (uniform, seeded), in virtual time: the same counts for the same seed. 'disk' arms: the same reads \
             of a real file. 'workers' arms: requests that each block a worker for 0.2 to 2 ms. 'zc' arms: 8 zero-copy sends of 2000 bytes over \
             loopback, whose 8 results and 8 notifications are awaited together. Switches are voluntary ones of the waiting thread alone, \
             for one request; on the model, its sleeps.",
    unit: "requests/s",
    ratios: &[
        switches("lazy_wake.qd8_switches", "user-qd8-on", "user-qd8-off").reported(2.0),
        switches("lazy_wake.qd32_switches", "user-qd32-on", "user-qd32-off").reported(4.0),
        switches("lazy_wake.disk_qd8_switches", "user-disk-qd8-on", "user-disk-qd8-off").reported(2.0),
        switches("lazy_wake.disk_qd32_switches", "user-disk-qd32-on", "user-disk-qd32-off").reported(4.0),
        switches("lazy_wake.workers_qd8_switches", "user-workers-qd8-on", "user-workers-qd8-off"),
        switches("lazy_wake.workers_qd32_switches", "user-workers-qd32-on", "user-workers-qd32-off"),
        switches("lazy_wake.zc_switches", "user-zc-on", "user-zc-off").reported(10.0),
    ],
    prepare,
};

fn prepare(setting: &Setting) -> Result<Plan> {
    let mut plan = Plan::default();
    let file = Arc::new(DirectFile::make(&setting.scratch, 64 << 20)?);
    for depth in [8, 32] {
        for value in ["on", "off"] {
            let (file, policy) = (file.clone(), format!("lazy_wake={value}"));
            plan.model(
                &format!("user-qd{depth}-{value}"),
                &policy,
                DEVICE,
                move |b, model, turn| on_model(b, model, &file, turn, depth),
            );
        }
        let workers =
            move |backend: &Arc<dyn Backend>, turn: &Turn| on_workers(backend, turn, depth);
        on_off_kernel(&mut plan, &format!("workers-qd{depth}"), workers);
        let file = file.clone();
        let disk =
            move |backend: &Arc<dyn Backend>, turn: &Turn| on_disk(backend, &file, turn, depth);
        on_off_kernel(&mut plan, &format!("disk-qd{depth}"), disk);
    }
    on_off_kernel(&mut plan, "zc", zero_copy);
    Ok(plan)
}

fn on_off_kernel(
    plan: &mut Plan,
    name: &str,
    work: impl FnMut(&Arc<dyn Backend>, &Turn) -> Result<Sample> + Clone + Send + 'static,
) {
    for value in ["on", "off"] {
        plan.user(&format!("user-{name}-{value}"), &format!("lazy_wake={value}"), work.clone());
    }
    plan.kernel(&format!("kernel-{name}"), work);
}

/// A slow drive.
const DEVICE: model::Device = model::Device::new(model::Latency::Uniform(200_000, 2_000_000));

fn on_model(
    backend: &Arc<dyn Backend>,
    model: &Model,
    file: &DirectFile,
    turn: &Turn,
    depth: usize,
) -> Result<Sample> {
    let mut queue = super::randread::RingQueue::new(backend, depth as u32, MODERN)?;
    reads::run_on_model(model, &mut queue, file, &all_at_once(depth, 0), turn)
}

/// As many are started together as are waited for.
fn all_at_once(depth: usize, large_every: u64) -> Load {
    Load { depth, submit: depth, complete: depth as u32, large_every }
}

/// A splice from a pipe blocks its worker, where a read would be polled.
fn on_workers(backend: &Arc<dyn Backend>, turn: &Turn, depth: usize) -> Result<Sample> {
    let latency = Latency::Uniform(Duration::from_micros(200), Duration::from_micros(2000));
    let device = Device::new(depth, latency, turn.seed)?;
    let null = std::fs::File::options().write(true).open("/dev/null");
    let null = null.map_err(|e| Error::io("/dev/null", e))?;
    let request = |place: usize| Sqe {
        opcode: op::SPLICE,
        fd: null.as_raw_fd(),
        off: u64::MAX,
        addr: u64::MAX,
        len: 1,
        file_index: device.fd(place) as u32,
        user_data: place as u64,
        ..Sqe::default()
    };
    let start = |place| device.start(place);
    rounds(backend, turn, depth, depth as u32, request, start)
}

/// Starts `depth` requests, waits for `cqes` completions, until the time is up.
fn rounds(
    backend: &Arc<dyn Backend>,
    turn: &Turn,
    depth: usize,
    cqes: u32,
    request: impl Fn(usize) -> Sqe,
    begin: impl Fn(usize),
) -> Result<Sample> {
    let mut ring = Ring::new(backend, cqes, MODERN)?;
    let (mut done, mut ops, mut latency): (Vec<Cqe>, _, _) = (Vec::new(), 0, latencies());
    let (start, before) = (Instant::now(), Usage::thread());
    while start.elapsed() < turn.slice {
        let began = Instant::now();
        (0..depth).for_each(|place| ring.push(request(place)));
        ring.submit_and_wait(0)?;
        (0..depth).for_each(&begin);
        let mut left = cqes;
        while left > 0 {
            ring.submit_and_wait(left)?;
            ring.reap(&mut done);
            if let Some(failed) = done.iter().find(|c| c.res < 0 && c.flags == 0) {
                return Err(Error::errno("request", -failed.res));
            }
            left = left.saturating_sub(done.len() as u32);
        }
        let _ = latency.record(began.elapsed().as_nanos() as u64);
        ops += depth as u64;
    }
    let usage = Usage::thread().since(before);
    Ok(Sample::rate(ops, start.elapsed(), usage).with_latency(latency))
}

fn on_disk(
    backend: &Arc<dyn Backend>,
    file: &DirectFile,
    turn: &Turn,
    depth: usize,
) -> Result<Sample> {
    let mut queue = super::randread::RingQueue::new(backend, depth as u32, MODERN)?;
    let before = Usage::thread();
    let mut sample = reads::run(&mut queue, file, &all_at_once(depth, 1), turn)?;
    sample.usage = Usage::thread().since(before);
    Ok(sample)
}

const SENDS: usize = 8;

/// Tries one send: without notifications the rounds would wait for ever.
fn notifies(backend: &Arc<dyn Backend>, send: Sqe) -> Result<()> {
    let mut ring = Ring::new(backend, 2, MODERN)?;
    let mut cqes = Vec::new();
    ring.push(send);
    ring.submit_and_wait(1)?;
    ring.reap(&mut cqes);
    match cqes.first() {
        Some(cqe) if cqe.res < 0 => Err(Error::errno("SEND_ZC", -cqe.res)),
        Some(cqe) if cqe.flags & F_MORE == 0 => Err(Error::new("SEND_ZC sends no notification")),
        _ if cqes.len() == 1 => ring.submit_and_wait(1),
        _ => Ok(()),
    }
}

fn zero_copy(backend: &Arc<dyn Backend>, turn: &Turn) -> Result<Sample> {
    let (mut receivers, senders) = net::connect(1)?;
    let (mut receiver, sender) = (receivers.remove(0), &senders[0]);
    let drain = std::thread::spawn(move || {
        let mut buf = [0u8; 64 * 1024];
        while matches!(receiver.read(&mut buf), Ok(n) if n > 0) {}
    });
    let data = vec![7u8; net::MESSAGE];
    let request = |_| Sqe {
        opcode: op::SEND_ZC,
        fd: sender.as_raw_fd(),
        addr: data.as_ptr() as u64,
        len: data.len() as u32,
        op_flags: libc::MSG_WAITALL as u32,
        ..Sqe::default()
    };
    let sample = notifies(backend, request(0))
        .and_then(|()| rounds(backend, turn, SENDS, 2 * SENDS as u32, request, |_| {}));
    drop(senders);
    let _ = drain.join();
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use crate::scratch::Scratch;

    #[test]
    fn waits_for_all_with_either_policy() {
        let turn = Turn { slice: Duration::from_millis(20), seed: 3 };
        for policy in ["lazy_wake=on", "lazy_wake=off"] {
            let user: Arc<dyn Backend> = Arc::new(User::new(policy).unwrap());
            let sample = on_workers(&user, &turn, 8).unwrap();
            assert!(sample.ops >= 8 && sample.ops % 8 == 0);
        }
    }

    /// The bars: twice and four times fewer switches. The model counts the same on any machine.
    #[test]
    fn a_slow_drive_wakes_a_lazy_waiter_less_often() {
        let scratch = Scratch::new(std::path::Path::new("/var/tmp")).unwrap();
        let file = DirectFile::make(scratch.path(), 1 << 20).unwrap();
        let turn = Turn { slice: Duration::from_millis(200), seed: 5 };
        for (depth, bar) in [(8, 2), (32, 4)] {
            let sleeps = |policy: &str| {
                let model = Arc::new(Model::new(DEVICE, turn.seed));
                let user: Arc<dyn Backend> =
                    Arc::new(User::with_model(policy, model.clone()).unwrap());
                let sample = on_model(&user, &model, &file, &turn, depth).unwrap();
                assert_eq!(sample.ops % depth as u64, 0);
                (sample.usage.voluntary, sample.ops)
            };
            let (on, off) = (sleeps("lazy_wake=on"), sleeps("lazy_wake=off"));
            assert_eq!(on, sleeps("lazy_wake=on"));
            assert!(off.0 * on.1 >= bar * on.0 * off.1, "depth {depth}: {on:?} {off:?}");
            assert_eq!(on.0 * depth as u64, on.1, "one sleep for each round");
        }
    }
}
