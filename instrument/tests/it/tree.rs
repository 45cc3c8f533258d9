//! Reads a tree as the tests need it.

use std::collections::BTreeMap;
use varid_instrument::{Executions, MethodTable, node};

/// A tree in a file, and the methods by their numbers.
pub struct Tree<'t> {
    pub bytes: Vec<u8>,
    pub address: u64,
    pub methods: &'t BTreeMap<u32, (String, MethodTable)>,
}

/// The counts of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls: u64,
    /// The bytes of the instructions that were executed. One that throws is not.
    pub bytes: u64,
}

impl Tree<'_> {
    fn word(&self, address: u64) -> u64 {
        let offset = usize::try_from(address - self.address).unwrap();
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().unwrap())
    }

    fn at(&self, node: u64, offset: i64) -> u64 {
        self.word(node.checked_add_signed(offset).unwrap())
    }

    pub fn header(&self, offset: u64) -> u64 {
        self.word(self.address + offset)
    }

    /// Returns each context that ends with a method that `wanted` accepts: the methods from the root, each after its call site's bci.
    pub fn contexts(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Counts> {
        let mut found = BTreeMap::new();
        let mut root = self.header(node::header::ROOTS);
        while root != 0 {
            assert_eq!(self.at(root, node::METHOD), 0);
            self.children(root, 0, "", "", &wanted, &mut found);
            root = self.at(root, node::NEXT);
        }
        found
    }

    fn children(
        &self,
        parent: u64,
        slot: u32,
        path: &str,
        site: &str,
        wanted: &impl Fn(&str) -> bool,
        found: &mut BTreeMap<String, Counts>,
    ) {
        let slot = parent.checked_add_signed(node::slot(slot)).unwrap();
        let mut child = self.word(slot);
        while child != 0 {
            assert_eq!(self.at(child, node::PARENT_SLOT), slot);
            let number = u32::try_from(self.at(child, node::METHOD)).unwrap();
            let (class, method) = &self.methods[&number];
            let name = format!("{class}.{}", method.name);
            let path = format!("{path} {site}{name}");
            if wanted(class) {
                let counts: &mut Counts = found.entry(path.trim_start().to_owned()).or_default();
                counts.calls += self.at(child, node::CALLS);
                counts.bytes += self.executed(child, method);
            }
            self.children(child, 0, &path, "vm:", wanted, found);
            for (index, site) in method.sites.iter().enumerate() {
                let slot = u32::try_from(index).unwrap() + 1;
                self.children(
                    child,
                    slot,
                    &path,
                    &format!("{}:", site.bci.0),
                    wanted,
                    found,
                );
            }
            child = self.at(child, node::NEXT);
        }
    }

    /// Sums the lengths of the executed blocks in bytes, less what exceptions left of them.
    fn executed(&self, child: u64, method: &MethodTable) -> u64 {
        let mut sum = 0;
        for block in &method.blocks {
            let executions = match block.executions {
                Executions::Calls => self.at(child, node::CALLS),
                Executions::Counter(counter) | Executions::Ordered(counter) => {
                    self.at(child, node::counter(counter.into()))
                }
            };
            sum += executions * u64::from(block.end.0 - block.start.0);
        }
        if method.blocks.is_empty() {
            return 0;
        }
        let mut record = self.at(child, node::ABORTS);
        while record != 0 {
            let bci = self.at(record, node::abort::BCI);
            let block = method
                .blocks
                .iter()
                .find(|block| (u64::from(block.start.0)..u64::from(block.end.0)).contains(&bci));
            let skipped = u64::from(block.unwrap().end.0) - bci;
            sum -= self.at(record, node::abort::COUNT) * skipped;
            record = self.at(record, node::abort::NEXT);
        }
        sum
    }
}
