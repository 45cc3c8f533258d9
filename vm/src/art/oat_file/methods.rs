//! The compiled methods of an oat file, by the offset of their code. dex2oat writes equal code once, so several methods may share it.

use super::{OatData, OatError, OatFile};
use crate::art::code_format::CodeFormat;
use crate::art::code_info::code_size;
use crate::art::method_header::MethodHeader;
use std::ops::Range;
use varid_model::Machine;

/// The compiled methods of an oat file.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompiledMethods {
    /// By start.
    codes: Vec<CompiledCode>,
    /// By code, then by dex file and index.
    methods: Vec<CompiledMethod>,
    /// Methods whose code has no usable header.
    pub(crate) refused: usize,
    /// Numbers of the dex files of which nothing can be read, and why. The methods of the other dex files are present.
    pub(crate) unreadable: Vec<(usize, OatError)>,
}

/// The code of one or more methods. Offsets count from `oatdata`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompiledCode {
    /// Offset of its first instruction.
    pub(crate) start: u32,
    /// Size in bytes.
    pub(crate) size: u32,
    /// Offset of its CodeInfo.
    pub(crate) code_info: u32,
    /// The methods that share it.
    methods: Range<usize>,
}

/// A compiled method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CompiledMethod {
    /// Number of its dex file in [`OatFile::dex_files`].
    pub(crate) dex_file: usize,
    /// Its index in the dex file.
    pub(crate) index: u32,
}

impl CompiledMethods {
    /// Returns the code that contains an offset, and all methods that share it.
    pub(crate) fn at(&self, offset: u32) -> Option<(&CompiledCode, &[CompiledMethod])> {
        let behind = self.codes.partition_point(|code| code.start <= offset);
        let code = self.codes.get(behind.checked_sub(1)?)?;
        let distance = offset.checked_sub(code.start)?;
        (distance < code.size).then_some((code, self.of(code)))
    }

    /// Returns all code in the order of start, with the methods that share it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CompiledCode, &[CompiledMethod])> {
        self.codes.iter().map(|code| (code, self.of(code)))
    }

    fn of(&self, code: &CompiledCode) -> &[CompiledMethod] {
        self.methods.get(code.methods.clone()).unwrap_or_default()
    }
}

impl OatFile<'_> {
    /// Returns the methods that have code.
    ///
    /// `classes` returns the classes of a dex file, by its number: for each class in the order of class_defs, the indices of its methods in
    /// the order of its class_data_item. None: the dex file is not available, and its compiled methods stay unknown.
    ///
    /// The result also says where the file violates its format, or was not compiled from that dex file.
    pub(crate) fn compiled_methods<C: Iterator<Item = Vec<u32>>>(
        &self,
        mut classes: impl FnMut(usize) -> Option<C>,
    ) -> CompiledMethods {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for number in 0..self.dex_files.len() {
            let before = found.len();
            let classes = classes(number).into_iter().flatten();
            if let Err(error) = self.methods_of(number, classes, &mut found) {
                // Its methods so far may be wrong, too.
                found.truncate(before);
                let is_full = error == OatError::TooManyMethods;
                unreadable.push((number, error));
                // Other dex files may have the same tables, and each would take as long.
                if is_full {
                    break;
                }
            }
        }
        found.sort_unstable();
        CompiledMethods {
            unreadable,
            ..self.group(&found)
        }
    }

    /// Reads the methods of a dex file.
    fn methods_of(
        &self,
        number: usize,
        classes: impl Iterator<Item = Vec<u32>>,
        found: &mut Vec<(u32, CompiledMethod)>,
    ) -> Result<(), OatError> {
        let dex_file = self.dex_files.get(number);
        let mut next = dex_file.map_or(0, |dex_file| dex_file.class_offsets);
        for methods in classes {
            let class = self.data.next_u32("class offset", &mut next)?;
            read_class(self.data, self.format, class, &methods, |code, index| {
                let method = CompiledMethod {
                    dex_file: number,
                    index,
                };
                found.push((self.code_start(code), method));
            })?;
            // Each method has a code offset of its own in the file.
            if found.len().saturating_mul(size_of::<u32>()) > self.data.0.len() {
                return Err(OatError::TooManyMethods);
            }
        }
        Ok(())
    }

    /// The lowest bit of an entry point is the Thumb bit.
    fn code_start(&self, entry_point: u32) -> u32 {
        match self.machine {
            Machine::Arm => entry_point & !1,
            _ => entry_point,
        }
    }

    fn group(&self, found: &[(u32, CompiledMethod)]) -> CompiledMethods {
        let mut compiled = CompiledMethods::default();
        for sharing in found.chunk_by(|(start, _), (other, _)| start == other) {
            let first = compiled.methods.len();
            let methods = first..first.saturating_add(sharing.len());
            let code = sharing
                .first()
                .and_then(|(start, _)| self.code(*start, methods));
            if let Some(code) = code {
                compiled.codes.push(code);
                let methods = sharing.iter().map(|(_, method)| *method);
                compiled.methods.extend(methods);
            } else {
                compiled.refused = compiled.refused.saturating_add(sharing.len());
            }
        }
        compiled
    }

    /// Returns the code at an offset, if the header before it is valid and all that it refers to lies in the file.
    fn code(&self, start: u32, methods: Range<usize>) -> Option<CompiledCode> {
        let header = start.checked_sub(MethodHeader::SIZE)?;
        if header < self.executable_offset {
            return None;
        }
        let header = self.data.array("method header", header).ok()?;
        let header = MethodHeader::parse(self.format, header).ok()?;
        let code_info = start.checked_sub(header.code_info_distance)?;
        let size = match header.code_size {
            Some(size) => size,
            None => code_size(self.format, self.data.0, code_info).ok()??,
        };
        self.data.bytes("code", start, size).ok()?;
        Some(CompiledCode {
            start,
            size,
            code_info,
            methods,
        })
    }
}

/// Reads a class: its status, its type, which of its methods are compiled, and the code offset of each of these.
///
/// ART 11 writes the size in bytes of the bitmap that says which are compiled. ART 14 writes the number of methods, also where all are
/// compiled; its bitmap consists of whole words.
fn read_class(
    data: OatData<'_>,
    format: CodeFormat,
    offset: u32,
    methods: &[u32],
    mut visit: impl FnMut(u32, u32),
) -> Result<(), OatError> {
    let kind = data.u16("class type", offset.saturating_add(2))?;
    let mut next = offset.saturating_add(4);
    let bitmap_size = match (kind, format) {
        (0 | 1, CodeFormat::Android14) => {
            let methods = data.next_u32("num_methods", &mut next)?;
            methods.div_ceil(32).saturating_mul(4)
        }
        (1, CodeFormat::Android11) => data.next_u32("method_bitmap_size", &mut next)?,
        _ => 0,
    };
    let bitmap: Option<&[u8]> = match kind {
        0 => None,
        1 => {
            let size = bitmap_size;
            let bitmap = data.bytes("method_bitmap", next, size)?;
            next = next.saturating_add(size);
            Some(bitmap)
        }
        2 => return Ok(()),
        _ => return Err(OatError::ClassType { offset, kind }),
    };
    let is_compiled = |number: usize| {
        let byte = |bitmap: &[u8]| bitmap.get(number >> 3).copied().unwrap_or_default();
        bitmap.is_none_or(|bitmap| byte(bitmap) >> (number & 7) & 1 != 0)
    };
    for (number, index) in methods.iter().enumerate() {
        if is_compiled(number) {
            match data.next_u32("code_offset", &mut next)? {
                0 => {}
                code => visit(code, *index),
            }
        }
    }
    Ok(())
}
