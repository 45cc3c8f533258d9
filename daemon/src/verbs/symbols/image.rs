//! Reads the code in a file, and resolves addresses in it.

use super::Errors;
use anyhow::{Context, anyhow, bail};
use object::ReadCache;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use varid_symbolizer::container::{self, DexEntry};
use varid_symbolizer::dex::{DexFile, MethodCode, MethodIndex};
use varid_symbolizer::elf::{DebugFiles, ElfSource, ElfSymbol};
use varid_symbolizer::retrace::{Mapping, ObfuscatedFrame, Position};
use varid_symbolizer::{Frame, Location};

/// Maximum size of a file with dex files: offsets in an archive have 32 bits.
const MAX_FILE: u64 = 1 << 32;

/// A file, or an entry of an archive, as named on the command line: `FILE` or `FILE!ENTRY`.
pub struct InputFile {
    path: PathBuf,
    entry: Option<String>,
    debug_files: DebugFiles,
    mapping: Option<Rc<Mapping>>,
}

/// A dex file or an ELF file, in which addresses are resolved.
pub struct Image<'a> {
    /// Its name in the command line's syntax.
    pub name: String,
    /// The meaning of its addresses.
    pub code: Code<'a>,
    /// The original names of the methods of dex files.
    mapping: Option<Rc<Mapping>>,
}

/// The meaning of addresses.
pub enum Code<'a> {
    /// Offsets in a dex file, or in a container of several (from version 041 on). At least one.
    Dex(Vec<(DexFile<'a>, MethodIndex)>),
    /// The addresses of the ELF file itself.
    Elf(Box<ElfSource>),
}

/// A function or method with code.
#[derive(serde::Serialize)]
pub struct Function {
    /// Its start address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// The name as profiles show it.
    pub name: String,
    /// The source file of its first line, or of its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl InputFile {
    /// Returns the file with this name. If no file has a name with a `!`, it is that of an archive's entry.
    pub fn new(name: &Path, debug_files: &DebugFiles, mapping: Option<Rc<Mapping>>) -> Self {
        let debug_files = debug_files.clone();
        let entry = name.to_str().filter(|_| !name.exists()).and_then(|text| {
            // The name of an archive within an archive has several. The first one that follows an existing file is used.
            text.match_indices('!')
                .filter_map(|(at, _)| text.split_at_checked(at))
                .find(|(file, _)| Path::new(file).is_file())
        });
        match entry {
            Some((file, entry)) => Self {
                path: file.into(),
                entry: Some(entry.trim_start_matches(['!', '/']).to_owned()),
                debug_files,
                mapping,
            },
            None => Self {
                path: name.to_owned(),
                entry: None,
                debug_files,
                mapping,
            },
        }
    }

    /// The path of the file itself, or of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `visit` with the images in the file. Reports those that cannot be read in `errors`.
    pub fn visit(&self, errors: &mut Errors, visit: impl FnOnce(&[Image<'_>], &mut Errors)) {
        let shown = self.path.display().to_string();
        let Some((file, size)) = errors.report(self.open()) else {
            return;
        };
        let mut magic = [0; 4];
        // A shorter file has neither of the magic numbers.
        let _ = file.read_exact_at(&mut magic, 0);
        let mut images = Vec::new();
        if magic == *b"\x7fELF" && self.entry.is_none() {
            images.extend(errors.report(self.elf(&shown, &file)));
            report_problems(&images, errors);
            // An oat file also contains dex files.
            if container::entries(&shown, &ReadCache::new(&file)).is_err() {
                return visit(&images, errors);
            }
        }
        let Some(bytes) = errors.report(read(file, size, &self.path)) else {
            return;
        };
        if let Some(library) = self.entry.as_ref().filter(|name| name.ends_with(".so")) {
            images.extend(errors.report(self.library(&shown, &bytes, library)));
            report_problems(&images, errors);
            return visit(&images, errors);
        }
        let entries = self.dex_files(&shown, &bytes, errors);
        let plain = matches!(magic, [b'd', b'e', b'x', _] | [b'c', b'd', b'e', b'x']);
        images.extend(entries.iter().filter_map(|entry| {
            let name = match plain {
                true => shown.clone(),
                false => format!("{shown}!{}", entry.name),
            };
            Image::of_dex(name, entry, self.mapping.clone(), errors)
        }));
        visit(&images, errors);
    }

    fn elf(&self, shown: &str, file: &File) -> anyhow::Result<Image<'static>> {
        let file = file
            .try_clone()
            .with_context(|| format!("{shown}: cannot duplicate"))?;
        Ok(Image {
            name: shown.to_owned(),
            code: Code::Elf(Box::new(ElfSource::from_file(
                file,
                shown,
                &self.debug_files,
            )?)),
            mapping: None,
        })
    }

    /// Returns the library that is `entry` of an archive.
    fn library(&self, shown: &str, bytes: &[u8], entry: &str) -> anyhow::Result<Image<'static>> {
        let name = format!("{shown}!{entry}");
        let place = container::zip::entries(shown, bytes, |name| name == entry)?
            .into_iter()
            .next()
            .with_context(|| format!("{name}: not in the archive"))??;
        let library = place.read(shown, bytes)?.into_owned();
        let elf = ElfSource::from_bytes(library, &name, &self.debug_files)?;
        let code = Code::Elf(Box::new(elf));
        Ok(Image {
            name,
            code,
            mapping: None,
        })
    }

    /// Returns the selected dex files.
    fn dex_files<'b>(
        &self,
        shown: &str,
        bytes: &'b [u8],
        errors: &mut Errors,
    ) -> Vec<DexEntry<'b>> {
        let found = container::dex_files(shown, bytes).map_err(Into::into);
        let Some(found) = errors.report(found) else {
            return Vec::new();
        };
        let mut broken = false;
        let mut entries = Vec::new();
        for entry in found {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    broken = true;
                    errors.add(&error.into());
                }
            }
        }
        let meant =
            |entry: &DexEntry<'_>| self.entry.as_ref().is_none_or(|name| *name == entry.name);
        entries.retain(meant);
        match &self.entry {
            Some(entry) if entries.is_empty() => {
                errors.add(&anyhow!("{shown}: no dex file called '{entry}' in it"));
            }
            None if entries.is_empty() && !broken => {
                let elsewhere = match bytes {
                    [b'v', b'd', b'e', b'x', ..] => {
                        ": since Android 10 a .vdex file need not hold any: they are in the APK or .jar that it was made for"
                    }
                    _ => "",
                };
                errors.add(&anyhow!("{shown}: no dex file in it{elsewhere}"));
            }
            _ => {}
        }
        entries
    }

    fn open(&self) -> anyhow::Result<(File, u64)> {
        let shown = self.path.display();
        let file = File::open(&self.path).with_context(|| format!("{shown}: cannot open"))?;
        let meta = file
            .metadata()
            .with_context(|| format!("{shown}: cannot look at"))?;
        if !meta.is_file() {
            bail!("{shown}: not a regular file");
        }
        Ok((file, meta.len()))
    }
}

