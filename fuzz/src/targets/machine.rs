//! A program for RISC-V is executed: whatever it does, it ends at a limit, and its counts and times add up.

use crate::bounded;
use std::io;
use std::sync::LazyLock;
use varid_machine::{Interpreter, Limits, Machine, Streams, Timing};
use varid_model::{Address, Mode};
use varid_processor::Processor;
use varid_riscv::{Image, Segment, Xlen};

/// The most instructions.
const LIMIT: u64 = 500;
/// The most memory of a program's segments.
const MEMORY: u64 = 1 << 16;

static IBEX: LazyLock<Processor> = LazyLock::new(|| Processor::named("ibex", &[]).unwrap());

/// Runs the target on one input: as code that may write itself, and as a file.
pub(super) fn fuzz(bytes: &[u8]) {
    LazyLock::force(&IBEX);
    // Each instruction may change the code, and so decode a block as long as the input.
    bounded(bytes, 1 << 16, || run(&of_code(bytes)));
    bounded(bytes, 1 << 16, || {
        if let Ok(image) = Image::parse(bytes) {
            let first = image.segments.first();
            let last = image.segments.last();
            let size = first.zip(last).map(|(first, last)| {
                let end = last.address.get().saturating_add(last.size);
                end.saturating_sub(first.address.get())
            });
            if size.is_some_and(|size| size <= MEMORY) {
                run(&image);
            }
        }
    });
}

/// A program of this code, which is writable.
pub(super) fn of_code(bytes: &[u8]) -> Image {
    let data = bytes[..bytes.len().min(MEMORY as usize / 2)].to_vec();
    Image {
        xlen: Xlen::Rv32,
        entry: Address::new(0x1000),
        segments: vec![Segment {
            address: Address::new(0x1000),
            size: data.len() as u64 + 16,
            data,
            mode: Mode {
                read: true,
                write: true,
                execute: true,
                shared: false,
            },
        }],
        symbols: Vec::new(),
    }
}

/// What executes a program, up to so many instructions. None if it cannot be loaded.
pub(super) fn interpreter_of(image: &Image, limit: u64) -> Option<Interpreter> {
    let streams = Streams {
        input: Box::new(io::empty()),
        output: Box::new(io::sink()),
        error: Box::new(io::sink()),
    };
    let limits = Limits {
        memory: 1 << 16,
        folder: None,
        clock_hz: 1,
    };
    let machine = Machine::load(image, &[b"program"], streams, &limits).ok()?;
    Some(Interpreter::new(machine, limit))
}

fn run(image: &Image) {
    let Some(mut interpreter) = interpreter_of(image, LIMIT) else {
        return;
    };
    let mut timing = Timing::new(&IBEX);
    interpreter.run(&mut timing);
    let counts = interpreter.counts();
    assert!(counts.instructions <= LIMIT);
    let executed: u64 = counts
        .cells
        .iter()
        .map(|cell| {
            let block = counts.block(cell.block).unwrap();
            cell.executions * block.instructions.len() as u64
        })
        .sum();
    assert_eq!(executed, counts.instructions);
}
