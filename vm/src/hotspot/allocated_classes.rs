//! Of which classes are the objects that samples have allocated?

use super::jvm::Jvm;
use super::methods::ClassName;
use super::methods::class_name;
use super::methods::gathered::GatheredMemory;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use varid_model::Address;
use varid_process::reader::BatchMemory;

/// The names of classes, by their `Klass`. They are read in turns, as code is: the VM uses the memory of an unloaded class again.
#[derive(Debug)]
pub(super) struct AllocatedClasses {
    jvm: Rc<Jvm>,
    /// Those of the samples that are about to be attributed.
    expected: BTreeSet<Address>,
    /// Those that were asked for in this turn. None: it has no name.
    turn: HashMap<Address, Option<ClassName>>,
    /// Those that were read before, for a process that has ended meanwhile.
    known: HashMap<Address, ClassName>,
}

impl AllocatedClasses {
    pub(super) fn new(jvm: Rc<Jvm>) -> Self {
        Self {
            jvm,
            expected: BTreeSet::new(),
            turn: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Announces a class that will be asked for.
    pub(super) fn expect(&mut self, class: Address) {
        self.expected.insert(class);
    }

    /// Returns the name of a class. None if it cannot be read.
    pub(super) fn name(&mut self, class: Address, memory: &dyn BatchMemory) -> Option<ClassName> {
        if !self.turn.contains_key(&class) {
            self.expect(class);
            let expected = std::mem::take(&mut self.expected);
            let names = GatheredMemory::of(memory).run(|memory| {
                let names = expected.iter().map(|class| {
                    let name = class_name(&self.jvm, *class, memory);
                    (*class, name.ok())
                });
                names.collect::<Vec<_>>()
            });
            for (class, name) in names {
                let name = match name {
                    Some(name) => {
                        self.known.insert(class, name.clone());
                        Some(name)
                    }
                    None => self.known.get(&class).cloned(),
                };
                self.turn.insert(class, name);
            }
        }
        self.turn.get(&class)?.clone()
    }

    /// Reads the classes of later samples again.
    pub(super) fn end_turn(&mut self) {
        self.expected.clear();
        self.turn.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::methods::tests::{VERSIONS, World};
    use varid_testing::hotspot::CODE_BASE;
    use varid_tunnel::ByteMemory;

    #[test]
    fn classes_have_their_names_in_each_version_and_keep_them_when_the_process_ends() {
        for (tables, major) in VERSIONS {
            let World { code, mut made } = World::new(tables, major);
            let known = [
                ("[B", "byte[]"),
                ("org/example/App$Item", "org.example.App$Item"),
            ]
            .map(|(name, readable)| (Address::new(made.add_class(name)), readable));
            let mut classes = AllocatedClasses::new(Rc::new(code.jvm().clone()));
            for (class, _) in known {
                classes.expect(class);
            }
            let start = CODE_BASE;
            let memory = ByteMemory {
                start,
                bytes: &made.bytes,
            };
            let gone = ByteMemory { start, bytes: &[] };
            let (first, others) = (known[0], &known[1..]);
            let readable = |name: Option<ClassName>| name.map(|name| name.readable());
            let found = readable(classes.name(first.0, &memory));
            assert_eq!(found.as_deref(), Some(first.1), "JDK {major}");
            for (class, name) in others {
                let found = readable(classes.name(*class, &gone));
                assert_eq!(found.as_deref(), Some(*name), "it was read with the first");
            }
            assert_eq!(classes.name(Address::new(8), &memory), None);
            classes.end_turn();
            let found = readable(classes.name(first.0, &gone));
            assert_eq!(found.as_deref(), Some(first.1), "it was read before");
            // The class is unloaded, and another one has its place.
            let renamed = made.add_class("org/example/Other");
            let (from, to) = ((renamed - start) as usize, (first.0.get() - start) as usize);
            made.bytes.copy_within(from..from + 64, to);
            let memory = ByteMemory {
                start,
                bytes: &made.bytes,
            };
            classes.end_turn();
            let found = readable(classes.name(first.0, &memory));
            assert_eq!(found.as_deref(), Some("org.example.Other"), "JDK {major}");
        }
    }
}
