//! Errors a person can act on: one line, and an exit code as env(1) and timeout(1) use them.

/// A line for standard error and the exit code that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong and what to do, without the name of the command.
    pub message: String,
    /// 125, 126 or 127.
    pub code: i32,
}

impl Failure {
    /// anyring itself cannot go on.
    pub fn own(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 125 }
    }
    /// The program is there but cannot be run.
    pub fn cannot_run(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 126 }
    }
    /// The program is not there.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 127 }
    }
    /// The command line is wrong: the parser's text on one line.
    pub fn usage(text: &str) -> Failure {
        let end = ["\n\nUsage:", "\n\nFor more"].iter().filter_map(|end| text.find(end)).min();
        let text = &text[..end.unwrap_or(text.len())];
        let words: Vec<&str> = text.trim_start_matches("error: ").split_whitespace().collect();
        Failure::own(format!("{}; see 'anyring --help'", words.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_errors_fit_on_one_line() {
        let text =
            "error: unexpected argument '-x' found\n\n  tip: a\n   b\n\nUsage: anyring\n\nFor more";
        let failure = Failure::usage(text);
        assert_eq!(
            failure.message,
            "unexpected argument '-x' found tip: a b; see 'anyring --help'"
        );
        assert_eq!(failure.code, 125);
    }
}
