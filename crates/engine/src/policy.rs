//! Policy: every idea that can be switched and measured is a field here. The first value of each is the default.
//!
//! Written as `NAME=VALUE,...`, as on the command line and in ANYRING_POLICY.

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `lazy_wake=on|off`: a thread that waits for several CQEs is woken when they are all there, not by each. What
    /// ends a wait early (a timeout that fired, the overflow list) wakes it in both cases.
    pub lazy_wake: bool,
    /// `lazy_reactor=on|off`: a ring whose threads keep coming back to wait is not handed to the background reactor each
    /// time one leaves.
    pub lazy_reactor: bool,
    /// `aio=on|off`: O_DIRECT transfers go through kernel AIO, not each through a worker.
    pub aio: bool,
    /// `iopoll_reap=each|ordered`: on a ring with IOPOLL a finished request is handed over at once, or waits for those before it.
    pub reap_ordered: bool,
    /// `bias=on|off`: a ring's locks cost a thread that is alone with the ring no atomic operation. Off where calls
    /// arrive in a signal handler, which costs more than it saves.
    pub bias: bool,
    /// `rewrite=on|off`: the preload front door replaces a hot system call site after its first trap.
    pub rewrite: bool,
}

impl Policy {
    /// What holds where nothing is said.
    pub const DEFAULT: Policy = Policy {
        lazy_wake: true,
        lazy_reactor: true,
        aio: true,
        reap_ordered: false,
        bias: true,
        rewrite: true,
    };

    /// Reads a list; the last value of a name counts. The error is the item that is not understood.
    pub fn parse(list: &[u8]) -> Result<Policy, &[u8]> {
        let mut policy = Policy::DEFAULT;
        for item in list.split(|b| *b == b',').filter(|item| !item.is_empty()) {
            policy.set(item).ok_or(item)?;
        }
        Ok(policy)
    }

    fn set(&mut self, item: &[u8]) -> Option<()> {
        let eq = item.iter().position(|b| *b == b'=')?;
        let (name, value) = (&item[..eq], &item[eq + 1..]);
        if name == b"iopoll_reap" {
            self.reap_ordered = match value {
                b"each" => false,
                b"ordered" => true,
                _ => return None,
            };
            return Some(());
        }
        let field = match name {
            b"lazy_wake" => &mut self.lazy_wake,
            b"lazy_reactor" => &mut self.lazy_reactor,
            b"aio" => &mut self.aio,
            b"bias" => &mut self.bias,
            b"rewrite" => &mut self.rewrite,
            _ => return None,
        };
        *field = match value {
            b"on" => true,
            b"off" => false,
            _ => return None,
        };
        Some(())
    }

    /// Names and values, for error messages.
    pub const HELP: &'static str = "lazy_wake=on|off, lazy_reactor=on|off, aio=on|off, \
                                    iopoll_reap=each|ordered, bias=on|off, rewrite=on|off";
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(Policy::parse(b""), Ok(Policy::DEFAULT));
        assert!(!Policy::parse(b"lazy_wake=on,lazy_wake=off").unwrap().lazy_wake);
        assert_eq!(Policy::parse(b"rewrite=on,x=1"), Err(&b"x=1"[..]));
        let reap = |value| Policy::parse(value).map(|policy| policy.reap_ordered);
        assert_eq!(reap(b"iopoll_reap=ordered"), Ok(true));
        assert_eq!(reap(b"iopoll_reap=on"), Err(&b"iopoll_reap=on"[..]));
        assert_eq!(Policy::parse(b"rewrite"), Err(&b"rewrite"[..]));
    }
}
