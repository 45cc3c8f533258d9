//! The tables of strings, types, prototypes, fields and methods: read, added to, and sorted.

use std::{borrow::Cow, cmp::Ordering, collections::HashMap};

use varid_symbolizer::dex::decode_modified_utf8;

use super::header::Header;
use super::{Cursor, HEADER_SIZE, Kind, Output, TablePlace};
use crate::error::{NotRewritten, Result, invalid};

/// The most items that instructions can refer to.
const MAX_ITEMS: usize = 1 << 16;
/// The most parameters of a method.
const MAX_PARAMETERS: u32 = 255;

/// A string: its modified UTF-8, and its length in UTF-16 code units.
#[derive(Debug, Clone)]
struct Text<'d> {
    bytes: Cow<'d, [u8]>,
    units: u32,
}

/// A prototype, by indices of strings and types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProtoId {
    shorty: u32,
    pub(crate) returns: u32,
    pub(crate) parameters: Vec<u32>,
}

/// A field, by indices of types and strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldId {
    pub(crate) class: u32,
    pub(crate) kind: u32,
    pub(crate) name: u32,
}

/// A method, by indices of types, prototypes and strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MethodId {
    pub(crate) class: u32,
    pub(crate) proto: u32,
    pub(crate) name: u32,
}

/// The tables. Items that are added are behind those of the file until [`Pools::sort`].
#[derive(Debug, Default)]
pub(crate) struct Pools<'d> {
    strings: Vec<Text<'d>>,
    types: Vec<u32>,
    protos: Vec<ProtoId>,
    fields: Vec<FieldId>,
    methods: Vec<MethodId>,
}

/// The new indices of a table's items.
#[derive(Debug)]
pub(crate) struct Remap {
    /// By the old index.
    new: Vec<u32>,
    /// By the new index.
    old: Vec<u32>,
    what: &'static str,
}

/// The new indices of all tables' items.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) strings: Remap,
    pub(crate) types: Remap,
    pub(crate) protos: Remap,
    pub(crate) fields: Remap,
    pub(crate) methods: Remap,
}

impl Order {
    /// Leaves room for the header and the tables that it lists, in their order. `classes`: how many are defined.
    pub(crate) fn reserve_tables(
        &self,
        classes: usize,
        out: &mut Output,
    ) -> Result<Vec<TablePlace>> {
        [
            (Kind::Header, 1, HEADER_SIZE),
            (Kind::StringId, self.strings.len(), 4),
            (Kind::TypeId, self.types.len(), 4),
            (Kind::ProtoId, self.protos.len(), 12),
            (Kind::FieldId, self.fields.len(), 8),
            (Kind::MethodId, self.methods.len(), 8),
            (Kind::ClassDef, classes, 32),
        ]
        .into_iter()
        .map(|(kind, count, size)| out.reserve(kind, count, size))
        .collect()
    }
}

impl Remap {
    /// Sorts items. Their order is total.
    fn sort(count: usize, what: &'static str, order: impl Fn(u32, u32) -> Ordering) -> Self {
        let mut old: Vec<u32> = (0..).take(count).collect();
        old.sort_by(|one, other| order(*one, *other));
        let mut new = vec![0; count];
        for (index, item) in (0..).zip(&old) {
            if let Some(place) = new.get_mut(*item as usize) {
                *place = index;
            }
        }
        Self { new, old, what }
    }

    /// Returns the new index of an item. `at` is where the file has the old one.
    pub(crate) fn get(&self, old: u32, at: usize) -> Result<u32> {
        let new = self.new.get(old as usize).copied();
        new.ok_or_else(|| invalid(self.what, at, "an index lies beyond the end of the table"))
    }

    /// Returns the new index of an item that exists.
    fn of(&self, old: u32) -> u32 {
        self.new.get(old as usize).copied().unwrap_or(0)
    }

    pub(crate) const fn len(&self) -> usize {
        self.new.len()
    }
}

