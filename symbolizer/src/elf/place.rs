//! Finds the position of code in an ELF file, by a function's name or by address.

use std::fmt::Write;
use std::path::Path;

use object::elf;

use super::data::FileBytes;
use super::debug_files::DebugFiles;
use super::demangle::demangle;
use super::minidebug;
use super::near::nearest;
use super::parts::Segment;
use super::reader::ElfReader;
use super::tables::Extents;
use crate::Result;

/// The longest symbol name that is compared, in bytes.
const MAX_NAME: usize = 4096;
/// The most similar names that an error shows.
const MAX_NEAR: usize = 5;

/// The functions of an ELF file by name, and the file offsets of its code.
#[derive(Debug, Clone, Default)]
pub struct CodePlaces {
    segments: Vec<Segment>,
    functions: Vec<NamedFunction>,
}

/// A function symbol. Several may have the same address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedFunction {
    /// The mangled name as in the file, without a version.
    name: String,
    address: u64,
    /// It is a resolver, which chooses the function when the program starts (`STT_GNU_IFUNC`).
    chooses: bool,
}

/// One of the functions with the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overload {
    /// Its name, of C++ with its arguments: `Parker::park(bool, long)`.
    pub name: String,
    /// Its address in the file.
    pub address: u64,
}

/// Why a name or an address has no position.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// No function has this name.
    #[error("no function is called '{name}'{}", similar(.near))]
    NoFunction {
        /// The name.
        name: String,
        /// The most similar names.
        near: Vec<String>,
    },
    /// Several functions have this name.
    #[error("'{name}' is the name of several functions, at {}: give the address of one", hexadecimal(.addresses))]
    Several {
        /// The name.
        name: String,
        /// Their addresses.
        addresses: Vec<u64>,
    },
    /// The function is chosen when the program starts.
    #[error(
        "'{name}' is one of several functions, chosen when the program starts (an IFUNC){}",
        similar(.near)
    )]
    Chosen {
        /// The name.
        name: String,
        /// Names that contain it.
        near: Vec<String>,
    },
    /// No code is loaded at the address.
    #[error("the file has no code at address {0:#x}")]
    NoCode(u64),
}

fn similar(names: &[String]) -> String {
    match names {
        [] => ", nor anything like it; it may have been stripped: give an address".to_owned(),
        names => format!(". It has '{}'", names.join("', '")),
    }
}

fn hexadecimal(addresses: &[u64]) -> String {
    let mut text = String::new();
    for (index, address) in addresses.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a String does not fail.
        let _ = write!(text, "{separator}{address:#x}");
    }
    text
}

impl CodePlaces {
    /// Reads a file's headers and symbols. `debug_files`: where the symbols are searched of a file without a `.symtab`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if it cannot be opened, [`Error::Elf`](crate::Error::Elf) if it is not a usable ELF file.
    pub fn open(path: &Path, debug_files: &DebugFiles) -> Result<Self> {
        Self::of(&ElfReader::open(path)?, debug_files)
    }

    /// Like [`CodePlaces::open`], for a file of `size` bytes that is already open. `name` is used in messages, and to find a debug file beside
    /// it.
    ///
    /// # Errors
    /// [`Error::Elf`](crate::Error::Elf) if it is not a usable ELF file.
    pub fn from_file(
        file: &dyn FileBytes,
        size: u64,
        name: &Path,
        debug_files: &DebugFiles,
    ) -> Result<Self> {
        let name = name.display().to_string();
        let image = ElfReader::from_part(Box::new(file), 0..size, &name)?;
        Self::of(&image, debug_files)
    }

    fn of(image: &ElfReader<'_>, debug_files: &DebugFiles) -> Result<Self> {
        if image.kind == elf::ET_REL {
            return Err(image.wrong("header", "a relocatable file, which no process runs"));
        }
        let mut places = Self {
            segments: image.segments.clone(),
            functions: Vec::new(),
        };
        places.add(image)?;
        // The tables of the file itself may be usable although these are not.
        if let Some(mini) = minidebug::unpack(image) {
            let _ = places.add(&mini);
        }
        if let Ok(None) = image.symbol_table(elf::SHT_SYMTAB)
            && let Some(debug) = debug_files.of(image)
        {
            let _ = places.add(&debug);
        }
        Ok(places)
    }

