//! Writes a rewritten dex file: what instructions refer to first, then what refers to it.

use std::collections::HashMap;

use crate::code::NewCode;
use crate::error::Result;
use crate::file::{
    Annotated, Annotations, Arrays, ClassDef, Cursor, Kind, NO_INDEX, Output, Remap,
};
use crate::rewrite::{File, NewClass, RuntimeClass, access};

impl File<'_> {
    /// Writes the file with the new code of its classes.
    pub(crate) fn write(
        &self,
        classes: &[NewClass],
        runtime_class: RuntimeClass,
    ) -> Result<Vec<u8>> {
        let (header, order) = (&self.header, &self.order);
        let data = header.data;
        let has_runtime = runtime_class == RuntimeClass::Added;
        let defined = classes.len().saturating_add(usize::from(has_runtime));
        let mut out = Output::new(self.limit);
        let mut places = order.reserve_tables(defined, &mut out)?;
        for (kind, count, size) in [
            (Kind::CallSiteId, header.call_sites.count as usize, 4),
            (Kind::MethodHandle, header.method_handles.count as usize, 8),
        ] {
            places.push(out.reserve(kind, count, size)?);
        }
        let data_start = out.at()?;
        let texts = self.pools.write_texts(order, &mut out)?;
        let (parameters, interfaces) = self.write_type_lists(classes, &mut out)?;
        let code = write_code(classes, &mut out)?;
        let annotated = match has_runtime {
            true => Some(Annotated {
                annotation: order.types.get(self.runtime.annotation, 0)?,
                methods: self.members.methods(),
            }),
            false => None,
        };
        let annotations = Annotations::write(
            data,
            classes.iter().map(|class| class.def.annotations),
            order,
            annotated.as_ref(),
            &mut out,
        )?;
        let call_sites = self.call_sites()?;
        let values = classes.iter().map(|class| class.def.values);
        let values = values.filter(|offset| *offset != 0);
        let arrays = Arrays::write(
            data,
            values.chain(call_sites.iter().copied()),
            order,
            &mut out,
        )?;
        let members = self.write_members(classes, &code, has_runtime, &mut out)?;
        let map = out.write_map()?;

        let place = |index: usize| places.get(index).map_or(0, |place| place.at);
        out.replace(place(1), &self.pools.tables(order, &texts, &parameters));
        let mut defs = Vec::new();
        for (class, members) in classes.iter().zip(&members) {
            self.put_def(
                &class.def,
                &interfaces,
                &annotations,
                &arrays,
                *members,
                &mut defs,
            )?;
        }
        if has_runtime {
            let members = members.last().copied().unwrap_or(0);
            let def = [
                order.types.get(self.runtime.class, 0)?,
                access::PUBLIC | access::FINAL,
                order.types.get(self.runtime.superclass, 0)?,
                0,
                NO_INDEX,
                annotations.added,
                members,
                0,
            ];
            defs.extend(def.into_iter().flat_map(u32::to_le_bytes));
        }
        out.replace(place(6), &defs);
        let sites = call_sites.iter().map(|old| arrays.get(*old));
        let sites: Vec<u8> = sites.flat_map(u32::to_le_bytes).collect();
        out.replace(place(7), &sites);
        out.replace(place(8), &self.method_handles()?);

        out.write_header(header.magic, &places, data_start, map)?;
        Ok(out.finish())
    }

    /// Writes the lists of types. Returns those of parameters by their contents, and those of interfaces by their old offsets.
    #[allow(clippy::type_complexity)]
    fn write_type_lists(
        &self,
        classes: &[NewClass],
        out: &mut Output,
    ) -> Result<(HashMap<Vec<u32>, u32>, HashMap<u32, u32>)> {
        out.align();
        let start = out.at()?;
        let (mut by_types, mut by_offset) = (HashMap::new(), HashMap::new());
        let mut write = |types: &Vec<u32>, out: &mut Output| -> Result<u32> {
            if let Some(known) = by_types.get(types) {
                return Ok(*known);
            }
            out.align();
            let at = out.at()?;
            out.u32(u32::try_from(types.len()).unwrap_or(u32::MAX));
            for index in types {
                // There are at most 65,536 types.
                let [low, high, ..] = index.to_le_bytes();
                out.u16(u16::from_le_bytes([low, high]));
            }
            by_types.insert(types.clone(), at);
            Ok(at)
        };
        for types in self.pools.parameter_lists(&self.order) {
            if !types.is_empty() {
                write(&types, out)?;
            }
        }
        for class in classes {
            let offset = class.def.interfaces;
            if offset != 0 && !by_offset.contains_key(&offset) {
                let mut list = Cursor::new(self.header.data, offset, "type_list");
                let count = list.u32()?;
                let types = (0..count).map(|_| {
                    let at = list.at();
                    self.order.types.get(list.u16()?.into(), at)
                });
                let types = types.collect::<Result<Vec<_>>>()?;
                by_offset.insert(offset, write(&types, out)?);
            }
        }
        out.section(Kind::TypeList, by_types.len(), start);
        Ok((by_types, by_offset))
    }

    /// Returns the offsets of the arrays of the call sites.
    fn call_sites(&self) -> Result<Vec<u32>> {
        let table = self.header.call_sites;
        let mut cursor = Cursor::new(self.header.data, table.offset, "call_site_ids");
        (0..table.count).map(|_| cursor.u32()).collect()
    }

    fn method_handles(&self) -> Result<Vec<u8>> {
        /// The first kind of handle that has a method, not a field.
        const FIRST_OF_METHODS: u16 = 4;
        let table = self.header.method_handles;
        let mut cursor = Cursor::new(self.header.data, table.offset, "method_handles");
        let mut out = Vec::new();
        for _ in 0..table.count {
            let kind = cursor.u16()?;
            let _unused = cursor.u16()?;
            let at = cursor.at();
            let old = cursor.u16()?.into();
            let _unused = cursor.u16()?;
            let new = match kind < FIRST_OF_METHODS {
                true => self.order.fields.get(old, at)?,
                false => self.order.methods.get(old, at)?,
            };
            out.extend_from_slice(&u32::from(kind).to_le_bytes());
            out.extend_from_slice(&new.to_le_bytes());
        }
        Ok(out)
    }

    /// Writes the members of classes. Returns their offsets, the runtime class's last.
    fn write_members(
        &self,
        classes: &[NewClass],
        code: &[Vec<u32>],
        has_runtime: bool,
        out: &mut Output,
    ) -> Result<Vec<u32>> {
        let start = out.at()?;
        let mut offsets = Vec::new();
        let mut written = 0_usize;
        for (class, code) in classes.iter().zip(code) {
            if class.def.data == 0 {
                offsets.push(0);
                continue;
            }
            offsets.push(out.at()?);
            written = written.saturating_add(1);
            let members = &class.members;
            let at = class.def.data as usize;
            for fields in &members.fields {
                out.uleb(u32::try_from(fields.len()).unwrap_or(u32::MAX));
            }
            for methods in &members.methods {
                out.uleb(u32::try_from(methods.len()).unwrap_or(u32::MAX));
            }
            // A file whose tables were not in order may have members in another order now.
            for fields in &members.fields {
                let mut new = Vec::new();
                for field in fields {
                    let index = self.order.fields.get(field.index, at)?;
                    new.push((index, field.access));
                }
                new.sort_unstable();
                let mut last = 0;
                for (index, access) in new {
                    out.uleb(index.saturating_sub(last));
                    out.uleb(access);
                    last = index;
                }
            }
            let mut code = code.iter();
            for methods in &members.methods {
                let mut new = Vec::new();
                for method in methods {
                    let index = self.order.methods.get(method.index, at)?;
                    let code = match method.code {
                        0 => 0,
                        _ => code.next().copied().unwrap_or(0),
                    };
                    new.push((index, method.access, code));
                }
                new.sort_unstable();
                let mut last = 0;
                for (index, access, code) in new {
                    out.uleb(index.saturating_sub(last));
                    out.uleb(access);
                    out.uleb(code);
                    last = index;
                }
            }
        }
        if has_runtime {
            offsets.push(out.at()?);
            written = written.saturating_add(1);
            let methods = self.members.methods();
            let count = u32::try_from(methods.len()).unwrap_or(u32::MAX);
            let fields = self.members.fields();
            let fields_count = u32::try_from(fields.len()).unwrap_or(u32::MAX);
            for count in [fields_count, 0, count, 0] {
                out.uleb(count);
            }
            let mut last = 0;
            for index in fields.map(u32::from) {
                out.uleb(index.saturating_sub(last));
                out.uleb(access::PUBLIC | access::STATIC);
                last = index;
            }
            let mut last = 0;
            for index in methods {
                out.uleb(u32::from(index).saturating_sub(last));
                out.uleb(access::PUBLIC | access::STATIC | access::NATIVE);
                out.uleb(0);
                last = index.into();
            }
        }
        out.section(Kind::ClassData, written, start);
        Ok(offsets)
    }

    fn put_def(
        &self,
        def: &ClassDef,
        interfaces: &HashMap<u32, u32>,
        annotations: &Annotations,
        arrays: &Arrays,
        members: u32,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let index = |remap: &Remap, old: u32| match old {
            NO_INDEX => Ok(NO_INDEX),
            old => remap.get(old, self.header.classes.offset as usize),
        };
        let (types, strings) = (&self.order.types, &self.order.strings);
        let fields = [
            index(types, def.class)?,
            def.access,
            index(types, def.superclass)?,
            interfaces.get(&def.interfaces).copied().unwrap_or(0),
            index(strings, def.source_file)?,
            annotations.get(def.annotations),
            members,
            arrays.get(def.values),
        ];
        out.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        Ok(())
    }
}

