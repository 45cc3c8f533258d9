//! How is a class assembled?

use crate::assembler::Assembler;
use crate::class::{Constants, opcode};
use crate::error::Result;

/// The version of assembled classes: the last one whose code needs no stack maps.
const VERSION: u16 = 49;
const PUBLIC_FINAL_SUPER: u16 = 0x0001 | 0x0010 | 0x0020;

/// Access flags of members.
pub(super) mod access {
    pub(in crate::runtime) const PUBLIC: u16 = 0x0001;
    pub(in crate::runtime) const PRIVATE: u16 = 0x0002;
    pub(in crate::runtime) const STATIC: u16 = 0x0008;
    pub(in crate::runtime) const NATIVE: u16 = 0x0100;
}

/// A class that is assembled.
pub(super) struct ClassBuilder {
    constants: Constants<'static>,
    name: &'static str,
    fields: Vec<Vec<u8>>,
    methods: Vec<Vec<u8>>,
}

/// Annotations by which HotSpot compiles the classes of its boot loader differently.
#[derive(Debug, Clone, Copy)]
pub(super) enum Annotation {
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
pub(super) struct Member {
    pub(super) access: u16,
    pub(super) name: &'static str,
    pub(super) descriptor: &'static str,
    pub(super) annotation: Option<Annotation>,
}

impl ClassBuilder {
    /// Starts a public class below `Object`.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            constants: Constants::empty(),
            name,
            fields: Vec::new(),
            methods: Vec::new(),
        }
    }

    fn head(&mut self, member: &Member) -> Result<Vec<u8>> {
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
    pub(super) fn field(&mut self, member: &Member) -> Result<()> {
        let mut field = self.head(member)?;
        field.extend(u16::from(member.annotation.is_some()).to_be_bytes());
        if let Some(annotation) = member.annotation {
            self.annotate(annotation, &mut field)?;
        }
        self.fields.push(field);
        Ok(())
    }

    /// Adds a method, whose code `write` appends. Its stack and local variables take at most `words` words each.
    pub(super) fn method(
        &mut self,
        member: &Member,
        words: u16,
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
        let code = builder.finish();
        let length = u32::try_from(code.len()).unwrap_or(0);
        method.extend(name.to_be_bytes());
        method.extend(length.saturating_add(12).to_be_bytes());
        method.extend(words.to_be_bytes());
        method.extend(words.to_be_bytes());
        method.extend(length.to_be_bytes());
        method.extend(code);
        // Neither exception table nor attributes.
        method.extend([0; 4]);
        self.methods.push(method);
        Ok(())
    }

    /// Adds a native method.
    pub(super) fn native(&mut self, member: &Member) -> Result<()> {
        let mut method = self.head(member)?;
        method.extend(0_u16.to_be_bytes());
        self.methods.push(method);
        Ok(())
    }

    /// Returns the class file.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        let this = self.constants.add_class(self.name.as_bytes())?;
        let object = self.constants.add_class(b"java/lang/Object")?;
        let mut to = 0xcafe_babe_u32.to_be_bytes().to_vec();
        for part in [0, VERSION] {
            to.extend(part.to_be_bytes());
        }
        self.constants.write(&mut to);
        for part in [PUBLIC_FINAL_SUPER, this, object, 0] {
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
pub(super) struct Label(usize);

/// The code of a method that is assembled.
pub(super) struct CodeBuilder<'a> {
    pub(super) to: Assembler<'a, 'static>,
    /// The offset of each label.
    labels: Vec<usize>,
    /// The offset of each branch, and its label.
    branches: Vec<(usize, Label)>,
}

impl CodeBuilder<'_> {
    /// Returns a label that is not placed.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len().saturating_sub(1))
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        let here = self.to.code.len();
        if let Some(offset) = self.labels.get_mut(label.0) {
            *offset = here;
        }
    }

    /// Appends a branch.
    pub(super) fn branch(&mut self, opcode: u8, label: Label) {
        self.branches.push((self.to.code.len(), label));
        self.to.indexed(opcode, 0);
    }

    /// Appends a branch by comparing the `long` on the stack with 0.
    pub(super) fn branch_by_sign(&mut self, opcode: u8, label: Label) {
        self.to.op(opcode::LCONST_0);
        self.to.op(opcode::LCMP);
        self.branch(opcode, label);
    }

    fn finish(mut self) -> Vec<u8> {
        for (from, label) in self.branches {
            let to = self.labels.get(label.0).copied().unwrap_or_default();
            // Assembled methods are shorter than 32,768 bytes.
            let offset = i16::try_from(to)
                .unwrap_or(0)
                .wrapping_sub(i16::try_from(from).unwrap_or(0));
            let operand = from.saturating_add(1)..from.saturating_add(3);
            if let Some(operand) = self.to.code.get_mut(operand) {
                operand.copy_from_slice(&offset.to_be_bytes());
            }
        }
        self.to.code
    }
}
