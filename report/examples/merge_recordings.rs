//! Merges recordings into a large one, for benchmarks of its readers.
//!
//! usage: merge_recordings OUT SAMPLES SESSION...
//!
//! All sessions start at the same time. They are repeated until SAMPLES samples are written, with other process ids in
//! each repetition. They must have the same event and machine.
#![allow(missing_docs)]
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)] // Its sessions are its user's.

use std::{error::Error, fs, path::Path};
use varid_model::{MonotonicNs, Pid, Tid};
use varid_recording::{
    Manifest, MappingRecord, REMAP_ELF, SYMBOLS, SessionReader, SessionRecord, SessionWriter,
    session_files,
};

/// Larger than any process id in a recording.
const IDS: u32 = 1 << 20;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An input recording.
struct Part {
    manifest: Manifest,
    records: Vec<SessionRecord>,
    folder: String,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, samples, sessions @ ..] = &arguments[..] else {
        return Err("usage: merge_recordings OUT SAMPLES SESSION...".into());
    };
    let samples: u64 = samples.parse()?;
    let parts: Vec<Part> = sessions
        .iter()
        .map(|session| Part::read(Path::new(session)))
        .collect::<Result<_>>()?;
    let first = parts.first().ok_or("no session")?;
    let mut writer = SessionWriter::create(out, manifest(first))?;
    for (number, part) in parts.iter().enumerate() {
        part.copy_symbols(&mut writer, number)?;
    }
    let mut merged: Vec<(u64, usize, &SessionRecord)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let since = |record: &SessionRecord| record.time().get().saturating_sub(part.start());
        merged.extend(
            part.records
                .iter()
                .map(|record| (since(record), number, record)),
        );
    }
    merged.sort_by_key(|(time, ..)| *time);
    let length = merged.last().map_or(0, |(time, ..)| *time) + 1;
    let (mut written, mut pass) = (0, 0);
    'passes: while written < samples {
        let before = written;
        for (since, number, record) in &merged {
            let place = pass * parts.len() + number;
            let time = MonotonicNs::new(first.start() + pass as u64 * length + since);
            let moved = parts[*number].moved(record, *number, place, time, writer.symbols());
            let Some(record) = moved else { continue };
            written += u64::from(matches!(record, SessionRecord::Sample(_)));
            writer.write(&record)?;
            if written == samples {
                break 'passes;
            }
        }
        if written == before {
            return Err("no sample in any session".into());
        }
        pass += 1;
    }
    writer.manifest_mut().duration_ns = (pass as u64 + 1) * length;
    writer.finish()?;
    Ok(())
}

/// Makes the manifest of the merged recording, without images.
fn manifest(first: &Part) -> Manifest {
    let mut manifest = first.manifest.clone();
    manifest.target.value = "several programs".into();
    manifest.images.clear();
    manifest.counts = Default::default();
    manifest
}

impl Part {
    fn read(folder: &Path) -> Result<Self> {
        let session = SessionReader::open(folder)?;
        let records = session.records()?.collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            manifest: session.manifest().clone(),
            records,
            folder: fs::canonicalize(folder)?.display().to_string(),
        })
    }

    fn start(&self) -> u64 {
        self.manifest.start_time_ns.get()
    }

    /// Copies symbol files. A file is renamed if another part has one with the same name.
    fn copy_symbols(&self, writer: &mut SessionWriter, number: usize) -> Result<()> {
        let folder = Path::new(&self.folder);
        for file in session_files(folder)? {
            let Ok(name) = file.strip_prefix(SYMBOLS) else {
                continue;
            };
            let name = own_name(&name.to_string_lossy(), number);
            let to = writer.symbols().join(name);
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            fs::copy(folder.join(&file), to)?;
        }
        for image in &self.manifest.images {
            let mut image = image.clone();
            if let Some(substitute) = &mut image.substitute {
                *substitute = own_name(substitute, number);
            }
            let images = &mut writer.manifest_mut().images;
            if !images.contains(&image) {
                images.push(image);
            }
        }
        Ok(())
    }

    /// Moves a record to another time and other processes.
    fn moved(
        &self,
        record: &SessionRecord,
        number: usize,
        place: usize,
        time: MonotonicNs,
        symbols: impl AsRef<Path>,
    ) -> Option<SessionRecord> {
        let add = |id: u32| match id {
            0 | u32::MAX => id,
            id => id + IDS * place as u32,
        };
        let pid = |pid: Pid| Pid::new(add(pid.get()));
        let tid = |tid: Tid| Tid::new(add(tid.get()));
        let mut moved = record.clone();
        match &mut moved {
            SessionRecord::Mapping(mapping) if mapping.kernel && place > 0 => return None,
            SessionRecord::Mapping(mapping) => {
                *mapping = MappingRecord {
                    time,
                    pid: pid(mapping.pid),
                    tid: tid(mapping.tid),
                    ..mapping.clone()
                };
                let own = Path::new(&self.folder).join(SYMBOLS);
                if let Ok(name) = mapping.path.strip_prefix(own) {
                    let name = own_name(&name.display().to_string(), number);
                    mapping.path = symbols.as_ref().join(name);
                }
            }
            SessionRecord::Comm {
                time: at,
                pid: p,
                tid: t,
                ..
            } => (*at, *p, *t) = (time, pid(*p), tid(*t)),
            SessionRecord::Fork {
                time: at,
                pid: p,
                ppid,
                tid: t,
                ptid,
            }
            | SessionRecord::Exit {
                time: at,
                pid: p,
                ppid,
                tid: t,
                ptid,
            } => (*at, *p, *ppid, *t, *ptid) = (time, pid(*p), pid(*ppid), tid(*t), tid(*ptid)),
            SessionRecord::Lost { time: at, .. } => *at = time,
            SessionRecord::Sample(sample) => {
                (sample.time, sample.pid, sample.tid) = (time, pid(sample.pid), tid(sample.tid));
            }
        }
        Some(moved)
    }
}

/// Returns the name of a part's symbol file in the merged recording. The remap range of each VM has other methods.
fn own_name(name: &str, number: usize) -> String {
    let remap = REMAP_ELF.rsplit('/').next().unwrap_or(REMAP_ELF);
    match name.strip_suffix(remap) {
        Some(folder) if number > 0 => format!("{folder}remap-{number}.elf"),
        _ => name.to_owned(),
    }
}
