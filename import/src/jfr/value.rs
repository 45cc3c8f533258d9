//! Decodes the fields of a record by its class.

use super::{
    cursor::{Cursor, Text},
    metadata::{Arity, Class, ClassId, Field, Metadata, Shape, Storage},
};

/// The deepest nesting of inline values. The JDK's are two deep: a stack trace, its frames.
const MAX_DEPTH: usize = 8;

/// The value of a field.
#[derive(Debug)]
pub(super) enum Value<'m> {
    Number(i64),
    /// A floating-point number, which no imported field has.
    Float,
    Text(Text),
    /// The number of a constant.
    Constant(i64),
    Fields(Fields<'m>),
    Array(Vec<Value<'m>>),
}

/// The fields of a record, of a constant or of a part of them.
#[derive(Debug)]
pub(super) struct Fields<'m> {
    class: &'m Class,
    values: Vec<Value<'m>>,
}

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value<'_>> {
        let mut fields = self.class.fields.iter();
        let at = fields.position(|field| &*field.name == name)?;
        self.values.get(at)
    }

    /// Returns the number of a field.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number of a field's constant.
    pub(super) fn constant(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Constant(id) => Some(*id),
            _ => None,
        }
    }

    /// Returns the text of a field.
    pub(super) fn text(&self, name: &str) -> Option<Text> {
        match self.get(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns the elements of an array.
    pub(super) fn elements(&self, name: &str) -> impl Iterator<Item = &Fields<'_>> {
        let values = match self.get(name) {
            Some(Value::Array(values)) => &values[..],
            _ => &[],
        };
        values.iter().filter_map(|value| match value {
            Value::Fields(fields) => Some(fields),
            _ => None,
        })
    }
}

/// The most values of a record. One may take no byte in the file, and has two hundred in memory.
const MAX_VALUES: usize = 1 << 22;

/// Decodes values of a chunk.
pub(super) struct Decoder<'a, 'm> {
    pub(super) cursor: Cursor<'a>,
    metadata: &'m Metadata,
    /// The remaining number of values. A class without fields takes no bytes, so the bytes alone do not bound them.
    steps: usize,
}

impl<'a, 'm> Decoder<'a, 'm> {
    pub(super) fn new(cursor: Cursor<'a>, metadata: &'m Metadata) -> Self {
        let steps = cursor.remaining().saturating_mul(2).saturating_add(64);
        let steps = steps.min(MAX_VALUES);
        Self {
            cursor,
            metadata,
            steps,
        }
    }

    /// Decodes an inline value. None if the bytes do not suffice, or its class is unknown or too complex.
    pub(super) fn value(&mut self, class: ClassId) -> Option<Value<'m>> {
        self.inline(class, 0)
    }

    /// Decodes the fields of a record of a class.
    pub(super) fn record(&mut self, class: ClassId) -> Option<Fields<'m>> {
        let class = self.metadata.class(class)?;
        self.fields(class, 0)
    }

    fn inline(&mut self, class: ClassId, depth: usize) -> Option<Value<'m>> {
        self.steps = self.steps.checked_sub(1)?;
        let class = self.metadata.class(class)?;
        let cursor = &mut self.cursor;
        Some(match class.shape {
            Shape::Byte => Value::Number(cursor.byte()?.cast_signed().into()),
            Shape::Short => Value::Number(cursor.short()?.into()),
            Shape::Int => Value::Number(cursor.int()?.into()),
            Shape::Long => Value::Number(cursor.long()?),
            Shape::Float(size) => cursor.bytes(size).map(|_| Value::Float)?,
            Shape::Text => Value::Text(cursor.text()?),
            Shape::Fields => Value::Fields(self.fields(class, depth)?),
        })
    }

    fn fields(&mut self, class: &'m Class, depth: usize) -> Option<Fields<'m>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut values = Vec::new();
        for field in &class.fields {
            values.push(match field.arity {
                Arity::One => self.one(field, depth)?,
                Arity::Many => {
                    let count = self.cursor.count()?;
                    let elements = (0..count).map(|_| self.one(field, depth));
                    Value::Array(elements.collect::<Option<_>>()?)
                }
            });
        }
        Some(Fields { class, values })
    }

    fn one(&mut self, field: &Field, depth: usize) -> Option<Value<'m>> {
        match field.storage {
            Storage::Constant => self.cursor.long().map(Value::Constant),
            Storage::Inline => self.inline(field.class, depth.saturating_add(1)),
        }
    }
}
