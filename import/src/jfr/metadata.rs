//! The classes of a chunk: which fields do records and constants have, in which order?

use std::{collections::HashMap, rc::Rc};

use super::cursor::{Cursor, Text};

/// The deepest nesting of elements. The JDK's are four deep: root, metadata, class, field, annotation.
const MAX_DEPTH: usize = 16;

/// The number of a class in its chunk.
pub(super) type ClassId = i64;

/// What a value of a class consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A byte or a boolean.
    Byte,
    /// A short or a char.
    Short,
    Int,
    Long,
    /// A floating-point number of this many bytes.
    Float(usize),
    Text,
    Fields,
}

impl Shape {
    fn of(class: &str) -> Self {
        match class {
            "boolean" | "byte" => Self::Byte,
            "short" | "char" => Self::Short,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float(4),
            "double" => Self::Float(8),
            "java.lang.String" => Self::Text,
            _ => Self::Fields,
        }
    }
}

/// How a record has the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Inline,
    /// As the number of a constant.
    Constant,
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    One,
    /// An array.
    Many,
}

/// A field of a class.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: Rc<str>,
    pub(super) class: ClassId,
    pub(super) storage: Storage,
    pub(super) arity: Arity,
}

/// A class of records, of constants or of parts of them.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: Rc<str>,
    pub(super) shape: Shape,
    pub(super) fields: Vec<Field>,
}

/// The classes of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    classes: HashMap<ClassId, Class>,
}

/// The most texts of a chunk's metadata: an empty one has a byte in the file, and fifty in memory. A JDK's has some thousands.
const MAX_TEXTS: usize = 1 << 20;

impl Metadata {
    /// Reads the metadata of a record, behind its type. None if it is malformed.
    pub(super) fn read(mut cursor: Cursor<'_>) -> Option<Self> {
        // The time, the duration and a number of the metadata.
        for _ in 0..3 {
            cursor.long()?;
        }
        let count = cursor.count().filter(|count| *count <= MAX_TEXTS)?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(match cursor.text()? {
                Text::Own(text) => text,
                Text::Constant(_) => return None,
            });
        }
        let mut elements = Elements {
            cursor,
            texts,
            metadata: Self::default(),
            class: 0,
        };
        elements.read(0)?;
        Some(elements.metadata)
    }

    pub(super) fn class(&self, id: ClassId) -> Option<&Class> {
        self.classes.get(&id)
    }

    /// Returns the name of an event's class.
    pub(crate) fn event_name(&self, id: ClassId) -> Option<&str> {
        self.class(id).map(|class| &*class.name)
    }

    /// Returns true if a class with this name is there.
    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.classes.values().any(|class| &*class.name == name)
    }
}

/// The tree of elements: those named `class` and `field` are read, settings and annotations are not.
struct Elements<'a> {
    cursor: Cursor<'a>,
    texts: Vec<Rc<str>>,
    metadata: Metadata,
    /// The class to which fields belong.
    class: ClassId,
}

/// The attributes of an element that are read.
#[derive(Default)]
struct Attributes {
    id: Option<i64>,
    name: Option<Rc<str>>,
    class: Option<i64>,
    is_constant: bool,
    is_array: bool,
}

impl Elements<'_> {
    fn text(&mut self) -> Option<Rc<str>> {
        let number = usize::try_from(self.cursor.int()?).ok()?;
        self.texts.get(number).cloned()
    }

    /// Reads an element with those that are in it.
    fn read(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let kind = self.text()?;
        let attributes = self.attributes()?;
        match &*kind {
            "class" => {
                let name = attributes.name?;
                let class = Class {
                    shape: Shape::of(&name),
                    name,
                    fields: Vec::new(),
                };
                self.class = attributes.id?;
                self.metadata.classes.insert(self.class, class);
            }
            "field" => {
                let class = self.metadata.classes.get_mut(&self.class)?;
                class.fields.push(Field {
                    name: attributes.name?,
                    class: attributes.class?,
                    storage: match attributes.is_constant {
                        true => Storage::Constant,
                        false => Storage::Inline,
                    },
                    arity: match attributes.is_array {
                        true => Arity::Many,
                        false => Arity::One,
                    },
                });
            }
            _ => {}
        }
        let count = self.cursor.count()?;
        for _ in 0..count {
            self.read(depth.saturating_add(1))?;
        }
        Some(())
    }

    fn attributes(&mut self) -> Option<Attributes> {
        let mut attributes = Attributes::default();
        let count = self.cursor.count()?;
        for _ in 0..count {
            let (key, value) = (self.text()?, self.text()?);
            match &*key {
                "id" => attributes.id = value.parse().ok(),
                "name" => attributes.name = Some(value),
                "class" => attributes.class = value.parse().ok(),
                "constantPool" => attributes.is_constant = &*value == "true",
                "dimension" => attributes.is_array = &*value != "0",
                _ => {}
            }
        }
        Some(attributes)
    }
}
