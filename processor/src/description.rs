//! Reads the tables of a description, and refuses what contradicts itself.

use varid_description::{Result, Table, Value};

use crate::{
    cache::{Geometry, Replacement, Writes},
    class::{ByClass, Class},
    duration::{Duration, Steps, Variation},
    parameters::{Configured, plain},
    predictor::Predictor,
    processor::{
        DataCache, FetchCosts, InstructionCache, InstructionCosts, LoadAfterStore, MissCosts,
        Prediction, PredictionStage, Processor, TransferCosts, WrongPath,
    },
    section::Section,
};

/// The most cycles of one value.
const MOST_CYCLES: u32 = 100_000;
/// The largest cache, in bytes.
const MOST_CACHE: u32 = 16 << 20;
/// The largest line of a cache, in bytes.
const MOST_LINE: u32 = 4096;
/// The most counters of a predictor.
const MOST_ENTRIES: u32 = 1 << 20;

/// Reads a description.
pub fn processor(file: &str, configured: Configured) -> Result<Processor> {
    let mut whole = Section::new(file, None, configured.table);
    let name = whole.text("target")?;
    let about = whole.text("about")?.unwrap_or_default();
    let truth = whole.text("truth")?;
    // For people: what a table's `source` stands for.
    whole.section("sources")?;
    let values = configured.values.iter();
    let processor = Processor {
        name: name.ok_or_else(|| whole.wrong("target", "the processor has no name"))?,
        about,
        truth,
        parameters: values
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        instructions: instructions(&mut whole)?,
        transfers: transfers(&mut whole)?,
        prediction: prediction(&mut whole)?,
        fetch: fetch(&mut whole)?,
        icache: instruction_cache(&mut whole)?,
        dcache: data_cache(&mut whole)?,
    };
    whole.finish()?;
    Ok(processor)
}

/// A table of the file, empty if there is none.
fn table(whole: &mut Section, key: &'static str) -> Result<Section> {
    let mut section = whole.section_or_empty(key)?;
    section.text("source")?;
    Ok(section)
}

fn cycles(section: &mut Section, key: &'static str) -> Result<u32> {
    Ok(section.number(key, MOST_CYCLES)?.unwrap_or_default())
}

fn by_class(whole: &mut Section, key: &'static str) -> Result<ByClass<u32>> {
    let mut section = table(whole, key)?;
    let mut values = Vec::new();
    for class in Class::ALL {
        values.push(cycles(&mut section, class.key())?);
    }
    section.finish()?;
    let value = |class: Class| values.get(class.index()).copied().unwrap_or_default();
    Ok(ByClass::of(value))
}

fn instructions(whole: &mut Section) -> Result<InstructionCosts> {
    let mut section = table(whole, "cycles")?;
    let mut given = Vec::new();
    for class in Class::ALL {
        given.push(duration(&mut section, class)?);
    }
    let misaligned = cycles(&mut section, "misaligned")?;
    let given = |class: Class| given.get(class.index()).copied().flatten();
    for class in [
        Class::Alu,
        Class::Load,
        Class::Store,
        Class::Branch,
        Class::Jump,
    ] {
        if !matches!(given(class), Some(Given::Takes(_))) {
            let problem = "every processor has such instructions: how many cycles do they take?";
            return Err(section.wrong(class.key(), problem));
        }
    }
    section.finish()?;
    Ok(InstructionCosts {
        durations: ByClass::of(|class| {
            let mut next = Some(class);
            while let Some(class) = next {
                match given(class) {
                    Some(Given::Takes(duration)) => return Some(duration),
                    Some(Given::Missing) => return None,
                    None => next = class.like(),
                }
            }
            None
        }),
        misaligned,
        result_delays: by_class(whole, "result_delay")?,
        operands_early: by_class(whole, "operands_early")?,
        jump_overlap: by_class(whole, "jump_overlap")?,
    })
}

/// What a description says of a class of instructions.
#[derive(Clone, Copy)]
enum Given {
    /// How long they take.
    Takes(Duration),
    /// `"none"`: the processor has none.
    Missing,
}

