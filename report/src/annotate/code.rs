//! Reads the instructions of a method.

use std::{
    fmt::{self, Write},
    ops::Range,
    path::Path,
};

use varid_recording::{ImageKind, terminal::one_line};
use varid_symbolizer::{
    bytecode::BytecodeImage,
    class::ClassFile,
    dex::{DexBytecode, DexFile, MethodIndex},
    elf::MachineCode,
};

use super::{
    annotation::{AnnotateRequest, DEX, JVM},
    code_file::CodeFile,
    instruction::CodeInstruction,
    machine,
};
use crate::{
    naming::{ImageFile, JavaMethod, OpenImage, RecordedPath},
    profile::Profile,
};

/// The longest disassembly in characters. A string constant can have 65,535.
const LONGEST: usize = 400;
/// The reason why a native method has no instructions.
const NATIVE: &str =
    "the method is native: what runs is a function of a library, below it in 'varid report --tree'";
/// The most instructions of a method.
pub(super) const MOST: usize = 1 << 18;

/// A method's instructions.
#[derive(Debug, Default)]
pub enum Code {
    /// Unknown instructions.
    #[default]
    None,
    /// Dex bytecode.
    Dex {
        /// Its instructions.
        instructions: Vec<CodeInstruction>,
        /// The path of the dex file.
        file: String,
        /// The addresses that a code unit of 16 bits has: 2 in a dex file, 1 in the remap range.
        unit: u64,
    },
    /// Java's bytecode, and the path of the class file.
    Jvm(Vec<CodeInstruction>, String),
    /// Machine code, the instruction set, and the path of the file.
    Machine(Vec<CodeInstruction>, &'static str, String),
}

impl Code {
    /// The kind of instructions: `dex`, or the instruction set.
    pub const fn kind(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Dex { .. } => Some(DEX),
            Self::Jvm(..) => Some(JVM),
            Self::Machine(_, kind, _) => Some(kind),
        }
    }

    /// The instructions in order of address.
    pub fn instructions(&self) -> &[CodeInstruction] {
        match self {
            Self::None => &[],
            Self::Dex { instructions, .. }
            | Self::Jvm(instructions, _)
            | Self::Machine(instructions, ..) => instructions,
        }
    }

    /// Returns the position of an instruction as shown by disassemblers of its kind: the address or, for bytecode, the
    /// distance from the start, of dex in code units and of Java in bytes.
    pub fn place(&self, start: u64, address: u64) -> u64 {
        match self {
            Self::Dex { unit, .. } => {
                let addresses = address.saturating_sub(start);
                addresses.checked_div(*unit).unwrap_or_default()
            }
            Self::Jvm(..) => address.saturating_sub(start),
            Self::None | Self::Machine(..) => address,
        }
    }

    /// The file that they were read from.
    pub fn into_file(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Dex { file, .. } | Self::Jvm(_, file) | Self::Machine(_, _, file) => Some(file),
        }
    }
}

/// Reads the instructions in an address range of a file. A note gives the reason if some are missing.
pub fn read(
    of: &CodeFile,
    range: Range<u64>,
    profile: &Profile,
    request: &AnnotateRequest,
    notes: &mut Vec<String>,
) -> Code {
    let read = match of.file.kind {
        ImageKind::Dex => bytecode(of, range.clone(), profile, request),
        ImageKind::Elf => machine_code(&of.image, of.file, range.clone()),
        ImageKind::Remap => match of.image.java_method(range.start) {
            Some(method) => counted_bytecode(of, &method, &range, profile, request),
            None => Err(NATIVE.to_owned()),
        },
    };
    let code = read.unwrap_or_else(|why| {
        notes.push(format!("no instructions: {why}"));
        Code::None
    });
    let end = code.instructions().last().map_or(range.end, |last| {
        last.address.saturating_add(u64::from(last.len))
    });
    // A method has more addresses in the remap range than its bytecode has.
    if end < range.end && of.file.kind != ImageKind::Remap {
        notes.push(format!(
            "instructions from {end:#x} to {:#x} are not shown: they are broken, or too many",
            range.end
        ));
    }
    code
}

fn bytecode(
    of: &CodeFile,
    range: Range<u64>,
    profile: &Profile,
    request: &AnnotateRequest,
) -> Result<Code, String> {
    let (dex, place) = of.dex(profile, request).map_err(Clone::clone)?;
    let instructions = dex_instructions(dex, range)?;
    Ok(Code::Dex {
        instructions,
        file: place.clone(),
        unit: 2,
    })
}

/// Returns the bytecode of a method that has this range of addresses in a file of the remap range: that of a dex file, if the session has
/// some, or of a class file.
fn counted_bytecode(
    of: &CodeFile,
    method: &JavaMethod,
    range: &Range<u64>,
    profile: &Profile,
    request: &AnnotateRequest,
) -> Result<Code, String> {
    let Some(files) = of.counted_dex(profile).map_err(Clone::clone)? else {
        return java_bytecode(of, method, range, profile, request);
    };
    let found = files.find(method, range)?;
    let (dex, code) = (found.dex, found.code.ok_or(NATIVE)?);
    let mut address = range.start;
    let instructions = dex.disassemble(&code).map_while(Result::ok).map(|found| {
        let (start, len) = (address, found.units);
        address = address.saturating_add(len.into());
        CodeInstruction {
            address: start,
            len,
            text: shown(found),
        }
    });
    Ok(Code::Dex {
        instructions: instructions.take(MOST).collect(),
        file: found.place.to_owned(),
        unit: 1,
    })
}

