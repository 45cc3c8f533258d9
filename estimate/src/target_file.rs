//! Reads a target's file, and says which value of it is wrong. `docs/formats/target.md` describes the file.

use std::collections::{BTreeMap, BTreeSet};

use varid_description::{Table, Value};
use varid_symbolizer::class::java_mnemonic;

use crate::{
    code::{Bytecode, Opcode},
    error::{Error, Result},
    method_cache::{Geometry, Words},
    price::Price,
    target::{
        Build, IncrementCode, LoadTimes, MethodCacheParameters, ResultKind, RuntimeMethod,
        Synchronized, Target, VmCalls,
    },
};

/// The largest cost of an instruction, in the target's unit.
const MAX_COST: f64 = 1e12;
/// The most words of a method of the runtime.
const MAX_WORDS: i64 = 1 << 16;
/// The most methods of the runtime that call each other for one instruction.
const MAX_CALLS: usize = 8;
/// The values of cost entries that say where they are from, and how well they are known. Nothing is computed from them.
const NOTES: [&str; 2] = ["source", "n"];
/// What a calibration says of itself at the top. Nothing is computed from it.
const PROVENANCE: [&str; 6] = ["vm", "machine", "clock", "r", "slope", "instructions"];

/// Makes a target of its file's content.
pub fn target(file: &str, root: &Table) -> Result<Target> {
    let top = Node {
        file,
        path: String::new(),
        table: root,
    };
    let known = [
        "target",
        "about",
        "unit",
        "bytecode",
        "truth",
        "sources",
        "cost",
        "runtime",
        "method_cache",
        "load",
        "build",
    ];
    top.only(known.iter().chain(&PROVENANCE))?;
    let unit = top.text("unit")?;
    if unit != "cycles" && unit != "ns" {
        return Err(top.wrong("unit", "it is 'cycles' or 'ns'"));
    }
    let bytecode = match top.optional_text("bytecode")? {
        None | Some("java") => Bytecode::Java,
        Some("dex") => Bytecode::Dex,
        Some(_) => return Err(top.wrong("bytecode", "it is 'java' or 'dex'")),
    };
    if bytecode == Bytecode::Dex {
        for key in ["runtime", "method_cache", "load", "build"] {
            if top.table.contains_key(key) {
                return Err(top.wrong(key, "targets of dex code have none"));
            }
        }
    }
    let sources = top.sources()?;
    let cost = top.node("cost")?.ok_or_else(|| top.missing("cost"))?;
    let mut costs = BTreeMap::new();
    for key in cost.entries(bytecode, &sources)? {
        costs.insert(key.to_owned(), cost.price(key, &[], &sources)?);
    }
    let mut runtime = BTreeMap::new();
    if let Some(methods) = top.node("runtime")? {
        for key in methods.entries(bytecode, &sources)? {
            if costs.contains_key(key) {
                let problem = "it also has a cost in [cost]: an instruction is one or the other";
                return Err(methods.wrong(key, problem));
            }
            if is_outcome(key) {
                let problem = "outcomes of branches have costs in [cost]";
                return Err(methods.wrong(key, problem));
            }
            runtime.insert(key.to_owned(), methods.runtime_method(key, &sources)?);
        }
    }
    Ok(Target {
        name: top.name("target")?.to_owned(),
        about: top.optional_text("about")?.unwrap_or_default().to_owned(),
        unit: unit.to_owned(),
        bytecode,
        truth: top.optional_text("truth")?.map(str::to_owned),
        costs,
        runtime,
        method_cache: method_cache(&top, &sources)?,
        build: build(&top)?,
    })
}

