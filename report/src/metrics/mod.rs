//! Dynamic metrics of a session of exact calling contexts: how often each opcode ran, how many methods each call site called, how often and
//! how deep methods were called, and which contexts are the hottest.
//!
//! | question | file |
//! |---|---|
//! | the contexts of all threads and processes as one tree | `merged` |
//! | call sites, methods, depths | `counts` |
//! | opcodes | `opcodes` |
//! | text and CSV | `render` |

mod counts;
mod merged;
mod opcodes;
mod render;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use serde::{Serialize, Serializer};
use varid_recording::{Contexts, MethodId};

pub use render::{MetricsSection, write_metrics_csv, write_metrics_text};

use crate::{frames::SymbolId, profile::Profile};
use merged::MergedTree;

/// The names of the counters that metrics are made of.
const CALLS: &str = "calls";
const BYTECODES: &str = "bytecodes";

varid_model::index_types! {
    /// Index of a method in a list of [`MetricMethod`].
    MetricMethodId;
}

/// A method of the metrics. Equal methods of several processes are one.
#[derive(Debug, Clone)]
struct MetricMethod {
    name: Arc<str>,
    /// Its name without class and parameters. None if it has no name.
    simple_name: Option<Arc<str>>,
    /// Length of its bytecode. None if it has none, or that is not known.
    size: Option<u64>,
    /// None if nothing is known of its address.
    symbol: Option<SymbolId>,
}

/// The metrics of a session, complete and sorted by descending values.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// The opcodes that ran. None if executions of bytecodes were not counted.
    pub opcodes: Option<Vec<OpcodeMetric>>,
    /// The call sites that called a method, those with most targets first. Sites of `invokedynamic` are not among them.
    pub sites: Vec<SiteMetric>,
    /// The methods that were called.
    pub methods: Vec<MethodMetric>,
    /// The calls of contexts by their depth, outermost first.
    pub depth: Vec<DepthMetric>,
    /// The calling contexts, each behind its caller.
    pub contexts: Vec<ContextMetric>,
    /// Sentences on what is missing.
    pub notes: Vec<String>,
}

/// An opcode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpcodeMetric {
    /// Its mnemonic.
    pub opcode: String,
    /// How often it ran.
    pub executions: u64,
    /// Its part of all executions, as a percentage.
    pub share: f64,
}

/// A call site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteMetric {
    /// The calling method.
    #[serde(serialize_with = "as_text")]
    pub method: Arc<str>,
    /// The offset of the instruction in its bytecode, in code units.
    pub bci: u32,
    /// The method that the instruction names. None if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// The number of different methods that it called.
    pub targets: usize,
    /// Its calls. Calls that the VM makes there, such as those of class initialisation, are not among them.
    pub calls: u64,
}

/// A method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MethodMetric {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub method: Arc<str>,
    /// The length of its bytecode in code units: bytes of Java's. None without bytecode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its calls.
    pub calls: u64,
    /// The bytecodes that ran in it, not in what it called. None if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytecodes: Option<u64>,
}

/// A depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DepthMetric {
    /// The number of methods on the stack: 1 for the outermost.
    pub depth: u32,
    /// Contexts of this depth.
    pub contexts: u64,
    /// Their calls.
    pub calls: u64,
}

/// A calling context. Equal contexts of several threads and processes are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextMetric {
    /// The index of the calling context in the list. None for an outermost one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<usize>,
    /// The offset of the call site in the caller's bytecode. None if the VM is the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bci: Option<u32>,
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Arc<str>,
    /// The number of methods on the stack.
    pub depth: u32,
    /// Calls of the method in this context.
    pub calls: u64,
    /// The bytecodes that ran in it, not in what it called. None if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytecodes: Option<u64>,
}

