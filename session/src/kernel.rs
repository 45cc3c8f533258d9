//! Collects the sampled functions of the kernel.
//!
//! The recording contains their names, because their addresses change at every boot, and modules and BPF programs are loaded and
//! unloaded.

use varid_model::Ids;
use varid_model::{Address, FrameAddress};
use varid_symbolizer::kernel::{KernelSymbols, KernelText};

/// The running kernel's symbols, and the sampled ones among them.
#[derive(Debug)]
pub struct Kernel {
    symbols: KernelSymbols,
    /// The sampled addresses.
    addresses: Ids<u64>,
    /// The starts of the sampled functions.
    functions: Ids<u64>,
    /// Sampled addresses in functions that have not been written.
    unwritten: Vec<u64>,
    /// True if the whole file must be written again.
    rewrite: bool,
    /// True if an address was sampled that had no name when the symbols were last read.
    unresolved: bool,
}

/// A change of the file of symbols.
#[derive(Debug, PartialEq, Eq)]
pub enum SymbolUpdate {
    /// Replaces the file.
    Replace(Vec<u8>),
    /// Is appended to the file.
    Append(Vec<u8>),
}

impl Kernel {
    /// Reads the symbols.
    pub fn running() -> varid_symbolizer::Result<Self> {
        let symbols = KernelSymbols::running()?;
        if symbols.hidden() > 0 {
            tracing::warn!(
                "the kernel hides the addresses of {} of its functions: they have the names of their neighbours, or none",
                symbols.hidden()
            );
        }
        Ok(Self::new(symbols))
    }

    fn new(symbols: KernelSymbols) -> Self {
        Self {
            symbols,
            addresses: Ids::default(),
            functions: Ids::default(),
            unwritten: Vec::new(),
            rewrite: true,
            unresolved: false,
        }
    }

    /// The address range of the kernel itself.
    pub fn text(&self) -> Option<&KernelText> {
        self.symbols.text()
    }

    /// Adds a sample's kernel frames, leaf first.
    pub fn sampled(&mut self, addresses: &[Address]) {
        if let Some((leaf, callers)) = addresses.split_first() {
            let callers = callers.iter().map(|address| FrameAddress::Return(*address));
            let leaf = FrameAddress::Instruction(*leaf);
            for frame in callers.chain([leaf]) {
                let address = frame.lookup().get();
                if self.addresses.insert(address) {
                    match self.symbols.lookup(address) {
                        Some(function) if self.functions.insert(function.start) => {
                            self.unwritten.push(address)
                        }
                        Some(_) => {}
                        None => self.unresolved = true,
                    }
                }
            }
        }
    }

    /// Returns the sampled symbols that are not in the file yet, or None if all are.
    pub fn update(&mut self) -> Option<SymbolUpdate> {
        self.update_from(|| KernelSymbols::running().ok())
    }

    /// Reports that the last update was not written, or not completely.
    pub fn update_failed(&mut self) {
        self.rewrite = true;
    }

    /// Reads the symbols again at the end: by then the memory of a module or BPF program may contain another one.
    pub fn reread(&mut self) {
        self.reread_from(|| KernelSymbols::running().ok());
    }

    fn reread_from(&mut self, read: impl FnOnce() -> Option<KernelSymbols>) {
        let comes_and_goes = |address: &u64| {
            let symbol = self.symbols.lookup(*address);
            symbol.is_some_and(|symbol| symbol.module.is_some())
        };
        if self.addresses.iter().any(comes_and_goes)
            && let Some(newer) = read()
        {
            self.symbols.add_new(&newer);
            self.rewrite = true;
        }
    }

