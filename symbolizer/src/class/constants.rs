//! The constant pool of a class file.

use std::borrow::Cow;
use std::fmt;

use super::read::Reader;
use crate::Result;
use crate::dex::decode_modified_utf8;

/// The most bytes of a text in an instruction.
const MAX_SHOWN: usize = 1 << 12;

/// The constants of a class file, by index.
#[derive(Debug, Clone, Default)]
pub(super) struct ConstantPool<'d>(Vec<Constant<'d>>);

/// A constant. Numbers are indices of other ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Constant<'d> {
    /// Index 0, and the index behind a constant of eight bytes.
    None,
    Text(ModifiedUtf8<'d>),
    Int(i32),
    Float(f32),
    Long(i64),
    Double(f64),
    Class(u16),
    String(u16),
    Member(MemberKind, Pair),
    NameAndType(Pair),
    MethodHandle(u16),
    MethodType(u16),
    /// A constant or a call site that a bootstrap method makes: the index of the latter, and a name and type.
    Dynamic(DynamicKind, Pair),
    Module(u16),
}

/// A text as class files have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModifiedUtf8<'d>(&'d [u8]);

impl<'d> ModifiedUtf8<'d> {
    /// Returns true if it is this text. Longer ones are not decoded.
    pub(super) fn is(self, text: &str) -> bool {
        let is_longer = self.0.len() > text.len().saturating_mul(2);
        self.0 == text.as_bytes() || !is_longer && self.decoded() == text
    }

    pub(super) fn decoded(self) -> Cow<'d, str> {
        match std::str::from_utf8(self.0) {
            Ok(text) => text.into(),
            Err(_) => decode_modified_utf8(self.0).into(),
        }
    }
}

impl fmt::Display for ModifiedUtf8<'_> {
    /// Writes the text. Of a longer one than [`MAX_SHOWN`] it is the start, because thousands of instructions may show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..MAX_SHOWN) {
            Some(start) => write!(f, "{}..", Self(start).decoded()),
            None => f.write_str(&self.decoded()),
        }
    }
}

/// Two numbers of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    first: u16,
    second: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberKind {
    Field,
    Method,
    InterfaceMethod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DynamicKind {
    Constant,
    Call,
}

/// The name of a constant in errors.
const CONSTANT: &str = "constant_pool";

impl<'d> ConstantPool<'d> {
    pub(super) fn read(reader: &mut Reader<'d>) -> Result<Self> {
        let count = usize::from(reader.u16("constant_pool_count")?);
        let mut constants = vec![Constant::None];
        while constants.len() < count {
            let constant = read(reader)?;
            constants.push(constant);
            if let Constant::Long(_) | Constant::Double(_) = constant {
                constants.push(Constant::None);
            }
        }
        Ok(Self(constants))
    }

    pub(super) fn get(&self, index: u16) -> Constant<'d> {
        let constant = self.0.get(usize::from(index));
        constant.copied().unwrap_or(Constant::None)
    }

    /// Returns the text of a constant; `?` if it is of another kind.
    pub(super) fn text(&self, index: u16) -> ModifiedUtf8<'d> {
        match self.get(index) {
            Constant::Text(text) => text,
            _ => ModifiedUtf8(b"?"),
        }
    }

    /// Returns the name of a class, as class files write it: `java/lang/String`, `[I`.
    pub(super) fn class(&self, index: u16) -> ModifiedUtf8<'d> {
        match self.get(index) {
            Constant::Class(name) => self.text(name),
            _ => ModifiedUtf8(b"?"),
        }
    }

    /// Returns the descriptor of a field or method. None if it is another constant.
    pub(super) fn descriptor(&self, index: u16) -> Option<ModifiedUtf8<'d>> {
        let Constant::Member(_, member) = self.get(index) else {
            return None;
        };
        match self.get(member.second) {
            Constant::NameAndType(pair) => Some(self.text(pair.second)),
            _ => None,
        }
    }

    /// Returns the class of a field or method and its name, as Java writes them. None if it is another constant.
    pub(super) fn member(&self, index: u16) -> Option<String> {
        let Constant::Member(_, member) = self.get(index) else {
            return None;
        };
        let Constant::NameAndType(pair) = self.get(member.second) else {
            return None;
        };
        let class = self.class(member.first).to_string().replace('/', ".");
        Some(format!("{class}.{}", self.text(pair.first)))
    }

    /// Returns a constant as a comment of a disassembly, such as `Method java/lang/Math.sqrt:(D)D`.
    pub(super) fn shown(&self, index: u16) -> ShownConstant<'_, 'd> {
        ShownConstant { pool: self, index }
    }
}