impl Metrics {
    /// Computes the metrics of contexts. `profile` is that of their session; opcodes are those of class files in the session, in
    /// `class_path`, or in the recorded class path.
    #[must_use]
    pub fn new(contexts: &Contexts, profile: &Profile, class_path: &[PathBuf]) -> Self {
        let methods = Methods::new(contexts, profile);
        let tree = MergedTree::new(contexts, |method| methods.of(method));
        let mut notes = profile.recording.notes.clone();
        if contexts.counter(CALLS).is_none() {
            notes.push("calls were not counted".to_owned());
        }
        let opcodes = match contexts.counter(BYTECODES) {
            Some(counter) => {
                let counted = opcodes::instructions(contexts, counter, |id| methods.of(id));
                let of = opcodes::opcodes(&counted, &methods.list, profile, class_path);
                notes.extend(of.notes);
                Some(of.list)
            }
            None => {
                notes.push(
                    "bytecodes were not counted: 'varid exact --bytecodes' counts them".to_owned(),
                );
                None
            }
        };
        Self {
            opcodes,
            sites: counts::sites(&tree, &methods.list),
            methods: counts::methods(&tree, &methods.list),
            depth: counts::depth(&tree),
            contexts: counts::contexts(&tree, &methods.list),
            notes,
        }
    }

    /// Returns a document of sections with all their rows.
    #[must_use]
    pub fn only(&self, sections: &[MetricsSection]) -> impl Serialize + '_ {
        let has = |section| sections.contains(&section);
        Document {
            opcodes: self
                .opcodes
                .as_deref()
                .filter(|_| has(MetricsSection::Opcodes)),
            sites: has(MetricsSection::Sites).then_some(self.sites.as_slice()),
            methods: has(MetricsSection::Methods).then_some(self.methods.as_slice()),
            depth: has(MetricsSection::Depth).then_some(self.depth.as_slice()),
            contexts: has(MetricsSection::Contexts).then_some(self.contexts.as_slice()),
            notes: &self.notes,
        }
    }
}

/// Writes a shared text.
fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Sections of metrics, for programs.
#[derive(Serialize)]
struct Document<'m> {
    #[serde(skip_serializing_if = "Option::is_none")]
    opcodes: Option<&'m [OpcodeMetric]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<&'m [SiteMetric]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    methods: Option<&'m [MethodMetric]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<&'m [DepthMetric]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contexts: Option<&'m [ContextMetric]>,
    notes: &'m [String],
}

/// The methods of contexts.
struct Methods {
    list: Vec<MetricMethod>,
    /// By [`MethodId`].
    ids: Vec<MetricMethodId>,
}

impl Methods {
    fn new(contexts: &Contexts, profile: &Profile) -> Self {
        let mut list: Vec<MetricMethod> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let methods = contexts.methods().iter().enumerate();
        let ids = methods.map(|(index, method)| {
            let frame = profile.context_methods.get(index).copied().flatten();
            let frame = frame.and_then(|frame| profile.frames.frames().get(frame.index()));
            let symbol = frame.map(|frame| frame.symbol);
            if let Some(id) = symbol.and_then(|symbol| known.get(&symbol)) {
                return *id;
            }
            let id = MetricMethodId::at(list.len());
            let named = symbol.and_then(|symbol| profile.frames.symbol(symbol));
            list.push(MetricMethod {
                name: match named {
                    Some(symbol) => symbol.name.as_str().into(),
                    None => format!("{:#x}", method.address.get()).into(),
                },
                simple_name: named.map(|symbol| {
                    let name = symbol.recorded.as_deref().unwrap_or(symbol.plain_name());
                    let name = name.split('(').next().unwrap_or_default();
                    name.rsplit('.').next().unwrap_or_default().into()
                }),
                size: method.code.map(varid_model::CodeUnits::get).map(u64::from),
                symbol,
            });
            if let Some(symbol) = symbol {
                known.insert(symbol, id);
            }
            id
        });
        let ids = ids.collect();
        Self { list, ids }
    }

    fn of(&self, method: MethodId) -> Option<MetricMethodId> {
        self.ids.get(method.index()).copied()
    }
}
