//! The lists that a program maintains for GDB are not trusted. Reading terminates for the lists and the files in them.
//!
//! The input is the memory from address zero, with the descriptor first.

use crate::bounded;
use varid_symbolizer::jit::{JitAbi, JitDescriptor, symfile_codes};

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 256, || {
        let mut read = |address: u64, to: &mut [u8]| {
            let start = usize::try_from(address).unwrap_or(usize::MAX);
            let from = bytes.get(start..start.saturating_add(to.len()));
            from.map(|from| to.copy_from_slice(from)).is_some()
        };
        for abi in [JitAbi::Bits64, JitAbi::Bits32, JitAbi::X86] {
            let Ok(descriptor) = JitDescriptor::read(abi, 0, &mut read) else {
                continue;
            };
            for entry in descriptor.list(&mut read).entries {
                let file = entry.symfile;
                assert!(file.start < file.end, "a file of no bytes");
                let Ok(start) = usize::try_from(file.start) else {
                    continue;
                };
                let end = usize::try_from(file.end).unwrap_or(usize::MAX);
                if let Some(file) = bytes.get(start..end.min(bytes.len())) {
                    let _ = symfile_codes(file, "fuzz");
                }
            }
        }
    });
}
