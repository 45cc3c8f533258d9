//! How often each opcode ran, by the bytecode of methods.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use varid_recording::{Contexts, CounterId, MethodId};

use super::{MetricMethod, MetricMethodId, OpcodeMetric};
use crate::{annotate::Mnemonics, profile::Profile, scope::percent};

/// The executions of instructions.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    /// By method: its instructions, by their offset in the bytecode.
    pub methods: BTreeMap<MetricMethodId, HashMap<u32, u64>>,
    /// Executions of which only the method is known.
    pub without_place: u64,
}

/// The opcodes, and what is missing.
#[derive(Debug)]
pub(super) struct Opcodes {
    pub list: Vec<OpcodeMetric>,
    pub notes: Vec<String>,
}

/// Adds up the executions of instructions in all contexts.
pub(super) fn instructions(
    contexts: &Contexts,
    counter: CounterId,
    method_of: impl Fn(MethodId) -> Option<MetricMethodId>,
) -> Instructions {
    let mut found = Instructions::default();
    for id in contexts.node_ids() {
        let method = contexts.method_of(id).and_then(&method_of);
        let counts = contexts.counts(id).iter();
        for count in counts.filter(|count| count.counter == counter) {
            let sum = match method.zip(count.place) {
                Some((method, place)) => {
                    let instructions = found.methods.entry(method).or_default();
                    instructions.entry(place).or_default()
                }
                None => &mut found.without_place,
            };
            *sum = sum.saturating_add(count.value);
        }
    }
    found
}

/// Returns the opcodes of instructions. Those of methods without a class file are left out, with a note.
pub(super) fn opcodes(
    counted: &Instructions,
    methods: &[MetricMethod],
    profile: &Profile,
    class_path: &[PathBuf],
) -> Opcodes {
    let mut mnemonics = Mnemonics::new(profile, class_path);
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut missing: Option<(usize, String)> = None;
    let mut unknown = counted.without_place;
    // Methods of the same image follow each other, so that its file is opened once.
    let mut order: Vec<_> = counted.methods.iter().collect();
    let symbol_of = |id: MetricMethodId| {
        let symbol = methods.get(id.index())?.symbol?;
        profile.frames.symbol(symbol)
    };
    order.sort_by_key(|(id, _)| symbol_of(**id).map(|symbol| symbol.image));
    for (id, instructions) in order {
        let names = match symbol_of(*id) {
            Some(symbol) => mnemonics.of(symbol),
            None => Err("nothing is known of its address".to_owned()),
        };
        let names = names.unwrap_or_else(|why| {
            let name = methods.get(id.index()).map_or("", |method| &method.name);
            let (count, _) = missing.get_or_insert_with(|| (0, format!("{name}: {why}")));
            *count = count.saturating_add(1);
            HashMap::new()
        });
        for (place, executions) in instructions {
            match names.get(&u64::from(*place)) {
                Some(name) => {
                    let sum = sums.entry(name.clone()).or_default();
                    *sum = sum.saturating_add(*executions);
                }
                None => unknown = unknown.saturating_add(*executions),
            }
        }
    }
    let all = sums
        .values()
        .fold(unknown, |sum, value| sum.saturating_add(*value));
    let mut list: Vec<_> = sums
        .into_iter()
        .map(|(opcode, executions)| OpcodeMetric {
            opcode,
            executions,
            share: percent(executions, all),
        })
        .collect();
    list.sort_by_key(|metric| Reverse(metric.executions));
    let mut notes = Vec::new();
    if unknown > 0 {
        notes.push(format!(
            "the opcodes of {unknown} of {all} executions are not known"
        ));
    }
    if let Some((count, first)) = missing {
        notes.push(format!(
            "{count} methods have no bytecode, the first is {first}"
        ));
    }
    Opcodes { list, notes }
}
