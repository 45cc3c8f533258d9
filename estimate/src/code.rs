//! The code of a method, as pricing needs it.

mod dex;

use varid_model::CodeUnits;
use varid_symbolizer::class::{ClassFile, CodeAttribute, Instruction, java_mnemonic};
use varid_symbolizer::dex::Dialect;

/// The access flag of synchronized methods.
const SYNCHRONIZED: u16 = 0x20;
const STATIC: u16 = 0x08;

/// A method's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodName {
    /// Its class as Java writes it: `org.example.App`.
    pub class: String,
    /// Its name, such as `mul` or `<init>`.
    pub name: String,
    /// The types of its parameters and of its result, as in class files: `(I)D`.
    pub descriptor: String,
}

/// A method with code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCode {
    /// Its instructions, in order.
    pub instructions: Vec<CodeInstruction>,
    /// The length of its code in bytes, of Java's bytecode.
    pub length: u32,
    /// Whether it is synchronized on an instance. Those on classes have no instructions that would do the same.
    pub is_synchronized: bool,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeInstruction {
    /// Its place in the method.
    pub place: CodeUnits,
    /// Its opcode.
    pub opcode: Opcode,
    /// What of its operands decides its cost.
    pub operand: Operand,
    /// Whether it starts a basic block.
    pub leads: bool,
    /// Whether the instruction behind it can follow it.
    pub falls_through: bool,
    /// The index of the instruction that a conditional branch leads to.
    pub target: Option<usize>,
    /// How many ways lead to it: from the instruction before it, by branches and as a handler.
    pub ways: u32,
}

/// A kind of bytecode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bytecode {
    /// Java's, of class files.
    #[default]
    Java,
    /// That of dex files.
    Dex,
}

impl std::fmt::Display for Bytecode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Java => "Java's bytecode",
            Self::Dex => "dex code",
        })
    }
}

/// An opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// Of Java's bytecode, without `wide`.
    Java(u8),
    /// Of dex code.
    Dex(u8),
}

impl Opcode {
    /// Returns the kind of bytecode that has it.
    #[must_use]
    pub const fn bytecode(self) -> Bytecode {
        match self {
            Self::Java(_) => Bytecode::Java,
            Self::Dex(_) => Bytecode::Dex,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Java(opcode) => java_mnemonic(opcode).unwrap_or("?"),
            Self::Dex(opcode) => Dialect::Art.opcode(opcode).name,
        }
    }

    /// Returns true if it is a branch that may not be taken.
    #[must_use]
    pub const fn is_condition(self) -> bool {
        match self {
            Self::Java(opcode) => matches!(opcode, 0x99..=0xa6 | 0xc6 | 0xc7),
            Self::Dex(opcode) => matches!(opcode, 0x32..=0x3d),
        }
    }

    /// Returns true if it calls a method that it names.
    #[must_use]
    pub const fn is_invoke(self) -> bool {
        match self {
            Self::Java(opcode) => matches!(opcode, 0xb6..=0xba),
            Self::Dex(opcode) => matches!(opcode, 0x6e..=0x72 | 0x74..=0x78 | 0xfa..=0xfd),
        }
    }
}

/// What of an instruction's operands decides its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// Nothing.
    None,
    /// It has `wide` in front of it.
    Wide,
    /// The method that it calls, as Java writes it: `java.lang.Math.min`. That of `invokedynamic` has no name.
    Method(String),
    /// A field of this type, as a descriptor's first letter: `I`, `J`, `L`, `[`.
    Field(u8),
    /// The local variable of `iinc`, what is added, and whether `wide` is in front.
    Increment {
        /// The variable.
        local: u16,
        /// What is added.
        by: i16,
        /// Whether `wide` is in front.
        wide: bool,
    },
}

