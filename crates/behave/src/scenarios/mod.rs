//! All scenarios, by topic.

use crate::scenario::Scenario;

mod async_waits;
mod cancels;
mod crowds;
mod direct;
mod direct_more;
mod drain;
mod eventfds;
mod fd_ops;
mod fs;
mod gone;
mod issuer;
mod kbufs;
mod link_breaks;
mod link_timeouts;
mod links;
mod matrix;
mod matrix_base;
mod multishot;
mod net;
mod overflow;
mod polls;
mod regions;
mod resize;
mod resources;
mod rw;
mod sends;
mod setup;
mod splice;
mod sqpoll;
mod submit;
mod timeouts;
mod waits;
mod workers;

const TOPICS: &[&[Scenario]] = &[
    setup::SCENARIOS,
    submit::SCENARIOS,
    links::SCENARIOS,
    drain::SCENARIOS,
    timeouts::SCENARIOS,
    link_timeouts::SCENARIOS,
    link_breaks::SCENARIOS,
    cancels::SCENARIOS,
    polls::SCENARIOS,
    crowds::SCENARIOS,
    overflow::SCENARIOS,
    waits::SCENARIOS,
    issuer::SCENARIOS,
    gone::SCENARIOS,
    eventfds::SCENARIOS,
    kbufs::SCENARIOS,
    multishot::SCENARIOS,
    sends::SCENARIOS,
    resize::SCENARIOS,
    resources::SCENARIOS,
    rw::SCENARIOS,
    fs::SCENARIOS,
    net::SCENARIOS,
    splice::SCENARIOS,
    sqpoll::SCENARIOS,
    direct::SCENARIOS,
    direct_more::SCENARIOS,
    workers::SCENARIOS,
    fd_ops::SCENARIOS,
    regions::SCENARIOS,
    async_waits::SCENARIOS,
    matrix::SCENARIOS,
];

/// Every scenario.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    TOPICS.iter().flat_map(|t| t.iter())
}

/// One by name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().find(|s| s.name == name)
}

/// 127.0.0.1 with a port, as a socket address at a lasting address.
pub fn loopback(port: u16) -> usize {
    matrix_base::loopback(port)
}

/// Name of an opcode, for messages.
pub fn op_name(opcode: u8) -> String {
    matrix::NAMES
        .get(usize::from(opcode))
        .map_or_else(|| format!("op{opcode}"), |n| (*n).to_owned())
}
