//! Copies a session, with further counters of its contexts.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use crate::{
    CALL_ORDER_DATA, RAW_DATA, SESSION_JSON, SessionReader,
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

/// Copies a session to a new folder, with further counters and notes. The order of calls is not copied: it is that of the contexts as they
/// were.
///
/// # Errors
///
/// A file cannot be read or written, or the folder exists.
pub fn copy_with_counters(
    session: &SessionReader,
    contexts: &Contexts,
    to: &Path,
    added: &[AddedCounter<'_>],
    notes: &[String],
) -> Result<()> {
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
    manifest.notes.extend_from_slice(notes);
    let path = to.join(SESSION_JSON);
    let json = manifest.to_json().map_err(Error::io("write", &path))?;
    let written = create(&path).and_then(|mut file| file.write_all(&json));
    written.map_err(Error::io("write", path))
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