impl MethodCode {
    /// Reads a method of a class file. None: it has no code.
    ///
    /// # Errors
    ///
    /// The class file cannot be read, or has no such method.
    pub fn read(bytes: &[u8], name: &MethodName) -> Result<Option<Self>, String> {
        let class = ClassFile::parse(bytes).map_err(|error| error.to_string())?;
        let method = class.method(&name.name, &name.descriptor);
        let method = method.ok_or("its class file has no such method")?;
        let Some(code) = &method.code else {
            return Ok(None);
        };
        let is_synchronized = method.access & SYNCHRONIZED != 0 && method.access & STATIC == 0;
        Ok(Some(Self {
            instructions: instructions(&class, code),
            length: u32::try_from(code.bytecode.len()).unwrap_or(u32::MAX),
            is_synchronized,
        }))
    }

    /// Returns the kind of its bytecode. None: it has no instructions.
    #[must_use]
    pub fn bytecode(&self) -> Option<Bytecode> {
        let first = self.instructions.first()?;
        Some(first.opcode.bytecode())
    }

    /// Returns the index of the instruction at a place. None: there is none.
    #[must_use]
    pub fn at(&self, place: CodeUnits) -> Option<usize> {
        let places = &self.instructions;
        places.binary_search_by_key(&place, |one| one.place).ok()
    }

    /// Returns true if no instruction branches: all are executed with each call, unless one throws.
    #[must_use]
    pub fn is_straight(&self) -> bool {
        self.instructions.iter().skip(1).all(|one| !one.leads)
    }
}

/// Decodes code. A basic block starts where a branch leads to, at a handler, and behind a branch: as `varid exact` counts them.
fn instructions(class: &ClassFile<'_>, code: &CodeAttribute<'_>) -> Vec<CodeInstruction> {
    let decoded: Vec<Instruction<'_, '_>> = class.instructions(code).collect();
    let index = |bci: i64| {
        let bci = u32::try_from(bci).ok()?;
        decoded.binary_search_by_key(&bci, |one| one.bci).ok()
    };
    let mut list: Vec<CodeInstruction> = Vec::with_capacity(decoded.len());
    let (mut falls, mut leads) = (true, true);
    for one in &decoded {
        let targets = one.targets();
        let opcode = Opcode::Java(one.opcode());
        let falls_through = !matches!(one.opcode(), 0xa7..=0xb1 | 0xbf | 0xc8 | 0xc9);
        let mut instruction = CodeInstruction {
            place: CodeUnits::new(one.bci),
            opcode,
            operand: operand(one),
            leads,
            falls_through,
            target: None,
            ways: u32::from(falls),
        };
        if opcode.is_condition() {
            instruction.target = targets.first().and_then(|target| index(*target));
        }
        falls = falls_through;
        leads = !falls_through || !targets.is_empty();
        list.push(instruction);
    }
    let handlers = code.handlers.iter().map(|handler| i64::from(*handler));
    let targets = decoded.iter().flat_map(Instruction::targets);
    for reached in targets.chain(handlers).filter_map(index) {
        reach(&mut list, reached);
    }
    list
}

/// Notes that a branch or an exception leads to an instruction.
fn reach(list: &mut [CodeInstruction], index: usize) {
    if let Some(reached) = list.get_mut(index) {
        reached.leads = true;
        reached.ways = reached.ways.saturating_add(1);
    }
}

fn operand(instruction: &Instruction<'_, '_>) -> Operand {
    if let Some((local, by)) = instruction.local_and_increment() {
        let wide = instruction.is_wide();
        return Operand::Increment { local, by, wide };
    }
    if instruction.is_wide() {
        return Operand::Wide;
    }
    match instruction.opcode() {
        0xb2..=0xb5 => {
            let descriptor = instruction.member_descriptor();
            let first = descriptor.and_then(|text| text.as_bytes().first().copied());
            Operand::Field(first.unwrap_or_default())
        }
        0xb6..=0xb9 => instruction.member().map_or(Operand::None, Operand::Method),
        _ => Operand::None,
    }
}
