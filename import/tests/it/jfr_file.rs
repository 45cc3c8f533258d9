//! Writes recordings of Java Flight Recorder, as `jdk.jfr.internal.consumer` of the JDK reads them.

use std::collections::BTreeMap;

/// Classes that a chunk describes: their ids, names, and the fields with their classes and what is special about them.
pub type Fields = &'static [(&'static str, i64, Form)];

/// How a field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Plain,
    Constant,
    Array,
}
use Form::{Array, Constant, Plain};

pub const STRING: i64 = 13;
pub const SYMBOL: i64 = 20;
pub const CLASS: i64 = 21;
pub const METHOD: i64 = 22;
pub const STACK: i64 = 24;
pub const THREAD: i64 = 25;

/// Events by their classes.
pub const EXECUTION: i64 = 100;
pub const WALL_CLOCK: i64 = 101;
pub const ALLOCATION: i64 = 102;
pub const NEW_TLAB: i64 = 103;
pub const OUTSIDE_TLAB: i64 = 104;
pub const MONITOR: i64 = 105;
pub const PARK: i64 = 106;
pub const VM: i64 = 107;
pub const HEAP: i64 = 108;

/// Nanoseconds since 1970 at which chunks begin, their clock at that time, and its frequency.
pub const START: u64 = 1_700_000_000_000_000_000;
pub const START_TICKS: i64 = 5_000;
pub const TICKS_PER_SECOND: i64 = 500_000_000;

const CLASSES: &[(i64, &str, Fields)] = &[
    (10, "long", &[]),
    (11, "int", &[]),
    (12, "boolean", &[]),
    (STRING, "java.lang.String", &[]),
    (SYMBOL, "jdk.types.Symbol", &[("string", STRING, Plain)]),
    (CLASS, "java.lang.Class", &[("name", SYMBOL, Constant)]),
    (
        METHOD,
        "jdk.types.Method",
        &[
            ("type", CLASS, Constant),
            ("name", SYMBOL, Constant),
            ("descriptor", SYMBOL, Constant),
            ("hidden", 12, Plain),
        ],
    ),
    (
        23,
        "jdk.types.StackFrame",
        &[
            ("method", METHOD, Constant),
            ("lineNumber", 11, Plain),
            ("bytecodeIndex", 11, Plain),
        ],
    ),
    (
        STACK,
        "jdk.types.StackTrace",
        &[("truncated", 12, Plain), ("frames", 23, Array)],
    ),
    (
        THREAD,
        "java.lang.Thread",
        &[
            ("osName", STRING, Plain),
            ("osThreadId", 10, Plain),
            ("javaName", STRING, Plain),
            ("javaThreadId", 10, Plain),
        ],
    ),
    (EXECUTION, "jdk.ExecutionSample", SAMPLED),
    (
        WALL_CLOCK,
        "profiler.WallClockSample",
        &[SAMPLED[0], SAMPLED[1], SAMPLED[2], ("samples", 11, Plain)],
    ),
    (
        ALLOCATION,
        "jdk.ObjectAllocationSample",
        &[
            COMMITTED[0],
            COMMITTED[1],
            COMMITTED[2],
            ("weight", 10, Plain),
        ],
    ),
    (
        NEW_TLAB,
        "jdk.ObjectAllocationInNewTLAB",
        &[
            COMMITTED[0],
            COMMITTED[1],
            COMMITTED[2],
            ("allocationSize", 10, Plain),
            ("tlabSize", 10, Plain),
        ],
    ),
    (
        OUTSIDE_TLAB,
        "jdk.ObjectAllocationOutsideTLAB",
        &[
            COMMITTED[0],
            COMMITTED[1],
            COMMITTED[2],
            ("allocationSize", 10, Plain),
        ],
    ),
    (
        MONITOR,
        "jdk.JavaMonitorEnter",
        &[
            COMMITTED[0],
            COMMITTED[1],
            COMMITTED[2],
            ("duration", 10, Plain),
        ],
    ),
    (
        PARK,
        "jdk.ThreadPark",
        &[
            COMMITTED[0],
            COMMITTED[1],
            COMMITTED[2],
            ("duration", 10, Plain),
        ],
    ),
    (
        VM,
        "jdk.JVMInformation",
        &[
            ("startTime", 10, Plain),
            ("javaArguments", STRING, Plain),
            ("pid", 10, Plain),
        ],
    ),
    (HEAP, "jdk.GCHeapSummary", &[("startTime", 10, Plain)]),
];

const SAMPLED: Fields = &[
    ("startTime", 10, Plain),
    ("sampledThread", THREAD, Constant),
    ("stackTrace", STACK, Constant),
];
const COMMITTED: Fields = &[
    ("startTime", 10, Plain),
    ("eventThread", THREAD, Constant),
    ("stackTrace", STACK, Constant),
];

