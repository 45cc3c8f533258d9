//! Which instructions does a method have?

use std::{
    fmt::{self, Write},
    ops::Range,
    path::Path,
};

use varid_recording::{ImageKind, terminal::one_line};
use varid_symbolizer::{
    bytecode::BytecodeImage,
    dex::{DexBytecode, DexFile, MethodIndex},
    elf::MachineCode,
};

use super::{
    annotation::AnnotateRequest, code_file::CodeFile, instruction::CodeInstruction, machine,
};
use crate::{
    naming::{ImageFile, OpenImage, in_archive},
    profile::Profile,
};

/// The longest text of an instruction that is kept, in characters: a string constant can have 65,535.
const LONGEST: usize = 400;
/// The most instructions of a method that are shown.
const MOST: usize = 1 << 18;

/// A method's instructions.
#[derive(Debug, Default)]
pub enum Code {
    /// They are not known.
    #[default]
    None,
    /// Bytecode; and where the dex file was found.
    Dex(Vec<CodeInstruction>, String),
    /// Of a machine: which; and where the file was found.
    Machine(Vec<CodeInstruction>, &'static str, String),
}

impl Code {
    /// What they are: `dex`, or the instruction set.
    pub const fn kind(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Dex(..) => Some("dex"),
            Self::Machine(_, kind, _) => Some(kind),
        }
    }

    /// The instructions, by address.
    pub fn instructions(&self) -> &[CodeInstruction] {
        match self {
            Self::None => &[],
            Self::Dex(instructions, _) | Self::Machine(instructions, ..) => instructions,
        }
    }

    /// Where an instruction is in the method, as disassemblers of its kind say it: of bytecode in code units from its begin.
    pub const fn place(&self, start: u64, address: u64) -> u64 {
        match self {
            Self::Dex(..) => address.saturating_sub(start) / 2,
            Self::None | Self::Machine(..) => address,
        }
    }

    /// The file that they were read from.
    pub fn into_file(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Dex(_, file) | Self::Machine(_, _, file) => Some(file),
        }
    }
}

/// Reads the instructions at a range of addresses of a file. Why there are none, or not all, becomes a note.
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
        ImageKind::Remap => Err(
            "the method is native: what runs is a function of a library, below it in 'varid report --tree'"
                .to_owned(),
        ),
    };
    let code = read.unwrap_or_else(|why| {
        notes.push(format!("no instructions: {why}"));
        Code::None
    });
    let end = code.instructions().last().map_or(range.end, |last| {
        last.address.saturating_add(u64::from(last.len))
    });
    if end < range.end {
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
    Ok(Code::Dex(instructions, place.clone()))
}

/// The instructions of the method that has this range of a dex file, or of one of those that follow it in its container.
fn dex_instructions(dex: &DexFile, range: Range<u64>) -> Result<Vec<CodeInstruction>, String> {
    let start = u32::try_from(range.start).unwrap_or(u32::MAX);
    let original = original(dex, start)?;
    // Where the copy of shared instructions has those of the file.
    let shown_at = |offset: u32| offset.wrapping_sub(original).wrapping_add(start);
    let mut header = Some(dex.header_offset());
    while let Some(at) = header {
        let one = DexFile::parse_at(dex.bytes(), at).map_err(|error| error.to_string())?;
        header = one.next_header().filter(|next| *next > at);
        let index = MethodIndex::new(&one).map_err(|error| error.to_string())?;
        let Some(method) = index.lookup(original) else {
            continue;
        };
        // One that cannot be read is the last.
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

/// The offset in a dex file of an instruction, which may be one of a copy behind the file's end.
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
    let (path, entry) = in_archive(Path::new(image.path()));
    let code = MachineCode::read(path, entry, &file.build_id, range.clone()).map_err(|error| {
        format!("{error}; --symbols DIR with the recorded file, not its debug information alone")
    })?;
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

/// Where a call or a branch leads, if its text ends with that.
fn target(text: &str) -> Option<u64> {
    let (mnemonic, operands) = text.split_once(' ')?;
    let leads = mnemonic.starts_with(['b', 'c', 'j', 't']);
    let last = operands.rsplit(' ').next().filter(|_| leads)?;
    u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
}

/// A text in one line that is not too long. No more is made of the text than is shown.
fn shown(text: impl fmt::Display) -> String {
    let mut start = TextStart::default();
    // An error means that the rest is left out.
    let _ = write!(start, "{text}");
    let line = one_line(&start.text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The first characters of a text: a few more than are shown.
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

    /// A text without an end, which counts its pieces.
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