    fn update_from(
        &mut self,
        read: impl FnOnce() -> Option<KernelSymbols>,
    ) -> Option<SymbolUpdate> {
        // A module or BPF program may have been loaded since the symbols were read.
        if std::mem::take(&mut self.unresolved)
            && let Some(newer) = read()
        {
            self.symbols.add_new(&newer);
            self.rewrite = true;
        }
        let unwritten = std::mem::take(&mut self.unwritten);
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        if self.rewrite && !self.addresses.is_empty() {
            self.rewrite = false;
            let addresses: Vec<u64> = self.addresses.iter().copied().collect();
            let _ = self.symbols.write(Some(&addresses), &mut text);
            return Some(SymbolUpdate::Replace(text));
        }
        let _ = self.symbols.write_more(&unwritten, &mut text);
        (!unwritten.is_empty()).then_some(SymbolUpdate::Append(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> KernelSymbols {
        KernelSymbols::parse_kallsyms(text.as_bytes()).unwrap()
    }

    fn whole(update: Option<SymbolUpdate>) -> String {
        match update {
            Some(SymbolUpdate::Replace(text)) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_function_whose_last_instruction_is_a_call_has_its_name() {
        let mut kernel = Kernel::new(symbols(
            "ffffffff81000000 T leaf\nffffffff81001000 T exits\nffffffff81002000 T behind\n",
        ));
        kernel.sampled(&[0xffff_ffff_8100_0000, 0xffff_ffff_8100_2000].map(Address::new));
        let text = whole(kernel.update_from(|| None));
        assert!(text.contains("leaf") && text.contains("exits"), "{text}");
        assert!(!text.contains("behind"), "{text}");
    }

    #[test]
    fn a_bpf_program_whose_memory_is_anothers_at_the_end_has_no_name() {
        const OLD: &str = "ffffffffc0001000 t bpf_prog_12_walk\t[bpf]\n";
        let mut kernel = Kernel::new(symbols(OLD));
        kernel.sampled(&[0xffff_ffff_c000_1010].map(Address::new));
        assert!(kernel.update_from(|| None).is_some());
        kernel.reread_from(|| Some(symbols(&OLD.replace("walk", "other"))));
        let text = whole(kernel.update_from(|| None));
        assert!(!text.contains("bpf_prog"), "{text}");
        kernel.reread_from(|| panic!("no module has a sample"));
    }

    #[test]
    fn a_bpf_program_that_was_loaded_later_has_its_name_and_keeps_it() {
        const KERNEL: &str = "ffffffff81000000 T _text\nffffffff81001000 T _etext\n";
        const BPF: &str = "ffffffffc0001000 t bpf_prog_12_walk\t[bpf]\n";
        let mut kernel = Kernel::new(symbols(KERNEL));
        kernel.sampled(&[0xffff_ffff_8100_0010].map(Address::new));
        assert!(whole(kernel.update_from(|| panic!("all have names"))).contains("_text"));
        assert_eq!(kernel.update_from(|| panic!("nothing is new")), None);

        kernel.sampled(&[0xffff_ffff_c000_1010].map(Address::new));
        let with_bpf = symbols(&[KERNEL, BPF].concat());
        assert!(whole(kernel.update_from(|| Some(with_bpf))).contains("\tbpf_prog_12_walk\tbpf"));
        // The program is gone. An address without a name is looked up once.
        kernel.sampled(&[0xffff_ffff_d000_0000].map(Address::new));
        assert!(whole(kernel.update_from(|| Some(symbols(KERNEL)))).contains("bpf_prog_12_walk"));
        kernel.sampled(&[0xffff_ffff_8100_0020].map(Address::new));
        assert_eq!(kernel.update_from(|| panic!("its function is known")), None);
        kernel.sampled(&[0xffff_ffff_8100_1000].map(Address::new));
        let more = kernel.update_from(|| panic!("no address is newly unresolved"));
        assert_eq!(
            more,
            Some(SymbolUpdate::Append(
                b"ffffffff81001000\t1000\t_etext\t\n".to_vec()
            )),
            "only what is new"
        );
        kernel.update_failed();
        let text = whole(kernel.update_from(|| panic!("no address is newly unresolved")));
        assert!(text.contains("_text") && text.contains("_etext"), "{text}");
    }
}