/// A value of a record.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Long(i64),
    Int(i32),
    Byte(u8),
    Text(&'a str),
}
use Value::{Byte, Int, Long, Text};

/// Encodes values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Integers {
    Compressed,
    Fixed,
}

impl Integers {
    fn put(self, out: &mut Vec<u8>, value: i64, size: usize) {
        if self == Self::Fixed {
            out.extend(&value.to_be_bytes()[8 - size..]);
            return;
        }
        // An int has four bytes at most before it is compressed.
        let mask = if size == 8 {
            u64::MAX
        } else {
            (1 << (8 * size)) - 1
        };
        let mut rest = value.cast_unsigned() & mask;
        for _ in 0..8 {
            if rest < 0x80 {
                out.push(rest as u8);
                return;
            }
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    pub fn values(self, values: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for value in values {
            match value {
                Long(value) => self.put(&mut out, *value, 8),
                Int(value) => self.put(&mut out, i64::from(*value), 4),
                Byte(value) => out.push(*value),
                Text(text) => {
                    out.push(3);
                    self.put(&mut out, text.len() as i64, 4);
                    out.extend(text.as_bytes());
                }
            }
        }
        out
    }

    /// A record: its size, which has four bytes, its type and its body.
    fn record(self, kind: i64, body: &[u8]) -> Vec<u8> {
        let rest = [self.values(&[Long(kind)]), body.to_vec()].concat();
        let size = rest.len() as u32 + 4;
        let size = match self {
            Self::Fixed => size.to_be_bytes(),
            Self::Compressed => {
                let part = |shift: u32| (size >> shift & 0x7f) as u8 | 0x80;
                [part(0), part(7), part(14), part(21) & 0x7f]
            }
        };
        [size.to_vec(), rest].concat()
    }
}

/// A chunk of a recording.
#[derive(Clone)]
pub struct ChunkFile {
    pub integers: Integers,
    /// The constants of each class: their ids and contents.
    constants: BTreeMap<i64, Vec<(i64, Vec<u8>)>>,
    events: Vec<u8>,
    /// More classes, and their fields.
    pub classes: Vec<(i64, &'static str, Fields)>,
}

impl ChunkFile {
    pub fn new(integers: Integers) -> Self {
        Self {
            integers,
            constants: BTreeMap::new(),
            events: Vec::new(),
            classes: CLASSES.to_vec(),
        }
    }

    pub fn constant(&mut self, class: i64, id: i64, values: &[Value<'_>]) {
        let content = self.integers.values(values);
        self.constants.entry(class).or_default().push((id, content));
    }

    /// Adds a method with its names. Its class and symbols have numbers by the method's.
    pub fn method(&mut self, id: i64, class: &str, name: &str, descriptor: &str) {
        let symbols = [id * 10, id * 10 + 1, id * 10 + 2];
        for (symbol, text) in symbols.iter().zip([class, name, descriptor]) {
            self.constant(SYMBOL, *symbol, &[Text(text)]);
        }
        self.constant(CLASS, id, &[Long(symbols[0])]);
        let values = [Long(id), Long(symbols[1]), Long(symbols[2]), Byte(0)];
        self.constant(METHOD, id, &values);
    }

    /// Adds a stack of methods and lines, leaf first.
    pub fn stack(&mut self, id: i64, frames: &[(i64, i32)]) {
        self.stack_of(id, 0, frames);
    }

    /// Adds a stack that the recorder has cut.
    pub fn cut_stack(&mut self, id: i64, frames: &[(i64, i32)]) {
        self.stack_of(id, 1, frames);
    }

    fn stack_of(&mut self, id: i64, truncated: u8, frames: &[(i64, i32)]) {
        let mut values = vec![Byte(truncated), Int(frames.len() as i32)];
        for (method, line) in frames {
            values.extend([Long(*method), Int(*line), Int(0)]);
        }
        self.constant(STACK, id, &values);
    }

    pub fn thread(&mut self, id: i64, os_id: i64, name: &str) {
        let values = [Text("os name"), Long(os_id), Text(name), Long(id)];
        self.constant(THREAD, id, &values);
    }

    pub fn event(&mut self, class: i64, values: &[Value<'_>]) {
        let body = self.integers.values(values);
        self.events.extend(self.integers.record(class, &body));
    }

    /// Adds a sample of the thread and the stack, so many ticks behind the start, with what else the event has.
    pub fn sample(&mut self, class: i64, ticks: i64, thread: i64, stack: i64, more: &[Value<'_>]) {
        let values = [Long(START_TICKS + ticks), Long(thread), Long(stack)];
        self.event(class, &[&values, more].concat());
    }

    /// Adds a record of any type.
    pub fn raw(&mut self, kind: i64, body: &[u8]) {
        self.events.extend(self.integers.record(kind, body));
    }

    fn constants(&self) -> Vec<u8> {
        let mut body = self.integers.values(&[Long(0), Long(0), Long(0), Byte(0)]);
        body.extend(self.integers.values(&[Int(self.constants.len() as i32)]));
        for (class, constants) in &self.constants {
            let head = [Long(*class), Int(constants.len() as i32)];
            body.extend(self.integers.values(&head));
            for (id, content) in constants {
                body.extend(self.integers.values(&[Long(*id)]));
                body.extend(content);
            }
        }
        self.integers.record(1, &body)
    }

    fn metadata(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        let classes = self.classes.iter().map(|(id, name, fields)| {
            let fields = fields.iter().map(|(name, class, form)| {
                let class = class.to_string();
                let mut attributes = vec![("name", *name), ("class", &class)];
                match form {
                    Plain => {}
                    Constant => attributes.push(("constantPool", "true")),
                    Array => attributes.push(("dimension", "1")),
                }
                texts.element(self.integers, "field", &attributes, &[])
            });
            let fields: Vec<_> = fields.collect();
            let id = id.to_string();
            let attributes = [("id", &*id), ("name", name)];
            texts.element(self.integers, "class", &attributes, &fields)
        });
        let classes: Vec<_> = classes.collect();
        let metadata = texts.element(self.integers, "metadata", &[], &classes);
        let root = texts.element(self.integers, "root", &[], &[metadata]);
        let mut body = self.integers.values(&[Long(0), Long(0), Long(1)]);
        let count = texts.texts.len() as i32;
        body.extend(self.integers.values(&[Int(count)]));
        for text in &texts.texts {
            body.extend(self.integers.values(&[Text(text)]));
        }
        body.extend(root);
        self.integers.record(0, &body)
    }

    /// The chunk: its header, events, constants and metadata.
    pub fn encode(&self) -> Vec<u8> {
        let (constants, metadata) = (self.constants(), self.metadata());
        let at_constants = 68 + self.events.len();
        let at_metadata = at_constants + constants.len();
        let longs = [
            (at_metadata + metadata.len()) as i64,
            at_constants as i64,
            at_metadata as i64,
            START as i64,
            0,
            START_TICKS,
            TICKS_PER_SECOND,
        ];
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.extend(longs.iter().flat_map(|long| long.to_be_bytes()));
        let features = i32::from(self.integers == Integers::Compressed);
        bytes.extend(features.to_be_bytes());
        [bytes, self.events.clone(), constants, metadata].concat()
    }
}

/// The texts of metadata, each once.
#[derive(Default)]
struct Texts {
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> Value<'static> {
        let known = self.texts.iter().position(|known| known == text);
        let number = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        Int(number as i32)
    }

    fn element(
        &mut self,
        integers: Integers,
        name: &str,
        attributes: &[(&str, &str)],
        children: &[Vec<u8>],
    ) -> Vec<u8> {
        let mut values = vec![self.number(name), Int(attributes.len() as i32)];
        for (key, value) in attributes {
            values.extend([self.number(key), self.number(value)]);
        }
        values.push(Int(children.len() as i32));
        [&[integers.values(&values)], children].concat().concat()
    }
}

/// A chunk with a sample of each kind of event, of two threads.
pub fn example(integers: Integers) -> ChunkFile {
    let mut chunk = ChunkFile::new(integers);
    chunk.method(1, "org/example/App", "main", "([Ljava/lang/String;)V");
    chunk.method(2, "java/util/HashMap", "put", "(Ljava/lang/Object;)V");
    chunk.method(3, "", "write", "()L;");
    chunk.method(4, "", "vfs_write", "(Lk;)L;");
    chunk.thread(1, 51, "main");
    chunk.thread(2, 52, "worker");
    chunk.stack(1, &[(2, 70), (1, 12)]);
    chunk.stack(2, &[(4, 0), (3, 0), (1, 13)]);
    chunk.event(
        VM,
        &[Long(START_TICKS), Text("org.example.App 7"), Long(50)],
    );
    // A thread's buffer is written when it is full: times are not in order.
    chunk.sample(EXECUTION, 200, 1, 2, &[]);
    chunk.sample(EXECUTION, 100, 2, 1, &[]);
    chunk.sample(WALL_CLOCK, 300, 1, 1, &[Int(3)]);
    chunk.sample(ALLOCATION, 400, 1, 1, &[Long(1_000)]);
    chunk.sample(NEW_TLAB, 500, 1, 1, &[Long(16), Long(4_096)]);
    chunk.sample(OUTSIDE_TLAB, 600, 1, 1, &[Long(65_536)]);
    chunk.sample(MONITOR, 700, 1, 1, &[Long(50)]);
    chunk.sample(PARK, 800, 2, 1, &[Long(500)]);
    chunk.event(HEAP, &[Long(START_TICKS)]);
    chunk
}