/// Reads a number of cycles, `"none"`, or a table of a number and what it depends on.
fn duration(section: &mut Section, class: Class) -> Result<Option<Given>> {
    let key = class.key();
    let Some(node) = section.take(key) else {
        return Ok(None);
    };
    let wrong = |problem: String| Err(section.wrong(key, problem));
    let number = |value: &Value| match value {
        Value::Integer(number) => u32::try_from(*number)
            .ok()
            .filter(|number| (1..=MOST_CYCLES).contains(number)),
        _ => None,
    };
    let mut table = match node.value {
        Value::Text(text) if text == "none" => return Ok(Some(Given::Missing)),
        Value::Table(table) => table,
        value => {
            return match number(&value) {
                Some(cycles) => Ok(Some(Given::Takes(Duration::fixed(cycles)))),
                None => wrong(format!(
                    "{value} is neither a number of cycles from 1 to {MOST_CYCLES} nor \"none\""
                )),
            };
        }
    };
    let Some(cycles) = table.remove("cycles").and_then(|node| number(&node.value)) else {
        return wrong(format!("'cycles' is not a number from 1 to {MOST_CYCLES}"));
    };
    table.remove("source");
    let varies = match variation(class, &mut table) {
        Ok(varies) => varies,
        Err(problem) => return wrong(problem),
    };
    match table.first_key_value() {
        Some((unknown, _)) => wrong(format!(
            "'{unknown}' is unknown, or contradicts another key"
        )),
        None => Ok(Some(Given::Takes(Duration { cycles, varies }))),
    }
}

/// Reads what a duration depends on. At most one key is taken out of the table.
fn variation(class: Class, table: &mut Table) -> std::result::Result<Variation, String> {
    let is_division = matches!(class, Class::Divide | Class::Remainder);
    let is_multiplication = matches!(class, Class::Multiply | Class::MultiplyHigh);
    let is_shift = matches!(class, Class::Shift | Class::ShiftRegister);
    let mut take = |key: &str, fits: bool, whose: &str| match table.remove(key) {
        None => Ok(None),
        Some(_) if !fits => Err(format!("'{key}' is of {whose}")),
        Some(node) => match node.value {
            Value::Integer(number) => {
                let number = u32::try_from(number).ok();
                let number = number.filter(|number| (1..=MOST_CYCLES).contains(number));
                let problem =
                    || format!("'{key}' is not a number of cycles from 1 to {MOST_CYCLES}");
                Ok(Some(number.ok_or_else(problem)?))
            }
            other => Err(format!("'{key}' is not a number: {other}")),
        },
    };
    if let Some(cycles) = take("zero_divisor", is_division, "divisions")? {
        return Ok(Variation::ZeroDivisor(cycles));
    }
    if let Some(each) = take("leading_zero", is_division, "divisions")? {
        return Ok(Variation::DivisorZeros(each));
    }
    if let Some(each) = take("multiplier_bit", is_multiplication, "multiplications")? {
        let least = take("least", true, "multiplications")?.unwrap_or(1);
        return Ok(Variation::MultiplierBits { each, least });
    }
    match table.remove("steps") {
        None => Ok(Variation::None),
        Some(_) if !is_shift => Err("'steps' is of shifts".to_owned()),
        Some(node) => match plain(&node.value).as_str() {
            "ones" => Ok(Variation::ShiftSteps(Steps::Ones)),
            "fours-then-ones" => Ok(Variation::ShiftSteps(Steps::FoursThenOnes)),
            _ => Err("'steps' is not one of ones, fours-then-ones".to_owned()),
        },
    }
}

fn transfers(whole: &mut Section) -> Result<TransferCosts> {
    let mut section = table(whole, "transfer")?;
    let costs = TransferCosts {
        branch: cycles(&mut section, "branch")?,
        jump: cycles(&mut section, "jump")?,
        jump_register: cycles(&mut section, "jump_register")?,
    };
    section.finish()?;
    Ok(costs)
}

fn prediction(whole: &mut Section) -> Result<Prediction> {
    let mut section = table(whole, "predictor")?;
    let entries = section.number("entries", MOST_ENTRIES)?;
    let kinds = [
        ("none", Predictor::None),
        ("backward-taken", Predictor::BackwardTaken),
        (
            "bimodal",
            Predictor::Bimodal {
                entries: entries.unwrap_or(512),
            },
        ),
    ];
    let predictor = section.choice("kind", &kinds)?;
    let predictor = predictor.unwrap_or(Predictor::None);
    match (entries, predictor) {
        (Some(entries), Predictor::Bimodal { .. }) if !entries.is_power_of_two() => {
            return Err(section.wrong("entries", format!("{entries} is not a power of two")));
        }
        (Some(_), Predictor::None | Predictor::BackwardTaken) => {
            return Err(section.wrong("entries", "only the predictor 'bimodal' has entries"));
        }
        _ => {}
    }
    let stages = [
        ("issue", PredictionStage::Issue),
        ("fetch", PredictionStage::Fetch),
    ];
    let stage = section.choice("stage", &stages)?;
    let costs = Prediction {
        predictor,
        stage: stage.unwrap_or(PredictionStage::Issue),
        branch: cycles(&mut section, "branch")?,
        jump: cycles(&mut section, "jump")?,
        mispredicted: cycles(&mut section, "mispredicted")?,
    };
    section.finish()?;
    Ok(costs)
}

