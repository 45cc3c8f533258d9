//! A program for RISC-V does the same, counts the same and takes the same as translated code and as interpreted code.

use super::machine::{interpreter_of, of_code};
use crate::bounded;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use varid_machine::{Observer, Stop, Timing};
use varid_processor::{Events, Processor};
use varid_riscv::Image;

/// The most instructions: a loop of a few is translated, and left, several times.
const LIMIT: u64 = 2_000;
/// A function is translated after so many of its blocks.
const HOT: u32 = 4;

/// A processor without caches, and one with them: their code is translated in another way.
static PROCESSORS: LazyLock<[Processor; 2]> =
    LazyLock::new(|| ["ibex", "vexriscv"].map(|name| Processor::named(name, &[]).unwrap()));

/// Runs the target on one input, code that may write itself.
pub(super) fn fuzz(bytes: &[u8]) {
    LazyLock::force(&PROCESSORS);
    let Some((choice, code)) = bytes.split_first() else {
        return;
    };
    let processor = &PROCESSORS[usize::from(choice & 1)];
    bounded(bytes, 1 << 16, || {
        let image = of_code(code);
        let interpreted = execute(&image, processor, Engine::Interpreter);
        assert_eq!(execute(&image, processor, Engine::Translator), interpreted);
    });
}

#[derive(Clone, Copy)]
enum Engine {
    Interpreter,
    Translator,
}

/// What a program has done.
#[derive(Debug, PartialEq, Eq)]
struct Executed {
    stop: Stop,
    instructions: u64,
    cycles: u64,
    events: Events,
    /// By address and calling context, which has the call site, the function and the number of its callers: executions, taken branches and cycles.
    counts: BTreeMap<(u32, u32, u32, usize), [u64; 3]>,
}

/// None: it cannot be loaded.
fn execute(image: &Image, processor: &Processor, engine: Engine) -> Option<Executed> {
    let mut interpreter = interpreter_of(image, LIMIT)?;
    let mut timing = Timing::new(processor);
    let stop = match engine {
        Engine::Interpreter => interpreter.run(&mut timing),
        Engine::Translator => varid_translate::run_after(HOT, &mut interpreter, &mut timing),
    };
    let counted = interpreter.counts();
    let mut counts = BTreeMap::<_, [u64; 3]>::new();
    for (id, cell) in counted.numbered_cells() {
        let block = counted.block(cell.block)?;
        let context = counted.contexts.get(cell.context)?;
        let callers = std::iter::successors(context.parent, |id| counted.contexts.get(*id)?.parent);
        let callers = callers.count();
        let costs = timing.costs(id);
        for index in 0..block.instructions.len() {
            let at = (
                block.address(index),
                context.site,
                context.function,
                callers,
            );
            let taken = if index + 1 == block.instructions.len() {
                cell.taken
            } else {
                0
            };
            let cycles = costs.get(index).map_or(0, |cost| cost.cycles.0);
            let known = counts.entry(at).or_default();
            for (known, new) in known.iter_mut().zip([cell.executions, taken, cycles]) {
                *known += new;
            }
        }
    }
    counts.retain(|_, counts| *counts != [0; 3]);
    Some(Executed {
        stop,
        instructions: counted.instructions,
        cycles: timing.cycles().0,
        events: timing.events(),
        counts,
    })
}
