//! Differential fuzzing: one seed is one sequence of SQEs, played on a ring; what the
//! ring answers is text, so that kernel and engine can be compared.
//!
//! `rng` gives numbers, `world` the files and memory, `generate` the SQEs, `play`
//! submits them step by step and normalises the answers. A step's choices depend on the
//! seed and on what is still outstanding, never on time.

pub mod generate;
pub mod play;
pub mod rng;
pub mod world;
