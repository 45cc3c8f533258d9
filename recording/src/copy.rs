//! Copies a session, with further counters of its contexts.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use crate::{
    CALL_ORDER_DATA, CallOrder, CallOrderWriter, EstimatedMeasure, RAW_DATA, SESSION_JSON,
    SessionReader,
    call_order::ContextsKey,
    contexts::{
        CONTEXTS_DATA, ContextCount, ContextCounter, ContextWriter, Contexts, CounterId, NodeId,
    },
    error::{Error, Result},
    regular::open_regular,
    session_files::session_files,
};

/// A counter that a copy of a session has beside the session's own.
#[derive(Debug, Clone)]
pub struct AddedCounter<'v> {
    /// Its name and unit. A counter of the session with the same name is left out.
    pub counter: ContextCounter,
    /// The values: the place, as in [`ContextCount`], and the value, by node.
    pub values: &'v [Vec<(Option<u32>, u64)>],
}

/// What a copy of a session has beside the session's own.
#[derive(Debug, Clone, Default)]
pub struct Additions<'v> {
    /// Further counters.
    pub counters: Vec<AddedCounter<'v>>,
    /// Those of them that are estimates.
    pub estimates: Vec<EstimatedMeasure>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// Copies a session to a new folder, with additions. An order of calls that cannot be read is left out, and a note says so.
///
/// # Errors
///
/// A file cannot be read or written, or the folder exists.
pub fn copy_with_counters(
    session: &SessionReader,
    contexts: &Contexts,
    to: &Path,
    additions: &Additions<'_>,
) -> Result<()> {
    let added = additions.counters.as_slice();
    let made = DirBuilder::new().mode(0o700).create(to);
    made.map_err(Error::io("make", to))?;
    let files = session_files(session.dir()).map_err(Error::io("read", session.dir()))?;
    let left_out = [CONTEXTS_DATA, CALL_ORDER_DATA, RAW_DATA, SESSION_JSON];
    for file in files {
        if left_out.iter().all(|name| file != Path::new(name)) {
            copy(&session.dir().join(&file), &to.join(&file))?;
        }
    }
    write_contexts(contexts, to, added)?;
    let mut manifest = session.manifest().clone();
    match CallOrder::open(session.dir()) {
        Ok(Some(order)) => copy_order(&order, contexts, to)?,
        Ok(None) => {}
        Err(error) => manifest
            .notes
            .push(format!("the order of calls was not copied: {error}")),
    }
    manifest.notes.extend_from_slice(&additions.notes);
    let is_replaced = |estimate: &EstimatedMeasure| {
        let mut added = added.iter();
        added.any(|added| added.counter.name == estimate.measure)
    };
    manifest.estimates.retain(|estimate| !is_replaced(estimate));
    manifest.estimates.extend_from_slice(&additions.estimates);
    let path = to.join(SESSION_JSON);
    let json = manifest.to_json().map_err(Error::io("write", &path))?;
    let written = create(&path).and_then(|mut file| file.write_all(&json));
    written.map_err(Error::io("write", path))
}

/// Copies the order of calls. The contexts of the copy have the same numbers, but their file is another one.
fn copy_order(order: &CallOrder, contexts: &Contexts, to: &Path) -> Result<()> {
    let nodes = u32::try_from(contexts.nodes().len()).unwrap_or(u32::MAX);
    let key = ContextsKey::of(to, nodes)?;
    let path = to.join(CALL_ORDER_DATA);
    let file = create(&path).map_err(Error::io("create", &path))?;
    let mut writer = CallOrderWriter::create(path, file, key)?;
    for thread in order.threads() {
        writer.start_thread(thread.pid, thread.tid)?;
        for event in order.events(thread) {
            writer.add(event?)?;
        }
        writer.end_thread(thread.incomplete.as_deref())?;
    }
    writer.finish()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = open_regular(from).map_err(Error::io("open", from))?;
    if let Some(folder) = to.parent() {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        made.map_err(Error::io("make", folder))?;
    }
    let copied = create(to).and_then(|mut file| io::copy(&mut source, &mut file));
    copied.map(|_| ()).map_err(Error::io("write", to))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::File::options();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn write_contexts(contexts: &Contexts, to: &Path, added: &[AddedCounter<'_>]) -> Result<()> {
    let is_replaced = |counter: &ContextCounter| {
        let mut added = added.iter();
        added.any(|added| added.counter.name == counter.name)
    };
    let mut counters: Vec<ContextCounter> = Vec::new();
    let kept: Vec<Option<CounterId>> = contexts
        .counters()
        .iter()
        .map(|counter| {
            let id = (!is_replaced(counter)).then(|| CounterId::at(counters.len()));
            counters.extend(id.map(|_| counter.clone()));
            id
        })
        .collect();
    let first = counters.len();
    counters.extend(added.iter().map(|added| added.counter.clone()));
    let path = to.join(CONTEXTS_DATA);
    let file = create(&path).map_err(Error::io("create", &path))?;
    let mut writer = ContextWriter::create(path, file, &counters)?;
    for process in contexts.processes() {
        writer.add_process(process.pid, &process.vm)?;
    }
    for method in contexts.methods() {
        writer.add_method(method)?;
    }
    for site in contexts.sites() {
        writer.add_site(site)?;
    }
    for (index, node) in contexts.nodes().iter().enumerate() {
        let id = writer.add_node(node)?;
        for count in contexts.counts(NodeId::at(index)) {
            let counter = kept.get(count.counter.index()).copied().flatten();
            if let Some(counter) = counter {
                writer.set_count(id, &ContextCount { counter, ..*count })?;
            }
        }
        for (number, added) in added.iter().enumerate() {
            let counter = CounterId::at(first.saturating_add(number));
            for (place, value) in added.values.get(index).into_iter().flatten() {
                let (place, value) = (*place, *value);
                writer.set_count(
                    id,
                    &ContextCount {
                        counter,
                        place,
                        value,
                    },
                )?;
            }
        }
    }
    for process in contexts.processes() {
        let damage = contexts.damage();
        let incomplete = process.incomplete.as_deref().or(damage);
        writer.end_process(process.pid, incomplete)?;
    }
    writer.finish()
}
