//! The data of a profile in a page.
//!
//! | part | what |
//! |---|---|
//! | header | JSON: what was recorded, facts, threads, images, strings, and the columns that follow |
//! | `node.*` | the tree of symbols in preorder |
//! | `stack.*` | the tree of frames, which tells lines: its parent as a distance back, its frame, its node |
//! | `symbol.*`, `frame.*` | by number |
//! | `sample.*` | by time: nanoseconds after the one before, its thread, its stack plus 1, its period |
//!
//! Exact measures have sums instead of samples: for each stack of a thread its value as a period, all at the time 0.
//!
//! Indices start at 0, line numbers at 1. Where a value may be missing, 0 stands for none and all others are one higher.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

use serde_json::{Value, json};
use varid_model::{Layer, Period, Pid, Tid};
use varid_recording::EstimatedCache;

use super::{
    columns::Columns,
    tree::{SymbolTree, TreeNode},
};
use crate::{
    error::Result,
    export::{
        interner::Interner,
        strings::Strings,
        walk::{Walk, plain},
    },
    finding::Finding,
    frames::{FrameId, ImageId, ProfileSymbol, SymbolId},
    render,
    samples::ProfileSample,
    scope::Scope,
    short_name,
    stacks::StackId,
    tasks::{Task, TaskId},
    time_span::nanoseconds,
    unit::Unit,
    view::{PercentOf, View},
    weights::WeightRow,
};

/// The version of the header and the columns.
const VERSION: u32 = 1;

/// The index of each symbol in a page.
pub type SymbolNumbers = Interner<SymbolId>;

/// Writes the length of the header in 4 bytes, the header, and the columns. `shown`: the names of all events or measures
/// in the page.
pub fn write(walk: &Walk, shown: &[String], out: &mut dyn Write) -> Result<SymbolNumbers> {
    let mut tables = Tables {
        walk,
        strings: Strings::new(),
        columns: Columns::default(),
    };
    let stacks = Stacks::new(walk)?;
    let threads = Threads::new(walk)?;
    let tree = SymbolTree::new(walk, &stacks.is_used);
    let numbers = tables.trees(&tree, &stacks);
    let images = tables.symbols(&numbers.symbols);
    tables.frames(&numbers.frames);
    tables.samples(&stacks, &threads)?;
    let threads = tables.threads(&threads);
    let Tables {
        mut strings,
        columns,
        ..
    } = tables;
    let view = View::default();
    let measures = walk.measures.clone();
    let scope = Scope::with_measures(walk.profile, &view, walk.event, measures);
    let lists = Lists {
        finding: finding(&scope, &numbers.symbols),
        facts: facts(&scope)?,
        threads,
        images,
        strings: strings.take_new(),
        columns: columns.names,
    };
    let header = header(walk, shown, lists).to_string();
    let len = u32::try_from(header.len()).unwrap_or(u32::MAX);
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(&columns.bytes)?;
    Ok(numbers.symbols)
}

/// The parts of the header that describe the columns and the text report.
struct Lists {
    finding: Option<Value>,
    facts: Vec<Fact>,
    threads: Vec<Value>,
    images: Vec<Value>,
    strings: Vec<String>,
    columns: Vec<(&'static str, usize)>,
}

/// The label and the text of a line of the text report.
type Fact = (String, String);

/// Returns the samples of an event, or the sums of an exact measure as samples at the start of the recording.
fn samples<'w>(walk: &'w Walk) -> Result<Box<dyn Iterator<Item = ProfileSample> + 'w>> {
    if walk.is_sampled() {
        return Ok(Box::new(walk.samples()?));
    }
    let rows = walk.profile.weights.rows(&walk.measures.counters());
    let sample = |row: WeightRow| ProfileSample {
        time: walk.profile.recording.manifest.start_time_ns,
        task: row.task,
        stack: row.stack,
        event: walk.event.event,
        period: Period::new(walk.value(row.weight)),
    };
    Ok(Box::new(rows.map(sample)))
}

