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
    /// `inline=adaptive|never|always`: what has no non-blocking form runs in the submitting call while it has been quick
    /// there; or never; or wherever it waits for no other program or computer. See [`crate::inline`]. With `never`,
    /// IOSQE_ASYNC means a worker; otherwise only that the request may be handed to one.
    pub inline: Inline,
    /// `bias=on|off`: a ring's locks cost a thread that is alone with the ring no atomic operation. Off where calls
    /// arrive in a signal handler, which costs more than it saves.
    pub bias: bool,
    /// `rewrite=on|off`: the preload front door replaces a hot system call site after its first trap.
    pub rewrite: bool,
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
        inline: Inline::Adaptive,
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
        let field = match name {
            b"inline" => {
                self.inline = Inline::parse(value)?;
                return Some(());
            }
            b"lazy_wake" => &mut self.lazy_wake,
            b"lazy_reactor" => &mut self.lazy_reactor,
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
    pub const HELP: &'static str =
        "lazy_wake=on|off, lazy_reactor=on|off, inline=adaptive|never|always, bias=on|off, rewrite=on|off";
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
        assert_eq!(Policy::parse(b"inline=never").unwrap().inline, Inline::Never);
        assert_eq!(Policy::parse(b"inline=on"), Err(&b"inline=on"[..]));
        assert_eq!(Policy::parse(b"rewrite"), Err(&b"rewrite"[..]));
    }
}
