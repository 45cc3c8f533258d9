//! Reads simpleperf's additions to perf.data.
//!
//! simpleperf stores the symbols of all files that have a sample: in its feature FILE2, or FILE before Android 13. Sources:
//! `record_file.proto`, `record_file_reader.cpp` and, for the meaning of addresses, `dso.cpp` (`IpToVaddrInFile`) of
//! system/extras/simpleperf.

use prost::Message;
use varid_model::perf::{Fields, Malformed};

/// The kind of a file: `enum DsoType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Kernel,
    KernelModule,
    Elf,
    Dex,
    /// Others: a perf map, or files that simpleperf does not know.
    Other,
}

/// A file with the functions that have samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    /// The first executable address, as the file's own address.
    pub(crate) min_address: u64,
    /// The position of that address: the file offset, or for a module the offset in its memory. None in recordings of an older simpleperf.
    pub(crate) min_place: Option<u64>,
    pub(crate) functions: Vec<SourceFunction>,
}

/// A function, with the file's own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFunction {
    pub(crate) address: u64,
    pub(crate) size: u32,
    pub(crate) name: String,
}

/// The value of an unknown position.
const NOT_KNOWN: u64 = u64::MAX;

#[derive(Clone, PartialEq, Message)]
struct FileMessage {
    #[prost(bytes = "vec", tag = "1")]
    path: Vec<u8>,
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(uint64, tag = "3")]
    min_vaddr: u64,
    #[prost(message, repeated, tag = "4")]
    symbol: Vec<SymbolMessage>,
    #[prost(message, optional, tag = "6")]
    elf: Option<PlaceMessage>,
    #[prost(message, optional, tag = "7")]
    module: Option<PlaceMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SymbolMessage {
    #[prost(uint64, tag = "1")]
    vaddr: u64,
    #[prost(uint32, tag = "2")]
    len: u32,
    #[prost(bytes = "vec", tag = "3")]
    name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct PlaceMessage {
    #[prost(uint64, tag = "1")]
    place: u64,
}

impl FileKind {
    const fn new(number: u32) -> Self {
        match number {
            0 => Self::Kernel,
            1 => Self::KernelModule,
            2 => Self::Elf,
            3 => Self::Dex,
            _ => Self::Other,
        }
    }
}

/// Parses the files of a section: of FILE if `first` is true, else of FILE2.
///
/// # Errors
///
/// The section differs from simpleperf's format. The files before the problem are in `files`.
pub(crate) fn files(
    section: &[u8],
    first: bool,
    files: &mut Vec<SourceFile>,
) -> Result<(), Malformed> {
    let mut fields = Fields::new(section);
    while !fields.is_empty() {
        let long = fields.malformed("a file's symbols that are longer than their section");
        let size = usize::try_from(fields.u32()?).map_err(|_| long)?;
        let wrong = fields.malformed("a file's symbols are not what simpleperf writes");
        let record = fields.bytes(size)?;
        let file = match first {
            true => first_version(record),
            false => message(record),
        };
        files.push(file.ok_or(wrong)?);
    }
    Ok(())
}

fn message(record: &[u8]) -> Option<SourceFile> {
    let message = FileMessage::decode(record).ok()?;
    let place = message.elf.or(message.module).map(|place| place.place);
    let kind = FileKind::new(message.kind);
    let functions = message.symbol.into_iter().map(|symbol| SourceFunction {
        address: symbol.vaddr,
        size: symbol.len,
        name: text(&symbol.name),
    });
    Some(SourceFile {
        path: text(&message.path),
        kind,
        min_address: message.min_vaddr,
        min_place: place.filter(|place| *place != NOT_KNOWN),
        functions: functions.collect(),
    })
}

fn first_version(record: &[u8]) -> Option<SourceFile> {
    let mut fields = Fields::new(record);
    let path = terminated(&mut fields)?;
    let kind = FileKind::new(fields.u32().ok()?);
    let min_address = fields.u64().ok()?;
    let count = fields.u32().ok()?;
    let mut functions = Vec::new();
    for _ in 0..count {
        functions.push(SourceFunction {
            address: fields.u64().ok()?,
            size: fields.u32().ok()?,
            name: terminated(&mut fields)?,
        });
    }
    let has_place = matches!(kind, FileKind::Elf | FileKind::KernelModule);
    let place = match has_place && !fields.is_empty() {
        true => Some(fields.u64().ok()?),
        false => None,
    };
    Some(SourceFile {
        path,
        kind,
        min_address,
        min_place: place.filter(|place| *place != NOT_KNOWN),
        functions,
    })
}

fn terminated(fields: &mut Fields<'_>) -> Option<String> {
    let found = text(fields.text().ok()?);
    fields.bytes(1).ok()?;
    Some(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The code cache that a file stands for. simpleperf writes code generated by ART's JIT into such files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JitCache {
    /// The app's own cache.
    App,
    /// Inherited from the zygote.
    Zygote,
}

impl JitCache {
    /// Returns the cache for a path: `/data/local/tmp/perf.data_jit_app_cache:1039560-1040440`; before Android 12 `./TemporaryFile-osHvVs`.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        if name.contains("_jit_app_cache:") || name.starts_with("TemporaryFile-") {
            Some(Self::App)
        } else if name.contains("_jit_zygote_cache:") {
            Some(Self::Zygote)
        } else {
            None
        }
    }
}

