//! A dex file as a bytecode image.

use std::cell::{OnceCell, RefCell};

use super::file::DexFile;
use super::header::Header;
use super::index::MethodIndex;
use super::method::DexMethodId;
use crate::bytecode::{BytecodeImage, CodeCopies, CodeLine, Dispatch, Invoked, MethodCode};
use crate::{Error, Location, Result};

// Opcodes. invoke-direct is between invoke-super and invoke-static. The `_RANGE` ones take a range of registers.
const INVOKE_VIRTUAL: u8 = 0x6e;
const INVOKE_SUPER: u8 = 0x6f;
const INVOKE_STATIC: u8 = 0x71;
const INVOKE_INTERFACE: u8 = 0x72;
const INVOKE_VIRTUAL_RANGE: u8 = 0x74;
const INVOKE_SUPER_RANGE: u8 = 0x75;
const INVOKE_STATIC_RANGE: u8 = 0x77;
const INVOKE_INTERFACE_RANGE: u8 = 0x78;

/// A dex file with its methods sorted by the position of their instructions. A container (version 041) includes all dex files in it that
/// can be read. Their methods are numbered one file after the other.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use varid_symbolizer::bytecode::BytecodeImage;
/// use varid_symbolizer::dex::{DexBytecode, DexFile};
///
/// let dex = DexBytecode::new(DexFile::from_vec(std::fs::read("classes.dex")?)?)?;
/// if let Some(frame) = dex.frame(0x1c4) {
///     println!("{}", frame.function); // org.example.Balls.draw
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DexBytecode<'a> {
    dex: DexFile<'a>,
    /// The dex files after the first, in a container.
    others: Vec<Other>,
    /// The methods of all files, numbered across the files.
    index: MethodIndex,
    copies: CodeCopies,
    method_count: u32,
    content_id: OnceCell<[u8; 20]>,
    before: RefCell<Vec<Before>>,
}

/// A dex file that follows the first of a container.
#[derive(Debug)]
struct Other {
    /// The number of its first method in the image.
    first: u32,
    header: Header,
}

/// A slot of the cache of [`BytecodeImage::instruction_before`]: the last question and its answer.
#[derive(Debug, Default)]
struct Before {
    question: Option<(u32, u8)>,
    answer: Option<u32>,
}

impl<'a> DexBytecode<'a> {
    /// Reads all classes once.
    ///
    /// # Errors
    /// [`Error::Dex`] if no class can be read; see [`DexBytecode::problem`].
    pub fn new(dex: DexFile<'a>) -> Result<Self> {
        let mut method_count = dex.method_count();
        let mut others = Vec::new();
        for other in dex.others() {
            let count = other.method_count();
            others.push((method_count, other));
            method_count = method_count.saturating_add(count);
        }
        let found = || {
            let following = others.iter().flat_map(|(first, dex)| codes(dex, *first));
            codes(&dex, 0).chain(following)
        };
        let index = MethodIndex::of(found()).or_problem()?;
        let copies = match index.methods().iter().any(|method| method.others > 0) {
            true => CodeCopies::of(
                dex.bytes().len(),
                index.methods(),
                found().filter_map(Result::ok),
            ),
            false => CodeCopies::NONE,
        };
        let others = others.into_iter().map(|(first, dex)| Other {
            first,
            header: dex.into_header(),
        });
        Ok(Self {
            others: others.collect(),
            index,
            copies,
            method_count,
            content_id: OnceCell::new(),
            before: RefCell::default(),
            dex,
        })
    }