fn read<'d>(reader: &mut Reader<'d>) -> Result<Constant<'d>> {
    let unknown = reader.error(CONSTANT, "its tag is not known");
    let tag = reader.u8(CONSTANT)?;
    let mut index = || reader.u16(CONSTANT);
    let mut pair = || {
        Ok::<_, crate::Error>(Pair {
            first: index()?,
            second: index()?,
        })
    };
    Ok(match tag {
        9 => Constant::Member(MemberKind::Field, pair()?),
        10 => Constant::Member(MemberKind::Method, pair()?),
        11 => Constant::Member(MemberKind::InterfaceMethod, pair()?),
        12 => Constant::NameAndType(pair()?),
        17 => Constant::Dynamic(DynamicKind::Constant, pair()?),
        18 => Constant::Dynamic(DynamicKind::Call, pair()?),
        7 => Constant::Class(index()?),
        8 => Constant::String(index()?),
        16 => Constant::MethodType(index()?),
        19 | 20 => Constant::Module(index()?),
        15 => {
            reader.u8(CONSTANT)?;
            Constant::MethodHandle(reader.u16(CONSTANT)?)
        }
        1 => {
            let len = reader.u16(CONSTANT)?;
            Constant::Text(ModifiedUtf8(reader.bytes(usize::from(len), CONSTANT)?))
        }
        3 => Constant::Int(reader.u32(CONSTANT)?.cast_signed()),
        4 => Constant::Float(f32::from_bits(reader.u32(CONSTANT)?)),
        5 => Constant::Long(reader.u64(CONSTANT)?.cast_signed()),
        6 => Constant::Double(f64::from_bits(reader.u64(CONSTANT)?)),
        _ => return Err(unknown),
    })
}

/// Writes a constant as javap does in its comments.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownConstant<'p, 'd> {
    pool: &'p ConstantPool<'d>,
    index: u16,
}

impl fmt::Display for ShownConstant<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.pool;
        match pool.get(self.index) {
            Constant::Int(number) => write!(f, "int {number}"),
            Constant::Float(number) => write!(f, "float {number}f"),
            Constant::Long(number) => write!(f, "long {number}l"),
            Constant::Double(number) => write!(f, "double {number}d"),
            Constant::Class(name) => write!(f, "class {}", pool.text(name)),
            Constant::String(text) => write!(f, "String {}", pool.text(text)),
            Constant::MethodType(text) => write!(f, "MethodType {}", pool.text(text)),
            Constant::Member(kind, member) => {
                let kind = match kind {
                    MemberKind::Field => "Field",
                    MemberKind::Method => "Method",
                    MemberKind::InterfaceMethod => "InterfaceMethod",
                };
                let class = pool.class(member.first);
                write!(f, "{kind} {class}.{}", pool.name_and_type(member.second))
            }
            Constant::Dynamic(kind, site) => {
                let kind = match kind {
                    DynamicKind::Constant => "Dynamic",
                    DynamicKind::Call => "InvokeDynamic",
                };
                let name = pool.name_and_type(site.second);
                write!(f, "{kind} #{}:{name}", site.first)
            }
            Constant::MethodHandle(member) => {
                // The reference leads to a member, so this does not recurse further.
                match pool.get(member) {
                    Constant::Member(..) => write!(f, "MethodHandle {}", pool.shown(member)),
                    _ => f.write_str("MethodHandle ?"),
                }
            }
            Constant::None | Constant::Text(_) | Constant::NameAndType(_) | Constant::Module(_) => {
                f.write_str("?")
            }
        }
    }
}

impl<'d> ConstantPool<'d> {
    fn name_and_type(&self, index: u16) -> String {
        match self.get(index) {
            Constant::NameAndType(pair) => {
                format!("{}:{}", self.text(pair.first), self.text(pair.second))
            }
            _ => "?".to_owned(),
        }
    }
}
