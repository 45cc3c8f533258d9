//! How is a class assembled?

use crate::NotRewritten;
use crate::assembler::Assembler;
use crate::class::{Constants, opcode};
use crate::error::Result;

/// The version of assembled classes: the last one whose code needs no stack maps.
const VERSION: u16 = 49;
const PUBLIC_FINAL_SUPER: u16 = 0x0001 | 0x0010 | 0x0020;

const PUBLIC_ABSTRACT_INTERFACE: u16 = 0x0001 | 0x0400 | 0x0200;

/// Access flags of members: tables 4.5-A and 4.6-A.
pub mod access {
    /// Any class accesses it.
    pub const PUBLIC: u16 = 0x0001;
    /// Its own class alone accesses it.
    pub const PRIVATE: u16 = 0x0002;
    /// It belongs to the class, not to an object.
    pub const STATIC: u16 = 0x0008;
    /// Its code is in a library.
    pub const NATIVE: u16 = 0x0100;
    /// It has no code.
    pub const ABSTRACT: u16 = 0x0400;
}

/// What a class is declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassKind<'a> {
    /// A public final class that implements these interfaces, by their names with slashes.
    Final(&'a [&'a str]),
    /// A public interface.
    Interface,
}

/// A class that is assembled.
#[derive(Debug)]
pub struct ClassBuilder {
    constants: Constants<'static>,
    name: String,
    fields: Vec<Vec<u8>>,
    methods: Vec<Vec<u8>>,
}

/// Annotations by which HotSpot compiles the classes of its boot loader differently.
#[derive(Debug, Clone, Copy)]
pub enum Annotation {
    /// A method is inlined into every caller.
    ForceInline,
    /// A method is inlined into no caller.
    DontInline,
    /// A field is constant once it is not 0, false or null.
    Stable,
}

impl Annotation {
    const fn descriptor(self) -> &'static str {
        match self {
            Self::ForceInline => "Ljdk/internal/vm/annotation/ForceInline;",
            Self::DontInline => "Ljdk/internal/vm/annotation/DontInline;",
            Self::Stable => "Ljdk/internal/vm/annotation/Stable;",
        }
    }
}

/// A field or method without its contents.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Its [access flags](access).
    pub access: u16,
    /// Its name.
    pub name: &'a str,
    /// Its descriptor.
    pub descriptor: &'a str,
    /// Its annotation for HotSpot.
    pub annotation: Option<Annotation>,
}

/// What a frame of a method has room for, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Words of the operand stack.
    pub stack: u16,
    /// Local variables.
    pub locals: u16,
}

