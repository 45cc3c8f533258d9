//! Runs the line programs of dex files: the source line of each instruction.

use super::file::DexFile;
use super::index::MethodIndex;
use super::read::{bad, sleb128, u8_at, uleb128, uleb128p1};
use crate::bytecode::{MethodCode, row_at, unqualified};
use crate::{Error, Frame, Location, Result};

/// The most parameters that a method can have.
const MAX_PARAMETERS: u32 = 255;
/// The most steps of a line program for each code unit of its method. Compilers need a few.
const MAX_STEPS: u32 = 64;

const DBG_END_SEQUENCE: u8 = 0;
const DBG_ADVANCE_PC: u8 = 1;
const DBG_ADVANCE_LINE: u8 = 2;
const DBG_START_LOCAL: u8 = 3;
const DBG_START_LOCAL_EXTENDED: u8 = 4;
const DBG_END_LOCAL: u8 = 5;
const DBG_RESTART_LOCAL: u8 = 6;
const DBG_SET_PROLOGUE_END: u8 = 7;
const DBG_SET_EPILOGUE_BEGIN: u8 = 8;
const DBG_SET_FILE: u8 = 9;
const DBG_FIRST_SPECIAL: u8 = 10;
const DBG_LINE_BASE: i32 = -4;
const DBG_LINE_RANGE: u8 = 15;

/// The source line of the instructions from this one up to the next row's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRow {
    /// File offset of the first instruction.
    pub offset: u32,
    /// Line, from 1. Zero if the compiler says that there is none, or the value is impossible.
    pub line: u32,
    /// The source file, for [`DexFile::string`]: that of the class, or the one that the debug information has changed to. None if it is not
    /// known.
    pub source: Option<u32>,
    /// A debugger should set the method's first breakpoint here.
    pub prologue_end: bool,
    /// The epilogue of the method begins here.
    pub epilogue_begin: bool,
}

/// The lines of a method, as [`DexFile::lines`] reads them.
#[derive(Debug, Default)]
pub struct LineTable {
    rows: Vec<LineRow>,
    parameters: Vec<Option<u32>>,
    problem: Option<Error>,
}

impl LineTable {
    /// The rows by ascending offset. Several may have the same offset. Empty if the method has no debug information: then Android and R8's
    /// mapping files have the offset of the instruction in the method, in code units, instead of a line.
    #[must_use]
    pub fn rows(&self) -> &[LineRow] {
        &self.rows
    }

    /// Returns the row for the instruction at `offset` of the file.
    ///
    /// As in ART: among several rows at exactly `offset`, the first one; among several rows before it, the last one.
    #[must_use]
    pub fn lookup(&self, offset: u32) -> Option<&LineRow> {
        row_at(&self.rows, offset, |row| row.offset)
    }

    /// The names of the parameters without `this`, for [`DexFile::string`]. None for a parameter without a name.
    #[must_use]
    pub fn parameters(&self) -> &[Option<u32>] {
        &self.parameters
    }

    /// The first problem. The lines from there on, or only the one of that row, are zero.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }
}

impl DexFile<'_> {
    /// The lines of `method`. Empty if it has no debug information.
    ///
    /// If the debug information breaks off, the rows before are kept, followed by one of line zero: see [`LineTable::problem`]. Rows beyond
    /// the method's end are left out, because methods may share the information of the longest of them.
    ///
    /// # Errors
    /// [`Error::Dex`] if the beginning cannot be read.
    pub fn lines(&self, method: &MethodCode) -> Result<LineTable> {
        let Some(mut program) = LineProgram::new(self, method)? else {
            return Ok(LineTable::default());
        };
        let mut table = LineTable {
            parameters: program.parameters()?,
            ..LineTable::default()
        };
        table.rows.extend(&mut program);
        table.problem = program.problem;
        Ok(table)
    }

    /// The name of the source file of the method's class.
    ///
    /// # Errors
    /// [`Error::Dex`] if the name is broken.
    pub fn source_file(&self, method: &MethodCode) -> Result<Option<String>> {
        self.class_source(method.class)?
            .map(|index| self.string(index))
            .transpose()
    }

    /// The name of the source file for a [`LineRow::source`] of the method. If it has no name, the class's name is used, so that equal
    /// lines of different unknown files stay distinct.
    ///
    /// # Errors
    /// [`Error::Dex`] if the name is broken.
    pub fn source_name(&self, method: &MethodCode, source: Option<u32>) -> Result<String> {
        let name = source.map(|index| self.string(index)).transpose()?;
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return Ok(name);
        }
        let class = self.method_id(method.index)?.class_name()?;
        Ok(unqualified(&class).to_owned())
    }

    /// The method and the line of the instruction at `offset`. None if no method of `index` is there.
    #[must_use]
    pub fn frame(&self, index: &MethodIndex, offset: u32) -> Option<Frame<'static>> {
        let method = index.lookup(offset)?;
        Some(Frame {
            function: self.code_name(method).ok()?.into(),
            location: self.location(method, offset).ok().flatten(),
        })
    }

    /// The source file and line of the instruction at `offset` of `method`.
    pub(super) fn location(
        &self,
        method: &MethodCode,
        offset: u32,
    ) -> Result<Option<Location<'static>>> {
        let Some(mut program) = LineProgram::new(self, method)? else {
            return Ok(None);
        };
        program.parameters()?;
        let mut found = None;
        for row in program {
            if row.offset <= offset {
                found = Some(row);
            }
            if row.offset >= offset {
                break;
            }
        }
        let Some(LineRow {
            line: line @ 1..,
            source,
            ..
        }) = found
        else {
            return Ok(None);
        };
        Ok(Some(Location {
            file: self.source_name(method, source)?.into(),
            line,
        }))
    }
}

