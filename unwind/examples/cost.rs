//! What does unwinding cost a frame? Unwinds a made-up stack of frames of the C library's functions, and prints nanoseconds.
//!
//! Its argument is the number of stacks. `valgrind --tool=callgrind target/release/examples/cost N` counts instructions; the
//! difference between two numbers is that of the stacks alone.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)] // Its stacks are its own.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};
use object::{Object, ObjectSection};
use std::error::Error;
use std::time::Instant;
use varid_model::{Address, Machine, Regs};
use varid_unwind::{Module, NativeStack, StackSlice};

const STACK: u64 = 0x7fff_0000_0000;
const DEPTH: usize = 64;
/// Stacks in one measurement; the best of ten counts.
const STACKS: u32 = 5_000;

/// Addresses of the library's code and the sizes of the frames there, where a frame's size is fixed and registers are saved.
fn frames(file: &object::File<'_>) -> Result<Vec<(u64, u64)>, Box<dyn Error>> {
    let section = file.section_by_name(".eh_frame").ok_or("no .eh_frame")?;
    let text = file.section_by_name(".text").ok_or("no .text")?;
    let text = text.address()..text.address() + text.size();
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let eh_frame = EhFrame::new(section.data()?, LittleEndian);
    let mut context = UnwindContext::new();
    let mut found = Vec::new();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next()? {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let fde = partial.parse(EhFrame::cie_from_offset)?;
        let mut rows = fde.rows(&eh_frame, &bases, &mut context)?;
        while let Some(row) = rows.next_row()? {
            let saved = row
                .registers()
                .filter(|(_, rule)| matches!(rule, RegisterRule::Offset(_)));
            if let CfaRule::RegisterAndOffset {
                register: Register(7),
                offset: size @ 32..=256,
            } = row.cfa()
                && saved.count() >= 4
                && text.contains(&row.start_address())
            {
                found.push((row.start_address(), *size as u64));
                break;
            }
        }
    }
    Ok(found)
}

fn main() -> Result<(), Box<dyn Error>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let path = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("/libc.so"));
    let bytes = std::fs::read(path.ok_or("no C library")?)?;
    let file = object::File::parse(&*bytes)?;
    let frames = frames(&file)?;
    let chosen: Vec<_> = frames
        .iter()
        .step_by(frames.len() / DEPTH)
        .take(DEPTH)
        .collect();
    let mut stack = Vec::new();
    for pair in chosen.windows(2) {
        let behind = stack.len() + pair[0].1 as usize;
        stack.resize(behind - 8, 0u8);
        // Where a call returns to is looked up one byte before.
        stack.extend((pair[1].0 + 1).to_le_bytes());
    }
    stack.resize(stack.len() + 256, 0);
    let mut regs = Regs::unknown(Machine::X86_64);
    regs.set_frame(chosen[0].0, STACK, 0);
    let mut module = Module::new(&file);
    let mut native = NativeStack::default();
    let mut frames = 0;
    let slice = StackSlice::new(Address::new(STACK), &stack);
    let stacks = std::env::args()
        .nth(1)
        .map_or(Ok(STACKS), |number| number.parse())?;
    let mut best = f64::MAX;
    for _ in 0..10 {
        let began = Instant::now();
        for _ in 0..stacks {
            native.unwind(&regs, slice, None, &mut module);
            frames = native.frames.len();
        }
        best = best.min(began.elapsed().as_nanos() as f64 / f64::from(stacks) / frames as f64);
    }
    println!("{frames} frames, {best:.1} ns a frame");
    Ok(())
}