impl<'d> Pools<'d> {
    /// Reads the tables of a file. All indices in them are checked.
    pub(crate) fn read(header: &Header<'d>) -> Result<Self> {
        let data = header.data;
        let mut pools = Self::default();
        let mut cursor = Cursor::new(data, header.strings.offset, "string_ids");
        for _ in 0..header.strings.count {
            pools.strings.push(Text::read(data, cursor.u32()?)?);
        }
        let mut cursor = Cursor::new(data, header.types.offset, "type_ids");
        for _ in 0..header.types.count {
            let descriptor = pools.check_string(cursor.u32()?, &cursor)?;
            pools.types.push(descriptor);
        }
        let mut cursor = Cursor::new(data, header.protos.offset, "proto_ids");
        for _ in 0..header.protos.count {
            let shorty = pools.check_string(cursor.u32()?, &cursor)?;
            let returns = pools.check_type(cursor.u32()?, &cursor)?;
            let parameters = match cursor.u32()? {
                0 => Vec::new(),
                offset => pools.read_parameters(data, offset)?,
            };
            pools.protos.push(ProtoId {
                shorty,
                returns,
                parameters,
            });
        }
        let mut cursor = Cursor::new(data, header.fields.offset, "field_ids");
        for _ in 0..header.fields.count {
            let class = pools.check_type(cursor.u16()?.into(), &cursor)?;
            let kind = pools.check_type(cursor.u16()?.into(), &cursor)?;
            let name = pools.check_string(cursor.u32()?, &cursor)?;
            pools.fields.push(FieldId { class, kind, name });
        }
        let mut cursor = Cursor::new(data, header.methods.offset, "method_ids");
        for _ in 0..header.methods.count {
            let class = pools.check_type(cursor.u16()?.into(), &cursor)?;
            let proto = u32::from(cursor.u16()?);
            if proto as usize >= pools.protos.len() {
                return Err(cursor.error("a prototype lies beyond the end of the table"));
            }
            let name = pools.check_string(cursor.u32()?, &cursor)?;
            pools.methods.push(MethodId { class, proto, name });
        }
        Ok(pools)
    }

    fn read_parameters(&self, data: &[u8], offset: u32) -> Result<Vec<u32>> {
        let mut list = Cursor::new(data, offset, "type_list");
        let count = list.u32()?;
        if count > MAX_PARAMETERS {
            return Err(list.error("more parameters than a method has"));
        }
        let types = (0..count).map(|_| {
            let index = list.u16()?.into();
            self.check_type(index, &list)
        });
        types.collect()
    }

    fn check_string(&self, index: u32, at: &Cursor<'_>) -> Result<u32> {
        match self.strings.get(index as usize) {
            Some(_) => Ok(index),
            None => Err(at.error("a string lies beyond the end of the table")),
        }
    }

    fn check_type(&self, index: u32, at: &Cursor<'_>) -> Result<u32> {
        match self.types.get(index as usize) {
            Some(_) => Ok(index),
            None => Err(at.error("a type lies beyond the end of the table")),
        }
    }

    /// Returns a string as UTF-8. Empty if there is none with this index.
    pub(crate) fn string(&self, index: u32) -> String {
        let text = self.strings.get(index as usize);
        text.map_or_else(String::new, |text| text.decode())
    }

    /// Returns a type's descriptor.
    pub(crate) fn descriptor(&self, index: u32) -> String {
        let string = self.types.get(index as usize);
        string.map_or_else(String::new, |string| self.string(*string))
    }

    /// Returns a method, if there is one with this index.
    pub(crate) fn method(&self, index: u32) -> Option<MethodId> {
        self.methods.get(index as usize).copied()
    }

