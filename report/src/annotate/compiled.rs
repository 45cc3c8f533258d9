//! The instructions of compiled code in which a method was sampled, by the bytecode at which these samples are recorded.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use varid_model::Machine;
use varid_recording::{RecordedCode, RecordedCodeId};
use varid_symbolizer::elf::{CodeKind, InstructionSet, MachineCode};

use super::{
    annotation::{AnnotatedCode, CompiledInstruction},
    code::{self, MOST},
    instruction::CodeInstruction,
    machine,
};
use crate::{
    compiled_samples::CompiledSamples,
    frames::ImageId,
    naming::OpenImage,
    scope::Scope,
    weights::{ProfileCounter, Weight},
};

/// The most pieces of code that are shown: those with the most samples of the method.
const MOST_CODES: usize = 4;
/// How many instructions are shown before and after each one with samples.
const AROUND: usize = 2;

/// The compiled code in which a method was sampled.
#[derive(Debug, Default)]
pub struct CompiledListing {
    /// The code, that with the most samples first.
    pub codes: Vec<AnnotatedCode>,
    /// By the address of a bytecode instruction: the instructions with samples that are recorded at it, and those around them.
    pub instructions: BTreeMap<u64, Vec<CompiledInstruction>>,
    /// The weight of code that is not shown.
    pub hidden: Weight,
}

/// The samples of a piece of code, by the addresses of bytecode and of the instruction.
#[derive(Debug, Default)]
struct CodeSamples {
    all: Weight,
    by_instruction: BTreeMap<(u64, u64), Weight>,
}

/// Returns the compiled code of the method with this range of addresses in a file.
pub fn read(
    scope: &Scope<'_>,
    id: ImageId,
    image: &OpenImage<'_>,
    range: &Range<u64>,
) -> CompiledListing {
    let mut by_code: HashMap<RecordedCodeId, CodeSamples> = HashMap::new();
    for row in samples_of(scope, id) {
        let bytecode = image.address(row.place.offset);
        let Some(bytecode) = bytecode.filter(|at| range.contains(at)) else {
            continue;
        };
        let weight = scope.measures.of_samples(row.own);
        let of_code = by_code.entry(row.code).or_default();
        of_code.all.add(weight);
        let place = (bytecode, row.instruction.get());
        of_code.by_instruction.entry(place).or_default().add(weight);
    }
    let mut all: Vec<_> = by_code.into_iter().collect();
    all.sort_by_key(|(id, samples)| (std::cmp::Reverse(scope.measures.value(samples.all)), *id));
    let mut found = CompiledListing::default();
    for (RecordedCodeId(index), samples) in all {
        match scope.profile.compiled_code.get(index) {
            Some(code) if found.codes.len() < MOST_CODES && !code.bytes.is_empty() => {
                found.add(code, &samples);
            }
            _ => found.hidden.add(samples.all),
        }
    }
    found
}

/// Returns the samples of an image's methods. A counter of calling contexts has no samples.
fn samples_of<'p>(scope: &Scope<'p>, id: ImageId) -> impl Iterator<Item = &'p CompiledSamples> {
    let counter = scope.measures.lead().map(|measure| measure.counter);
    let has_samples = !matches!(counter, Some(ProfileCounter::Context(_)));
    let rows = scope.event.compiled.iter().filter(move |_| has_samples);
    rows.filter(move |row| row.place.image == id)
}

impl CompiledListing {
    fn add(&mut self, code: &RecordedCode, samples: &CodeSamples) {
        let start = code.start.get();
        let set = instruction_set(code.machine);
        let machine_code = MachineCode {
            start,
            bytes: code.bytes.clone(),
            kinds: vec![(start, CodeKind::Instructions(set))],
        };
        let (instructions, set) = machine::disassemble(&machine_code, MOST);
        let label = label(self.codes.len());
        self.codes.push(AnnotatedCode {
            label,
            name: code.name.clone(),
            start,
            size: code.bytes.len(),
            set,
            own: samples.all,
        });
        // By bytecode: the places of its instructions.
        let mut shown: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let place = |address: u64| {
            let after = instructions.partition_point(|found| found.address <= address);
            after.checked_sub(1)
        };
        for (bytecode, address) in samples.by_instruction.keys() {
            if let Some(place) = place(*address) {
                let last = place.saturating_add(AROUND);
                let places = place.saturating_sub(AROUND)..=last;
                shown.entry(*bytecode).or_default().extend(places);
            }
        }
        for (bytecode, places) in shown {
            let found = places.iter().filter_map(|place| instructions.get(*place));
            let found = found.map(|found| CompiledInstruction {
                code: label,
                address: found.address,
                offset: found.address.saturating_sub(start),
                len: found.len,
                text: with_label(found, code, label),
                own: own_of(found, bytecode, samples),
            });
            self.instructions.entry(bytecode).or_default().extend(found);
        }
    }
}

/// Returns the samples of an instruction that are recorded at a bytecode instruction.
fn own_of(found: &CodeInstruction, bytecode: u64, samples: &CodeSamples) -> Weight {
    let end = found.address.saturating_add(found.len.into());
    let rows = samples
        .by_instruction
        .range((bytecode, found.address)..(bytecode, end));
    let mut own = Weight::default();
    for (_, weight) in rows {
        own.add(*weight);
    }
    own
}

/// Returns the disassembly with a target in the same code by its offset: `jne A+1c`.
fn with_label(found: &CodeInstruction, code: &RecordedCode, label: char) -> String {
    let text = &found.text;
    let target = code::target(text);
    let offset = target.and_then(|target| target.checked_sub(code.start.get()));
    let inside = offset.filter(|offset| *offset < code.bytes.len() as u64);
    match inside.zip(text.rsplit_once(' ')) {
        Some((offset, (before, _))) => format!("{before} {label}+{offset:x}"),
        None => code::shown(text),
    }
}

/// Returns the letter of code at this place among the shown ones.
fn label(place: usize) -> char {
    let letter = u8::try_from(place).unwrap_or(u8::MAX);
    char::from(b'A'.saturating_add(letter))
}

const fn instruction_set(machine: Machine) -> InstructionSet {
    match machine {
        Machine::X86_64 => InstructionSet::X64,
        Machine::Aarch64 => InstructionSet::A64,
        Machine::X86 => InstructionSet::X86,
        Machine::Arm => InstructionSet::A32,
    }
}