fn method_cache(
    top: &Node<'_>,
    sources: &BTreeSet<String>,
) -> Result<Option<MethodCacheParameters>> {
    let (cache, load) = match (top.node("method_cache")?, top.node("load")?) {
        (None, None) => return Ok(None),
        (Some(cache), Some(load)) => (cache, load),
        (Some(_), None) => return Err(top.missing("load")),
        (None, Some(_)) => return Err(top.missing("method_cache")),
    };
    cache.only(["size", "blocks", "policy", "word", "source"].iter())?;
    cache.check_source(sources)?;
    if cache.text("policy")? != "fifo-variable-block" {
        return Err(cache.wrong("policy", "varid simulates 'fifo-variable-block'"));
    }
    let word = match cache.table.contains_key("word") {
        true => cache.whole("word", 1, 64)?,
        false => 4,
    };
    let geometry = Geometry {
        size: cache.whole("size", 1, Geometry::MAX_SIZE)?,
        blocks: cache.whole("blocks", 1, Geometry::MAX_BLOCKS)?,
        word,
    };
    let block = geometry.blocks.checked_mul(word);
    if block.is_none_or(|block| geometry.size.checked_rem(block) != Some(0)) {
        return Err(cache.wrong(
            "size",
            &format!(
                "{} bytes are not {} blocks of whole words of {word} bytes",
                geometry.size, geometry.blocks
            ),
        ));
    }
    load.only(["hit", "miss", "invoke_hides", "return_hides", "source"].iter())?;
    load.check_source(sources)?;
    let miss = load.node("miss")?.ok_or_else(|| load.missing("miss"))?;
    miss.only(["base", "word", "more_words"].iter())?;
    let returns = load
        .node("return_hides")?
        .ok_or_else(|| load.missing("return_hides"))?;
    returns.only(ResultKind::ALL.map(ResultKind::instruction).iter())?;
    let mut return_hides = BTreeMap::new();
    for kind in ResultKind::ALL {
        return_hides.insert(kind, returns.cost(kind.instruction())?);
    }
    Ok(Some(MethodCacheParameters {
        geometry,
        load: LoadTimes {
            hit: load.cost("hit")?,
            miss_base: miss.cost("base")?,
            miss_word: miss.cost("word")?,
            miss_more_words: miss.cost("more_words")?,
            invoke_hides: load.cost("invoke_hides")?,
            return_hides,
        },
    }))
}

fn build(top: &Node<'_>) -> Result<Build> {
    let Some(build) = top.node("build")? else {
        return Ok(Build::default());
    };
    build.only(["increment", "synchronized", "vm_calls"].iter())?;
    Ok(Build {
        increment: match build.optional_text("increment")? {
            None | Some("keep") => IncrementCode::Keep,
            Some("load-add-store") => IncrementCode::LoadAddStore,
            Some(_) => return Err(build.wrong("increment", "it is 'keep' or 'load-add-store'")),
        },
        synchronized: match build.optional_text("synchronized")? {
            None | Some("keep") => Synchronized::Keep,
            Some("monitor-instructions") => Synchronized::MonitorInstructions,
            Some(_) => {
                return Err(build.wrong("synchronized", "it is 'keep' or 'monitor-instructions'"));
            }
        },
        vm_calls: match build.optional_text("vm_calls")? {
            None | Some("priced") => VmCalls::Priced,
            Some("before-start") => VmCalls::BeforeStart,
            Some(_) => return Err(build.wrong("vm_calls", "it is 'priced' or 'before-start'")),
        },
    })
}

/// A table of the file.
struct Node<'t> {
    file: &'t str,
    /// Its name with the dot behind it. Empty for the whole file.
    path: String,
    table: &'t Table,
}

impl<'t> Node<'t> {
    fn wrong(&self, key: &str, problem: &str) -> Error {
        Error::Target {
            file: self.file.to_owned(),
            key: format!("{}{key}", self.path),
            problem: problem.to_owned(),
        }
    }

