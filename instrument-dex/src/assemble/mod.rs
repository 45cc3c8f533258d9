//! How is a dex file assembled from nothing?
//!
//! Instructions name strings, types, fields and methods by a [`Reference`], which becomes an index when the file is written: only then the order of
//! its tables is known.
//!
//! | question | file |
//! |---|---|
//! | what does a method execute | `code` |
//! | what does a class have | `class` |
//! | which types does a method's descriptor have | `prototype` |
//! | how are members and lists of types written | `members` |

mod class;
mod code;
mod members;
mod prototype;

pub use class::Class;
pub use code::{Code, Reference};

pub use crate::code::Label;

use varid_instrument::assemble::access;

use code::Item;
use members::{NamedClass, NamedMethod, TypeLists, write_members};
use prototype::Prototype;

use crate::error::{NotRewritten, Result};
use crate::file::{FieldId, MethodId, NO_INDEX, Output, Pools};

/// The version that each ART and Dalvik reads.
const MAGIC: [u8; 8] = *b"dex\n035\0";
/// The flag of constructors and class initializers.
const CONSTRUCTOR: u32 = 0x1_0000;
/// The most bytes of a file.
const LIMIT: usize = 1 << 30;

/// A dex file that is assembled.
#[derive(Debug, Default)]
pub struct DexBuilder {
    pools: Pools<'static>,
    classes: Vec<Class>,
}

impl DexBuilder {
    /// Returns the reference to a string of ASCII characters.
    pub fn string(&mut self, text: &str) -> Reference {
        Reference::new(Item::String(self.pools.add_string(text)))
    }

    /// Returns the reference to a type, by its descriptor.
    pub fn type_of(&mut self, descriptor: &str) -> Reference {
        Reference::new(Item::Type(self.pools.add_type(descriptor)))
    }

    /// Returns the reference to a field, by the descriptors of its class and its type.
    pub fn field(&mut self, class: &str, name: &str, descriptor: &str) -> Reference {
        Reference::new(Item::Field(self.add_field(class, name, descriptor)))
    }

    /// Returns the reference to a method, by the descriptor of its class and its own, such as `(I)J`.
    ///
    /// # Errors
    ///
    /// The descriptor is invalid.
    pub fn method(&mut self, class: &str, name: &str, descriptor: &str) -> Result<Reference> {
        let (method, _) = self.add_method(class, name, descriptor)?;
        Ok(Reference::new(Item::Method(method)))
    }

    /// Adds a class.
    pub fn class(&mut self, class: Class) {
        self.classes.push(class);
    }

    fn add_field(&mut self, class: &str, name: &str, descriptor: &str) -> u32 {
        let field = FieldId {
            class: self.pools.add_type(class),
            kind: self.pools.add_type(descriptor),
            name: self.pools.add_string(name),
        };
        self.pools.add_field(field)
    }

    /// Returns the method's index, and the registers of its arguments without the instance.
    fn add_method(&mut self, class: &str, name: &str, descriptor: &str) -> Result<(u32, u16)> {
        let prototype = Prototype::parse(descriptor)
            .ok_or(NotRewritten::Unsupported("an invalid descriptor"))?;
        let proto =
            self.pools
                .add_proto(&prototype.shorty, prototype.returns, &prototype.parameters);
        let method = MethodId {
            class: self.pools.add_type(class),
            proto,
            name: self.pools.add_string(name),
        };
        Ok((self.pools.add_method(method), prototype.registers))
    }

    /// Returns the file.
    ///
    /// # Errors
    ///
    /// A descriptor is invalid, or there are more items than instructions can refer to.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        let classes = std::mem::take(&mut self.classes);
        let named: Vec<NamedClass> = classes
            .into_iter()
            .map(|class| self.name(class))
            .collect::<Result<_>>()?;
        let order = self.pools.sort()?;
        let mut out = Output::new(LIMIT);
        let tables = order.reserve_tables(named.len(), &mut out)?;
        let data_start = out.at()?;
        let texts = self.pools.write_texts(&order, &mut out)?;
        let mut lists = TypeLists::start(&mut out)?;
        for types in self.pools.parameter_lists(&order) {
            lists.add(types, &mut out)?;
        }
        let mut defs = Vec::new();
        for class in &named {
            let interfaces = class.interfaces.iter().map(|one| order.types.get(*one, 0));
            defs.push(lists.add(interfaces.collect::<Result<_>>()?, &mut out)?);
        }
        lists.finish(&mut out);
        let members = write_members(named, &order, &mut out)?;
        let map = out.write_map()?;
        let place = |index: usize| tables.get(index).map_or(0, |table| table.at);
        out.replace(
            place(1),
            &self.pools.tables(&order, &texts, &lists.by_types),
        );
        let mut bytes = Vec::new();
        for (class, interfaces) in members.iter().zip(&defs) {
            let def = [
                class.class,
                class.flags,
                class.superclass,
                *interfaces,
                NO_INDEX,
                0,
                class.data,
                0,
            ];
            bytes.extend(def.into_iter().flat_map(u32::to_le_bytes));
        }
        out.replace(place(6), &bytes);
        out.write_header(MAGIC, &tables, data_start, map)?;
        Ok(out.finish())
    }

    /// Adds what a class names to the tables.
    fn name(&mut self, class: Class) -> Result<NamedClass> {
        let name = class.descriptor;
        let mut named = NamedClass {
            class: self.pools.add_type(&name),
            superclass: self.pools.add_type(&class.superclass),
            flags: class.flags,
            interfaces: Vec::new(),
            fields: [Vec::new(), Vec::new()],
            methods: [Vec::new(), Vec::new()],
        };
        let [statics, instances] = &mut named.fields;
        for field in class.fields {
            let index = self.add_field(&name, &field.name, &field.descriptor);
            let is_static = field.flags & access::STATIC != 0;
            let to = if is_static {
                &mut *statics
            } else {
                &mut *instances
            };
            to.push((index, field.flags.into()));
        }
        let [direct, virtuals] = &mut named.methods;
        for method in class.methods {
            let (index, registers) = self.add_method(&name, &method.name, &method.descriptor)?;
            let is_static = method.flags & access::STATIC != 0;
            let is_constructor = method.name.starts_with('<');
            let flags = u32::from(method.flags) | if is_constructor { CONSTRUCTOR } else { 0 };
            let is_direct = is_static || is_constructor || method.flags & access::PRIVATE != 0;
            let to = if is_direct {
                &mut *direct
            } else {
                &mut *virtuals
            };
            to.push(NamedMethod {
                index,
                flags,
                arguments: registers.saturating_add(u16::from(!is_static)),
                code: method.code,
            });
        }
        for interface in &class.interfaces {
            named.interfaces.push(self.pools.add_type(interface));
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests;
