//! What a user would pick instead of io_uring. Libraries are there if the feature `peers` is on.

pub mod kernel_aio;
pub mod posix_aio;

#[cfg(feature = "peers")]
pub mod compio_poll;
#[cfg(feature = "peers")]
pub mod tokio_net;
#[cfg(feature = "peers")]
pub mod tokio_pool;

use crate::arm::Plan;
#[cfg(feature = "peers")]
use crate::arm::{Arm, Kind};
use crate::reads::{DirectFile, Load};
use std::sync::Arc;

/// Leaves out the arms of libraries.
#[cfg(not(feature = "peers"))]
pub fn skip(plan: &mut Plan, names: &[&str]) {
    let why = "not in this build; 'cargo build --release -p anyring-cli' has it";
    names.iter().for_each(|name| plan.skip(name, why));
}

const ECHO: [&str; 2] = ["compio-poll", "tokio"];
const READS: [&str; 2] = ["compio-poll", "tokio-pool"];

/// Adds echo servers on libraries.
#[cfg(feature = "peers")]
pub fn add_echo(plan: &mut Plan, connections: usize) {
    for (name, server) in ECHO.into_iter().zip([compio_poll::echo, tokio_net::echo]) {
        plan.add(Arm::new(name, Kind::Peer, move |turn| {
            crate::net::measure(connections, turn.slice, server)
        }));
    }
}

/// Adds random reads by libraries.
#[cfg(feature = "peers")]
pub fn add_reads(plan: &mut Plan, file: &Arc<DirectFile>, load: Load) {
    use crate::reads::{run, Queue};
    type Make = fn(&DirectFile) -> crate::error::Result<Box<dyn Queue>>;
    let queues: [Make; 2] = [
        |file| Ok(Box::new(compio_poll::Reads::new(file)?)),
        |_| Ok(Box::new(tokio_pool::TokioPool::new()?)),
    ];
    for (name, queue) in READS.into_iter().zip(queues) {
        let file = file.clone();
        plan.add(Arm::new(name, Kind::Peer, move |turn| {
            run(&mut *queue(&file)?, &file, &load, turn)
        }));
    }
}

/// Leaves them out.
#[cfg(not(feature = "peers"))]
pub fn add_echo(plan: &mut Plan, _: usize) {
    skip(plan, &ECHO);
}

/// Leaves them out.
#[cfg(not(feature = "peers"))]
pub fn add_reads(plan: &mut Plan, _: &Arc<DirectFile>, _: Load) {
    skip(plan, &READS);
}
