//! What is in a program of stackvm? Its format is described in `program.py`.

use varid_process::BytecodeFormat;
use varid_symbolizer::bytecode::{BytecodeImage, CodeLine, Dispatch, Invoked, MethodCode};

const MAGIC: &[u8; 8] = b"STACKVM1";
/// Bytes of the program's header and of a method's entry.
const ENTRY: usize = 32;
/// Bytes of an instruction; one with a constant has as many more.
const INSTRUCTION: u32 = 4;
const CONST: u8 = 1;
const INVOKE: u8 = 8;
/// The largest program that is read.
const MAX_METHODS: u32 = 1 << 16;

/// Programs of stackvm.
#[derive(Debug)]
pub struct Format;

impl BytecodeFormat for Format {
    fn is_image(&self, head: &[u8; 8]) -> bool {
        head == MAGIC
    }

    fn parse(&self, bytes: Vec<u8>) -> varid_symbolizer::Result<Box<dyn BytecodeImage>> {
        Ok(Box::new(Program::new(bytes)))
    }
}

/// A program.
#[derive(Debug)]
pub struct Program {
    bytes: Vec<u8>,
    /// Where the methods' entries start, and how many there are.
    table: (usize, u32),
    /// Those with code, by offset.
    methods: Vec<MethodCode>,
}

/// A method's entry.
struct Entry {
    name: usize,
    code: u32,
    size: u32,
    lines: usize,
    line_count: u32,
}

impl Program {
    /// A program with the methods that its bytes have; one that makes no sense has none.
    fn new(bytes: Vec<u8>) -> Self {
        let word = |at| word(&bytes, at);
        let count = word(12).unwrap_or(0).min(MAX_METHODS);
        let table = (word(16).unwrap_or(0) as usize, count);
        let mut program = Self {
            bytes,
            table,
            methods: Vec::new(),
        };
        let methods = (0..count).filter_map(|index| {
            let entry = program.entry(index)?;
            let end = entry.code.checked_add(entry.size)?;
            (entry.code < end).then_some(MethodCode {
                code: entry.code..end,
                index,
                others: 0,
                access_flags: 1,
                class: 0,
            })
        });
        let mut methods: Vec<MethodCode> = methods.collect();
        methods.sort_by_key(|method| method.code.start);
        methods.dedup_by(|next, before| next.code.start < before.code.end);
        program.methods = methods;
        program
    }

    fn entry(&self, index: u32) -> Option<Entry> {
        let at = ENTRY
            .checked_mul(index as usize)?
            .checked_add(self.table.0)?;
        let field = |field: usize| word(&self.bytes, at.checked_add(field.checked_mul(4)?)?);
        (index < self.table.1).then_some(())?;
        Some(Entry {
            name: field(0)? as usize,
            code: field(1)?,
            size: field(2)?,
            lines: field(3)? as usize,
            line_count: field(4)?,
        })
    }

    /// The whole name of a method: `stack.Program.m07`.
    pub fn name(&self, index: u32) -> Option<&str> {
        let name = self.bytes.get(self.entry(index)?.name..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(name.get(..end)?).ok()
    }

    /// The bytes of the instruction at an offset.
    fn instruction(&self, offset: u32) -> Option<[u8; 4]> {
        let bytes = self.bytes.get(offset as usize..)?;
        bytes.first_chunk().copied()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

impl BytecodeImage for Program {
    fn content_id(&self) -> [u8; 20] {
        sha1_smol::Sha1::from(&self.bytes).digest().bytes()
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn code_unit(&self) -> u8 {
        INSTRUCTION as u8
    }

    fn methods(&self) -> &[MethodCode] {
        &self.methods
    }

    fn method_count(&self) -> u32 {
        self.table.1
    }

    fn class_name(&self, index: u32) -> Option<String> {
        let (class, _) = self.name(index)?.rsplit_once('.')?;
        Some(class.to_owned())
    }

    fn simple_name(&self, index: u32) -> Option<String> {
        let (_, name) = self.name(index)?.rsplit_once('.')?;
        Some(name.to_owned())
    }

    fn descriptor(&self, _index: u32) -> Option<String> {
        Some("(JJ)J".to_owned())
    }

    fn source_file(&self, _method: &MethodCode) -> Option<String> {
        Some("Program.stack".to_owned())
    }

    fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>> {
        let entry = self.entry(method.index)?;
        let line = |number: u32| {
            let at = entry.lines.checked_add((number as usize).checked_mul(8)?)?;
            Some(CodeLine {
                offset: method.code.start.checked_add(word(&self.bytes, at)?)?,
                line: word(&self.bytes, at.checked_add(4)?)?,
                source: Some(0),
            })
        };
        (0..entry.line_count.min(MAX_METHODS)).map(line).collect()
    }

    fn line_source(&self, method: &MethodCode, _source: u32) -> Option<String> {
        self.source_file(method)
    }

    fn instruction_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        let method = self.method_at(offset)?;
        let mut at = method.code.start;
        let mut before = None;
        while at < offset {
            before = Some(at);
            let size = match self.instruction(at)? {
                [CONST, ..] => 2 * INSTRUCTION,
                _ => INSTRUCTION,
            };
            at = at.checked_add(size)?;
        }
        before.filter(|at| {
            self.instruction(*at)
                .is_some_and(|[code, ..]| code == opcode)
        })
    }

    fn invoked_method(&self, offset: u32) -> Option<Invoked> {
        match self.instruction(offset)? {
            [INVOKE, _, method, _] => Some(Invoked {
                index: method.into(),
                dispatch: Dispatch::Named,
            }),
            _ => None,
        }
    }
}
