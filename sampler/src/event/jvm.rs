//! The events of HotSpot: where Java programs allocate, and where their threads wait for locks.

use super::debug_files::installed;
use crate::SamplerError;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use varid_recording::EventUnit;
use varid_shim::HitWeight;
use varid_symbolizer::elf::{CodePlaces, FileBytes, Overload};

/// An event of HotSpot: calls of functions of libjvm's that Java code calls where it cannot go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JvmEvent {
    /// `alloc`: a thread takes a buffer for its objects (TLAB), or allocates an object outside of one. Its period is in bytes.
    Alloc,
    /// `lock`: a thread is about to wait for a monitor that another one holds.
    Lock,
    /// `park`: a thread parks, as those do that wait for a lock of `java.util.concurrent`.
    Park,
}

/// What the allocating functions take, first of all: the class, the address, the size of the buffer or the object.
const ALLOCATED: (&str, &str) = ("(Klass*, HeapWord", "*, unsigned long");

impl JvmEvent {
    /// All events of HotSpot.
    pub const ALL: [Self; 3] = [Self::Alloc, Self::Lock, Self::Park];

    /// The event's name in `-e`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Lock => "lock",
            Self::Park => "park",
        }
    }

    /// Looks up an event by name. Case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// What a call counts as.
    pub fn weight(self) -> HitWeight {
        match self {
            Self::Alloc => HitWeight::Allocation,
            Self::Lock | Self::Park => HitWeight::One,
        }
    }

    /// The unit of its periods.
    pub fn unit(self) -> EventUnit {
        match self {
            Self::Alloc => EventUnit::Bytes,
            Self::Lock | Self::Park => EventUnit::Events,
        }
    }

    /// The functions, for each group of versions. Of the first group of which a library has all functions, each is probed.
    fn functions(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Alloc => &[&[
                "AllocTracer::send_allocation_in_new_tlab",
                "AllocTracer::send_allocation_outside_tlab",
            ]],
            // From JDK 24 on, waiting has several implementations.
            Self::Lock => &[
                &["ObjectMonitor::enter_with_contention_mark"],
                &["ObjectMonitor::EnterI"],
            ],
            Self::Park => &[&["Unsafe_Park"]],
        }
    }

    /// Returns true if the function takes what the event reads at its start.
    fn fits(self, function: &str) -> bool {
        let (class, size) = ALLOCATED;
        let arguments = || function.get(function.find('(')?..);
        self != Self::Alloc
            || arguments()
                .and_then(|arguments| arguments.strip_prefix(class))
                .and_then(|rest| rest.split_once(size))
                .is_some_and(|(type_name, _)| !type_name.contains(','))
    }

    /// Returns where in a library it is sampled, as offsets from the start of the file.
    ///
    /// # Errors
    ///
    /// The library has not all of its functions, or not with known arguments.
    pub fn places(self, library: &Libjvm<'_>) -> Result<Vec<u64>, SamplerError> {
        let groups = self.functions().iter();
        let found = groups.clone().find_map(|group| {
            let places = group.iter().map(|name| self.place(name, &library.places));
            places.collect::<Option<Vec<_>>>()
        });
        found.ok_or_else(|| SamplerError::NoJvmFunctions {
            event: self.name(),
            file: library.file.name.display().to_string(),
            functions: groups.flat_map(|group| *group).copied().collect(),
        })
    }

    /// Returns where a function starts. None if there is none with this name and known arguments, or more than one.
    fn place(self, name: &str, places: &CodePlaces) -> Option<u64> {
        match places.overloads(name).as_slice() {
            [Overload { name, address }] if self.fits(name) => places.offset(*address).ok(),
            _ => None,
        }
    }
}

/// The file of a library of HotSpot.
#[derive(Debug, Clone, Copy)]
pub struct LibjvmFile<'f> {
    /// Its path where it is loaded, for messages.
    pub name: &'f Path,
    /// Identifies it.
    pub id: LibjvmId,
    /// What it contains.
    pub bytes: &'f dyn FileBytes,
    /// Its size in bytes.
    pub size: u64,
    /// A descriptor of it, which may be one of `O_PATH`.
    pub handle: BorrowedFd<'f>,
}

