//! The records of the file that says what is counted.
//!
//! A record is its length in bytes (u32), its kind (u8), and its fields. Numbers are little-endian, texts and bytes follow their length
//! (u32). The VM's process appends records whole, each before anything that it describes is counted. So a reader of a file that is cut
//! at any place misses only what has no counts.

use std::fmt;

use varid_instrument::{
    Bci, Block, Body, Executions, Line, MethodNumber, MethodReference, MethodTable, Plain, Site,
};

/// A record. Texts are as the VM has them, but UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// The VM: its name and version. It follows the classes that are loaded before the VM knows them.
    Vm(String),
    /// A class whose methods are counted.
    Class(ClassRecord<'a>),
    /// A class that is not counted.
    NotCounted {
        /// Its name, such as `org/example/App`.
        class: String,
        /// The reason.
        reason: String,
    },
    /// A thread that starts, and is counted.
    Thread(ThreadRecord),
    /// The VM counts nothing: the reason.
    Failed(String),
    /// The instructions of a method that has no class file, such as one of a dex file.
    Instructions {
        /// The method. Its class follows.
        method: MethodNumber,
        /// Their places, ascending.
        places: Vec<u16>,
    },
}

/// A class whose methods are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRecord<'a> {
    /// Whether its loader is the boot loader.
    pub is_boot: bool,
    /// Its name, such as `org/example/App`.
    pub name: String,
    /// The name of its source file. Empty if it is not known.
    pub source_file: String,
    /// Its methods.
    pub methods: Vec<MethodTable>,
    /// Its class file before anything was added, if blocks are counted, as the reader counts instructions in it, or if
    /// [`Options::class_files`](crate::Options::class_files) is set. Else empty.
    pub bytes: &'a [u8],
}

/// A thread that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRecord {
    /// The address of its root.
    pub root: u64,
    /// Its number in the system, or that of its carrier.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The time of its start, in nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// The offset in the record's payload.
    pub offset: usize,
    /// What does not stand there.
    pub missing: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}: no {}", self.offset, self.missing)
    }
}

impl std::error::Error for Malformed {}

/// The bytes before the payload of a record: its length and its kind.
pub const HEAD: usize = 5;

/// The kinds of records.
mod kind {
    pub const VM: u8 = 1;
    pub const CLASS: u8 = 2;
    pub const NOT_COUNTED: u8 = 3;
    pub const THREAD: u8 = 4;
    pub const FAILED: u8 = 5;
    pub const INSTRUCTIONS: u8 = 6;
}

/// The kinds of [`Executions`].
mod executions {
    pub const CALLS: u8 = 0;
    pub const COUNTER: u8 = 1;
    pub const ORDERED: u8 = 2;
}

/// The numbers of the kinds of bodies: their places.
const BODIES: [Body; 10] = [
    Body::Counted,
    Body::Leaf,
    Body::Native,
    Body::Abstract,
    Body::Plain(Plain::ObjectConstructor),
    Body::Plain(Plain::EmptyFinalizer),
    Body::Plain(Plain::TooLarge),
    Body::Plain(Plain::TooManyLocals),
    Body::Plain(Plain::BranchTooFar),
    Body::Plain(Plain::Invalid),
];

impl Record<'_> {
    /// Returns the record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(vec![0; HEAD]);
        let kind = match self {
            Self::Vm(name) => {
                out.text(name);
                kind::VM
            }
            Self::Class(class) => {
                out.class(class);
                kind::CLASS
            }
            Self::NotCounted { class, reason } => {
                out.text(class);
                out.text(reason);
                kind::NOT_COUNTED
            }
            Self::Thread(thread) => {
                out.put(&thread.root.to_le_bytes());
                out.put(&thread.tid.to_le_bytes());
                out.text(&thread.name);
                out.put(&thread.time.to_le_bytes());
                kind::THREAD
            }
            Self::Failed(reason) => {
                out.text(reason);
                kind::FAILED
            }
            Self::Instructions { method, places } => {
                out.put(&method.get().to_le_bytes());
                out.length(places.len());
                places.iter().for_each(|place| out.u16(*place));
                kind::INSTRUCTIONS
            }
        };
        out.finish(kind)
    }
}

/// The bytes of a record.
struct Out(Vec<u8>);