fn header(walk: &Walk, shown: &[String], lists: Lists) -> Value {
    let recording = &walk.profile.recording;
    let losses = recording.losses.iter();
    let losses: Vec<_> = losses
        .map(|loss| (walk.since_start(loss.time), loss.count))
        .collect();
    let weigh = match walk.unit() {
        Unit::Samples => PercentOf::Samples,
        Unit::Nanoseconds | Unit::Bytes | Unit::Events => PercentOf::Period,
    };
    json!({
        "version": VERSION,
        "title": walk.title(),
        "target": plain(&recording.manifest.target.value),
        "start": plain(&recording.manifest.wall_start),
        "duration": nanoseconds(recording.duration),
        "event": plain(walk.name()),
        "events": shown,
        "measure": !walk.measures.are_samples(),
        "timed": walk.is_sampled(),
        "unit": plain(walk.unit_name()),
        "interval": walk.interval(),
        "weigh": weigh.name(),
        "lost": recording.lost,
        "losses": losses,
        "finding": lists.finding,
        "facts": lists.facts,
        "caches": caches(walk),
        "layers": Layer::ALL.map(Layer::name),
        "threads": lists.threads,
        "images": lists.images,
        "strings": lists.strings,
        "columns": lists.columns,
    })
}

/// Returns what an estimate would be with other method caches: their sizes, their blocks, the sums of the measure.
fn caches(walk: &Walk) -> Vec<(u32, u32, u64)> {
    let estimates = &walk.profile.recording.manifest.estimates;
    let estimate = estimates
        .iter()
        .find(|estimate| !walk.measures.are_samples() && estimate.measure == walk.name());
    let caches = estimate.map_or(&[][..], |estimate| &estimate.caches);
    let row = |cache: &EstimatedCache| (cache.size, cache.blocks, cache.cost);
    caches.iter().map(row).collect()
}

/// Returns the first sentence of the text report, and the index of the symbol in it.
fn finding(scope: &Scope, symbols: &SymbolNumbers) -> Option<Value> {
    let finding = Finding::of(scope)?;
    let symbol = finding.symbol().and_then(|symbol| symbols.get(symbol));
    Some(json!({ "text": plain(&finding.to_string()), "symbol": symbol }))
}

