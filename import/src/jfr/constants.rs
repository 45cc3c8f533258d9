//! The constants of a chunk that events refer to: threads, stacks, methods.

use std::{collections::HashMap, rc::Rc};

use super::{
    cursor::{Cursor, Text},
    metadata::{ClassId, Metadata},
    value::{Decoder, Fields, Value},
};

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JavaFrame {
    /// The number of its method.
    pub(crate) method: i64,
    /// Line, from 1. None if it is not known.
    pub(crate) line: Option<u32>,
}

/// A stack, leaf first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct JavaStack {
    pub(crate) frames: Box<[JavaFrame]>,
    /// The recorder left out frames, because there were more than it records.
    pub(crate) is_cut: bool,
}

/// A thread, as the VM knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JavaThread {
    /// The system's id. 0 for a virtual thread.
    pub(crate) os_id: i64,
    /// The VM's own id.
    pub(crate) java_id: i64,
    pub(crate) name: Rc<str>,
}

/// The names that a method consists of, as the VM writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MethodNames {
    /// `org/example/App`. Of a native function the library, or nothing.
    pub(crate) class: Rc<str>,
    pub(crate) name: Rc<str>,
    /// `(I)V`. async-profiler marks native functions by one that Java does not have.
    pub(crate) descriptor: Rc<str>,
}

/// A method, by the numbers of other constants.
#[derive(Debug)]
struct Method {
    class: i64,
    name: i64,
    descriptor: i64,
}

#[derive(Debug)]
struct Thread {
    os_id: i64,
    java_id: i64,
    os_name: Option<Text>,
    java_name: Option<Text>,
}

/// The constants of a chunk, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    strings: HashMap<i64, Rc<str>>,
    symbols: HashMap<i64, Text>,
    /// The symbols that are the names of classes.
    classes: HashMap<i64, i64>,
    methods: HashMap<i64, Method>,
    stacks: HashMap<i64, JavaStack>,
    threads: HashMap<i64, Thread>,
}

impl Constants {
    /// Adds the constants of a record, behind its type. Returns false if it is malformed. Those before the fault are added.
    pub(super) fn add(&mut self, cursor: Cursor<'_>, metadata: &Metadata) -> bool {
        let mut decoder = Decoder::new(cursor, metadata);
        self.read(&mut decoder, metadata).is_some()
    }

    fn read(&mut self, decoder: &mut Decoder<'_, '_>, metadata: &Metadata) -> Option<()> {
        // The time, the duration, and the distance to the record before.
        for _ in 0..3 {
            decoder.cursor.long()?;
        }
        // The kind of the checkpoint.
        decoder.cursor.byte()?;
        let pools = decoder.cursor.count()?;
        for _ in 0..pools {
            let class = decoder.cursor.long()?;
            let name = &*metadata.class(class)?.name;
            let count = decoder.cursor.count()?;
            for _ in 0..count {
                self.constant(decoder, class, name)?;
            }
        }
        Some(())
    }

    fn constant(
        &mut self,
        decoder: &mut Decoder<'_, '_>,
        class: ClassId,
        name: &str,
    ) -> Option<()> {
        let id = decoder.cursor.long()?;
        let fields = match decoder.value(class)? {
            Value::Fields(fields) => fields,
            Value::Text(Text::Own(text)) => {
                self.strings.insert(id, text);
                return Some(());
            }
            _ => return Some(()),
        };
        let number = |name| fields.number(name).unwrap_or(0);
        let constant = |name| fields.constant(name).unwrap_or(0);
        match name {
            "jdk.types.Symbol" => {
                self.symbols.insert(id, fields.text("string")?);
            }
            "java.lang.Class" => {
                self.classes.insert(id, constant("name"));
            }
            "jdk.types.Method" => {
                let method = Method {
                    class: constant("type"),
                    name: constant("name"),
                    descriptor: constant("descriptor"),
                };
                self.methods.insert(id, method);
            }
            "jdk.types.StackTrace" => {
                self.stacks.insert(id, stack(&fields));
            }
            "java.lang.Thread" => {
                let thread = Thread {
                    os_id: number("osThreadId"),
                    java_id: number("javaThreadId"),
                    os_name: fields.text("osName"),
                    java_name: fields.text("javaName"),
                };
                self.threads.insert(id, thread);
            }
            _ => {}
        }
        Some(())
    }

    /// Returns a stack. None if it is not in the chunk.
    pub(crate) fn stack(&self, id: i64) -> Option<&JavaStack> {
        self.stacks.get(&id)
    }

    /// Returns a thread. It is the one without ids and name if it is not in the chunk.
    pub(crate) fn thread(&self, id: i64) -> JavaThread {
        const UNKNOWN: &str = "[unknown]";
        let Some(thread) = self.threads.get(&id) else {
            return JavaThread {
                os_id: 0,
                java_id: 0,
                name: UNKNOWN.into(),
            };
        };
        let names = [&thread.java_name, &thread.os_name].into_iter().flatten();
        let mut names = names.map(|text| self.text(text));
        let name = names.find(|name| !name.trim().is_empty());
        JavaThread {
            os_id: thread.os_id,
            java_id: thread.java_id,
            name: name.unwrap_or_else(|| format!("thread {}", thread.java_id).into()),
        }
    }

    /// Returns the names of a method. They are empty where the chunk does not have them.
    pub(crate) fn method(&self, id: i64) -> Option<MethodNames> {
        let method = self.methods.get(&id)?;
        let class = self.classes.get(&method.class).copied();
        Some(MethodNames {
            class: class.map_or_else(|| "".into(), |symbol| self.symbol(symbol)),
            name: self.symbol(method.name),
            descriptor: self.symbol(method.descriptor),
        })
    }

    fn symbol(&self, id: i64) -> Rc<str> {
        self.symbols
            .get(&id)
            .map_or_else(|| "".into(), |text| self.text(text))
    }

    /// Returns a text, which may be the number of a string.
    pub(super) fn text(&self, text: &Text) -> Rc<str> {
        match text {
            Text::Own(text) => Rc::clone(text),
            Text::Constant(id) => self.strings.get(id).map_or_else(|| "".into(), Rc::clone),
        }
    }
}

/// Returns a stack trace.
fn stack(fields: &Fields<'_>) -> JavaStack {
    let frames = fields.elements("frames").map(|frame| JavaFrame {
        method: frame.constant("method").unwrap_or(0),
        line: frame
            .number("lineNumber")
            .and_then(|line| u32::try_from(line).ok())
            .filter(|line| *line > 0),
    });
    JavaStack {
        frames: frames.collect(),
        is_cut: fields.number("truncated").is_some_and(|cut| cut != 0),
    }
}