impl Out {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn length(&mut self, length: usize) {
        // A class has at most a few megabytes, a text 65,535 bytes.
        self.put(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.put(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn u16(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }

    fn class(&mut self, class: &ClassRecord<'_>) {
        self.put(&[class.is_boot.into()]);
        self.text(&class.name);
        self.text(&class.source_file);
        self.length(class.methods.len());
        for method in &class.methods {
            self.method(method);
        }
        self.bytes(class.bytes);
    }

    fn method(&mut self, method: &MethodTable) {
        self.put(&method.number.get().to_le_bytes());
        self.text(&method.name);
        self.text(&method.descriptor);
        self.u16(method.access);
        let body = BODIES.iter().position(|body| *body == method.body);
        self.put(&[body.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)]);
        self.u16(method.code_length);
        self.length(method.sites.len());
        for site in &method.sites {
            self.u16(site.bci.0);
            self.put(&[site.opcode]);
            self.text(&site.target.class);
            self.text(&site.target.name);
            self.text(&site.target.descriptor);
        }
        self.u16(method.counters);
        self.length(method.blocks.len());
        for block in &method.blocks {
            self.u16(block.start.0);
            self.u16(block.end.0);
            let kind = match block.executions {
                Executions::Calls => executions::CALLS,
                Executions::Counter(_) => executions::COUNTER,
                Executions::Ordered(_) => executions::ORDERED,
            };
            self.put(&[kind]);
            self.u16(block.executions.counter().unwrap_or(0));
        }
        self.length(method.lines.len());
        for line in &method.lines {
            self.u16(line.start.0);
            self.u16(line.line);
        }
    }

    fn finish(mut self, kind: u8) -> Vec<u8> {
        let length = u32::try_from(self.0.len().saturating_sub(HEAD)).unwrap_or(u32::MAX);
        let head = length.to_le_bytes().into_iter().chain([kind]);
        self.0.splice(..HEAD, head);
        self.0
    }
}

impl<'a> Record<'a> {
    /// Reads the first record of `bytes`. Returns it with the bytes behind it. None if the bytes end before the record does.
    ///
    /// # Errors
    ///
    /// The record's payload ends within a field, or its kind is not known: the bytes behind it come with the error.
    #[allow(clippy::type_complexity)]
    pub fn first(bytes: &'a [u8]) -> Option<(Result<Self, Malformed>, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let [a, b, c, d, kind] = *head;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let (payload, rest) = rest.split_at_checked(length)?;
        let fields = Fields {
            left: payload,
            length,
        };
        Some((Self::decode(kind, fields), rest))
    }

    fn decode(kind: u8, mut fields: Fields<'a>) -> Result<Self, Malformed> {
        Ok(match kind {
            kind::VM => Self::Vm(fields.text("name of a VM")?),
            kind::CLASS => Self::Class(fields.class()?),
            kind::NOT_COUNTED => Self::NotCounted {
                class: fields.text("name of a class")?,
                reason: fields.text("reason")?,
            },
            kind::THREAD => Self::Thread(ThreadRecord {
                root: u64::from_le_bytes(fields.array("address of a root")?),
                tid: u32::from_le_bytes(fields.array("number of a thread")?),
                name: fields.text("name of a thread")?,
                time: u64::from_le_bytes(fields.array("time")?),
            }),
            kind::FAILED => Self::Failed(fields.text("reason")?),
            kind::INSTRUCTIONS => Self::Instructions {
                method: fields.method_number()?,
                places: fields.list("number of instructions", |fields| fields.u16("place"))?,
            },
            _ => {
                return Err(Malformed {
                    offset: 0,
                    missing: "known kind of record",
                });
            }
        })
    }
}

/// The rest of a record's payload.
struct Fields<'a> {
    left: &'a [u8],
    /// The length of the whole payload.
    length: usize,
}

impl<'a> Fields<'a> {
    fn error(&self, missing: &'static str) -> Malformed {
        Malformed {
            offset: self.length.saturating_sub(self.left.len()),
            missing,
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (array, left) = self
            .left
            .split_first_chunk()
            .ok_or_else(|| self.error(what))?;
        self.left = left;
        Ok(*array)
    }

    fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = u32::from_le_bytes(self.array(what)?);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (bytes, left) = self
            .left
            .split_at_checked(length)
            .ok_or_else(|| self.error(what))?;
        self.left = left;
        Ok(bytes)
    }

    fn text(&mut self, what: &'static str) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes(what)?).into_owned())
    }

    /// Reads a list. It takes memory for the items that there are, whatever number it claims.
    fn list<T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = u32::from_le_bytes(self.array(what)?);
        (0..count).map(|_| item(self)).collect()
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    fn class(&mut self) -> Result<ClassRecord<'a>, Malformed> {
        let [is_boot] = self.array("loader")?;
        Ok(ClassRecord {
            is_boot: is_boot != 0,
            name: self.text("name of a class")?,
            source_file: self.text("name of a source file")?,
            methods: self.list("number of methods", Self::method)?,
            bytes: self.bytes("class file")?,
        })
    }