    fn value(&self, key: &str) -> Option<&'t Value> {
        self.table.get(key).map(|node| &node.value)
    }

    fn missing(&self, key: &str) -> Error {
        self.wrong(key, "it is missing")
    }

    /// Refuses other keys.
    fn only<'k>(&self, keys: impl Iterator<Item = &'k &'k str> + Clone) -> Result<()> {
        match self
            .table
            .keys()
            .find(|key| keys.clone().all(|known| known != key))
        {
            Some(unknown) => {
                let known: Vec<_> = keys.copied().collect();
                let problem = format!("varid does not know it; known are {}", known.join(", "));
                Err(self.wrong(unknown, &problem))
            }
            None => Ok(()),
        }
    }

    fn node(&self, key: &str) -> Result<Option<Node<'t>>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Node {
                file: self.file,
                path: format!("{}{key}.", self.path),
                table,
            })),
            Some(_) => Err(self.wrong(key, "it is not a table")),
        }
    }

    fn optional_text(&self, key: &str) -> Result<Option<&'t str>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "it is not a text")),
        }
    }

    fn text(&self, key: &str) -> Result<&'t str> {
        let text = self.optional_text(key)?;
        text.ok_or_else(|| self.missing(key))
    }

    /// Returns a text that can be a part of a measure's name.
    fn name(&self, key: &str) -> Result<&'t str> {
        let text = self.text(key)?;
        match text.is_empty() || text.contains(|letter: char| letter.is_control() || letter == ',')
        {
            true => Err(self.wrong(key, "a name has no commas and no control characters")),
            false => Ok(text),
        }
    }

    fn whole(&self, key: &str, least: u32, most: u32) -> Result<u32> {
        let value = self.value(key).ok_or_else(|| self.missing(key))?;
        let number = value
            .as_integer()
            .and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                self.wrong(
                    key,
                    &format!("{value} is not a whole number from {least} to {most}"),
                )
            })
    }

    /// Returns a cost: a number that is finite and not negative.
    fn cost(&self, key: &str) -> Result<f64> {
        let value = self.value(key).ok_or_else(|| self.missing(key))?;
        let number = match value {
            Value::Integer(number) => *number as f64,
            Value::Float { value, .. } => *value,
            _ => return Err(self.wrong(key, &format!("{value} is not a number"))),
        };
        if number.is_nan() {
            return Err(self.wrong(
                key,
                "nan is no cost: an instruction without a known cost is left out",
            ));
        }
        if number < 0.0 {
            return Err(self.wrong(
                key,
                &format!("{number} is below 0: an instruction without a known cost is left out"),
            ));
        }
        if number > MAX_COST {
            return Err(self.wrong(key, &format!("{number} is above {MAX_COST:e}")));
        }
        Ok(number)
    }

    /// Returns the names of sources.
    fn sources(&self) -> Result<BTreeSet<String>> {
        let Some(sources) = self.node("sources")? else {
            return Ok(BTreeSet::new());
        };
        for key in sources.table.keys() {
            sources.text(key)?;
        }
        Ok(sources.table.keys().cloned().collect())
    }

    fn check_source(&self, sources: &BTreeSet<String>) -> Result<()> {
        match self.value("source") {
            None => Ok(()),
            Some(Value::Text(source)) if sources.contains(source) => Ok(()),
            Some(source) => Err(self.wrong("source", &format!("{source} is not in [sources]"))),
        }
    }

    /// Returns the keys of instructions. `source` is where those are from that do not say it.
    fn entries(&self, bytecode: Bytecode, sources: &BTreeSet<String>) -> Result<Vec<&'t str>> {
        self.check_source(sources)?;
        let keys = self.table.keys().filter(|key| *key != "source");
        let keys: Vec<_> = keys.map(String::as_str).collect();
        let is_known = |key: &str| match bytecode {
            Bytecode::Java => is_instruction(key),
            Bytecode::Dex => is_dex_instruction(key),
        };
        match keys.iter().find(|key| !is_known(key)) {
            Some(unknown) => Err(self.wrong(
                unknown,
                &format!("it is no instruction of {bytecode}, nor a form of one"),
            )),
            None => Ok(keys),
        }
    }

    /// Returns a cost with its bounds: a number, or a table of value, low and high.
    fn price(&self, key: &str, more: &[&str], sources: &BTreeSet<String>) -> Result<Price> {
        let Some(Value::Table(table)) = self.value(key) else {
            return Ok(Price::exact(self.cost(key)?));
        };
        let entry = Node {
            file: self.file,
            path: format!("{}{key}.", self.path),
            table,
        };
        entry.only(["value", "low", "high"].iter().chain(&NOTES).chain(more))?;
        entry.check_source(sources)?;
        let value = entry.cost("value")?;
        let bound = |key| match entry.value(key) {
            // A measurement may have no upper bound.
            Some(Value::Float { value, .. }) if key == "high" && *value == f64::INFINITY => {
                Ok(*value)
            }
            Some(_) => entry.cost(key),
            None => Ok(value),
        };
        let price = Price {
            low: bound("low")?,
            value,
            high: bound("high")?,
        };
        if price.low > value {
            return Err(entry.wrong("low", "it is above value"));
        }
        if price.high < value {
            return Err(entry.wrong("high", "it is below value"));
        }
        Ok(price)
    }

    fn runtime_method(&self, key: &str, sources: &BTreeSet<String>) -> Result<RuntimeMethod> {
        let price = self.price(key, &["words", "result"], sources)?;
        let Some(entry) = self.node(key)? else {
            return Err(self.wrong(key, "it is not a table"));
        };
        let result = entry.text("result")?;
        let result = ResultKind::ALL
            .into_iter()
            .find(|kind| kind.name() == result);
        let result = result.ok_or_else(|| {
            let names = ResultKind::ALL.map(ResultKind::name).join(", ");
            entry.wrong("result", &format!("it is one of {names}"))
        })?;
        let words = table_words(entry.value("words"));
        let words = words.ok_or_else(|| {
            let problem = format!(
                "it is a number of words from 1 to {MAX_WORDS}, or a list of up to {MAX_CALLS}"
            );
            entry.wrong("words", &problem)
        })?;
        Ok(RuntimeMethod {
            price,
            words,
            result,
        })
    }
}

