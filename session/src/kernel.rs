//! The kernel's functions as far as they were sampled: kept, because their addresses change at
//! every boot, and because modules and BPF programs come and go.

use varid_model::Ids;
use varid_model::{Address, FrameAddress};
use varid_symbolizer::kernel::{KernelSymbols, KernelText};

/// The running kernel's symbols, and which of them are wanted.
#[derive(Debug)]
pub struct Kernel {
    symbols: KernelSymbols,
    addresses: Ids<u64>,
    /// Where the functions start that hold them.
    functions: Ids<u64>,
    /// Addresses in functions that have not been written down.
    fresh: Vec<u64>,
    /// All that was sampled has to be written down anew.
    anew: bool,
    /// An address has come that had no name when the symbols were read last.
    nameless: bool,
}

/// What is to be written down.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// In the place of all that was.
    Whole(Vec<u8>),
    /// Behind it.
    More(Vec<u8>),
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
            fresh: Vec::new(),
            anew: true,
            nameless: false,
        }
    }

    /// Where the kernel itself is.
    pub fn text(&self) -> Option<&KernelText> {
        self.symbols.text()
    }

    /// A sample's kernel frames, leaf first.
    pub fn sampled(&mut self, addresses: &[Address]) {
        if let Some((leaf, callers)) = addresses.split_first() {
            let callers = callers.iter().map(|address| FrameAddress::Return(*address));
            let leaf = FrameAddress::Instruction(*leaf);
            for frame in callers.chain([leaf]) {
                let address = frame.lookup().get();
                if self.addresses.insert(address) {
                    match self.symbols.lookup(address) {
                        Some(function) if self.functions.insert(function.start) => {
                            self.fresh.push(address)
                        }
                        Some(_) => {}
                        None => self.nameless = true,
                    }
                }
            }
        }
    }

    /// The symbols of what was sampled, as a session keeps them, if there is anything new.
    pub fn news(&mut self) -> Option<News> {
        self.news_from(|| KernelSymbols::running().ok())
    }

    /// The news could not be written, or not whole.
    pub fn not_written(&mut self) {
        self.anew = true;
    }

    /// Looks once more, at the end: who is in the memory of a module or BPF program by then?
    pub fn look_again(&mut self) {
        self.look_again_at(|| KernelSymbols::running().ok());
    }

    fn look_again_at(&mut self, again: impl FnOnce() -> Option<KernelSymbols>) {
        let comes_and_goes = |address: &u64| {
            let symbol = self.symbols.lookup(*address);
            symbol.is_some_and(|symbol| symbol.module.is_some())
        };
        if self.addresses.iter().any(comes_and_goes)
            && let Some(newer) = again()
        {
            self.symbols.add_new(&newer);
            self.anew = true;
        }
    }

    fn news_from(&mut self, again: impl FnOnce() -> Option<KernelSymbols>) -> Option<News> {
        // A module or BPF program may have been loaded since they were read.
        if std::mem::take(&mut self.nameless)
            && let Some(newer) = again()
        {
            self.symbols.add_new(&newer);
            self.anew = true;
        }
        let fresh = std::mem::take(&mut self.fresh);
        let mut text = Vec::new();
        // Writing to memory does not fail.
        if self.anew && !self.addresses.is_empty() {
            self.anew = false;
            let addresses: Vec<u64> = self.addresses.iter().copied().collect();
            let _ = self.symbols.write(Some(&addresses), &mut text);
            return Some(News::Whole(text));
        }
        let _ = self.symbols.write_more(&fresh, &mut text);
        (!fresh.is_empty()).then_some(News::More(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> KernelSymbols {
        KernelSymbols::parse_kallsyms(text.as_bytes()).unwrap()
    }

    fn whole(news: Option<News>) -> String {
        match news {
            Some(News::Whole(text)) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_function_whose_last_instruction_is_a_call_has_its_name() {
        let mut kernel = Kernel::new(symbols(
            "ffffffff81000000 T leaf\nffffffff81001000 T exits\nffffffff81002000 T behind\n",
        ));
        kernel.sampled(&[0xffff_ffff_8100_0000, 0xffff_ffff_8100_2000].map(Address::new));
        let text = whole(kernel.news_from(|| None));
        assert!(text.contains("leaf") && text.contains("exits"), "{text}");
        assert!(!text.contains("behind"), "{text}");
    }

    #[test]
    fn a_bpf_program_whose_memory_is_anothers_at_the_end_has_no_name() {
        const OLD: &str = "ffffffffc0001000 t bpf_prog_12_walk\t[bpf]\n";
        let mut kernel = Kernel::new(symbols(OLD));
        kernel.sampled(&[0xffff_ffff_c000_1010].map(Address::new));
        assert!(kernel.news_from(|| None).is_some());
        kernel.look_again_at(|| Some(symbols(&OLD.replace("walk", "other"))));
        let text = whole(kernel.news_from(|| None));
        assert!(!text.contains("bpf_prog"), "{text}");
        kernel.look_again_at(|| panic!("no module has a sample"));
    }

    #[test]
    fn a_bpf_program_that_was_loaded_later_has_its_name_and_keeps_it() {
        const KERNEL: &str = "ffffffff81000000 T _text\nffffffff81001000 T _etext\n";
        const BPF: &str = "ffffffffc0001000 t bpf_prog_12_walk\t[bpf]\n";
        let mut kernel = Kernel::new(symbols(KERNEL));
        kernel.sampled(&[0xffff_ffff_8100_0010].map(Address::new));
        assert!(whole(kernel.news_from(|| panic!("all have names"))).contains("_text"));
        assert_eq!(kernel.news_from(|| panic!("nothing is new")), None);

        kernel.sampled(&[0xffff_ffff_c000_1010].map(Address::new));
        let with_bpf = symbols(&[KERNEL, BPF].concat());
        assert!(whole(kernel.news_from(|| Some(with_bpf))).contains("\tbpf_prog_12_walk\tbpf"));
        // It has gone; what has no name is looked for once.
        kernel.sampled(&[0xffff_ffff_d000_0000].map(Address::new));
        assert!(whole(kernel.news_from(|| Some(symbols(KERNEL)))).contains("bpf_prog_12_walk"));
        kernel.sampled(&[0xffff_ffff_8100_0020].map(Address::new));
        assert_eq!(kernel.news_from(|| panic!("its function is known")), None);
        kernel.sampled(&[0xffff_ffff_8100_1000].map(Address::new));
        let more = kernel.news_from(|| panic!("nothing is newly nameless"));
        assert_eq!(
            more,
            Some(News::More(b"ffffffff81001000\t1000\t_etext\t\n".to_vec())),
            "only what is new"
        );
        kernel.not_written();
        let text = whole(kernel.news_from(|| panic!("nothing is newly nameless")));
        assert!(text.contains("_text") && text.contains("_etext"), "{text}");
    }
}