/// The name of a method as in interpreted frames. ART's JIT adds the return type and parameters: `void org.example.Main.run(int)`.
/// Overloads have the same name.
pub(crate) fn method_name(name: &str) -> &str {
    let Some(open) = name.find('(').filter(|_| name.ends_with(')')) else {
        return name;
    };
    let (call, _) = name.split_at(open);
    match call.rsplit_once(' ') {
        Some((_, method)) if method.contains('.') => method,
        None if call.contains('.') => call,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiled_method_has_the_name_of_the_interpreted_one() {
        for (name, expected) in [
            (
                "void org.example.Main.run(int, java.lang.String[])",
                "org.example.Main.run",
            ),
            ("org.example.Main.run(int)", "org.example.Main.run"),
            ("org.example.Main.<init>", "org.example.Main.<init>"),
            (
                "art::interpreter::Execute(art::Thread*)",
                "art::interpreter::Execute(art::Thread*)",
            ),
            ("_Z3fooi", "_Z3fooi"),
        ] {
            assert_eq!(method_name(name), expected);
        }
    }

    #[test]
    fn both_versions_say_the_same() {
        let function = SourceFunction {
            address: 0x1000,
            size: 16,
            name: "f".to_owned(),
        };
        let file = SourceFile {
            path: "/x.so".to_owned(),
            kind: FileKind::Elf,
            min_address: 0x1000,
            min_place: Some(0x800),
            functions: vec![function],
        };
        let message = FileMessage {
            path: b"/x.so".to_vec(),
            kind: 2,
            min_vaddr: 0x1000,
            symbol: vec![SymbolMessage {
                vaddr: 0x1000,
                len: 16,
                name: b"f".to_vec(),
            }],
            elf: Some(PlaceMessage { place: 0x800 }),
            module: None,
        };
        let mut first = b"/x.so\0".to_vec();
        first.extend(2u32.to_le_bytes());
        first.extend(0x1000u64.to_le_bytes());
        first.extend(1u32.to_le_bytes());
        first.extend(0x1000u64.to_le_bytes());
        first.extend(16u32.to_le_bytes());
        first.extend(b"f\0");
        first.extend(0x800u64.to_le_bytes());
        for (record, is_first) in [(message.encode_to_vec(), false), (first, true)] {
            let mut section = u32::try_from(record.len()).unwrap().to_le_bytes().to_vec();
            section.extend(&record);
            let mut found = Vec::new();
            files(&section, is_first, &mut found).unwrap();
            assert_eq!(found, std::slice::from_ref(&file));
            for len in 1..section.len() {
                let mut found = Vec::new();
                assert!(files(&section[..len], is_first, &mut found).is_err());
            }
        }
    }
}
