//! The preload front door: unmodified programs reach the engine.
//!
//! Loaded by LD_PRELOAD, the library decides in its constructor who answers the program's
//! io_uring calls. If that is the engine, it installs a SIGSYS handler and a seccomp filter that
//! traps the three calls, and those that name a ring descriptor: this catches `syscall`
//! instructions wherever they are. Functions of the C library that lead to the same calls are
//! interposed as well, because a trap costs ten times what a function call and two changes of
//! the signal mask cost, and others because they would get in the way (signal masks, limits,
//! exec, close_range).
//!
//! | module | concern |
//! |---|---|
//! | [`start`] | the constructor: who answers |
//! | [`trap`], [`program_sigsys`] | the SIGSYS handler; the program's own |
//! | [`rewrite`], [`maps`] | hot sites call the engine without a trap |
//! | [`calls`] | what each call means, whichever way it came |
//! | [`state`], [`tls`] | what the process and the thread know |
//! | [`syscall`], [`rings`], [`fds`], [`waits`] | interposed: calls that lead to the engine |
//! | [`masks`], [`actions`], [`notify`] | interposed: SIGSYS stays deliverable and ours |
//! | [`limits`], [`ids`] | interposed: RLIMIT_NOFILE, credentials |
//! | [`exec`], [`spawn`] | interposed: anyring goes on into what is executed |
//! | [`exit`], [`report`] | ends of threads and processes; the line of statistics |
//! | [`alloc`], [`lock`], [`sys`], [`next`] | memory, locks, raw calls, the C library behind us |
//!
//! Rules for code that may run in a signal handler, in a child of vfork, or on an engine
//! thread, which is nearly all of it: no libc malloc, no libc lock, no errno, no lazily made
//! thread-local variable, no panic.

// Its readers are those who work on it; it has no public items.
#![allow(rustdoc::private_intra_doc_links)]
// Unit tests run without the exported names, which would stand in front of the test runner.
#![cfg_attr(test, allow(dead_code))]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("the preload library is for x86-64 Linux with the GNU C library");

mod actions;
mod alloc;
mod calls;
mod exec;
mod exit;
mod fds;
mod ids;
mod limits;
mod lock;
mod maps;
mod masks;
mod next;
mod notify;
mod program_sigsys;
mod report;
mod rewrite;
mod rings;
mod spawn;
mod start;
mod state;
mod sys;
mod syscall;
mod tls;
mod trap;
mod waits;

#[cfg_attr(not(test), global_allocator)]
static ALLOCATOR: alloc::Allocator = alloc::Allocator::new();
