//! The counts of a program's own contexts, and those of a session.

use super::programs::Program;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use varid_recording::{ContextNode, NodeId, SessionReader, SessionRecord};

/// The first addresses of the parts of the remap range, by their files of names, and the offset of names: docs/session-format.md.
const PARTS: [(&str, u64); 2] = [
    ("remap.substitute.sym", 0x6000_0000_0000),
    ("remap-framework.substitute.sym", 0x6000_0080_0000),
];
const NAMES_OFFSET: u64 = 0x1000;
/// Contexts of more frames are left out. The oracle's have natives, too, and it leaves out those of 400 frames.
const MOST_FRAMES: usize = 300;

/// Values of contexts, by their thread and frames.
pub type Values = BTreeMap<String, u64>;

/// How often each context was called, and executed each instruction.
#[derive(Debug, Default)]
pub struct Counts {
    pub calls: Values,
    /// By context and instruction.
    pub steps: BTreeMap<(String, u32), u64>,
}

impl Counts {
    /// Adds calls of a context of the program, and returns it. None: it is not compared.
    pub fn add_calls(&mut self, program: &Program, context: String, count: u64) -> Option<String> {
        is_own(program, &context).then(|| {
            *self.calls.entry(context.clone()).or_default() += count;
            context
        })
    }

    /// Adds executions of an instruction of a context.
    pub fn add_step(&mut self, context: &str, bci: u32, count: u64) {
        let key = (context.to_owned(), bci);
        *self.steps.entry(key).or_default() += count;
    }

    /// Returns the instructions that each context executed.
    pub fn bytecodes(&self) -> Values {
        let mut bytecodes = Values::new();
        for ((context, _), count) in &self.steps {
            *bytecodes.entry(context.clone()).or_default() += count;
        }
        bytecodes
    }
}

/// Returns the readable name of a class of a hidden class: without its address and its number.
pub fn readable(class: &str) -> String {
    let class = class.replace('/', ".");
    let class = class.split(".0x").next().unwrap_or_default();
    match class.split_once("$$Lambda") {
        Some((of, _)) => format!("{of}$$Lambda"),
        None => class.to_owned(),
    }
}

/// Whether a context's method is the program's, and its thread is compared.
fn is_own(program: &Program, context: &str) -> bool {
    let last = context.rsplit_once('\t').map_or("", |(_, last)| last);
    let method = last.split_once(':').map_or("", |(_, method)| method);
    let thread = context.split('\t').next().unwrap_or_default();
    method.starts_with(program.class)
        && program.threads.contains(&thread)
        && context.split('\t').count() <= MOST_FRAMES
        && !program.left_out.iter().any(|part| context.contains(part))
}

/// Reads the own contexts of a session.
pub fn read(session: &Path, program: &Program) -> Result<Counts> {
    let names = names(session)?;
    let reader = SessionReader::open(session)?;
    let mut threads = Vec::new();
    for record in reader.records()? {
        if let SessionRecord::Comm {
            time, tid, name, ..
        } = record?
        {
            threads.push((tid, time, name));
        }
    }
    // A thread may have the number of one that has ended.
    let thread = |node: &ContextNode| {
        let names = threads.iter();
        let names = names.filter(|(tid, time, _)| Some(*tid) == node.tid && *time <= node.time);
        let last = names.max_by_key(|(_, time, _)| *time);
        last.map_or("earlier".to_owned(), |(_, _, name)| name.clone())
    };
    let contexts = reader.contexts()?.context("contexts")?;
    let calls = contexts.counter("calls").context("the counter")?;
    let bytecodes = contexts.counter("bytecodes");
    // None: it has too many frames.
    let mut paths: HashMap<NodeId, Option<String>> = HashMap::new();
    let mut counts = Counts::default();
    for id in contexts.node_ids() {
        let node = contexts.node(id).context("a node")?;
        let start = match node.parent {
            Some(parent) => paths.get(&parent).context("a parent")?.clone(),
            None => Some(thread(node)),
        };
        let start = start.filter(|start| start.split('\t').count() <= MOST_FRAMES);
        let Some(start) = start else {
            paths.insert(id, None);
            continue;
        };
        let site = node.site.and_then(|site| contexts.site(site));
        let site = site.map_or("-".to_owned(), |site| site.pc.get().to_string());
        let name = names.get(&node.address.get()).context("a name")?;
        let path = format!("{start}\t{site}:{name}");
        paths.insert(id, Some(path.clone()));
        if counts
            .add_calls(program, path.clone(), contexts.value(id, calls))
            .is_some()
        {
            let counts_of = contexts.counts(id).iter();
            for count in counts_of.filter(|count| Some(count.counter) == bytecodes) {
                let place = count.place.context("an instruction")?;
                counts.add_step(&path, place, count.value);
            }
        }
    }
    Ok(counts)
}

/// Returns the methods of a session by their addresses.
pub fn names(session: &Path) -> Result<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for (file, base) in PARTS {
        let file = session.join("symbols").join(file);
        if !file.exists() {
            continue;
        }
        for line in fs::read_to_string(file)?.lines() {
            if let [address, _, class, method, descriptor, ..] =
                line.split('\t').collect::<Vec<_>>()[..]
                && let Some(address) = address.strip_prefix("0x")
            {
                let address = u64::from_str_radix(address, 16)?;
                let name = format!("{}.{method}{descriptor}", readable(class));
                names.insert(base + address - NAMES_OFFSET, name);
            }
        }
    }
    Ok(names)
}

/// Compares counts by contexts, or by contexts and instructions.
pub fn ensure_equal<K: Ord + std::fmt::Debug>(
    found: &BTreeMap<K, u64>,
    expected: &BTreeMap<K, u64>,
) -> Result<()> {
    let differ = |key: &&K| found.get(*key) != expected.get(*key);
    let all: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differ: Vec<_> = all.into_iter().filter(differ).collect();
    let shown: Vec<_> = differ
        .iter()
        .take(10)
        .map(|key| (expected.get(*key), found.get(*key), key))
        .collect();
    ensure!(
        differ.is_empty(),
        "{} of {} counts differ (expected, found): {shown:#?}",
        differ.len(),
        expected.len()
    );
    Ok(())
}
