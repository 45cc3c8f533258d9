//! The addresses of methods in the session: slots of the remap range, as samples of Java have them.

use std::{
    collections::HashMap,
    ops::Range,
    path::{Path, absolute},
};

use sha1_smol::Sha1;
use varid_model::{Address, Layer, MonotonicNs, Pid, Tid};
use varid_recording::{
    ImageKind, MappingRecord, REMAP_BASE, SessionImage, SessionRecord, SessionWriter,
    remap::{
        APP_FILE, FILE_OFFSET, FIRST_METHOD, FRAMEWORK_BASE, FRAMEWORK_FILE, SLOT_SIZE, VM_BASE,
    },
};
use varid_symbolizer::{
    hex,
    java::ClassName,
    substitute::{
        MethodSlot, MethodSource, Slot, SlotLine, Substitute, append_slots_sym, sym_file_of,
    },
};

use crate::{error::Result, tables::CountedMethod};

/// The methods of a session. Those of several processes that are equal have the same address.
#[derive(Debug)]
pub(crate) struct Names {
    parts: [Part; 2],
    /// The addresses of equal methods, in the order in which they were found in a process.
    known: HashMap<Identity, Vec<Address>>,
}

/// What is equal of equal methods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    name: String,
    descriptor: String,
    code_length: u16,
    source: MethodSource,
}

/// How many methods of a process have each identity.
#[derive(Debug, Default)]
pub(crate) struct Taken(HashMap<Identity, usize>);

/// The methods of a layer.
#[derive(Debug)]
struct Part {
    layer: Layer,
    file: &'static str,
    range: Range<u64>,
    build_id: [u8; 20],
    /// The next free address.
    next: u64,
    methods: Vec<MethodSlot>,
    /// Bytes of their names, and of those of their classes and files.
    names: usize,
}

impl Names {
    /// Makes the empty table of a session.
    pub(crate) fn new(session: &Path) -> Self {
        let part = |layer, file, range: Range<u64>, next| Part {
            layer,
            file,
            build_id: Sha1::from(format!("varid exact\0{}\0{file}", session.display()))
                .digest()
                .bytes(),
            range,
            next,
            methods: Vec::new(),
            names: 0,
        };
        Self {
            parts: [
                part(
                    Layer::App,
                    APP_FILE,
                    REMAP_BASE..FRAMEWORK_BASE,
                    FIRST_METHOD,
                ),
                part(
                    Layer::Framework,
                    FRAMEWORK_FILE,
                    FRAMEWORK_BASE..VM_BASE,
                    FRAMEWORK_BASE,
                ),
            ],
            known: HashMap::new(),
        }
    }

    /// Returns the address of a method's first instruction. None if the range is full.
    pub(crate) fn address(&mut self, method: &CountedMethod, taken: &mut Taken) -> Option<Address> {
        let class = ClassName::new(&method.class);
        let table = &method.table;
        let line = |line: &varid_instrument::Line| SlotLine {
            offset: line.start.0.into(),
            line: line.line.into(),
        };
        let readable = class.readable();
        let identity = Identity {
            name: format!("{readable}.{}", table.name),
            descriptor: table.descriptor.clone(),
            code_length: table.code_length,
            source: MethodSource {
                class: readable,
                file: method.source_file.clone(),
                lines: table.lines.iter().map(line).collect(),
            },
        };
        let nth = taken.0.entry(identity.clone()).or_default();
        let index = *nth;
        *nth = nth.saturating_add(1);
        if let Some(known) = self.known.get(&identity).and_then(|known| known.get(index)) {
            return Some(*known);
        }
        let layer = match class.is_of_jdk() {
            true => Layer::Framework,
            false => Layer::App,
        };
        let part = self.parts.iter_mut().find(|part| part.layer == layer)?;
        let address = part.add(&identity)?;
        self.known.entry(identity).or_default().push(address);
        Some(address)
    }

    /// Returns the offset of an address in its part's file. None if no part has it.
    pub(crate) fn offset_in_file(&self, address: Address) -> Option<u64> {
        let mut parts = self.parts.iter();
        let part = parts.find(|part| part.range.contains(&address.get()))?;
        Some(part.in_file(address.get()))
    }

    /// Returns the mappings of a process.
    pub(crate) fn mappings(
        &self,
        pid: Pid,
        time: MonotonicNs,
        writer: &SessionWriter,
    ) -> impl Iterator<Item = SessionRecord> {
        self.parts.iter().map(move |part| {
            let path = writer.symbols().join(part.file);
            SessionRecord::Mapping(MappingRecord {
                time,
                pid,
                tid: Tid::new(pid.get()),
                start: Address::new(part.range.start),
                len: part.range.end.saturating_sub(part.range.start),
                pgoff: FILE_OFFSET,
                kernel: false,
                mode: None,
                path: absolute(&path).unwrap_or(path),
                build_id: part.build_id.to_vec(),
            })
        })
    }

    /// Writes the names into the session.
    pub(crate) fn write(self, writer: &mut SessionWriter) -> Result<()> {
        for part in self.parts {
            let path = writer.symbols_here().join(part.file);
            append_slots_sym(&part.methods, &sym_file_of(&path))?;
            let end = part.in_file(part.next);
            Substitute::remap(part.methods, end, &part.build_id)?.write(&path)?;
            writer.manifest_mut().images.push(SessionImage {
                path: part.file.to_owned(),
                build_id: hex(&part.build_id),
                kind: ImageKind::Remap,
                layer: part.layer,
                substitute: Some(format!("symbols/{}", part.file)),
                location: None,
            });
        }
        Ok(())
    }
}

impl Part {
    /// Returns the offset in the part's file of an address of its range.
    const fn in_file(&self, address: u64) -> u64 {
        address
            .saturating_sub(self.range.start)
            .saturating_add(FILE_OFFSET)
    }

    fn add(&mut self, method: &Identity) -> Option<Address> {
        // As of samples: a caller is looked up one byte behind its instruction, which may be the last one.
        let size = u64::from(method.code_length)
            .saturating_add(1)
            .max(SLOT_SIZE);
        let address = self.next;
        let next = address
            .checked_add(size)?
            .checked_next_multiple_of(SLOT_SIZE)
            .filter(|next| *next <= self.range.end)?;
        let source = &method.source;
        let names = [&method.name, &source.class, &source.file];
        let names = names.iter().map(|name| name.len());
        let names = names.fold(self.names, usize::saturating_add);
        if names > Substitute::MAX_NAMES {
            return None;
        }
        self.methods.push(MethodSlot {
            slot: Slot {
                offset: self.in_file(address),
                size,
                name: method.name.clone(),
            },
            descriptor: method.descriptor.clone(),
            source: Some(method.source.clone()),
        });
        (self.next, self.names) = (next, names);
        Some(Address::new(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::method;

    #[test]
    fn equal_methods_of_two_processes_are_one_and_those_of_two_loaders_are_two() {
        let mut names = Names::new(Path::new("/session"));
        let found = method(1, "run", 0);
        let mut other = found.clone();
        other.class = "java/lang/Thread".to_owned();
        let mut of_process = |methods: &[&CountedMethod]| {
            let mut taken = Taken::default();
            let addresses = methods
                .iter()
                .map(|method| names.address(method, &mut taken).unwrap().get());
            addresses.collect::<Vec<_>>()
        };
        let first = of_process(&[&found, &found, &other]);
        assert_eq!(first, [FIRST_METHOD, FIRST_METHOD + 16, FRAMEWORK_BASE]);
        assert_eq!(
            of_process(&[&other, &found]),
            [FRAMEWORK_BASE, FIRST_METHOD]
        );
    }
}
