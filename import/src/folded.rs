//! What do folded stacks say?
//!
//! A line is a stack, its frames from the outermost to the leaf with semicolons between them, and a number. Brendan Gregg's
//! stackcollapse scripts write them, async-profiler, and `varid export -f folded`. `--annotate-*` of the former and `-a` of the latter
//! mark frames: `_[k]` the kernel's, `_[j]` code made at run time, `_[i]` inlined.

use varid_model::{Layer, MonotonicNs, Rate};
use varid_recording::{EventDesc, Host, SessionTarget, TargetKind};

use crate::{
    error::{Error, Result},
    folded_line::{frame, image, split},
    format::SourceFormat,
    lines::Lines,
    request::{ImportRequest, Imported, Origin, Span},
    summary::ImportSummary,
    text::{NamedFrame, TextSample, TextSession},
};

/// The longest line that is read.
const MAX_LINE: usize = 4 << 20;
/// The process that all stacks are of; its threads follow.
const PROCESS: u32 = 1;
/// Most threads that have ids of their own.
const MAX_THREADS: usize = 1 << 20;
/// `PERF_TYPE_RAW`: the session's perf.data needs an event, of which no reader takes the numbers for times.
const RAW: u32 = 4;

/// Imports folded stacks.
pub(crate) fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let path = &input.path;
    let name = path.file_stem().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let origin = Origin {
        input: &input,
        format: SourceFormat::Folded,
        writer: None,
        target: SessionTarget {
            kind: TargetKind::Command,
            value: path.to_string_lossy().into_owned(),
        },
        host: Host::default(),
        events: EventDesc::new("samples", Rate::Period(1), RAW, 0).into(),
    };
    let mut session = TextSession::new(origin.session(&request.output)?);
    let mut lines = Lines::new(input.reader()?, MAX_LINE);
    let mut threads = std::collections::HashMap::<String, u32>::new();
    let (mut number, mut bad_line) = (0u64, None);
    session.name((PROCESS, PROCESS), &name, MonotonicNs::ZERO)?;
    while let Some((at, line, whole)) = lines.next().map_err(Error::io("read", path))? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((stack, count)) = split(&line).filter(|_| whole) else {
            bad_line.get_or_insert(at);
            session.exclude(if whole { "malformed" } else { "too-long" });
            continue;
        };
        if count == 0 {
            session.exclude("of-no-weight");
            continue;
        }
        let (thread, frames) = match request.first_is_frame {
            true => (name.as_str(), Some(stack)),
            false => match stack.split_once(';') {
                Some((thread, frames)) => (thread, Some(frames)),
                None => (stack, None),
            },
        };
        let mut callees: Vec<NamedFrame<'_>> = Vec::new();
        let mut caller = Layer::Native;
        for text in frames.into_iter().flat_map(|frames| frames.split(';')) {
            let (name, layer) = frame(text, caller);
            caller = layer;
            let image = image(layer);
            callees.push(NamedFrame { name, image, layer });
        }
        if callees.is_empty() {
            // A thread without frames: its own name is the only one there is.
            let layer = Layer::Native;
            callees.push(NamedFrame {
                name: thread,
                image: image(layer),
                layer,
            });
        }
        for frame in callees.iter().rev() {
            session.push(&input, *frame);
        }
        let next = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        let tid = match (thread == name, threads.get(thread)) {
            (true, _) => PROCESS,
            (_, Some(tid)) => *tid,
            (_, None) if threads.len() >= MAX_THREADS => PROCESS,
            (_, None) => {
                let tid = PROCESS.saturating_add(1).saturating_add(next);
                threads.insert(thread.to_owned(), tid);
                tid
            }
        };
        let comm = match tid {
            PROCESS => name.as_str(),
            _ => thread,
        };
        session.sample(&TextSample {
            event: 0,
            time: number,
            pid: PROCESS,
            tid,
            cpu: 0,
            period: count,
            comm,
            ip: None,
        })?;
        number = number.saturating_add(1);
    }
    finish(session, input, bad_line)
}

fn finish(
    mut session: TextSession,
    input: crate::Input,
    bad_line: Option<u64>,
) -> Result<Imported> {
    let named_images = session.write_images("")?;
    let mut notes = vec![
        "folded stacks have no times: a line is a sample that weighs its number, and samples follow one another by a nanosecond"
            .to_owned(),
    ];
    notes.extend(bad_line.map(|line| {
        format!("line {line} is no folded stack, which is FRAME;FRAME;FRAME NUMBER; it and others like it are counted as malformed")
    }));
    let summary = ImportSummary {
        format: SourceFormat::Folded,
        writer: None,
        samples: session.writer.counts().samples,
        excluded: session.excluded.clone(),
        lost: 0,
        unwound: 0,
        named_images,
        notes: notes.clone(),
    };
    let manifest = session.writer.manifest_mut();
    manifest.notes = notes;
    manifest.counts.filtered = session.excluded;
    Span::default().write(manifest, input.modified);
    Ok(((session.writer, summary), input.path))
}