/// An iterator over the rows of a debug_info_item.
struct LineProgram<'d> {
    data: &'d [u8],
    at: usize,
    /// File offsets of the method's instructions.
    code: std::ops::Range<u32>,
    /// The registers of the state machine: the address is in code units.
    address: u32,
    row: LineRow,
    steps_left: u32,
    done: bool,
    problem: Option<Error>,
}

impl<'d> LineProgram<'d> {
    /// Starts the program, ready to read the parameters' names. None if the method has no debug information.
    fn new(dex: &'d DexFile<'_>, method: &MethodCode) -> Result<Option<Self>> {
        let Some(debug_info) = dex.code_item(method)?.debug_info else {
            return Ok(None);
        };
        let data = dex.bytes();
        let mut at = debug_info as usize;
        let line = uleb128(data, &mut at, "line_start")?;
        let code = method.code.clone();
        let units = code.end.saturating_sub(code.start) / 2;
        Ok(Some(Self {
            data,
            at,
            address: 0,
            row: LineRow {
                offset: code.start,
                line,
                source: dex.class_source(method.class)?,
                prologue_end: false,
                epilogue_begin: false,
            },
            code,
            steps_left: units.saturating_add(1).saturating_mul(MAX_STEPS),
            done: false,
            problem: None,
        }))
    }

    /// Reads the parameters' names, which precede the first row.
    fn parameters(&mut self) -> Result<Vec<Option<u32>>> {
        let start = self.at;
        let count = uleb128(self.data, &mut self.at, "parameters_size")?;
        if count > MAX_PARAMETERS {
            return Err(bad(
                "parameters_size",
                start,
                "more parameters than a method can have",
            ));
        }
        (0..count)
            .map(|_| uleb128p1(self.data, &mut self.at, "parameter_names"))
            .collect()
    }

    /// Runs the program up to the next row. None at the end.
    fn run(&mut self) -> Result<Option<LineRow>> {
        // The program has ended unless it reaches a row.
        self.done = true;
        loop {
            let start = self.at;
            self.steps_left = self.steps_left.checked_sub(1).ok_or_else(|| {
                bad(
                    "debug_info_item",
                    start,
                    "more than the method's instructions can need",
                )
            })?;
            let opcode = u8_at(self.data, start, "debug_info_item opcode")?;
            self.at = start.saturating_add(1);
            match opcode {
                DBG_END_SEQUENCE => return Ok(None),
                DBG_ADVANCE_PC => {
                    let distance = self.number("DBG_ADVANCE_PC")?;
                    // Saturate: no address beyond the method can lead back into it.
                    self.address = self.address.saturating_add(distance);
                }
                DBG_ADVANCE_LINE => {
                    let distance = sleb128(self.data, &mut self.at, "DBG_ADVANCE_LINE")?;
                    self.row.line = self.row.line.wrapping_add_signed(distance);
                }
                DBG_START_LOCAL => self.skip(3, "DBG_START_LOCAL")?,
                DBG_START_LOCAL_EXTENDED => self.skip(4, "DBG_START_LOCAL_EXTENDED")?,
                DBG_END_LOCAL => self.skip(1, "DBG_END_LOCAL")?,
                DBG_RESTART_LOCAL => self.skip(1, "DBG_RESTART_LOCAL")?,
                DBG_SET_PROLOGUE_END => self.row.prologue_end = true,
                DBG_SET_EPILOGUE_BEGIN => self.row.epilogue_begin = true,
                DBG_SET_FILE => {
                    self.row.source = uleb128p1(self.data, &mut self.at, "DBG_SET_FILE")?;
                }
                special => {
                    let step = special.saturating_sub(DBG_FIRST_SPECIAL);
                    let distance = u32::from(step / DBG_LINE_RANGE);
                    let lines = i32::from(step % DBG_LINE_RANGE).saturating_add(DBG_LINE_BASE);
                    self.address = self.address.saturating_add(distance);
                    self.row.line = self.row.line.wrapping_add_signed(lines);
                    return self.finish_row(start);
                }
            }
        }
    }

    /// Makes the row that the opcode at `start` appends.
    fn finish_row(&mut self, start: usize) -> Result<Option<LineRow>> {
        let offset = self
            .address
            .checked_mul(2)
            .and_then(|bytes| self.code.start.checked_add(bytes))
            .filter(|&offset| offset < self.code.end);
        let Some(offset) = offset else {
            return Ok(None);
        };
        self.done = false;
        let mut row = LineRow { offset, ..self.row };
        self.row = LineRow {
            prologue_end: false,
            epilogue_begin: false,
            ..row
        };
        if row.line > i32::MAX.cast_unsigned() {
            // Java has no such line. The register wraps as in VMs, so later lines are right.
            row.line = 0;
            self.problem.get_or_insert(bad(
                "debug_info_item line",
                start,
                "a line below zero or beyond two thousand million",
            ));
        }
        Ok(Some(row))
    }

    fn number(&mut self, field: &'static str) -> Result<u32> {
        uleb128(self.data, &mut self.at, field)
    }

    fn skip(&mut self, numbers: usize, field: &'static str) -> Result<()> {
        for _ in 0..numbers {
            self.number(field)?;
        }
        Ok(())
    }
}

impl Iterator for LineProgram<'_> {
    type Item = LineRow;

    fn next(&mut self) -> Option<LineRow> {
        if self.done {
            return None;
        }
        self.run().unwrap_or_else(|error| {
            self.problem.get_or_insert(error);
            // The line is known only for the instruction of the last row, not for those after it.
            let offset = self.row.offset.saturating_add(2);
            (offset < self.code.end).then_some(LineRow {
                offset,
                line: 0,
                source: None,
                prologue_end: false,
                epilogue_begin: false,
            })
        })
    }
}