    /// Returns the methods, by their indices.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (u32, MethodId)> {
        (0..).zip(self.methods.iter().copied())
    }

    /// Returns a prototype, if there is one with this index.
    pub(crate) fn proto(&self, index: u32) -> Option<&ProtoId> {
        self.protos.get(index as usize)
    }

    /// Returns the descriptor of a prototype, such as `(IJ)V`.
    pub(crate) fn prototype(&self, index: u32) -> String {
        let Some(proto) = self.proto(index) else {
            return String::new();
        };
        let mut text = "(".to_owned();
        for parameter in &proto.parameters {
            text += &self.descriptor(*parameter);
        }
        text.push(')');
        text + &self.descriptor(proto.returns)
    }

    /// Returns true if the file has a type.
    pub(crate) fn has_type(&self, descriptor: &str) -> bool {
        let mut types = self.types.iter();
        types.any(|string| {
            let text = self.strings.get(*string as usize);
            text.is_some_and(|text| *text.bytes == *descriptor.as_bytes())
        })
    }

    /// Adds a string of ASCII characters, unless there is one.
    pub(crate) fn add_string(&mut self, text: &str) -> u32 {
        let bytes = text.as_bytes();
        let known = self.strings.iter().position(|known| *known.bytes == *bytes);
        index_of(known, &mut self.strings, || Text {
            bytes: Cow::Owned(bytes.to_vec()),
            units: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        })
    }

    /// Adds a type, unless there is one.
    pub(crate) fn add_type(&mut self, descriptor: &str) -> u32 {
        let string = self.add_string(descriptor);
        let known = self.types.iter().position(|known| *known == string);
        index_of(known, &mut self.types, || string)
    }

    /// Adds a prototype, unless there is one.
    pub(crate) fn add_proto(&mut self, shorty: &str, returns: &str, parameters: &[&str]) -> u32 {
        let proto = ProtoId {
            shorty: self.add_string(shorty),
            returns: self.add_type(returns),
            parameters: parameters.iter().map(|one| self.add_type(one)).collect(),
        };
        let known = self.protos.iter().position(|known| *known == proto);
        index_of(known, &mut self.protos, || proto)
    }

    /// Adds a field, unless there is one.
    pub(crate) fn add_field(&mut self, field: FieldId) -> u32 {
        let known = self.fields.iter().position(|known| *known == field);
        index_of(known, &mut self.fields, || field)
    }

    /// Adds a method, unless there is one.
    pub(crate) fn add_method(&mut self, method: MethodId) -> u32 {
        let known = self.methods.iter().position(|known| *known == method);
        index_of(known, &mut self.methods, || method)
    }

    /// Returns the order in which a file must have the items.
    ///
    /// # Errors
    ///
    /// There are more than instructions can refer to.
    pub(crate) fn sort(&self) -> Result<Order> {
        for (count, what) in [
            (self.types.len(), "types"),
            (self.protos.len(), "prototypes"),
            (self.fields.len(), "fields"),
            (self.methods.len(), "methods"),
        ] {
            if count > MAX_ITEMS {
                return Err(NotRewritten::Full(what));
            }
        }
        let strings = Remap::sort(self.strings.len(), "string_ids", |one, other| {
            let text = |index: u32| self.strings.get(index as usize).map(Text::code_units);
            match (text(one), text(other)) {
                (Some(one), Some(other)) => one.cmp(other),
                _ => Ordering::Equal,
            }
        });
        let types = Remap::sort(self.types.len(), "type_ids", |one, other| {
            let key = |index: u32| self.types.get(index as usize).map(|it| strings.of(*it));
            key(one).cmp(&key(other))
        });
        let protos = Remap::sort(self.protos.len(), "proto_ids", |one, other| {
            let key = |index: u32| {
                let proto = self.protos.get(index as usize)?;
                let parameters = proto.parameters.iter().map(|it| types.of(*it));
                Some((types.of(proto.returns), parameters.collect::<Vec<_>>()))
            };
            key(one).cmp(&key(other))
        });
        let fields = Remap::sort(self.fields.len(), "field_ids", |one, other| {
            let key = |index: u32| {
                let field = self.fields.get(index as usize)?;
                let (class, kind) = (types.of(field.class), types.of(field.kind));
                Some((class, strings.of(field.name), kind))
            };
            key(one).cmp(&key(other))
        });
        let methods = Remap::sort(self.methods.len(), "method_ids", |one, other| {
            let key = |index: u32| {
                let method = self.methods.get(index as usize)?;
                let (class, proto) = (types.of(method.class), protos.of(method.proto));
                Some((class, strings.of(method.name), proto))
            };
            key(one).cmp(&key(other))
        });
        Ok(Order {
            strings,
            types,
            protos,
            fields,
            methods,
        })
    }

    /// Writes the texts of the strings. Returns their offsets, by new index.
    pub(crate) fn write_texts(&self, order: &Order, out: &mut Output) -> Result<Vec<u32>> {
        let start = out.at()?;
        let mut offsets = Vec::new();
        for index in &order.strings.old {
            offsets.push(out.at()?);
            if let Some(text) = self.strings.get(*index as usize) {
                out.uleb(text.units);
                out.put(&text.bytes);
                out.u8(0);
            }
        }
        out.section(Kind::StringData, offsets.len(), start);
        Ok(offsets)
    }

    /// Returns the parameters of the prototypes, by new index.
    pub(crate) fn parameter_lists(&self, order: &Order) -> Vec<Vec<u32>> {
        let protos = order.protos.old.iter();
        let lists = protos.map(|index| {
            let parameters = self.proto(*index).map(|proto| proto.parameters.iter());
            let parameters = parameters.into_iter().flatten();
            parameters.map(|it| order.types.of(*it)).collect()
        });
        lists.collect()
    }

    /// Returns the tables up to that of the methods. `texts` are the offsets of the strings, `lists` those of the parameter lists by their
    /// contents.
    pub(crate) fn tables(
        &self,
        order: &Order,
        texts: &[u32],
        lists: &HashMap<Vec<u32>, u32>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |value: u32| out.extend_from_slice(&value.to_le_bytes());
        texts.iter().for_each(|offset| put(*offset));
        let types = order.types.old.iter();
        for string in types.filter_map(|index| self.types.get(*index as usize)) {
            put(order.strings.of(*string));
        }
        let parameters = self.parameter_lists(order);
        for (index, parameters) in order.protos.old.iter().zip(&parameters) {
            if let Some(proto) = self.proto(*index) {
                put(order.strings.of(proto.shorty));
                put(order.types.of(proto.returns));
                put(lists.get(parameters).copied().unwrap_or(0));
            }
        }
        // The first two indices have 16 bits each, and are below 65,536.
        let fields = order.fields.old.iter();
        for field in fields.filter_map(|index| self.fields.get(*index as usize)) {
            put(order.types.of(field.kind) << 16 | order.types.of(field.class));
            put(order.strings.of(field.name));
        }
        let methods = order.methods.old.iter();
        for method in methods.filter_map(|index| self.method(*index)) {
            put(order.protos.of(method.proto) << 16 | order.types.of(method.class));
            put(order.strings.of(method.name));
        }
        out
    }
}