/// Returns the lengths that a value has: one number, or a list.
fn table_words(value: Option<&Value>) -> Option<Vec<Words>> {
    let word = |value: &Value| {
        let number = value.as_integer();
        let number = number.filter(|number| (1..=MAX_WORDS).contains(number))?;
        u32::try_from(number).ok().map(Words)
    };
    match value? {
        Value::List(list) if list.is_empty() || list.len() > MAX_CALLS => None,
        Value::List(list) => list.iter().map(|node| word(&node.value)).collect(),
        one => word(one).map(|word| vec![word]),
    }
}

/// Returns true if a key is an outcome of a branch.
fn is_outcome(key: &str) -> bool {
    key.ends_with("_taken") || key.ends_with("_not")
}

/// Returns true if a key is an opcode, or one with a form behind it.
fn is_instruction(key: &str) -> bool {
    let is_opcode = |name: &str| {
        let mut opcodes = 0..=u8::MAX;
        name != "wide" && opcodes.any(|opcode| java_mnemonic(opcode) == Some(name))
    };
    let has = |form: &str, of: &dyn Fn(&str) -> bool| {
        let name = key.strip_suffix(form);
        name.is_some_and(|name| is_opcode(name) && of(name))
    };
    let field = |name: &str| name.starts_with("get") || name.starts_with("put");
    let branch = |name: &str| name.starts_with("if");
    let local = |name: &str| {
        name == "iinc" || name == "ret" || name.ends_with("load") || name.ends_with("store")
    };
    is_opcode(key)
        || key == "wide"
        || has("_ref", &field)
        || has("_long", &field)
        || has("_taken", &branch)
        || has("_not", &branch)
        || has("_wide", &local)
}

/// Returns true if a key is an opcode of dex code, or a branch with an outcome behind it.
fn is_dex_instruction(key: &str) -> bool {
    let outcome = key.strip_suffix("_taken").or(key.strip_suffix("_not"));
    let mut opcodes = (0..=u8::MAX).map(Opcode::Dex);
    opcodes.any(|opcode| match outcome {
        Some(branch) => opcode.is_condition() && opcode.name() == branch,
        None => opcode.name() == key && !key.starts_with("unused"),
    })
}

#[cfg(test)]
mod tests;
