//! SIGTERM ends the server with status 0, by way of `exit`, so that statistics are written.

/// Blocks SIGTERM here and in threads made from here on; one thread waits for it. To be called first.
pub fn exit_on_term() {
    // SAFETY: the set is a local that sigemptyset makes valid.
    let set = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    std::thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: both are locals.
        while unsafe { libc::sigwait(&set, &mut signal) } != 0 {}
        std::process::exit(0);
    });
}