fn fetch(whole: &mut Section) -> Result<FetchCosts> {
    let mut section = table(whole, "fetch")?;
    let costs = FetchCosts {
        straddling_target: cycles(&mut section, "straddling_target")?,
        straddling_next: cycles(&mut section, "straddling_next")?,
        straddling_behind_taken: cycles(&mut section, "straddling_behind_taken")?,
    };
    section.finish()?;
    Ok(costs)
}

/// The values that every cache has.
struct AnyCache {
    geometry: Geometry,
    replacement: Replacement,
    miss: MissCosts,
}

fn any_cache(section: &mut Section) -> Result<AnyCache> {
    section.text("source")?;
    let geometry = geometry(section)?;
    let policies = [("lru", Replacement::Lru), ("fifo", Replacement::Fifo)];
    let replacement = section.choice("replacement", &policies)?;
    let miss = match section.section("miss")? {
        None => return Err(section.wrong("miss", "what does a miss take?")),
        Some(mut miss) => {
            let costs = MissCosts {
                first_word: cycles(&mut miss, "first_word")?,
                word: cycles(&mut miss, "word")?,
                overhead: cycles(&mut miss, "overhead")?,
            };
            miss.finish()?;
            costs
        }
    };
    if miss.of_line(geometry.line) == 0 {
        return Err(section.wrong("miss", "a miss that takes no cycle is a hit"));
    }
    Ok(AnyCache {
        geometry,
        replacement: replacement.unwrap_or(Replacement::Lru),
        miss,
    })
}

fn geometry(section: &mut Section) -> Result<Geometry> {
    let mut power_of_two = |key, least, most| {
        let number = section.number(key, most)?;
        match number {
            Some(number) if number >= least && number.is_power_of_two() => Ok(number),
            Some(number) => Err(section.wrong(
                key,
                format!("{number} is not a power of two from {least} to {most}"),
            )),
            None => Err(section.wrong(key, "it is missing")),
        }
    };
    let line = power_of_two("line", 4, MOST_LINE)?;
    let size = section.number("size", MOST_CACHE)?;
    let ways = section.number("ways", MOST_CACHE)?.unwrap_or(1);
    let size = size.ok_or_else(|| section.wrong("size", "it is missing"))?;
    if ways == 0 {
        return Err(section.wrong("ways", "a cache has at least one way"));
    }
    let set = line.saturating_mul(ways);
    let sets = size.checked_div(set).unwrap_or_default();
    if size.checked_rem(set) != Some(0) || !sets.is_power_of_two() {
        let problem =
            format!("{size} is not {ways} ways of lines of {line} bytes, times a power of two");
        return Err(section.wrong("size", problem));
    }
    Ok(Geometry { size, ways, line })
}

fn instruction_cache(whole: &mut Section) -> Result<Option<InstructionCache>> {
    let Some(mut section) = whole.section("icache")? else {
        return Ok(None);
    };
    let cache = any_cache(&mut section)?;
    let wrong_path = match section.section("wrong_path")? {
        None => WrongPath::default(),
        Some(mut bytes) => {
            let wrong_path = WrongPath {
                predicted: bytes.number("predicted", MOST_LINE)?.unwrap_or_default(),
                mispredicted: bytes.number("mispredicted", MOST_LINE)?.unwrap_or_default(),
            };
            bytes.finish()?;
            wrong_path
        }
    };
    section.finish()?;
    Ok(Some(InstructionCache {
        geometry: cache.geometry,
        replacement: cache.replacement,
        miss: cache.miss,
        wrong_path,
    }))
}

fn data_cache(whole: &mut Section) -> Result<Option<DataCache>> {
    let Some(mut section) = whole.section("dcache")? else {
        return Ok(None);
    };
    let cache = any_cache(&mut section)?;
    let policies = [("through", Writes::Through), ("back", Writes::Back)];
    let writes = section.choice("writes", &policies)?;
    let writes = writes.unwrap_or(Writes::Through);
    let write_back = section.number("write_back", MOST_CYCLES)?;
    if write_back.is_some() && writes == Writes::Through {
        let problem = "lines are written back only with writes = \"back\"";
        return Err(section.wrong("write_back", problem));
    }
    let write_cycles = section.number("write_cycles", MOST_CYCLES)?;
    let load_after_store = match section.section("load_after_store")? {
        None => LoadAfterStore::default(),
        Some(mut costs) => {
            let load_after_store = LoadAfterStore {
                within: cycles(&mut costs, "within")?,
                cycles: cycles(&mut costs, "cycles")?,
            };
            costs.finish()?;
            load_after_store
        }
    };
    section.finish()?;
    Ok(Some(DataCache {
        write_cycles: write_cycles.unwrap_or_default(),
        load_after_store,
        geometry: cache.geometry,
        replacement: cache.replacement,
        writes,
        miss: cache.miss,
        write_back: write_back.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests;
