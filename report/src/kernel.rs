//! What is a kernel address called?

use std::path::PathBuf;

use varid_recording::{Host, Mapping, SessionReader, host};
use varid_symbolizer::kernel::KernelSymbols;

/// The kernel's own code.
pub const KERNEL: &str = "[kernel]";

/// Where kernel names come from.
#[derive(Debug)]
pub enum Kernel {
    /// No kernel address has been looked up yet.
    Unread {
        /// `symbols/kernel.sym` of the session.
        path: PathBuf,
        /// The recorded kernel's release.
        release: String,
        /// Its text's first address and build-id, from its mapping.
        text: Option<(u64, Vec<u8>)>,
    },
    /// Its functions; or why they are not to be had.
    Read(Result<KernelSymbols, String>),
}

/// A function of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// [`KERNEL`], or the module.
    pub image: String,
    /// Its first address.
    pub start: u64,
    /// Its name.
    pub name: String,
    /// Whether that is a name: not an address, and not [`KERNEL`] for all of it.
    pub named: bool,
}

impl Kernel {
    /// The kernel that a session was recorded on.
    pub fn new(session: &SessionReader) -> Self {
        Self::Unread {
            path: session.symbols().join("kernel.sym"),
            release: session.manifest().host.kernel.clone(),
            text: None,
        }
    }

    /// A mapping of the kernel appeared.
    pub fn map(&mut self, mapping: &Mapping) {
        let path = mapping.path.to_string_lossy();
        if let Self::Unread { text, .. } = self
            && path.starts_with("[kernel.kallsyms]")
        {
            *text = Some((mapping.start, mapping.build_id.clone()));
        }
    }

    /// The function at an address.
    pub fn function(&mut self, address: u64) -> Function {
        self.read();
        let Self::Read(Ok(symbols)) = self else {
            // Without any names a row per address says nothing.
            return Function {
                image: KERNEL.to_owned(),
                start: 0,
                name: KERNEL.to_owned(),
                named: false,
            };
        };
        match symbols.lookup(address) {
            None => Function {
                image: KERNEL.to_owned(),
                start: address,
                name: format!("{address:#x}"),
                named: false,
            },
            Some(symbol) => Function {
                image: symbol
                    .module
                    .map_or_else(|| KERNEL.to_owned(), |module| format!("[{module}]")),
                start: symbol.start,
                name: symbol.name.to_owned(),
                named: true,
            },
        }
    }

    /// Why the kernel's functions have no names, if they were asked for and have none.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Read(Err(why)) => Some(format!("{KERNEL}: {why}; its functions have no names")),
            _ => None,
        }
    }

    fn read(&mut self) {
        let Self::Unread {
            path,
            release,
            text,
        } = self
        else {
            return;
        };
        let symbols = match std::fs::read(path) {
            Ok(bytes) => KernelSymbols::parse(&bytes).map_err(|error| error.to_string()),
            Err(_) => running(release, text.as_ref()),
        };
        *self = Self::Read(symbols);
    }
}

/// The running kernel's symbols if it is the recorded one, at the same addresses.
fn running(release: &str, text: Option<&(u64, Vec<u8>)>) -> Result<KernelSymbols, String> {
    let running = Host::this_machine().kernel;
    if running != release {
        return Err(format!(
            "recorded on {release}, this machine runs {running}, and the session holds no symbols/kernel.sym"
        ));
    }
    let symbols = KernelSymbols::running().map_err(|error| error.to_string())?;
    if let Some((start, build_id)) = text {
        let same_build = build_id.is_empty() || *build_id == host::kernel_build_id();
        let same_place = symbols
            .lookup(*start)
            .is_some_and(|symbol| symbol.start == *start);
        if !(same_build && same_place) {
            return Err(
                "recorded by another build or boot of the kernel, and the session holds no symbols/kernel.sym"
                    .to_owned(),
            );
        }
    }
    Ok(symbols)
}