/// Reports the unusable parts of ELF files.
fn report_problems(images: &[Image<'_>], errors: &mut Errors) {
    for image in images {
        let Code::Elf(elf) = &image.code else {
            continue;
        };
        for problem in elf.symbols().problems() {
            errors.add(&anyhow!("{}: {problem}; the rest is shown", image.name));
        }
    }
}

fn read(mut file: File, size: u64, path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    if size > MAX_FILE {
        bail!("{shown}: {size} bytes are more than a file with dex files in it can have");
    }
    let mut bytes = Vec::new();
    // The system may refuse twice the size even if there is space for it.
    bytes
        .try_reserve_exact(usize::try_from(size)?)
        .with_context(|| format!("{shown}: no memory for {size} bytes"))?;
    file.read_to_end(&mut bytes)
        .with_context(|| format!("{shown}: cannot read"))?;
    Ok(bytes)
}

impl<'a> Image<'a> {
    /// Returns the readable dex files of an entry.
    fn of_dex(
        name: String,
        entry: &'a DexEntry<'a>,
        mapping: Option<Rc<Mapping>>,
        errors: &mut Errors,
    ) -> Option<Self> {
        let mut files = Vec::new();
        for (_, dex) in entry.dex_files() {
            let dex = dex.and_then(|dex| Ok((MethodIndex::new(&dex)?, dex)));
            let in_file = dex.with_context(|| name.clone());
            let Some((index, dex)) = errors.report(in_file) else {
                continue;
            };
            if let Some(problem) = index.problem() {
                errors.add(&anyhow!("{name}: {problem}; the rest is shown"));
            }
            files.push((dex, index));
        }
        (!files.is_empty()).then_some(Self {
            name,
            code: Code::Dex(files),
            mapping,
        })
    }

    /// Describes its kind, for people.
    pub fn kind(&self) -> String {
        match &self.code {
            Code::Elf(_) => "ELF".to_owned(),
            Code::Dex(files) => files.first().map_or_else(String::new, |(dex, _)| {
                let kind = if dex.is_compact() {
                    "compact dex"
                } else {
                    "dex"
                };
                format!("{kind} {:03}", dex.version())
            }),
        }
    }

    /// Returns its build-id: for an ELF file its own, for a dex file its computed SHA-1.
    pub fn build_id(&self) -> Option<Vec<u8>> {
        match &self.code {
            Code::Elf(elf) => elf.symbols().build_id().map(<[u8]>::to_owned),
            Code::Dex(files) => Some(files.first()?.0.content_sha1().to_vec()),
        }
    }

    /// Returns its functions, by ascending address.
    pub fn functions(&self) -> Vec<Function> {
        match &self.code {
            Code::Dex(files) => {
                let mut functions: Vec<Function> = files
                    .iter()
                    .flat_map(|(dex, index)| {
                        let of = |method| self.dex_function(dex, method);
                        index.methods().iter().map(of)
                    })
                    .collect();
                functions.sort_by_key(|function| function.address);
                functions
            }
            Code::Elf(elf) => {
                let functions = elf.symbols().functions();
                functions.map(|symbol| elf_function(elf, &symbol)).collect()
            }
        }
    }

    /// Returns the frames at an address, innermost first. Empty if nothing is known of it.
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        match &self.code {
            Code::Dex(files) => u32::try_from(address)
                .ok()
                .and_then(|offset| {
                    files.iter().find_map(|(dex, index)| {
                        let frame = dex.frame(index, offset)?;
                        Some(self.retrace(frame, dex, index.lookup(offset)?, offset))
                    })
                })
                .unwrap_or_default(),
            Code::Elf(elf) => elf.frames(address),
        }
    }

    /// Returns the source frames that a frame of a dex method stands for, innermost first. Returns the frame itself if there is no
    /// mapping or no entry for it.
    fn retrace(
        &self,
        frame: Frame<'static>,
        dex: &DexFile<'_>,
        method: &MethodCode,
        offset: u32,
    ) -> Vec<Frame<'_>> {
        let found = self.mapping.as_ref().and_then(|mapping| {
            let (obfuscated, _) = ObfuscatedFrame::of_method(&frame.function)?;
            let has_lines = || has_lines(dex, method);
            let pc = offset.saturating_sub(method.code.start) / 2;
            let location = frame.location.as_ref();
            let position = match location {
                Some(location) => Some(Position::Line(location.line)),
                None => (mapping.is_r8() && !has_lines()).then_some(Position::Pc(pc)),
            };
            Some(mapping.frames_of(&ObfuscatedFrame {
                position,
                file: location.map(|location| &*location.file),
                ..obfuscated
            }))
        });
        found
            .filter(|frames| !frames.is_empty())
            .unwrap_or_else(|| vec![frame])
    }

    fn dex_function(&self, dex: &DexFile<'_>, method: &MethodCode) -> Function {
        let first = dex.lines(method).ok();
        let row = first
            .iter()
            .flat_map(|lines| lines.rows())
            .find(|row| row.line != 0);
        let file = match row {
            Some(row) => dex.source_name(method, row.source).ok(),
            None => dex.source_file(method).ok().flatten(),
        };
        let name = dex.code_name(method);
        let line = row.map(|row| row.line);
        let recorded = Frame {
            // The same name as in the substitute.
            function: name
                .unwrap_or_else(|_| format!("method@{}", method.index))
                .into(),
            location: line.map(|line| Location {
                file: file.clone().unwrap_or_default().into(),
                line,
            }),
        };
        let is_retraced = self.mapping.is_some();
        let frames = self.retrace(recorded, dex, method, method.code.start);
        // Inlined frames belong to other functions.
        let own = frames.last();
        let location = own.and_then(|frame| frame.location.as_ref());
        Function {
            address: method.code.start.into(),
            size: method.code.len() as u64,
            name: own.map_or_else(String::new, |frame| frame.function.to_string()),
            file: match location {
                Some(location) => Some(location.file.to_string()),
                None if is_retraced => None,
                None => file,
            },
            line: location.map(|location| location.line),
        }
    }
}

/// Returns true if any instruction of a method has a line.
fn has_lines(dex: &DexFile<'_>, method: &MethodCode) -> bool {
    let lines = dex.lines(method).ok();
    lines
        .iter()
        .flat_map(|lines| lines.rows())
        .any(|row| row.line != 0)
}

fn elf_function(elf: &ElfSource, symbol: &ElfSymbol<'_>) -> Function {
    let outermost = elf.frames(symbol.start).pop();
    let (name, location) = match outermost {
        Some(frame) => (frame.function, frame.location),
        None => (symbol.name(), None),
    };
    Function {
        address: symbol.start,
        size: symbol.end.saturating_sub(symbol.start),
        name: name.into_owned(),
        line: location.as_ref().map(|location| location.line),
        file: location.map(|location| location.file.into_owned()),
    }
}
