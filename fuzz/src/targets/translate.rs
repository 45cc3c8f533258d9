//! A program for RISC-V is executed by translated code and by the interpreter: all counts are the same.

use crate::bounded;
use std::collections::BTreeMap;
use std::io;
use std::sync::LazyLock;
use varid_machine::{Interpreter, Limits, Machine, Observer, Stop, Streams, Timing};
use varid_model::{Address, Mode};
use varid_processor::Processor;
use varid_riscv::{Image, Segment, Xlen};

/// The most instructions.
const LIMIT: u64 = 2_000;
/// The most bytes of code.
const MAX_CODE: usize = 1 << 12;
/// A function is translated when so many of its blocks were interpreted.
const HOT: u32 = 4;

static IBEX: LazyLock<Processor> = LazyLock::new(|| Processor::named("ibex", &[]).unwrap());

/// Runs the target on one input: as code that may write itself.
pub(super) fn fuzz(bytes: &[u8]) {
    LazyLock::force(&IBEX);
    bounded(bytes, 1 << 28, || {
        let image = of_code(bytes);
        let interpreted = run(&image, |it, timing| it.run(timing));
        let translated = run(&image, |it, timing| varid_translate::run_when(it, timing, HOT));
        assert_eq!(interpreted, translated);
    });
}

fn of_code(bytes: &[u8]) -> Image {
    let data = bytes[..bytes.len().min(MAX_CODE)].to_vec();
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

/// Why the program stopped, its instructions and cycles, and by context and address the executions, taken branches and cycles.
type Executed = (Stop, u64, u64, BTreeMap<(u32, u32), [u64; 3]>);

fn run(
    image: &Image,
    engine: impl Fn(&mut Interpreter, &mut Timing<'_>) -> Stop,
) -> Option<Executed> {
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
    let mut interpreter = Interpreter::new(machine, LIMIT);
    let mut timing = Timing::new(&IBEX);
    let stop = engine(&mut interpreter, &mut timing);
    let counts = interpreter.counts();
    let mut places: BTreeMap<(u32, u32), [u64; 3]> = BTreeMap::new();
    for (id, cell) in counts.numbered_cells() {
        let block = counts.block(cell.block).unwrap();
        let costs = timing.costs(id);
        let last = block.instructions.len() - 1;
        for index in 0..=last {
            // Contexts have the order in which the program entered them.
            let place = (cell.context.0, block.address(index));
            let cycles = costs.get(index).map_or(0, |cost| cost.cycles.0);
            let taken = if index == last { cell.taken } else { 0 };
            let known = places.entry(place).or_default();
            for (known, new) in known.iter_mut().zip([cell.executions, taken, cycles]) {
                *known += new;
            }
        }
    }
    places.retain(|_, counts| *counts != [0; 3]);
    Some((stop, counts.instructions, timing.cycles().0, places))
}