/// Returns the head and the foot of the text report as labels and texts. A line without a label continues the previous one.
fn facts(scope: &Scope) -> Result<Vec<Fact>> {
    let mut text = Vec::new();
    render::facts(scope, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let fact = |line: &str| {
        let is_labelled = |(label, _): &(&str, &str)| !label.contains(' ');
        match line.split_once("  ").filter(is_labelled) {
            Some((label, text)) => (label.to_owned(), text.trim_start().to_owned()),
            None => (String::new(), line.to_owned()),
        }
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    Ok(lines.map(fact).collect())
}

/// The stacks of the event's samples.
struct Stacks {
    /// By [`StackId`].
    is_used: Vec<bool>,
    /// By [`StackId`]: its index in the page. None if it has no samples.
    numbers: Vec<Option<u32>>,
}

impl Stacks {
    fn new(walk: &Walk) -> Result<Self> {
        let stacks = &walk.profile.stacks;
        let mut is_used = vec![false; stacks.len()];
        for stack in samples(walk)?.filter_map(|sample| sample.stack) {
            if let Some(is_used) = is_used.get_mut(stack.index()) {
                *is_used = true;
            }
        }
        for stack in stacks.ids().rev() {
            let parent = stacks.parent(stack);
            if let (Some(true), Some(parent)) = (is_used.get(stack.index()), parent)
                && let Some(is_used) = is_used.get_mut(parent.index())
            {
                *is_used = true;
            }
        }
        let mut next = 0u32;
        let number = |is_used: &bool| {
            let number = is_used.then_some(next);
            next = next.saturating_add(u32::from(*is_used));
            number
        };
        let numbers = is_used.iter().map(number).collect();
        Ok(Self { is_used, numbers })
    }

    fn number(&self, stack: StackId) -> Option<u32> {
        self.numbers.get(stack.index()).copied().flatten()
    }
}

/// The threads of the event's samples, sorted by descending weight.
struct Threads<'p> {
    /// The last sampled task of each thread.
    all: Vec<&'p Task>,
    numbers: HashMap<TaskId, u32>,
}

impl<'p> Threads<'p> {
    fn new(walk: &Walk<'p>) -> Result<Self> {
        // By task: the value of its samples, and the index of the last one.
        let mut of_tasks: BTreeMap<TaskId, (u64, usize)> = BTreeMap::new();
        for (place, sample) in samples(walk)?.enumerate() {
            let (value, last) = of_tasks.entry(sample.task).or_default();
            *value = value.saturating_add(walk.sample_value(&sample));
            *last = place;
        }
        let mut of_threads: BTreeMap<(Pid, Tid), (u64, &Task)> = BTreeMap::new();
        let task = |id: TaskId| walk.profile.tasks.task(id);
        let mut by_last: Vec<_> = of_tasks.iter().collect();
        by_last.sort_by_key(|(_, (_, last))| *last);
        for (id, (value, _)) in by_last {
            if let Some(task) = task(*id) {
                let thread = of_threads.entry((task.pid, task.tid));
                let thread = thread.or_insert((0, task));
                *thread = (thread.0.saturating_add(*value), task);
            }
        }
        let mut order: Vec<_> = of_threads.into_iter().collect();
        order.sort_by_key(|(_, (value, _))| std::cmp::Reverse(*value));
        let places = order.iter().map(|(thread, _)| *thread).zip(0u32..);
        let places: HashMap<(Pid, Tid), u32> = places.collect();
        let number = |id: TaskId| {
            let task = task(id)?;
            Some((id, *places.get(&(task.pid, task.tid))?))
        };
        Ok(Self {
            numbers: of_tasks.into_keys().filter_map(number).collect(),
            all: order.iter().map(|(_, (_, task))| *task).collect(),
        })
    }
}

/// The index of each symbol and of each frame in a page.
struct Numbers {
    symbols: SymbolNumbers,
    frames: Interner<FrameId>,
}

struct Tables<'w, 'p> {
    walk: &'w Walk<'p>,
    strings: Strings,
    columns: Columns,
}

impl Tables<'_, '_> {
    /// Returns the numbers of the symbols and frames.
    fn trees(&mut self, tree: &SymbolTree, stacks: &Stacks) -> Numbers {
        let (mut symbols, mut frames) = (Interner::new(), Interner::new());
        let nodes = &tree.nodes;
        let columns = &mut self.columns;
        columns.push("node.depth", nodes.iter().map(|node| node.depth.into()));
        let symbol = |node: &TreeNode| symbols.id(node.symbol).into();
        columns.push("node.symbol", nodes.iter().map(symbol));

        let table = &self.walk.profile.stacks;
        let used = || table.ids().filter_map(|id| Some((id, stacks.number(id)?)));
        let back = |(id, number): (StackId, u32)| {
            let parent = table.parent(id).and_then(|parent| stacks.number(parent));
            parent.map_or(0, |parent| u64::from(number.saturating_sub(parent)))
        };
        columns.push("stack.back", used().map(back));
        let frame = |(id, _)| table.frame(id).map_or(0, |frame| frames.id(frame).into());
        columns.push("stack.frame", used().map(frame));
        let node = |(id, _)| tree.node(id).unwrap_or_default().into();
        columns.push("stack.node", used().map(node));
        Numbers { symbols, frames }
    }

    /// Returns the symbols, and the name and optional path of each image.
    fn symbols(&mut self, symbols: &SymbolNumbers) -> Vec<Value> {
        let Self {
            walk,
            strings,
            columns,
        } = self;
        let all = || symbols.keys().iter().filter_map(|id| walk.symbol(*id));
        let mut images: Interner<ImageId> = Interner::new();
        let name = |name: &str| u64::from(strings.id(name));
        columns.push(
            "symbol.name",
            all().map(|symbol| symbol.name.as_str()).map(name),
        );
        // The forms of a name for narrow spaces, longest first. If there are fewer forms, the shortest one is repeated.
        let forms = [
            "symbol.form1",
            "symbol.form2",
            "symbol.form3",
            "symbol.form4",
        ];
        for (place, column) in forms.into_iter().enumerate() {
            let form = |symbol: &ProfileSymbol| {
                let forms = short_name::forms(&symbol.name);
                let form = forms.get(place).or(forms.last());
                u64::from(strings.id(form.map_or(&symbol.name, |form| form.as_ref())))
            };
            columns.push(column, all().map(form));
        }
        let image = all().map(|symbol| images.id(symbol.image).into());
        columns.push("symbol.image", image);
        columns.push(
            "symbol.layer",
            all().map(|symbol| symbol.layer.place() as u64),
        );
        let marker = all().map(|symbol| u64::from(symbol.marker.is_some()));
        columns.push("symbol.marker", marker);
        let image = |id: &ImageId| {
            let image = walk.profile.frames.image(*id);
            let name = image.map_or("", |image| &image.name);
            let path = image.and_then(|image| image.path.as_ref());
            let path = path.map(|path| plain(&path.to_string_lossy()).into_owned());
            json!([plain(name), path])
        };
        images.keys().iter().map(image).collect()
    }

    fn frames(&mut self, frames: &Interner<FrameId>) {
        let Self {
            walk,
            strings,
            columns,
        } = self;
        let lines = || {
            let frames = frames.keys().iter().filter_map(|id| walk.frame(*id));
            frames.map(|frame| frame.line.as_ref())
        };
        columns.push(
            "frame.line",
            lines().map(|line| line.map_or(0, |line| line.line.into())),
        );
        let file = lines().map(|line| line.map_or(0, |line| strings.id(&line.file).into()));
        columns.push("frame.file", file);
        let approximate = lines().map(|line| {
            line.is_some_and(|line| line.precision.is_approximate())
                .into()
        });
        columns.push("frame.approximate", approximate);
    }

    fn samples(&mut self, stacks: &Stacks, threads: &Threads) -> Result<()> {
        let Self { walk, columns, .. } = self;
        let mut before = 0;
        let times = samples(walk)?.map(|sample| walk.since_start(sample.time));
        let after = times.map(|time| {
            let after = time.saturating_sub(before);
            before = before.max(time);
            after
        });
        columns.push("sample.after", after);
        let thread = |task: TaskId| threads.numbers.get(&task).copied();
        let of_sample = |sample: ProfileSample| thread(sample.task).unwrap_or_default().into();
        let thread = samples(walk)?.map(of_sample);
        columns.push("sample.thread", thread);
        let stack = samples(walk)?.map(|sample| {
            let number = sample.stack.and_then(|stack| stacks.number(stack));
            number.map_or(0, |number| u64::from(number).saturating_add(1))
        });
        columns.push("sample.stack", stack);
        let period = samples(walk)?.map(|sample| sample.period.get());
        columns.push("sample.period", period);
        Ok(())
    }

    /// Returns pid, tid, thread name and process name.
    fn threads(&self, threads: &Threads) -> Vec<Value> {
        let thread = |task: &&Task| {
            let process = self.walk.process_name(task);
            let (pid, tid) = (task.pid.get(), task.tid.get());
            json!([pid, tid, plain(&task.name), plain(process)])
        };
        threads.all.iter().map(thread).collect()
    }
}
