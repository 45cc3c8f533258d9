//! Reads class definitions and the members of classes.

use super::{Cursor, Header};
use crate::error::{Result, invalid};

/// The index that stands for none.
pub(crate) const NO_INDEX: u32 = u32::MAX;

/// A class_def_item, with the indices and offsets of the file. An offset is 0 if there is nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassDef {
    pub(crate) class: u32,
    pub(crate) access: u32,
    pub(crate) superclass: u32,
    pub(crate) interfaces: u32,
    pub(crate) source_file: u32,
    pub(crate) annotations: u32,
    pub(crate) data: u32,
    pub(crate) values: u32,
}

/// A field of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberField {
    pub(crate) index: u32,
    pub(crate) access: u32,
}

/// A method of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberMethod {
    pub(crate) index: u32,
    pub(crate) access: u32,
    /// The offset of its code_item, or 0.
    pub(crate) code: u32,
}

/// The members of a class.
#[derive(Debug, Default)]
pub(crate) struct ClassData {
    /// Static ones, and those of instances.
    pub(crate) fields: [Vec<MemberField>; 2],
    /// Direct ones, and virtual ones.
    pub(crate) methods: [Vec<MemberMethod>; 2],
}

impl ClassDef {
    /// Reads all class definitions.
    pub(crate) fn read_all(header: &Header<'_>) -> Result<Vec<Self>> {
        let table = header.classes;
        let mut cursor = Cursor::new(header.data, table.offset, "class_defs");
        let mut all = Vec::new();
        for _ in 0..table.count {
            all.push(Self {
                class: cursor.u32()?,
                access: cursor.u32()?,
                superclass: cursor.u32()?,
                interfaces: cursor.u32()?,
                source_file: cursor.u32()?,
                annotations: cursor.u32()?,
                data: cursor.u32()?,
                values: cursor.u32()?,
            });
        }
        Ok(all)
    }
}

impl ClassData {
    /// Reads the class_data_item of a class.
    pub(crate) fn read(data: &[u8], offset: u32) -> Result<Self> {
        let mut members = Self::default();
        if offset == 0 {
            return Ok(members);
        }
        let mut cursor = Cursor::new(data, offset, "class_data_item");
        let counts = [
            cursor.uleb()?,
            cursor.uleb()?,
            cursor.uleb()?,
            cursor.uleb()?,
        ];
        let [static_fields, instance_fields, direct, virtuals] = counts;
        for (fields, count) in members
            .fields
            .iter_mut()
            .zip([static_fields, instance_fields])
        {
            let mut index = 0;
            for _ in 0..count {
                index = next_index(index, &mut cursor)?;
                let access = cursor.uleb()?;
                fields.push(MemberField { index, access });
            }
        }
        for (methods, count) in members.methods.iter_mut().zip([direct, virtuals]) {
            let mut index = 0;
            for _ in 0..count {
                index = next_index(index, &mut cursor)?;
                methods.push(MemberMethod {
                    index,
                    access: cursor.uleb()?,
                    code: cursor.uleb()?,
                });
            }
        }
        Ok(members)
    }
}

/// How many members the classes may still define: a file names each one once.
#[derive(Debug)]
pub(crate) struct MembersLeft {
    fields: u32,
    methods: u32,
}

impl MembersLeft {
    /// Begins with all that the file names.
    pub(crate) const fn of(header: &Header<'_>) -> Self {
        Self {
            fields: header.fields.count,
            methods: header.methods.count,
        }
    }

    /// Takes the members of the class_data_item at `offset`.
    pub(crate) fn take(&mut self, members: &ClassData, offset: u32) -> Result<()> {
        let left = |all: u32, [first, second]: [usize; 2]| {
            let taken = first.checked_add(second)?;
            all.checked_sub(u32::try_from(taken).ok()?)
        };
        let fields = left(self.fields, members.fields.each_ref().map(Vec::len));
        let methods = left(self.methods, members.methods.each_ref().map(Vec::len));
        match (fields, methods) {
            (Some(fields), Some(methods)) => {
                *self = Self { fields, methods };
                Ok(())
            }
            _ => Err(invalid(
                "class_data_item",
                offset as usize,
                "the classes define more members than the file names",
            )),
        }
    }
}

/// Reads an index, which is the distance from the one before.
fn next_index(index: u32, cursor: &mut Cursor<'_>) -> Result<u32> {
    let distance = cursor.uleb()?;
    let next = index.checked_add(distance);
    next.ok_or_else(|| cursor.error("an index beyond the largest one"))
}