/// Writes the debug information and the code of classes. Returns the offsets of the code, for each class in the order of its members.
fn write_code(classes: &[NewClass], out: &mut Output) -> Result<Vec<Vec<u32>>> {
    let mut debug: HashMap<&[u8], u32> = HashMap::new();
    let start = out.at()?;
    for code in classes.iter().flat_map(|class| &class.code) {
        if !code.debug_info.is_empty() && !debug.contains_key(code.debug_info.as_slice()) {
            debug.insert(&code.debug_info, out.at()?);
            out.put(&code.debug_info);
        }
    }
    out.section(Kind::DebugInfo, debug.len(), start);
    out.align();
    let start = out.at()?;
    let mut count = 0_usize;
    let mut offsets = Vec::new();
    for class in classes {
        let mut of_class = Vec::new();
        for code in &class.code {
            out.align();
            let at = out.at()?;
            of_class.push(at);
            out.put(&code.item);
            let debug = debug.get(code.debug_info.as_slice()).copied().unwrap_or(0);
            let field = u32::try_from(NewCode::DEBUG_INFO).unwrap_or(0);
            out.replace(at.saturating_add(field), &debug.to_le_bytes());
            count = count.saturating_add(1);
        }
        offsets.push(of_class);
    }
    out.section(Kind::Code, count, start);
    Ok(offsets)
}
