//! Removes the frames between a tracepoint and the shim's program from kernel callchains.
//!
//! The callchain starts in the program and the functions that called it for the tracepoint: `bpf_prog_…`, `bpf_trace_run4`, then
//! `__schedule`.

use std::ops::Range;
use varid_model::Address;

/// Name prefixes of the functions that call a program for a tracepoint.
const PREFIXES: [&str; 2] = ["bpf_trace_run", "__bpf_trace_"];
/// The maximum depth of these functions in a callchain.
const DEPTH: usize = 4;

/// The address ranges of these functions. Empty if the kernel hides its addresses; callchains then stay unchanged.
#[derive(Debug, Default)]
pub struct TraceCallers(Vec<Range<u64>>);

impl TraceCallers {
    /// Reads the functions of the running kernel.
    pub fn running() -> Self {
        Self::in_symbols(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Returns true if none is known.
    pub fn are_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds the functions in the text of kallsyms. A function ends where the next symbol starts.
    pub fn in_symbols(symbols: &str) -> Self {
        let (mut all, mut starts) = (Vec::new(), Vec::new());
        for line in symbols.lines() {
            let mut words = line.split_whitespace();
            let address = words.next().map(|text| u64::from_str_radix(text, 16));
            let (Some(Ok(address)), Some(name)) = (address, words.nth(1)) else {
                continue;
            };
            all.push(address);
            if address != 0 && PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                starts.push(address);
            }
        }
        all.sort_unstable();
        let range = |start: u64| {
            let next = all.partition_point(|address| *address <= start);
            all.get(next).map(|end| start..*end)
        };
        Self(starts.into_iter().filter_map(range).collect())
    }

    /// Removes the innermost frames up to the last of these functions.
    pub fn remove_from(&self, callchain: &mut Vec<Address>) {
        let is_caller =
            |address: &Address| self.0.iter().any(|range| range.contains(&address.get()));
        let first = callchain.iter().take(DEPTH);
        let mut callers = first.enumerate().filter(|(_, address)| is_caller(address));
        if let Some((last, _)) = callers.next_back() {
            callchain.drain(..=last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffff20 t other\nffff00 T bpf_trace_run4\nffff10 t __schedule\nffff30 t __bpf_trace_sched_switch\t[module]\nffff38 t behind\n0 t bpf_trace_run1\n";

    #[test]
    fn a_callchain_begins_behind_what_called_the_program() {
        let callers = TraceCallers::in_symbols(KALLSYMS);
        let left = |callchain: &[u64]| {
            let mut addresses: Vec<_> = callchain.iter().copied().map(Address::new).collect();
            callers.remove_from(&mut addresses);
            addresses.into_iter().map(Address::get).collect::<Vec<_>>()
        };
        assert_eq!(left(&[5, 0xffff04, 0xffff14, 9]), [0xffff14, 9]);
        assert_eq!(left(&[5, 0xffff04, 0xffff37, 0xffff14]), [0xffff14]);
        assert_eq!(left(&[5, 0xffff14]), [5, 0xffff14]);
        // This deep, the function belongs to the traced code.
        assert_eq!(left(&[1, 2, 3, 4, 0xffff04]), [1, 2, 3, 4, 0xffff04]);
        assert_eq!(left(&[]), Vec::<u64>::new());
        let hidden = TraceCallers::in_symbols("0 t bpf_trace_run4\n0 t other\n");
        assert!(hidden.0.is_empty());
    }
}
