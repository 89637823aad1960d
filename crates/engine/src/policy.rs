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
    /// `inline=adaptive|never|always`: what has no non-blocking form runs in the submitting call while it has been quick
    /// there; or never; or wherever it waits for no other program or computer. See [`crate::inline`]. With `never`,
    /// IOSQE_ASYNC means a worker; otherwise only that the request may be handed to one.
    pub inline: Inline,
    /// `bias=on|off`: a ring's locks cost a thread that is alone with the ring no atomic operation. Off where calls
    /// arrive in a signal handler, which costs more than it saves.
    pub bias: bool,
    /// `sample_inq=on|off`: a socket is asked whether more bytes wait, for CQE_F_SOCK_NONEMPTY, only now and then once the
    /// ring's sockets had none many times in a row.
    pub sample_inq: bool,
    /// `rewrite=on|off`: the preload front door replaces a hot system call site after its first trap.
    pub rewrite: bool,
    /// `wq_locking=split|coarse`: see [`crate::wq`].
    pub wq_locking: WqLocking,
    /// `wq_free_batch=N`: how many finished requests a worker may hold before it returns them with what they hold, in one
    /// go; their CQEs are posted at once in any case. 1 returns each by itself.
    pub wq_free_batch: u32,
    /// `wq_free_max_delay_us=N`: none is held longer.
    pub wq_free_max_delay_us: u32,
    /// `wq_linger=on|off`: a pool's last active worker looks for more work for a moment before it sleeps, where that has paid.
    pub wq_linger: bool,
    /// `wq_readahead=on|off`: a worker starts readahead for all cold reads that wait, then reads each; off: a thread for each.
    pub wq_readahead: bool,
}

/// How an io-wq account is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WqLocking {
    /// Inserting takes no lock, taking an item takes one; work wakes a worker only if none is active.
    Split,
    /// One lock for everything, taken to insert, to look, to take and to end; each item wakes or starts a worker.
    Coarse,
}

/// See [`Policy::inline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Inline {
    Adaptive,
    Never,
    Always,
}

impl Policy {
    /// What holds where nothing is said.
    pub const DEFAULT: Policy = Policy {
        lazy_wake: true,
        lazy_reactor: true,
        aio: true,
        reap_ordered: false,
        inline: Inline::Adaptive,
        bias: true,
        sample_inq: true,
        rewrite: true,
        wq_locking: WqLocking::Split,
        wq_free_batch: 16,
        wq_free_max_delay_us: 1000,
        wq_linger: true,
        wq_readahead: true,
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
        let field = match name {
            b"inline" => {
                self.inline = Inline::parse(value)?;
                return Some(());
            }
            b"lazy_wake" => &mut self.lazy_wake,
            b"lazy_reactor" => &mut self.lazy_reactor,
            b"aio" => &mut self.aio,
            b"bias" => &mut self.bias,
            b"sample_inq" => &mut self.sample_inq,
            b"rewrite" => &mut self.rewrite,
            b"wq_linger" => &mut self.wq_linger,
            b"wq_readahead" => &mut self.wq_readahead,
            _ => return self.set_other(name, value),
        };
        *field = match value {
            b"on" => true,
            b"off" => false,
            _ => return None,
        };
        Some(())
    }

    /// Those that are not switches.
    fn set_other(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match (name, value) {
            (b"iopoll_reap", b"each") => self.reap_ordered = false,
            (b"iopoll_reap", b"ordered") => self.reap_ordered = true,
            (b"wq_locking", b"split") => self.wq_locking = WqLocking::Split,
            (b"wq_locking", b"coarse") => self.wq_locking = WqLocking::Coarse,
            (b"wq_free_batch", n) => self.wq_free_batch = number(n, 1..=1024)?,
            (b"wq_free_max_delay_us", n) => self.wq_free_max_delay_us = number(n, 100..=1_000_000)?,
            _ => return None,
        }
        Some(())
    }

    /// Names and values, for error messages.
    pub const HELP: &'static str =
        "lazy_wake=on|off, lazy_reactor=on|off, inline=adaptive|never|always, bias=on|off, \
        sample_inq=on|off, rewrite=on|off, aio=on|off, iopoll_reap=each|ordered, \
        wq_locking=split|coarse, wq_free_batch=1..1024, wq_free_max_delay_us=100..1000000, \
        wq_linger=on|off, wq_readahead=on|off";
}

impl Inline {
    fn parse(value: &[u8]) -> Option<Inline> {
        match value {
            b"adaptive" => Some(Inline::Adaptive),
            b"never" => Some(Inline::Never),
            b"always" => Some(Inline::Always),
            _ => None,
        }
    }
}

/// A decimal number of a range.
fn number(text: &[u8], range: core::ops::RangeInclusive<u32>) -> Option<u32> {
    let n = core::str::from_utf8(text).ok()?.parse().ok()?;
    range.contains(&n).then_some(n)
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
        assert_eq!(Policy::parse(b"inline=never").unwrap().inline, Inline::Never);
        assert_eq!(Policy::parse(b"inline=on"), Err(&b"inline=on"[..]));
        assert_eq!(Policy::parse(b"rewrite"), Err(&b"rewrite"[..]));
    }

    #[test]
    fn values_that_are_not_switches() {
        let policy = Policy::parse(b"wq_locking=coarse,wq_free_batch=7").unwrap();
        assert_eq!((policy.wq_locking, policy.wq_free_batch), (WqLocking::Coarse, 7));
        for wrong in ["wq_free_batch=0", "wq_free_batch=x", "wq_locking=on", "wq_linger=2"] {
            assert_eq!(Policy::parse(wrong.as_bytes()), Err(wrong.as_bytes()));
        }
    }
}
