//! How are the members of classes and lists of types written?

use std::collections::HashMap;

use super::code::Code;
use crate::code::halves;
use crate::error::Result;
use crate::file::{Kind, Order, Output};

/// A class by the indices of what it names, before these are sorted.
pub(super) struct NamedClass {
    pub(super) class: u32,
    pub(super) superclass: u32,
    pub(super) flags: u32,
    pub(super) interfaces: Vec<u32>,
    /// Static ones, and those of instances: each with its flags.
    pub(super) fields: [Vec<(u32, u32)>; 2],
    /// Direct ones, and virtual ones.
    pub(super) methods: [Vec<NamedMethod>; 2],
}

/// A method by its index, before these are sorted.
pub(super) struct NamedMethod {
    pub(super) index: u32,
    pub(super) flags: u32,
    pub(super) arguments: u16,
    pub(super) code: Option<Code>,
}

/// What a class_def has.
pub(super) struct WrittenClass {
    pub(super) class: u32,
    pub(super) superclass: u32,
    pub(super) flags: u32,
    pub(super) data: u32,
}

/// Writes the code and the members of classes.
pub(super) fn write_members(
    classes: Vec<NamedClass>,
    order: &Order,
    out: &mut Output,
) -> Result<Vec<WrittenClass>> {
    out.align();
    let (start, mut count) = (out.at()?, 0_usize);
    let mut all = Vec::new();
    for class in classes {
        let mut data = Vec::new();
        for methods in class.methods {
            let mut placed = Vec::new();
            for method in methods {
                let mut at = 0;
                if let Some(code) = method.code {
                    let item = code.encode(method.arguments, order)?;
                    out.align();
                    at = out.at()?;
                    out.put(&item);
                    count = count.saturating_add(1);
                }
                placed.push((order.methods.get(method.index, 0)?, method.flags, at));
            }
            placed.sort_unstable();
            data.push(placed);
        }
        let mut fields = Vec::new();
        for own in class.fields {
            let own = own.into_iter().map(|(index, flags)| {
                let index = order.fields.get(index, 0)?;
                Ok((index, flags))
            });
            let mut own = own.collect::<Result<Vec<_>>>()?;
            own.sort_unstable();
            fields.push(own);
        }
        let written = WrittenClass {
            class: order.types.get(class.class, 0)?,
            superclass: order.types.get(class.superclass, 0)?,
            flags: class.flags,
            data: 0,
        };
        all.push((written, fields, data));
    }
    out.section(Kind::Code, count, start);
    let start = out.at()?;
    let mut classes = Vec::new();
    for (mut class, fields, methods) in all {
        class.data = out.at()?;
        let counts = fields.iter().map(Vec::len);
        for count in counts.chain(methods.iter().map(Vec::len)) {
            out.uleb(u32::try_from(count).unwrap_or(u32::MAX));
        }
        for own in fields {
            let mut last = 0;
            for (index, flags) in own {
                out.uleb(index.saturating_sub(last));
                out.uleb(flags);
                last = index;
            }
        }
        for own in methods {
            let mut last = 0;
            for (index, flags, code) in own {
                out.uleb(index.saturating_sub(last));
                out.uleb(flags);
                out.uleb(code);
                last = index;
            }
        }
        classes.push(class);
    }
    out.section(Kind::ClassData, classes.len(), start);
    Ok(classes)
}

/// The lists of types that were written, by their contents.
pub(super) struct TypeLists {
    pub(super) start: u32,
    pub(super) by_types: HashMap<Vec<u32>, u32>,
}

impl TypeLists {
    pub(super) fn start(out: &mut Output) -> Result<Self> {
        out.align();
        Ok(Self {
            start: out.at()?,
            by_types: HashMap::new(),
        })
    }

    /// Returns the offset of a list, which is written if it is new. 0 if it is empty.
    pub(super) fn add(&mut self, types: Vec<u32>, out: &mut Output) -> Result<u32> {
        if types.is_empty() {
            return Ok(0);
        }
        if let Some(known) = self.by_types.get(&types) {
            return Ok(*known);
        }
        out.align();
        let at = out.at()?;
        out.u32(u32::try_from(types.len()).unwrap_or(u32::MAX));
        for index in &types {
            // There are at most 65,536 types.
            let [low, _] = halves(*index);
            out.u16(low);
        }
        self.by_types.insert(types, at);
        Ok(at)
    }

    pub(super) fn finish(&self, out: &mut Output) {
        out.section(Kind::TypeList, self.by_types.len(), self.start);
    }
}
