//! Both engines execute the same programs, and count the same.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
    rc::Rc,
};

use varid_machine::{Limits, Machine, Observer, Streams};
use varid_processor::{Events, Processor, Setting};
use varid_riscv::Image;

use super::*;

mod random;

/// The programs are short.
const HOT: u32 = 16;

/// All that a program has written.
#[derive(Debug, Clone, Default)]
struct Output(Rc<RefCell<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An instruction in a calling context: call sites and functions from the root on, and its address.
type InContext = (Vec<(u32, u32)>, u32);

/// All that a program's execution leaves behind.
#[derive(Debug, PartialEq, Eq)]
struct Executed {
    stop: Stop,
    output: Vec<u8>,
    instructions: u64,
    cycles: u64,
    /// Executions, taken branches, cycles, misses of instructions and data, and wrong predictions.
    counts: BTreeMap<InContext, [u64; 6]>,
    events: Events,
    /// By the path.
    calls: BTreeMap<Vec<(u32, u32)>, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Interpreter,
    /// It must have translated something.
    Engine,
    /// Perhaps it translates nothing.
    EngineAsItCan,
}

fn execute(image: &Image, processor: &Processor, limit: u64, by: By) -> Executed {
    let output = Output::default();
    let streams = Streams {
        input: Box::new(io::empty()),
        output: Box::new(output.clone()),
        error: Box::new(output.clone()),
    };
    let limits = Limits {
        memory: 1 << 20,
        folder: None,
        clock_hz: 1_000_000,
    };
    let machine = Machine::load(image, &[b"program"], streams, &limits).unwrap();
    let mut interpreter = Interpreter::new(machine, limit);
    let mut timing = Timing::new(processor);
    let stop = match by {
        By::Interpreter => interpreter.run(&mut timing),
        By::Engine | By::EngineAsItCan => {
            let mut engine = Engine::new(&mut interpreter, &mut timing, HOT).unwrap();
            let stop = engine.run();
            let units = engine
                .functions
                .values()
                .filter(|function| function.unit.is_some());
            assert!(
                by == By::EngineAsItCan || units.count() > 0,
                "nothing was translated"
            );
            stop
        }
    };
    interpreter.flush().unwrap();
    let counts = interpreter.counts();
    let path = |id: ContextId| {
        let mut path = Vec::new();
        let mut next = Some(id);
        while let Some(context) = next.and_then(|id| counts.contexts.get(id)) {
            path.push((context.site, context.function));
            next = context.parent;
        }
        path.reverse();
        path
    };
    let mut by_pc: BTreeMap<InContext, [u64; 6]> = BTreeMap::new();
    for (id, cell) in counts.numbered_cells() {
        let block = counts.block(cell.block).unwrap();
        let costs = timing.costs(id);
        let last = block.instructions.len() - 1;
        for index in 0..block.instructions.len() {
            let key = (path(cell.context), block.address(index));
            let cost = costs.get(index).copied().unwrap_or_default();
            let taken = if index == last { cell.taken } else { 0 };
            let known = by_pc.entry(key).or_default();
            let new = [
                cell.executions,
                taken,
                cost.cycles.0,
                cost.icache_misses,
                cost.dcache_misses,
                cost.mispredicted,
            ];
            for (known, new) in known.iter_mut().zip(new) {
                *known += new;
            }
        }
    }
    by_pc.retain(|_, counts| *counts != [0; 6]);
    let contexts = (0..).map(ContextId).zip(counts.contexts.all());
    let output = output.0.borrow().clone();
    Executed {
        stop,
        output,
        instructions: counts.instructions,
        cycles: timing.cycles().0,
        events: timing.events(),
        counts: by_pc,
        calls: contexts
            .map(|(id, context)| (path(id), context.calls))
            .collect(),
    }
}

fn programs() -> Vec<(String, Image)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guest/elf");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    let images = files.iter().map(|file| {
        let image = Image::parse(&fs::read(file).unwrap()).unwrap();
        (file.display().to_string(), image)
    });
    images.collect()
}

fn assert_equal(name: &str, interpreted: &Executed, translated: &Executed) {
    for (place, counts) in &interpreted.counts {
        let other = translated.counts.get(place).copied().unwrap_or_default();
        assert_eq!(*counts, other, "{name}: {place:x?}");
    }
    let summary = |it: &Executed| {
        (
            it.stop.clone(),
            it.instructions,
            it.cycles,
            it.events,
            it.output.clone(),
        )
    };
    assert_eq!(summary(interpreted), summary(translated), "{name}");
    assert_eq!(interpreted.calls, translated.calls, "{name}");
    assert_eq!(interpreted.counts.len(), translated.counts.len(), "{name}");
}

fn compare(target: &str, settings: &[&str]) {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|it| Setting::parse(it).unwrap())
        .collect();
    let processor = Processor::named(target, &settings).unwrap();
    for (name, image) in programs() {
        let interpreted = execute(&image, &processor, u64::MAX, By::Interpreter);
        let translated = execute(&image, &processor, u64::MAX, By::Engine);
        assert_equal(
            &format!("{name} {target} {settings:?}"),
            &interpreted,
            &translated,
        );
    }
}

#[test]
fn recorded_programs_count_the_same_on_ibex() {
    compare("ibex", &[]);
}

#[test]
fn recorded_programs_count_the_same_where_results_are_awaited() {
    compare("ibex", &["writeback_stage=true", "branch_target_alu=true"]);
}

#[test]
fn recorded_programs_count_the_same_where_operands_decide() {
    compare("cv32e40p", &[]);
    compare("picorv32", &["barrel_shifter=false"]);
    compare("ibex", &["rv32m=slow"]);
}

#[test]
fn recorded_programs_count_the_same_with_caches() {
    compare("vexriscv", &[]);
}

#[test]
fn recorded_programs_count_the_same_with_ways_that_are_written_back() {
    compare(
        "vexriscv",
        &[
            "dcache.size=1K",
            "dcache.ways=2",
            "dcache.writes=back",
            "dcache.write_back=9",
            "icache.size=1K",
            "icache.ways=2",
        ],
    );
}

#[test]
fn a_limit_ends_at_the_same_instruction() {
    for (target, limits) in [("ibex", [1, 10_007]), ("vexriscv", [97, 3_001])] {
        let processor = Processor::named(target, &[]).unwrap();
        for (name, image) in programs() {
            for limit in limits {
                let interpreted = execute(&image, &processor, limit, By::Interpreter);
                let translated = execute(&image, &processor, limit, By::EngineAsItCan);
                let name = format!("{name} {target} --limit {limit}");
                assert_equal(&name, &interpreted, &translated);
            }
        }
    }
}
