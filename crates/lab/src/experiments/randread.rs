//! Random 4 KiB reads with O_DIRECT, 32 in flight.

use super::Experiment;
use crate::arm::{Arm, Kind, Plan, RatioDef, Setting, Turn};
use crate::error::Result;
use crate::peers;
use crate::peers::kernel_aio::KernelAio;
use crate::peers::posix_aio::PosixAio;
use crate::reads::{self, DirectFile, Load, Queue, Read};
use crate::ring::{Backend, Ring, MODERN};
use anyring_uapi::{op, Cqe, Sqe};
use std::sync::Arc;

/// See the module's description.
pub const EXPERIMENT: Experiment = Experiment {
    name: "randread",
    about: "4 KiB random reads with O_DIRECT, 32 in flight",
    method: "A file of 256 MiB (64 with --quick) on the disk of --dir, 32 reads in flight from one thread; as soon as \
             one has ended, another starts. Peers: Linux AIO (what libaio wraps), glibc's POSIX AIO, compio on its poll driver, tokio's pool of \
             blocking threads, 32 threads with pread; \
             and one thread with pread.",
    unit: "reads/s",
    ratios: &[
        RatioDef::value("randread.user_vs_kernel", "user", "kernel"),
        RatioDef::value("randread.user_vs_libaio", "user", "libaio"),
        RatioDef::value("randread.user_vs_posixaio", "user", "posixaio"),
        RatioDef::value("randread.user_vs_compio", "user", "compio-poll"),
        RatioDef::value("randread.user_vs_tokio_pool", "user", "tokio-pool"),
    ],
    prepare,
};

const LOAD: Load = Load { depth: 32, submit: 32, complete: 1, large_every: 0 };

fn prepare(setting: &Setting) -> Result<Plan> {
    let len = if setting.quick { 64 << 20 } else { 256 << 20 };
    let file = Arc::new(DirectFile::make(&setting.scratch, len)?);
    let mut plan = Plan::default();
    let ring_file = file.clone();
    plan.both("", move |backend: &Arc<dyn Backend>, turn: &Turn| {
        let mut queue = RingQueue::new(backend, LOAD.depth as u32, MODERN)?;
        reads::run(&mut queue, &ring_file, &LOAD, turn)
    });
    match KernelAio::new(LOAD.depth) {
        Ok(_) => {
            let file = file.clone();
            plan.add(Arm::new("libaio", Kind::Peer, move |turn| {
                reads::run(&mut KernelAio::new(LOAD.depth)?, &file, &LOAD, turn)
            }));
        }
        Err(error) => plan.skip("libaio", format!("{error}; raise fs.aio-max-nr")),
    }
    let posix_file = file.clone();
    plan.add(Arm::new("posixaio", Kind::Peer, move |turn| {
        reads::run(&mut PosixAio::new(LOAD.depth), &posix_file, &LOAD, turn)
    }));
    for count in [32, 1] {
        let file = file.clone();
        let kind = if count > 1 { Kind::Limit } else { Kind::Peer };
        plan.add(Arm::new(&format!("pread-{count}-threads"), kind, move |turn| {
            reads::on_threads(&file, count, turn)
        }));
    }
    peers::add_reads(&mut plan, &file, LOAD);
    Ok(plan)
}

/// Reads through a ring.
pub struct RingQueue {
    ring: Ring,
    cqes: Vec<Cqe>,
}

impl RingQueue {
    /// For this many reads in flight.
    pub fn new(backend: &Arc<dyn Backend>, depth: u32, flags: u32) -> Result<RingQueue> {
        Ok(RingQueue { ring: Ring::new(backend, depth, flags)?, cqes: Vec::new() })
    }
}

impl Queue for RingQueue {
    fn queue(&mut self, read: Read) -> Result<()> {
        self.ring.push(Sqe {
            opcode: op::READ,
            fd: read.fd,
            addr: read.buf as u64,
            len: read.len as u32,
            off: read.offset,
            user_data: read.slot as u64,
            ..Sqe::default()
        });
        Ok(())
    }
    fn wait(&mut self, min: u32, done: &mut Vec<(usize, i64)>) -> Result<()> {
        self.ring.submit_and_wait(min)?;
        self.ring.reap(&mut self.cqes);
        done.clear();
        done.extend(self.cqes.iter().map(|c| (c.user_data as usize, i64::from(c.res))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::User;
    use crate::scratch::Scratch;
    use std::time::Duration;

    #[test]
    fn every_interface_reads() {
        let scratch = Scratch::new(std::path::Path::new("/var/tmp")).unwrap();
        let file = DirectFile::make(scratch.path(), 4 << 20).unwrap();
        let user: Arc<dyn Backend> = Arc::new(User::new("").unwrap());
        let mut ring = RingQueue::new(&user, 32, MODERN).unwrap();
        let (mut aio, mut posix) = (KernelAio::new(32).unwrap(), PosixAio::new(32));
        let turn = Turn { slice: Duration::from_millis(20), seed: 1 };
        let queues: [&mut dyn Queue; 3] = [&mut ring, &mut aio, &mut posix];
        for queue in queues {
            let mixed = Load { large_every: 4, ..LOAD };
            for load in [LOAD, mixed] {
                let sample = reads::run(queue, &file, &load, &turn).unwrap();
                assert!(sample.ops >= 32);
                assert!(sample.latency.unwrap().len() <= sample.ops);
            }
        }
        #[cfg(feature = "peers")]
        {
            let mut tokio = peers::tokio_pool::TokioPool::new().unwrap();
            let mut compio = peers::compio_poll::Reads::new(&file).unwrap();
            let queues: [&mut dyn Queue; 2] = [&mut tokio, &mut compio];
            for queue in queues {
                assert!(reads::run(queue, &file, &LOAD, &turn).unwrap().ops >= 32);
            }
        }
        assert!(reads::on_threads(&file, 3, &turn).unwrap().ops >= 3);
    }
}
