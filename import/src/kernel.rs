//! The names of the kernel's functions, whose addresses change with every boot.

use std::{fmt::Write as _, io::Write as _, os::unix::fs::OpenOptionsExt};

use varid_model::{Address, FrameAddress, Ids};
use varid_recording::{Host, SessionWriter, host};
use varid_symbolizer::kernel::KernelSymbols;

use crate::error::{Error, Result};

/// Name of the kernel's symbols in a session.
const KERNEL_SYM: &str = "kernel.sym";

/// A function of the kernel or of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelFunction {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
    /// Empty for the kernel itself.
    pub(crate) module: String,
}

/// The kernel's functions that a session keeps.
#[derive(Debug, Default)]
pub(crate) struct KernelNames {
    /// The functions in the source.
    pub(crate) functions: Vec<KernelFunction>,
    /// The kernel's start address and its build-id.
    pub(crate) text: Option<(u64, Vec<u8>)>,
    /// The addresses that were sampled.
    addresses: Ids<u64>,
}

impl KernelNames {
    /// Records the addresses of a sample, leaf first.
    pub(crate) fn sampled(&mut self, addresses: &[Address]) {
        let frames = addresses.iter().enumerate();
        for (depth, address) in frames {
            let frame = FrameAddress::in_callchain(depth, *address);
            self.addresses.insert(frame.lookup().get());
        }
    }

    /// Writes the names of the functions that were sampled. If the source has no names, those of the running kernel are used, if it is the
    /// recorded one. Returns a note if there are no names.
    pub(crate) fn write(self, writer: &SessionWriter, recorded: &Host) -> Result<Option<String>> {
        if self.addresses.is_empty() {
            return Ok(None);
        }
        let mut text = String::from("# address\tsize\tname\tmodule\n").into_bytes();
        if self.functions.is_empty() {
            match running(recorded, self.text.as_ref()) {
                Ok(symbols) => {
                    let addresses: Vec<u64> = self.addresses.iter().copied().collect();
                    text.clear();
                    // Writing to memory does not fail.
                    let _ = symbols.write(Some(&addresses), &mut text);
                }
                // Without the file, the report explains why there are no names.
                Err(why) => return Ok(Some(why)),
            }
        } else {
            let addresses = self.addresses.iter().copied().collect();
            text.extend(lines(sampled(self.functions, addresses)).into_bytes());
        }
        let path = writer.symbols_here().join(KERNEL_SYM);
        let mut options = std::fs::OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(&text))
            .map_err(Error::io("write", writer.symbols().join(KERNEL_SYM)))?;
        Ok(None)
    }
}

/// Returns the functions that contain one of these addresses, in order.
fn sampled(mut functions: Vec<KernelFunction>, mut addresses: Vec<u64>) -> Vec<KernelFunction> {
    addresses.sort_unstable();
    functions.sort_by_key(|function| function.start);
    let starts: Vec<u64> = functions.iter().map(|function| function.start).collect();
    functions.retain_mut(|function| {
        let next = starts.partition_point(|start| *start <= function.start);
        if function.size == 0 {
            // It extends to the next one.
            let end = starts.get(next).copied().unwrap_or(u64::MAX);
            function.size = end.saturating_sub(function.start);
        }
        let end = function.start.saturating_add(function.size);
        let first = addresses.partition_point(|address| *address < function.start);
        addresses.get(first).is_some_and(|address| *address < end)
    });
    functions
}

/// Formats a line for each function, as in `kernel.sym`.
fn lines(functions: Vec<KernelFunction>) -> String {
    let mut lines = String::new();
    for function in functions {
        let plain = |text: &str| text.replace(char::is_control, "\u{fffd}");
        let (name, module) = (plain(&function.name), plain(&function.module));
        let (start, size) = (function.start, function.size);
        // Writing to a String never fails.
        let _ = writeln!(lines, "{start:x}\t{size:x}\t{name}\t{module}");
    }
    lines
}

/// Returns the running kernel's symbols, if it is the recorded kernel at the same address.
fn running(recorded: &Host, text: Option<&(u64, Vec<u8>)>) -> Result<KernelSymbols, String> {
    let other = "the kernel's functions have no names: they were recorded on another kernel or another boot of it".to_owned();
    if recorded.kernel != Host::this_machine().kernel {
        return Err(other);
    }
    let symbols = KernelSymbols::running()
        .map_err(|error| format!("the kernel's functions have no names: {error}"))?;
    if let Some((start, build_id)) = text {
        let same_build = build_id.is_empty() || *build_id == host::kernel_build_id();
        let same_place = symbols
            .lookup(*start)
            .is_some_and(|symbol| symbol.start == *start);
        if !(same_build && same_place) {
            return Err(other);
        }
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_were_sampled_are_written() {
        let function = |start, size, name: &str| KernelFunction {
            start,
            size,
            name: name.to_owned(),
            module: String::new(),
        };
        let functions = vec![
            function(0x300, 0, "sizeless"),
            function(0x100, 0x10, "first"),
            function(0x100, 0x20, "longer"),
            function(0x200, 0x10, "not sampled"),
            function(0x400, 0x10, "last"),
        ];
        let text = lines(sampled(functions, vec![0x40f, 0x118, 0x3f0, 0x210]));
        assert_eq!(
            text,
            "100\t20\tlonger\t\n300\t100\tsizeless\t\n400\t10\tlast\t\n"
        );
    }
}
