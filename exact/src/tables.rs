//! Reads what a VM says of its tree.

use std::{collections::HashMap, ops::RangeInclusive};

use varid_exact_agent::record::{ClassRecord, Record, ThreadRecord};
use varid_instrument::{Body, MethodNumber, MethodTable, Plain, opcode};
use varid_symbolizer::class::ClassFile;

/// What a VM's tree counts.
#[derive(Debug, Default)]
pub struct Tables {
    /// The VM's name and version. Empty if it has not said them.
    pub vm: String,
    /// The methods with their classes.
    pub methods: HashMap<MethodNumber, CountedMethod>,
    /// The class files that the tables have, in the order in which they were loaded.
    pub classes: Vec<LoadedClass>,
    /// The threads that started while calls were counted, by the address of their roots.
    pub threads: HashMap<u64, ThreadRecord>,
    /// The classes that are not counted, with the reasons.
    pub not_counted: Vec<(String, String)>,
    /// The reason why nothing is counted.
    pub failed: Option<String>,
    /// The instructions of methods without a class file, whose classes have not been read yet.
    pub(crate) instructions: HashMap<MethodNumber, Vec<u16>>,
    /// The first record that could not be read: its offset in the file, and what is missing.
    pub damage: Option<String>,
}

/// A class file as it was loaded, before anything was added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedClass {
    /// The class, such as `org/example/App`. Several loaders may have classes with the same name.
    pub name: String,
    /// The bytes of the class file.
    pub bytes: Vec<u8>,
}

/// The index of a class in [`Tables::classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoadedClassId(usize);

/// A method, and what of its class names it.
#[derive(Debug, Clone)]
pub struct CountedMethod {
    /// Its class, such as `org/example/App`.
    pub class: String,
    /// The source file of its class. Empty if it is not known.
    pub source_file: String,
    /// Its class file. None if the tables do not have it.
    pub class_file: Option<LoadedClassId>,
    /// What is counted of it.
    pub table: MethodTable,
    /// Its instructions, if blocks are counted.
    pub instructions: Vec<u16>,
    /// Those of them that return.
    pub returns: Vec<u16>,
}

/// The opcodes of returns: from `ireturn` to `return`.
const RETURNS: RangeInclusive<u8> = opcode::IRETURN..=opcode::RETURN;

impl Tables {
    /// Reads the records of a file. What is behind a record that cannot be read is left out.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let mut tables = Self::default();
        let mut rest = bytes;
        while let Some((record, behind)) = Record::first(rest) {
            match record {
                Ok(record) => tables.add(record),
                Err(error) => {
                    let offset = bytes.len().saturating_sub(rest.len());
                    tables.damage = Some(format!("the record at offset {offset:#x}: {error}"));
                    break;
                }
            }
            rest = behind;
        }
        tables
    }

    fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Vm(name) => self.vm = name,
            Record::Class(class) => self.add_class(class),
            Record::NotCounted { class, reason } => self.not_counted.push((class, reason)),
            Record::Thread(thread) => {
                self.threads.insert(thread.root, thread);
            }
            Record::Failed(reason) => self.failed = Some(reason),
            Record::Instructions { method, places } => {
                self.instructions.insert(method, places);
            }
        }
    }

    fn add_class(&mut self, class: ClassRecord<'_>) {
        let file = ClassFile::parse(class.bytes).ok();
        let class_file = (!class.bytes.is_empty()).then(|| {
            self.classes.push(LoadedClass {
                name: class.name.clone(),
                bytes: class.bytes.to_vec(),
            });
            LoadedClassId(self.classes.len().saturating_sub(1))
        });
        for table in class.methods {
            let code = file
                .as_ref()
                .and_then(|file| file.method(&table.name, &table.descriptor))
                .and_then(|method| method.code.as_ref())
                .zip(file.as_ref());
            let described = self.instructions.remove(&table.number);
            let instructions: Vec<u16> =
                code.map_or(described.unwrap_or_default(), |(code, file)| {
                    let all = file.instructions(code);
                    all.filter_map(|found| u16::try_from(found.bci).ok())
                        .collect()
                });
            let returns = instructions.iter().copied().filter(|bci| {
                let opcode = code.and_then(|(code, _)| code.bytecode.get(usize::from(*bci)));
                opcode.is_some_and(|opcode| RETURNS.contains(opcode))
            });
            let returns = returns.collect();
            self.methods.insert(
                table.number,
                CountedMethod {
                    class: class.name.clone(),
                    source_file: class.source_file.clone(),
                    class_file,
                    table,
                    instructions,
                    returns,
                },
            );
        }
    }

    /// Returns the class file of a method. None if the tables do not have it.
    #[must_use]
    pub fn class_of(&self, method: &CountedMethod) -> Option<&LoadedClass> {
        method.class_file.and_then(|id| self.classes.get(id.0))
    }

    /// Returns the number of methods whose calls, and what they call, are not counted for lack of room in their class file.
    #[must_use]
    pub fn plain_methods(&self) -> usize {
        let is_plain = |method: &&CountedMethod| match method.table.body {
            Body::Plain(Plain::ObjectConstructor | Plain::EmptyFinalizer) => false,
            Body::Plain(_) => true,
            Body::Counted | Body::Leaf | Body::Native | Body::Abstract => false,
        };
        self.methods.values().filter(is_plain).count()
    }
}
