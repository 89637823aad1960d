//! The constructor: decides who answers this process's io_uring calls, and takes over if that
//! is the engine.
//!
//! Order: the SIGSYS handler comes first, so that neither a filter from outside nor the filter
//! this process inherited kills it while it finds out. An inherited filter decides for itself:
//! it cannot be removed, so its traps must be answered.

use crate::state;
use crate::sys::{self, complain};
use crate::{exec, exit, limits, next, program_sigsys, report, rewrite, trap, ALLOCATOR};
use anyring_engine::{FdLayout, Policy};
use anyring_front::env::Environ;
use anyring_front::layout::{self, Inherited};
use anyring_front::settings::{self, Choice};
use anyring_front::{env, filter};
use core::ffi::{c_char, c_int};

#[cfg(not(test))]
#[used]
#[link_section = ".init_array"]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn start(_: c_int, _: *const *const c_char, envp: *const *const c_char) {
    // SAFETY: the dynamic linker passes the environment.
    let environ = unsafe { Environ::new(envp) };
    next::look_up_all();
    state::map_process();
    let choice = choice(environ);
    let before = trap::install();
    let Some(taken) = decide(choice, environ) else {
        trap::set_action(&before);
        if let Some(path) = environ.get(settings::STATS) {
            report::remember(path);
        }
        return;
    };
    program_sigsys::set(&before);
    if !exec::remember(environ, taken) {
        complain(&[b"the path of the preload library is not known; children are not covered"]);
    }
    limits::restore_inherited(taken.nofile_soft);
    report::open(environ.get(settings::STATS), taken.layout().private_min);
    exit::prepare();
    let policy = policy(environ);
    if policy.rewrite {
        rewrite::enable();
    }
    // SAFETY: the handler is a plain function.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    let mask = sys::set_mask(!0);
    state::activate(taken.layout(), policy);
    sys::set_mask(mask & !sys::SIGSYS_BIT);
}

extern "C" fn after_fork() {
    ALLOCATOR.wipe();
    state::after_fork();
}

fn policy(environ: Environ) -> Policy {
    Policy::parse(environ.get(settings::POLICY).unwrap_or(b"")).unwrap_or_else(|item| {
        complain(&[b"ANYRING_POLICY: '", item, b"' is not understood; the defaults are used"]);
        Policy::DEFAULT
    })
}

fn choice(environ: Environ) -> Choice {
    let Some(name) = environ.get(settings::ENGINE) else { return Choice::Auto };
    Choice::parse(name).unwrap_or_else(|| {
        complain(&[b"ANYRING_ENGINE is '", name, b"', not auto, user or kernel; taken as auto"]);
        Choice::Auto
    })
}

/// The filter under which the engine answers; `None` if the kernel does.
fn decide(choice: Choice, environ: Environ) -> Option<Inherited> {
    let inherited = environ.get(settings::FILTER).and_then(Inherited::parse);
    if let Some(inherited) = inherited.filter(is_installed) {
        return Some(inherited);
    }
    match choice {
        Choice::Kernel => return None,
        Choice::Auto if kernel_answers() => return None,
        _ => {}
    }
    let FdLayout { ring_base, ring_end, .. } = layout::choose(limits::nofile_hard());
    let own = Inherited { ring_base: ring_base as u32, ring_end: ring_end as u32, nofile_soft: 0 };
    match filter::install(&filter::program(own.ring_base, own.ring_end)) {
        Ok(()) => Some(own),
        Err(errno) => {
            let mut digits = [0; 12];
            complain(&[
                b"seccomp filters are not allowed here (errno ",
                decimal(errno.0 as u64, &mut digits),
                b"), so io_uring calls go to the kernel",
            ]);
            None
        }
    }
}

/// Whether the filter a parent left behind is really there.
fn is_installed(inherited: &Inherited) -> bool {
    trap::filter_watches(inherited.ring_base) && trap::filter_watches(inherited.ring_end - 1)
}

/// Makes a ring with the kernel, and closes it.
fn kernel_answers() -> bool {
    let mut params = anyring_uapi::Params::default();
    let at = &raw mut params as usize;
    // SAFETY: `params` lives across the call, and the descriptor is known to nobody else.
    unsafe {
        let fd = sys::call6(anyring_uapi::NR_SETUP, [1, at, 0, 0, 0, 0]);
        if fd >= 0 {
            sys::call6(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        }
        fd >= 0
    }
}

/// The settings that are carried on to what this process executes.
pub fn settings_of(environ: Environ) -> [Option<&'static core::ffi::CStr>; 3] {
    env::SETTINGS.map(|name| {
        environ.iter().find(|entry| settings::value_of(entry.to_bytes(), name).is_some())
    })
}

/// `n` in decimal digits, in `buf`.
pub fn decimal(mut n: u64, buf: &mut [u8]) -> &[u8] {
    let mut at = buf.len();
    loop {
        at -= 1;
        buf[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 || at == 0 {
            return &buf[at..];
        }
    }
}