    /// Returns the address of the function with this name: a symbol, or a demangled name with or without arguments.
    ///
    /// # Errors
    /// There is no such function, or more than one, or it is an IFUNC.
    pub fn function(&self, name: &str) -> Result<u64, PlaceError> {
        let exact = self.functions.iter().filter(|known| known.name == name);
        let mut found: Vec<&NamedFunction> = exact.collect();
        if found.is_empty() {
            let in_own_language = |known: &&NamedFunction| {
                let demangled = demangle(&known.name);
                let arguments = demangled.strip_prefix(name);
                arguments.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
            };
            found = self.functions.iter().filter(in_own_language).collect();
        }
        found.sort_by_key(|known| known.address);
        found.dedup_by_key(|known| known.address);
        match found.as_slice() {
            [] => Err(PlaceError::NoFunction {
                name: name.to_owned(),
                near: self.near(name),
            }),
            [NamedFunction { chooses: true, .. }] => Err(PlaceError::Chosen {
                name: name.to_owned(),
                near: self.near(name),
            }),
            [known] => Ok(known.address),
            _ => Err(PlaceError::Several {
                name: name.to_owned(),
                addresses: found.iter().map(|known| known.address).collect(),
            }),
        }
    }

    /// Returns the functions with this name, whatever their arguments are: the symbol `Unsafe_Park`, or the C++ functions `Parker::park`. Parts
    /// that the compiler has split off a function are left out.
    #[must_use]
    pub fn overloads(&self, name: &str) -> Vec<Overload> {
        let parts = name.split("::");
        let parts: String = parts.map(|part| format!("{}{part}", part.len())).collect();
        let mangled = format!("_ZN{parts}E");
        let is_it = |known: &&NamedFunction| match name.contains("::") {
            true => known.name.starts_with(&mangled) && !known.name.contains('.'),
            false => known.name == name,
        };
        let mut found: Vec<_> = self.functions.iter().filter(is_it).collect();
        found.sort_by_key(|known| known.address);
        found.dedup_by_key(|known| known.address);
        let overloads = found.into_iter().map(|known| Overload {
            name: demangle(&known.name).into_owned(),
            address: known.address,
        });
        overloads.collect()
    }