    /// The dex file. In a container, it is the first one.
    #[must_use]
    pub fn dex(&self) -> &DexFile<'a> {
        &self.dex
    }

    /// The first error among the parts that were left out: broken classes, and instructions that overlap those of another method.
    #[must_use]
    pub fn problem(&self) -> Option<&Error> {
        self.index.problem()
    }

    /// Calls `question` with the dex file that method `index` belongs to, and the method's index in that file.
    fn ask<T>(&self, index: u32, question: impl FnOnce(&DexFile<'_>, u32) -> T) -> T {
        match self.other_of(index) {
            None => question(&self.dex, index),
            Some(other) => {
                let own = index.saturating_sub(other.first);
                question(&self.dex.sibling(&other.header), own)
            }
        }
    }

    /// The dex file that method `index` belongs to. None if it is the first.
    fn other_of(&self, index: u32) -> Option<&Other> {
        let after = self.others.partition_point(|other| other.first <= index);
        self.others.get(after.checked_sub(1)?)
    }

    /// Like [`DexBytecode::ask`], for a method with code.
    fn ask_code<T>(
        &self,
        method: &MethodCode,
        question: impl FnOnce(&DexFile<'_>, &MethodCode) -> Result<T>,
    ) -> Option<T> {
        let answer = self.ask(method.index, |dex, index| match method.index == index {
            true => question(dex, method),
            false => question(
                dex,
                &MethodCode {
                    index,
                    ..method.clone()
                },
            ),
        });
        answer.ok()
    }

    /// Like [`DexBytecode::ask`], for a name of the method.
    fn name(
        &self,
        index: u32,
        name: impl FnOnce(DexMethodId<'_>) -> Result<String>,
    ) -> Option<String> {
        self.ask(index, |dex, index| dex.method_id(index).and_then(name))
            .ok()
    }

    fn find_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        let method = self.index.lookup(offset)?;
        let mut found = self
            .dex
            .disassemble(method)
            .filter_map(Result::ok)
            .filter(|instruction| instruction.code() == opcode && instruction.may_lead_to(offset))
            .map(|instruction| instruction.offset);
        found.next().filter(|_| found.next().is_none())
    }
}

/// The methods of a dex file that have code, class by class, numbered from `first`.
fn codes<'d>(dex: &'d DexFile<'_>, first: u32) -> impl Iterator<Item = Result<MethodCode>> + 'd {
    dex.methods().filter_map(move |method| {
        let code = method.map(|method| method.method_code()).transpose()?;
        Some(code.map(|code| MethodCode {
            index: code.index.saturating_add(first),
            ..code
        }))
    })
}

impl BytecodeImage for DexBytecode<'_> {
    fn content_id(&self) -> [u8; 20] {
        *self.content_id.get_or_init(|| self.dex.content_sha1())
    }

    fn bytes(&self) -> &[u8] {
        self.dex.bytes()
    }

    fn code_unit(&self) -> u8 {
        2
    }

    fn methods(&self) -> &[MethodCode] {
        self.index.methods()
    }

    fn copies(&self) -> &CodeCopies {
        &self.copies
    }

    fn method_count(&self) -> u32 {
        self.method_count
    }

    fn class_name(&self, index: u32) -> Option<String> {
        self.name(index, |method| method.class_name())
    }

    fn simple_name(&self, index: u32) -> Option<String> {
        self.name(index, |method| method.name())
    }

    fn descriptor(&self, index: u32) -> Option<String> {
        self.name(index, |method| method.descriptor())
    }

    fn source_file(&self, method: &MethodCode) -> Option<String> {
        self.ask_code(method, |dex, method| dex.source_file(method))
            .flatten()
    }

    fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>> {
        let lines = self.ask_code(method, |dex, method| dex.lines(method))?;
        let line = |row: &super::LineRow| CodeLine {
            offset: row.offset,
            line: row.line,
            source: row.source,
        };
        Some(lines.rows().iter().map(line).collect())
    }

    fn line_source(&self, method: &MethodCode, source: u32) -> Option<String> {
        self.ask_code(method, |dex, _| dex.string(source))
    }

    fn instruction_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        /// Number of answers that are cached. Finding one takes a walk through the method.
        const KEPT: usize = 1 << 10;
        let mut known = self.before.borrow_mut();
        if known.is_empty() {
            known.resize_with(KEPT, Before::default);
        }
        // The offset of an instruction is even.
        let slot = known.get_mut((offset / 2) as usize % KEPT)?;
        if slot.question != Some((offset, opcode)) {
            slot.question = Some((offset, opcode));
            slot.answer = self.find_before(offset, opcode);
        }
        slot.answer
    }

    fn invoked_method(&self, offset: u32) -> Option<Invoked> {
        let rest = self.dex.bytes().get(offset as usize..)?;
        let [opcode, _, low, high] = *rest.first_chunk()?;
        let dispatch = match opcode {
            INVOKE_VIRTUAL | INVOKE_INTERFACE | INVOKE_VIRTUAL_RANGE | INVOKE_INTERFACE_RANGE => {
                Dispatch::Receiver
            }
            INVOKE_SUPER..=INVOKE_STATIC | INVOKE_SUPER_RANGE..=INVOKE_STATIC_RANGE => {
                Dispatch::Named
            }
            _ => return None,
        };
        let invoker = self.index.lookup(offset)?;
        let first = self.other_of(invoker.index).map_or(0, |other| other.first);
        Some(Invoked {
            index: first.saturating_add(u16::from_le_bytes([low, high]).into()),
            dispatch,
        })
    }

    fn method_by_names(&self, class: u32, name: u32, prototype: u32) -> Option<u32> {
        self.dex
            .method_named_at(class as usize, name as usize, prototype)
    }

    fn definitions(&self) -> Box<dyn Iterator<Item = MethodCode> + '_> {
        let own = codes(&self.dex, 0).filter_map(Result::ok);
        let others = self.others.iter().flat_map(|other| {
            let dex = self.dex.sibling(&other.header);
            codes(&dex, other.first)
                .filter_map(Result::ok)
                .collect::<Vec<_>>()
        });
        Box::new(own.chain(others))
    }

    fn method_name(&self, index: u32) -> Option<String> {
        self.name(index, |method| method.display_name())
    }

    fn line_at(&self, offset: u32) -> Option<Location<'static>> {
        let method = self.method_at(offset)?;
        let offset = self.original(offset);
        self.ask_code(method, |dex, method| dex.location(method, offset))
            .flatten()
    }
}