/// Returns the bytecode of a Java method from its class file.
fn java_bytecode(
    of: &CodeFile,
    method: &JavaMethod,
    range: &Range<u64>,
    profile: &Profile,
    request: &AnnotateRequest,
) -> Result<Code, String> {
    let files = of.class_files(profile, request).map_err(Clone::clone)?;
    let found = files.find(&of.image, range, method)?;
    let class = ClassFile::parse(&found.bytes).map_err(|error| error.to_string())?;
    let code = class.method(&method.name, &method.descriptor);
    let code = code.and_then(|method| method.code.as_ref());
    let code = code.ok_or(NATIVE)?;
    let instructions = class.instructions(code);
    let instructions = instructions.map(|found| CodeInstruction {
        address: range.start.saturating_add(found.bci.into()),
        len: found.len,
        text: shown(found),
    });
    Ok(Code::Jvm(instructions.collect(), found.place))
}

/// Returns the instructions of the method with this range in a dex file, or in one of the following dex files of its
/// container.
fn dex_instructions(dex: &DexFile, range: Range<u64>) -> Result<Vec<CodeInstruction>, String> {
    let start = u32::try_from(range.start).unwrap_or(u32::MAX);
    let original = original(dex, start)?;
    // Maps an offset in the file to the one in the copy of shared instructions.
    let shown_at = |offset: u32| offset.wrapping_sub(original).wrapping_add(start);
    let mut header = Some(dex.header_offset());
    while let Some(at) = header {
        let one = DexFile::parse_at(dex.bytes(), at).map_err(|error| error.to_string())?;
        header = one.next_header().filter(|next| *next > at);
        let index = MethodIndex::new(&one).map_err(|error| error.to_string())?;
        let Some(method) = index.lookup(original) else {
            continue;
        };
        // Stop at the first instruction that cannot be decoded.
        let instructions = one.disassemble(method).map_while(Result::ok);
        let instruction = |found: varid_symbolizer::dex::Instruction| CodeInstruction {
            address: shown_at(found.offset).into(),
            len: found.units.saturating_mul(2),
            text: shown(found),
        };
        return Ok(instructions.take(MOST).map(instruction).collect());
    }
    Err("the dex file has no method there".to_owned())
}

/// Returns the original offset of an instruction in a dex file. The given offset may be in a copy after the file's end.
fn original(dex: &DexFile, offset: u32) -> Result<u32, String> {
    if (offset as usize) < dex.bytes().len() {
        return Ok(offset);
    }
    let whole = DexFile::parse_at(dex.bytes(), dex.header_offset())
        .and_then(DexBytecode::new)
        .map_err(|error| error.to_string())?;
    Ok(whole.original(offset))
}

fn machine_code(image: &OpenImage, file: &ImageFile, range: Range<u64>) -> Result<Code, String> {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let is_kept = file.kept.as_deref() == Some(Path::new(image.path()));
    if is_kept || file.in_session && !name.starts_with("vdso-") {
        return Err("the session has the symbols of this file, not its code; --symbols DIR with the recorded file".to_owned());
    }
    if range.is_empty() {
        return Err("it is not known where the function ends".to_owned());
    }
    let path = RecordedPath::of(Path::new(image.path()));
    let code = MachineCode::read(path.file, path.library, &file.build_id, range.clone()).map_err(
        |error| {
            format!(
                "{error}; --symbols DIR with the recorded file, not its debug information alone"
            )
        },
    )?;
    let (instructions, kind) = machine::disassemble(&code, MOST);
    let instructions = instructions.into_iter().map(|found| {
        let mut text = found.text;
        if let Some(target) = target(&text).filter(|target| !range.contains(target))
            && let Some(name) = image.name_at(target)
        {
            text.push_str(&format!(" <{name}>"));
        }
        CodeInstruction {
            text: shown(text),
            ..found
        }
    });
    Ok(Code::Machine(
        instructions.collect(),
        kind,
        image.path().to_owned(),
    ))
}

/// Returns the target of a call or branch, if the disassembly ends with one.
pub(super) fn target(text: &str) -> Option<u64> {
    let (mnemonic, operands) = text.split_once(' ')?;
    let leads = mnemonic.starts_with(['b', 'c', 'j', 't']);
    let last = operands.rsplit(' ').next().filter(|_| leads)?;
    u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
}

/// Formats a text as one line and truncates it. Formatting stops at the limit.
pub(super) fn shown(text: impl fmt::Display) -> String {
    let mut start = TextStart::default();
    // An error only means that the rest was truncated.
    let _ = write!(start, "{text}");
    let line = one_line(&start.text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Collects the start of a text, slightly more than is shown.
#[derive(Default)]
struct TextStart {
    text: String,
    characters: usize,
}

impl Write for TextStart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST.saturating_add(1).saturating_sub(self.characters);
        let mut rest = text.chars();
        let start = rest.by_ref().take(room);
        let before = self.text.len();
        self.text.extend(start);
        let added = self.text.get(before..).unwrap_or_default();
        self.characters = self.characters.saturating_add(added.chars().count());
        match rest.next() {
            Some(_) => Err(fmt::Error),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, shown};
    use std::{cell::Cell, fmt};

    /// An infinite text that counts its pieces.
    struct Endless<'c>(&'c Cell<usize>);

    impl fmt::Display for Endless<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                self.0.set(self.0.get() + 1);
                f.write_str("ab")?;
            }
        }
    }

    #[test]
    fn no_more_is_made_of_a_text_than_is_shown() {
        let pieces = Cell::new(0);
        let text = shown(Endless(&pieces));
        assert_eq!(text, format!("{}..", "ab".repeat(LONGEST / 2)));
        assert!(pieces.get() <= LONGEST);
        assert_eq!(shown("const v0"), "const v0");
    }
}