    /// Returns the file offset of the code that is loaded at an address.
    ///
    /// # Errors
    /// No code is loaded there.
    pub fn offset(&self, address: u64) -> Result<u64, PlaceError> {
        let code = self.segments.iter().filter(|segment| segment.executable);
        let mut offsets = code.filter_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            let within = Some(within).filter(|within| *within < segment.size)?;
            segment.offset.checked_add(within)
        });
        offsets.next().ok_or(PlaceError::NoCode(address))
    }

    fn near(&self, name: &str) -> Vec<String> {
        let others = self.functions.iter().filter(|known| known.name != name);
        // Names without `::` are compared in their mangled form.
        let raw = others.clone().map(|known| known.name.as_str());
        let found = nearest(name, raw, MAX_NEAR);
        if !name.contains("::") {
            return found;
        }
        let demangled: Vec<_> = others.map(|known| demangle(&known.name)).collect();
        nearest(name, demangled.iter().map(AsRef::as_ref), MAX_NEAR)
    }

    fn add(&mut self, image: &ElfReader<'_>) -> Result<()> {
        // Bit 0 of an ARM function's address means Thumb.
        let thumb = u64::from(image.machine == elf::EM_ARM);
        let extents = Extents::new(image, &self.segments);
        let mut problem = None;
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let table = match image.symbol_table(kind) {
                Ok(Some(table)) => table,
                Ok(None) => continue,
                Err(error) => {
                    problem = Some(error);
                    continue;
                }
            };
            for symbol in table.symbols() {
                let extent = extents.of(&symbol);
                if table.code_symbol(&symbol, extent.as_ref()).is_none() {
                    continue;
                }
                let name = String::from_utf8_lossy(table.name(&symbol, MAX_NAME));
                // Cut the version: memcpy@@GLIBC_2.14.
                let name = name.split('@').next().unwrap_or_default();
                if name.is_empty() {
                    continue;
                }
                self.functions.push(NamedFunction {
                    name: name.to_owned(),
                    address: symbol.value & !thumb,
                    chooses: symbol.kind == elf::STT_GNU_IFUNC,
                });
            }
        }
        // The other table may be sufficient.
        match problem {
            Some(problem) if self.functions.is_empty() => Err(problem),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> CodePlaces {
        let function = |name: &str, address, chooses| NamedFunction {
            name: name.to_owned(),
            address,
            chooses,
        };
        let segment = |offset, address, executable| Segment {
            offset,
            address,
            size: 0x100,
            executable,
        };
        CodePlaces {
            segments: vec![segment(0, 0, false), segment(0x100, 0x1100, true)],
            functions: vec![
                function("malloc", 0x1110, false),
                function("__libc_malloc", 0x1110, false),
                function("strlen", 0x1120, true),
                function("__strlen_avx2", 0x1130, false),
                function("helper", 0x1140, false),
                function("helper", 0x1150, false),
                function("_ZN3art7Monitor4WaitEPNS_6ThreadE", 0x1160, false),
            ],
        }
    }

    #[test]
    fn a_function_is_found_by_each_of_its_names() {
        let places = places();
        for name in [
            "_ZN3art7Monitor4WaitEPNS_6ThreadE",
            "art::Monitor::Wait",
            "art::Monitor::Wait(art::Thread*)",
        ] {
            assert_eq!(places.function(name), Ok(0x1160), "{name}");
        }
        assert_eq!(places.function("malloc"), Ok(0x1110));
        assert_eq!(places.function("__libc_malloc"), Ok(0x1110));
    }

    #[test]
    fn overloads_are_the_functions_with_a_name_whatever_their_arguments_are() {
        let mut places = places();
        for (name, address) in [
            ("_ZN3art7Monitor4WaitEv", 0x1170),
            ("_ZN3art7Monitor4WaitEv.cold", 0x1180),
            ("_ZN3art7Monitor5WaitsEv", 0x1190),
        ] {
            places.functions.push(NamedFunction {
                name: name.to_owned(),
                address,
                chooses: false,
            });
        }
        let found = |name| {
            let overloads = places.overloads(name).into_iter();
            let overloads = overloads.map(|found| (found.name, found.address));
            overloads.collect::<Vec<_>>()
        };
        let expected = [
            ("art::Monitor::Wait(art::Thread*)".to_owned(), 0x1160),
            ("art::Monitor::Wait()".to_owned(), 0x1170),
        ];
        assert_eq!(found("art::Monitor::Wait"), expected);
        assert_eq!(found("malloc"), [("malloc".to_owned(), 0x1110)]);
        assert!(found("Monitor::Wait").is_empty());
    }

    #[test]
    fn what_is_no_single_function_is_answered_with_what_could_be_meant() {
        let places = places();
        for (name, said) in [
            ("maloc", "no function is called 'maloc'. It has 'malloc'"),
            (
                "strlen",
                "chosen when the program starts (an IFUNC). It has '__strlen_avx2'",
            ),
            (
                "helper",
                "several functions, at 0x1140, 0x1150: give the address",
            ),
            (
                "art::Monitor::Wit",
                "It has 'art::Monitor::Wait(art::Thread*)'",
            ),
            ("zzzzzzzz", "it may have been stripped"),
        ] {
            let error = places.function(name).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
    }

    #[test]
    fn an_address_becomes_the_offset_of_code() {
        let places = places();
        assert_eq!(places.offset(0x1110), Ok(0x110));
        assert_eq!(places.offset(0x1200), Err(PlaceError::NoCode(0x1200)));
        assert_eq!(places.offset(0x10), Err(PlaceError::NoCode(0x10)), "data");
    }
}
