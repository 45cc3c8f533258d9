//! Tests that the running kernel's functions are found by their names.

use std::collections::BTreeMap;

use varid_symbolizer::Error;
use varid_symbolizer::kernel::KernelSymbols;

#[test]
fn every_function_of_the_running_kernel_is_found_at_its_address() {
    let table = match KernelSymbols::running() {
        Ok(table) => table,
        Err(error @ (Error::KernelHidden | Error::Io { .. })) => {
            eprintln!("not compared: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let mut functions: BTreeMap<u64, Vec<(&str, Option<&str>)>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = u64::from_str_radix(words[0], 16).unwrap();
        if address != 0 && ["t", "T", "w", "W"].contains(&words[1]) {
            let module = words.get(3).map(|word| word.trim_matches(['[', ']']));
            functions
                .entry(address)
                .or_default()
                .push((words[2], module));
        }
    }
    // Modules and BPF programs may be loaded or unloaded between the two reads.
    let mut gone = 0;
    for (address, names) in &functions {
        match table.lookup(*address) {
            Some(symbol) if symbol.start == *address => {
                assert!(
                    names.contains(&(symbol.name, symbol.module)),
                    "{symbol:?}, {names:?}"
                );
                assert!(symbol.end > symbol.start);
                let next = functions.range(address + 1..).next();
                assert!(
                    next.is_none_or(|(next, _)| symbol.end <= *next),
                    "{symbol:?}"
                );
            }
            other => {
                assert!(
                    names.iter().all(|(_, module)| module.is_some()),
                    "{address:#x} {other:?}"
                );
                gone += 1;
            }
        }
    }
    assert!(gone * 100 < functions.len());
}
