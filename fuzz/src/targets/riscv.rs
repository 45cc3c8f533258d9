//! A program for RISC-V is not trusted: it is refused, or its instructions and its flow of control can be read.

use crate::bounded;
use varid_model::Address;
use varid_riscv::{Flow, Image, Instruction, REGISTERS, Xlen, decode};

/// Runs the target on one input: as code, and as a file.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 64, || {
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            code(bytes, xlen);
        }
    });
    bounded(bytes, 64, || {
        if let Ok(image) = Image::parse(bytes) {
            program(&image);
        }
    });
}

fn code(mut bytes: &[u8], xlen: Xlen) {
    while let [_, _, rest @ ..] = bytes {
        bytes = match decode(bytes, xlen) {
            Ok(instruction) => {
                check(&instruction);
                &bytes[instruction.length.bytes() as usize..]
            }
            Err(_) => rest,
        };
    }
}

fn check(instruction: &Instruction) {
    let at = Address::new(0x1000);
    let next = instruction.next(at).get();
    assert!(next == 0x1002 || next == 0x1004);
    if let Flow::Branch(target) | Flow::Jump(target) | Flow::Call(target) = instruction.flow(at) {
        assert_eq!(target.get() % 2, 0, "a target within an instruction");
    }
    let used = instruction
        .reads()
        .into_iter()
        .chain([instruction.writes()]);
    assert!(
        used.flatten()
            .all(|register| (1..REGISTERS).contains(&register.index()))
    );
}

fn program(image: &Image) {
    let loaded: usize = image
        .segments
        .iter()
        .map(|segment| segment.data.len())
        .sum();
    let entry = image.segment(image.entry);
    assert!(entry.is_some_and(|segment| segment.mode.execute && loaded < 1 << 20));
    for symbol in &image.symbols {
        if let Some(Ok(instruction)) = image.instruction(symbol.address) {
            check(&instruction);
        }
    }
}
