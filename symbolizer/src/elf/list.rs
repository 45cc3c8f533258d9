//! Lists the functions of an ELF file.

use super::symbols::{ElfSymbol, ElfSymbols};

impl ElfSymbols {
    /// Returns the functions by ascending address: each one that [`ElfSymbols::lookup`] returns for its own first address.
    pub fn functions(&self) -> impl Iterator<Item = ElfSymbol<'_>> {
        let tables = self.symbols.stretches().chain(self.functions.stretches());
        let extra = self.extra.iter().map(|(range, _)| range.start);
        let mut starts: Vec<u64> = tables.map(|(start, _)| start).chain(extra).collect();
        starts.sort_unstable();
        starts.dedup();
        // Where an inner function ends, the outer one continues: that is not a start.
        let own = |start| self.lookup(start).filter(|symbol| symbol.start == start);
        starts.into_iter().filter_map(own)
    }
}
