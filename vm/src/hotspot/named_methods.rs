//! The methods that were seen, each with a pointer of varid's own: the VM gives a method's address to another one once its class is unloaded.

use super::methods::{ClassName, JavaMethod};
use crate::by_place::ByPlace;
use crate::seam::MethodInMemory;
use std::collections::HashMap;
use std::rc::Rc;
use varid_model::{Address, Layer};
use varid_symbolizer::substitute::{MethodSource, SlotLine};

/// The first pointer. No process has memory there.
const FIRST: u64 = 1 << 60;

/// The methods that were seen.
#[derive(Debug, Default)]
pub(super) struct NamedMethods {
    methods: Vec<Rc<MethodInMemory>>,
    pointers: HashMap<Rc<MethodInMemory>, Address>,
    /// What was asked for.
    asked: ByPlace<JavaMethod, Address>,
}

impl NamedMethods {
    /// Returns the pointer of a method.
    pub(super) fn java(&mut self, method: &Rc<JavaMethod>) -> Address {
        if let Some(known) = self.asked.get(method) {
            return known;
        }
        let pointer = self.pointer(in_memory(method));
        self.asked.insert(method, pointer);
        pointer
    }

    /// Returns the pointer of code of the VM that belongs to no method.
    pub(super) fn code(&mut self, name: String) -> Address {
        self.pointer(MethodInMemory {
            layer: Layer::Vm,
            name,
            signature: String::new(),
            code_size: 0,
            source: None,
        })
    }

    /// Returns the pointer of what stands for a class in a callchain: the object that is allocated there.
    pub(super) fn class(&mut self, class: &ClassName) -> Address {
        self.pointer(MethodInMemory {
            layer: match class.is_of_jdk() {
                true => Layer::Framework,
                false => Layer::App,
            },
            name: class.readable(),
            signature: String::new(),
            code_size: 0,
            source: None,
        })
    }

    /// Returns the method with a pointer.
    pub(super) fn get(&self, pointer: Address) -> Option<Rc<MethodInMemory>> {
        let index = pointer.get().checked_sub(FIRST)?;
        self.methods.get(usize::try_from(index).ok()?).cloned()
    }

    fn pointer(&mut self, method: MethodInMemory) -> Address {
        let method = Rc::new(method);
        if let Some(known) = self.pointers.get(&method) {
            return *known;
        }
        let pointer = Address::new(FIRST.saturating_add(self.methods.len() as u64));
        self.methods.push(Rc::clone(&method));
        self.pointers.insert(method, pointer);
        pointer
    }
}

fn in_memory(method: &JavaMethod) -> MethodInMemory {
    let size = method.bytecode.end.offset_from(method.bytecode.start);
    let line = |entry: &super::methods::LineEntry| SlotLine {
        offset: entry.start.get().into(),
        line: entry.line.into(),
    };
    let lines: Vec<_> = method.lines.entries().iter().map(line).collect();
    let source = method.source_file.as_ref().filter(|_| !lines.is_empty());
    MethodInMemory {
        layer: method.layer(),
        name: method.symbol(),
        signature: method.signature.clone(),
        code_size: size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0),
        source: source.map(|file| MethodSource {
            class: method.class.readable(),
            file: file.clone(),
            lines,
        }),
    }
}