    fn method_number(&mut self) -> Result<MethodNumber, Malformed> {
        let number = u32::from_le_bytes(self.array("number of a method")?);
        MethodNumber::new(number).ok_or_else(|| self.error("number of a method"))
    }

    fn method(&mut self) -> Result<MethodTable, Malformed> {
        Ok(MethodTable {
            number: self.method_number()?,
            name: self.text("name of a method")?,
            descriptor: self.text("descriptor")?,
            access: self.u16("access flags")?,
            body: {
                let [body] = self.array("kind of a body")?;
                let body = BODIES.get(usize::from(body));
                *body.ok_or_else(|| self.error("kind of a body"))?
            },
            code_length: self.u16("size of bytecode")?,
            sites: self.list("number of call sites", |fields| {
                Ok(Site {
                    bci: Bci(fields.u16("call site")?),
                    opcode: u8::from_le_bytes(fields.array("opcode")?),
                    target: MethodReference {
                        class: fields.text("class of a target")?,
                        name: fields.text("name of a target")?,
                        descriptor: fields.text("descriptor of a target")?,
                    },
                })
            })?,
            counters: self.u16("number of counters")?,
            blocks: self.list("number of blocks", |fields| {
                Ok(Block {
                    start: Bci(fields.u16("start of a block")?),
                    end: Bci(fields.u16("end of a block")?),
                    executions: {
                        let [kind] = fields.array("kind of a counter")?;
                        let counter = fields.u16("counter of a block")?;
                        match kind {
                            executions::CALLS => Executions::Calls,
                            executions::COUNTER => Executions::Counter(counter),
                            executions::ORDERED => Executions::Ordered(counter),
                            _ => return Err(fields.error("kind of a counter")),
                        }
                    },
                })
            })?,
            lines: self.list("number of lines", |fields| {
                Ok(Line {
                    start: Bci(fields.u16("start of a line")?),
                    line: fields.u16("line")?,
                })
            })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record<'static>> {
        let method = MethodTable {
            number: MethodNumber::new(7).unwrap(),
            name: "mul".to_owned(),
            descriptor: "(I)D".to_owned(),
            access: 9,
            body: Body::Counted,
            code_length: 90,
            sites: vec![Site {
                bci: Bci(4),
                opcode: 0xb8,
                target: MethodReference {
                    class: "org/example/App".to_owned(),
                    name: "primes".to_owned(),
                    descriptor: "(I)I".to_owned(),
                },
            }],
            blocks: [(0, 10, Executions::Calls), (10, 90, Executions::Counter(0))]
                .map(|(start, end, executions)| Block {
                    start: Bci(start),
                    end: Bci(end),
                    executions,
                })
                .to_vec(),
            counters: 1,
            lines: vec![Line {
                start: Bci(0),
                line: 12,
            }],
        };
        vec![
            Record::Vm("HotSpot 17".to_owned()),
            Record::Class(ClassRecord {
                is_boot: false,
                name: "org/example/App".to_owned(),
                source_file: "App.java".to_owned(),
                methods: vec![method],
                bytes: b"\xca\xfe\xba\xbe",
            }),
            Record::NotCounted {
                class: "A".to_owned(),
                reason: "too large".to_owned(),
            },
            Record::Thread(ThreadRecord {
                root: 0x7f00_0000_1008,
                tid: 42,
                name: "main".to_owned(),
                time: 9,
            }),
            Record::Failed("no field".to_owned()),
            Record::Instructions {
                method: MethodNumber::new(7).unwrap(),
                places: vec![0, 3],
            },
        ]
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let bytes: Vec<u8> = records().iter().flat_map(Record::encode).collect();
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while let Some((record, behind)) = Record::first(rest) {
            found.push(record.unwrap());
            rest = behind;
        }
        assert_eq!((found, rest), (records(), &[][..]));
    }

    #[test]
    fn a_cut_record_is_none_and_a_wrong_one_is_an_error_with_its_offset() {
        for record in records() {
            let bytes = record.encode();
            for length in 0..bytes.len() {
                assert_eq!(Record::first(&bytes[..length]), None);
                // The same bytes with a length that agrees.
                let mut short = bytes[..length].to_vec();
                if let Some(payload) = length.checked_sub(HEAD) {
                    short[..4].copy_from_slice(&u32::try_from(payload).unwrap().to_le_bytes());
                    let (record, rest) = Record::first(&short).unwrap();
                    assert!(record.unwrap_err().offset <= payload && rest.is_empty());
                }
            }
        }
        let (record, _) = Record::first(&[0, 0, 0, 0, 99]).unwrap();
        assert_eq!(record.unwrap_err().missing, "known kind of record");
    }
}
