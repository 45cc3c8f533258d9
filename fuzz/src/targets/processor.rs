//! A description of a processor is not trusted: it is refused, or instructions take some time on it.

use crate::bounded_by;
use varid_model::Address;
use varid_processor::{Operands, Pipeline, Processor, Slot};
use varid_riscv::{Length, Xlen, decode};

/// The largest caches and predictor that a description may have, in the program's own structures.
const LARGEST: usize = 256 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    bounded_by(bytes, 64, LARGEST, || {
        let Ok(processor) = Processor::parse("fuzz.toml", text, &[]) else {
            return;
        };
        let mut pipeline = Pipeline::new(&processor);
        // A load, a branch, a division, and a compressed jump.
        for (at, word) in [
            (0, 0x0005_a503),
            (4, 0xfe05_0ee3),
            (0, 0x02b5_4533),
            (6, 0xa001_u32),
        ] {
            let instruction = decode(&word.to_le_bytes(), Xlen::Rv32).expect("an instruction");
            let slot = Slot::new(
                &processor,
                &instruction,
                Address::new(at),
                Some(Length::Four),
            );
            if let Ok(slot) = slot {
                let before = pipeline.cycles();
                let issue = pipeline.issue(&slot, Operands::default());
                let after = before.plus(issue.previous).plus(issue.own);
                assert_eq!(pipeline.cycles(), after);
                assert!(issue.own.0 > 0, "an instruction that takes no time");
            }
        }
    });
}
