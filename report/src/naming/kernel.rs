//! Looks up names of kernel addresses.

use std::{io::Read, path::PathBuf};

use varid_model::Address;
use varid_recording::{Host, MappingRecord, SessionReader, host, open_regular};
use varid_symbolizer::{
    elf::DebugFiles,
    kernel::{KernelSymbols, TextSymbol, Vmlinux},
};

use super::{
    file_version::FileVersion,
    images::{NamedFunction, unnamed, with_inlined},
};
use crate::name_options::{Detail, NameOptions};

/// The image name of the kernel itself.
pub const KERNEL: &str = "[kernel]";

/// Looks up names of kernel addresses.
#[derive(Debug)]
pub struct KernelNames {
    /// `symbols/kernel.sym` of the session.
    path: PathBuf,
    /// The recorded kernel's release.
    release: String,
    text: Option<KernelText>,
    /// Its ELF file, if the options have one.
    vmlinux: Option<PathBuf>,
    debug: DebugFiles,
    detail: Detail,
    /// Read on the first lookup.
    sources: Option<KernelSources>,
}

/// The address of the recorded kernel.
#[derive(Debug)]
struct KernelText {
    /// The symbol at its start.
    symbol: String,
    /// The address of that symbol.
    start: Address,
    build_id: Vec<u8>,
}

#[derive(Debug)]
struct KernelSources {
    /// The version of the session's file before it was read.
    version: Option<FileVersion>,
    /// The functions, or the reason why there are none.
    symbols: Result<KernelSymbols, String>,
    /// The debug information, if the options request it, or the reason why it is missing.
    vmlinux: Option<Result<Vmlinux, String>>,
}

impl KernelNames {
    /// Makes the kernel of a session.
    pub fn new(session: &SessionReader, names: &NameOptions, debug: DebugFiles) -> Self {
        Self {
            path: session.symbols().join("kernel.sym"),
            release: session.manifest().host.kernel.clone(),
            text: None,
            vmlinux: names.vmlinux.clone(),
            debug,
            detail: names.detail(),
            sources: None,
        }
    }

    /// Adds a mapping of the kernel.
    pub fn map(&mut self, mapping: &MappingRecord) {
        let path = mapping.path.to_string_lossy();
        if let Some(symbol) = path.strip_prefix("[kernel.kallsyms]") {
            self.text = Some(KernelText {
                symbol: symbol.to_owned(),
                start: mapping.start,
                build_id: mapping.build_id.clone(),
            });
        }
    }

    /// Returns the image of an address, which is [`KERNEL`] or a module, and the functions there, innermost first.
    pub fn functions(&mut self, address: Address) -> (String, Vec<NamedFunction>) {
        if self.sources.is_none() {
            self.sources = Some(self.read());
        }
        let address = address.get();
        let Some(KernelSources {
            symbols, vmlinux, ..
        }) = &self.sources
        else {
            return (KERNEL.to_owned(), Vec::new());
        };
        let frames = match vmlinux {
            Some(Ok(vmlinux)) => vmlinux.frames(address),
            _ => Vec::new(),
        };
        let symbol = symbols.as_ref().ok().map(|all| all.lookup(address));
        let (start, name, named) = match (symbol, frames.last()) {
            (Some(Some(symbol)), _) => (symbol.start, symbol.name.to_owned(), true),
            (_, Some(frame)) => (0, frame.function.clone().into_owned(), true),
            (Some(None), None) => (0, unnamed(KERNEL), false),
            // If there are no names at all, all addresses share one row.
            (None, None) => (0, KERNEL.to_owned(), false),
        };
        let module = symbol.flatten().and_then(|symbol| symbol.module);
        let image = module.map_or_else(|| KERNEL.to_owned(), |module| format!("[{module}]"));
        (
            image,
            with_inlined(&frames, self.detail, name, start, named),
        )
    }

    /// Returns the reasons why the kernel's functions have no names or, if requested, no lines.
    pub fn notes(&self) -> Vec<String> {
        let Some(KernelSources {
            symbols, vmlinux, ..
        }) = &self.sources
        else {
            return Vec::new();
        };
        let unnamed = symbols.as_ref().err();
        let unnamed = unnamed.map(|why| format!("{KERNEL}: {why}; its functions have no names"));
        // Call graphs need debug information for inlined functions only.
        let requested = self.detail.lines || self.vmlinux.is_some();
        let no_lines = vmlinux.as_ref().and_then(|vmlinux| vmlinux.as_ref().err());
        let no_lines = no_lines.filter(|_| requested);
        let no_lines = no_lines.map(|why| format!("{KERNEL}: {why}; it has no lines"));
        unnamed.into_iter().chain(no_lines).collect()
    }

    /// Handles growth of a live session. Returns true if the symbols have changed.
    pub fn refresh(&mut self) -> bool {
        let Some(sources) = &self.sources else {
            return false;
        };
        if FileVersion::of(&self.path) == sources.version {
            return false;
        }
        let (version, symbols) = self.read_symbols();
        if let Some(sources) = &mut self.sources {
            (sources.version, sources.symbols) = (version, symbols);
        }
        true
    }

    fn read(&self) -> KernelSources {
        let with_debug_info = self.detail.inlined || self.detail.lines;
        let (version, symbols) = self.read_symbols();
        KernelSources {
            version,
            symbols,
            vmlinux: with_debug_info.then(|| self.vmlinux()),
        }
    }

    fn read_symbols(&self) -> (Option<FileVersion>, Result<KernelSymbols, String>) {
        let version = FileVersion::of(&self.path);
        let mut bytes = Vec::new();
        let read = open_regular(&self.path).and_then(|mut file| file.read_to_end(&mut bytes));
        let symbols = match read {
            Ok(_) => KernelSymbols::parse(&bytes).map_err(|error| error.to_string()),
            Err(_) => running(&self.release, self.text.as_ref()),
        };
        (version, symbols)
    }

    /// Opens the recorded kernel's ELF file.
    fn vmlinux(&self) -> Result<Vmlinux, String> {
        let Some(text) = &self.text else {
            return Err("the recording does not say where it was".to_owned());
        };
        let place = TextSymbol {
            name: &text.symbol,
            address: text.start.get(),
        };
        let found = match &self.vmlinux {
            Some(path) => Vmlinux::open(path, &text.build_id, place, &self.debug).map(Some),
            None => Vmlinux::find(&self.release, &text.build_id, place, &self.debug),
        };
        found.map_err(|error| error.to_string())?.ok_or_else(|| {
            let id = varid_symbolizer::hex(&text.build_id);
            let release = &self.release;
            format!(
                "no vmlinux of {release} (build-id {id}) was found; name one with --vmlinux FILE"
            )
        })
    }
}

/// Returns the running kernel's symbols, if it is the recorded kernel at the same addresses.
fn running(release: &str, text: Option<&KernelText>) -> Result<KernelSymbols, String> {
    let running = Host::this_machine().kernel;
    if running != release {
        return Err(format!(
            "recorded on {release}, this machine runs {running}, and the session holds no symbols/kernel.sym"
        ));
    }
    let symbols = KernelSymbols::running().map_err(|error| error.to_string())?;
    if let Some(KernelText {
        start, build_id, ..
    }) = text
    {
        let same_build = build_id.is_empty() || *build_id == host::kernel_build_id();
        let same_place = symbols
            .lookup(start.get())
            .is_some_and(|symbol| symbol.start == start.get());
        if !(same_build && same_place) {
            return Err(
                "recorded by another build or boot of the kernel, and the session holds no symbols/kernel.sym"
                    .to_owned(),
            );
        }
    }
    Ok(symbols)
}