/// Identifies a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LibjvmId {
    /// `st_dev`.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

/// A library of HotSpot with its symbols.
#[derive(Debug)]
pub struct Libjvm<'f> {
    file: LibjvmFile<'f>,
    places: CodePlaces,
}

impl<'f> Libjvm<'f> {
    /// Reads the symbols of a library: its own, or those of its debug file in /usr/lib/debug.
    ///
    /// # Errors
    ///
    /// It is no ELF file, or cannot be read.
    pub fn read(file: LibjvmFile<'f>) -> Result<Self, SamplerError> {
        let LibjvmFile {
            name, bytes, size, ..
        } = file;
        let places = CodePlaces::from_file(bytes, size, name, &installed());
        let places = places.map_err(|error| SamplerError::UnreadableLibjvm(error.to_string()))?;
        Ok(Self { file, places })
    }

    /// A path that leads this process to the file, whatever is at its name here.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.handle.as_raw_fd())
    }
}

/// Returns the library that a program of a JDK loads, such as `bin/java`. None if the program is of no JDK.
pub fn libjvm_of(program: &Path) -> Option<PathBuf> {
    let program = fs::canonicalize(program).ok()?;
    let library = program.parent()?.parent()?.join("lib/server/libjvm.so");
    library.is_file().then_some(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn an_event_has_a_name() {
        for event in JvmEvent::ALL {
            assert_eq!(JvmEvent::named(event.name()), Some(event));
        }
        assert_eq!(JvmEvent::named("ALLOC"), Some(JvmEvent::Alloc));
        assert_eq!(JvmEvent::named("alloc-tlab"), None);
    }

    #[test]
    fn an_allocating_function_takes_a_class_an_address_and_a_size() {
        let fits = |arguments: &str| JvmEvent::Alloc.fits(&format!("A::b{arguments}"));
        // 17 and later, 11.
        assert!(fits("(Klass*, HeapWordImpl**, unsigned long, JavaThread*)"));
        assert!(fits(
            "(Klass*, HeapWord*, unsigned long, unsigned long, Thread*)"
        ));
        for other in [
            "(KlassHandle, HeapWord*, unsigned long, unsigned long)",
            "(Klass*, unsigned long, unsigned long)",
            "(Klass*, HeapWordImpl**, bool, unsigned long)",
            "(Klass*, HeapWordImpl*, JavaThread*, unsigned long)",
            "",
        ] {
            assert!(!fits(other), "{other}");
        }
        assert!(JvmEvent::Lock.fits("ObjectMonitor::EnterI(JavaThread*)"));
    }

    fn library(file: &File) -> LibjvmFile<'_> {
        LibjvmFile {
            name: Path::new("/jdk/libjvm.so"),
            id: LibjvmId {
                device: 0,
                inode: 0,
            },
            bytes: file,
            size: file.metadata().unwrap().len(),
            handle: file.as_fd(),
        }
    }

    #[test]
    fn what_a_library_lacks_is_named() {
        let own = std::env::current_exe().unwrap();
        let opened = File::open(&own).unwrap();
        let read = Libjvm::read(library(&opened)).unwrap();
        let error = JvmEvent::Alloc.places(&read).unwrap_err().to_string();
        for part in [
            "/jdk/libjvm.so",
            "AllocTracer::send_allocation_in_new_tlab",
            "-dbg",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let error = JvmEvent::Lock.places(&read).unwrap_err().to_string();
        assert!(error.contains("ObjectMonitor::EnterI"), "{error}");
        let nothing = File::open("/dev/null").unwrap();
        let error = Libjvm::read(library(&nothing)).unwrap_err().to_string();
        assert!(error.contains("/jdk/libjvm.so"), "{error}");
        assert_eq!(libjvm_of(&own), None);
    }
}
