//! The names of the files that a session has because of calls, beside contexts.data.

/// The name of the counts of calls inside the folder of a session from before contexts.data.
pub const CALLS_TSV: &str = "calls.tsv";

/// The prefix of the logs of calls in a session folder; `.` and the process's id follow.
pub const CALLS_LOG: &str = "calls.log";

/// The name of the next [`CALLS_TSV`], which a killed varid of that time may have left.
const CALLS_NEW: &str = "calls.tsv.new";

/// Returns true if a session's folder may have a file of this name because of calls.
pub(crate) fn is_ours(name: &str) -> bool {
    [CALLS_TSV, CALLS_NEW].contains(&name)
        || name
            .strip_prefix(CALLS_LOG)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_own_files_are_ours() {
        for (name, ours) in [
            ("calls.tsv", true),
            ("calls.tsv.new", true),
            ("calls.log.4711", true),
            ("calls.log", false),
            ("calls.log.", false),
            ("calls.log.x", false),
        ] {
            assert_eq!(is_ours(name), ours, "{name}");
        }
    }
}