impl ClassBuilder {
    /// Starts a public class below `Object`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            constants: Constants::empty(),
            name: name.to_owned(),
            fields: Vec::new(),
            methods: Vec::new(),
        }
    }

    fn head(&mut self, member: &Member<'_>) -> Result<Vec<u8>> {
        let mut to = member.access.to_be_bytes().to_vec();
        for text in [member.name, member.descriptor] {
            to.extend(self.constants.add_utf8(text.as_bytes())?.to_be_bytes());
        }
        Ok(to)
    }

    fn annotate(&mut self, annotation: Annotation, to: &mut Vec<u8>) -> Result<()> {
        let name = self.constants.add_utf8(b"RuntimeVisibleAnnotations")?;
        let kind = self
            .constants
            .add_utf8(annotation.descriptor().as_bytes())?;
        to.extend(name.to_be_bytes());
        to.extend(6_u32.to_be_bytes());
        // One annotation, without elements.
        for part in [1, kind, 0] {
            to.extend(part.to_be_bytes());
        }
        Ok(())
    }

    /// Adds a field.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn field(&mut self, member: &Member<'_>) -> Result<()> {
        let mut field = self.head(member)?;
        field.extend(u16::from(member.annotation.is_some()).to_be_bytes());
        if let Some(annotation) = member.annotation {
            self.annotate(annotation, &mut field)?;
        }
        self.fields.push(field);
        Ok(())
    }

    /// Adds a method without code: a native or an abstract one.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn method_without_code(&mut self, member: &Member<'_>) -> Result<()> {
        let mut method = self.head(member)?;
        method.extend([0; 2]);
        self.methods.push(method);
        Ok(())
    }

    /// Adds a method, whose code `write` appends.
    ///
    /// # Errors
    ///
    /// The constant pool is full, the code is longer than 65,535 bytes, or a branch leads further than 32,767 bytes; and what `write` returns.
    pub fn method(
        &mut self,
        member: &Member<'_>,
        limits: Limits,
        write: impl FnOnce(&mut CodeBuilder<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut method = self.head(member)?;
        method.extend(
            (if member.annotation.is_some() {
                2_u16
            } else {
                1
            })
            .to_be_bytes(),
        );
        if let Some(annotation) = member.annotation {
            self.annotate(annotation, &mut method)?;
        }
        let name = self.constants.add_utf8(b"Code")?;
        let mut builder = CodeBuilder {
            to: Assembler::new(&mut self.constants),
            labels: Vec::new(),
            branches: Vec::new(),
        };
        write(&mut builder)?;
        let code = builder.finish()?;
        let length = u16::try_from(code.len()).map_err(|_| NotRewritten::CodeTooLong)?;
        let length = u32::from(length);
        method.extend(name.to_be_bytes());
        method.extend(length.saturating_add(12).to_be_bytes());
        method.extend(limits.stack.to_be_bytes());
        method.extend(limits.locals.to_be_bytes());
        method.extend(length.to_be_bytes());
        method.extend(code);
        // Neither exception table nor attributes.
        method.extend([0; 4]);
        self.methods.push(method);
        Ok(())
    }

    /// Returns the class file.
    ///
    /// # Errors
    ///
    /// The constant pool is full.
    pub fn finish(mut self, kind: ClassKind<'_>) -> Result<Vec<u8>> {
        let this = self.constants.add_class(self.name.as_bytes())?;
        let object = self.constants.add_class(b"java/lang/Object")?;
        let mut to = 0xcafe_babe_u32.to_be_bytes().to_vec();
        for part in [0, VERSION] {
            to.extend(part.to_be_bytes());
        }
        let (flags, names) = match kind {
            ClassKind::Final(names) => (PUBLIC_FINAL_SUPER, names),
            ClassKind::Interface => (PUBLIC_ABSTRACT_INTERFACE, &[] as &[&str]),
        };
        let mut interfaces = Vec::new();
        for name in names {
            interfaces.push(self.constants.add_class(name.as_bytes())?);
        }
        self.constants.write(&mut to);
        let count = u16::try_from(interfaces.len()).unwrap_or(0);
        for part in [flags, this, object, count].into_iter().chain(interfaces) {
            to.extend(part.to_be_bytes());
        }
        for members in [&self.fields, &self.methods] {
            to.extend(u16::try_from(members.len()).unwrap_or(0).to_be_bytes());
            to.extend(members.concat());
        }
        to.extend([0; 2]);
        Ok(to)
    }
}

/// A place in code that branches lead to.
#[derive(Debug, Clone, Copy)]
pub struct Label(usize);

/// The code of a method that is assembled.
#[derive(Debug)]
pub struct CodeBuilder<'a> {
    /// Appends instructions.
    pub to: Assembler<'a, 'static>,
    /// The offset of each label.
    labels: Vec<usize>,
    /// The offset of each branch, and its label.
    branches: Vec<(usize, Label)>,
}

impl CodeBuilder<'_> {
    /// Returns a label that is not placed.
    pub fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len().saturating_sub(1))
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        let here = self.to.code.len();
        if let Some(offset) = self.labels.get_mut(label.0) {
            *offset = here;
        }
    }

    /// Appends a branch.
    pub fn branch(&mut self, opcode: u8, label: Label) {
        self.branches.push((self.to.code.len(), label));
        self.to.indexed(opcode, 0);
    }

    /// Appends a branch by comparing the `long` on the stack with 0.
    pub(crate) fn branch_by_sign(&mut self, opcode: u8, label: Label) {
        self.to.op(opcode::LCONST_0);
        self.to.op(opcode::LCMP);
        self.branch(opcode, label);
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        for (from, label) in self.branches {
            let to = self.labels.get(label.0).copied().unwrap_or_default();
            let offset = to.cast_signed().wrapping_sub(from.cast_signed());
            let offset = i16::try_from(offset).map_err(|_| NotRewritten::CodeTooLong)?;
            let operand = from.saturating_add(1)..from.saturating_add(3);
            if let Some(operand) = self.to.code.get_mut(operand) {
                operand.copy_from_slice(&offset.to_be_bytes());
            }
        }
        Ok(self.to.code)
    }
}