/// Returns the index of a known item, or of a new one.
fn index_of<T>(known: Option<usize>, items: &mut Vec<T>, new: impl FnOnce() -> T) -> u32 {
    let index = known.unwrap_or(items.len());
    if known.is_none() {
        items.push(new());
    }
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl<'d> Text<'d> {
    fn read(data: &'d [u8], offset: u32) -> Result<Self> {
        let mut cursor = Cursor::new(data, offset, "string_data_item");
        let units = cursor.uleb()?;
        let rest = data.get(cursor.at()..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        let bytes = match end {
            Some(end) => cursor.bytes(end)?,
            None => return Err(cursor.error("the string has no end")),
        };
        Ok(Self {
            bytes: Cow::Borrowed(bytes),
            units,
        })
    }

    fn decode(&self) -> String {
        decode_modified_utf8(&self.bytes)
    }

    /// Returns the UTF-16 code units, by which strings are sorted.
    fn code_units(&self) -> impl Iterator<Item = u16> {
        let mut bytes = self.bytes.iter().map(|byte| u16::from(*byte));
        std::iter::from_fn(move || {
            let first = bytes.next()?;
            let mut low = || bytes.next().unwrap_or(0) & 0x3f;
            Some(match first {
                0..0xc0 => first,
                0xc0..0xe0 => (first & 0x1f) << 6 | low(),
                _ => (first & 0xf) << 12 | low() << 6 | low(),
            })
        })
    }
}
