//! What is a method: its class, its name, its lines?

use super::error::{MethodError, Result};
use super::ids::{Bci, MethodPointer};
use super::lines::LineTable;
use super::structure::Structure;
use crate::hotspot::jvm::Jvm;
use crate::hotspot::member::{Member, Offset, Width};
use std::ops::Range;
use varid_model::{Address, Layer};
use varid_symbolizer::dex::decode_modified_utf8;
use varid_symbolizer::java::{ClassName, printable};
use varid_tunnel::Memory;

/// The most bytes of a method's constant part: bytecode of 64 KB, and tables of lines, handlers, parameters and annotations.
const MAX_CONST_METHOD: u64 = 1 << 21;
/// The most bytes of a symbol.
const MAX_SYMBOL: u64 = u16::MAX as u64;
/// Bytes of a symbol that are read at once with its length. Most have fewer.
const SYMBOL_GUESS: u64 = 64;
/// The size of a constant in a pool, in bytes.
const CONSTANT: u64 = 8;
/// The size of a word of the VM in bytes.
const WORD: u64 = 8;

/// A method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaMethod {
    /// Its class.
    pub class: ClassName,
    /// Its name, such as `mul`, `<init>` or `lambda$main$0`.
    pub name: String,
    /// Its signature as in class files: `(IJ)Ljava/lang/String;`.
    pub signature: String,
    /// Flags of the class file.
    pub access: AccessFlags,
    /// Where its bytecode is. Empty if it is native or abstract.
    pub bytecode: Range<Address>,
    /// The lines of its bytecode. Empty if the class file has none.
    pub lines: LineTable,
    /// The file that its class was compiled from, without a folder: `App.java`.
    pub source_file: Option<String>,
}

/// Access flags of a method, as in class files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessFlags(u16);

impl AccessFlags {
    /// `ACC_STATIC`.
    pub const fn is_static(self) -> bool {
        self.0 & 0x8 != 0
    }

    /// `ACC_NATIVE`.
    pub const fn is_native(self) -> bool {
        self.0 & 0x100 != 0
    }

    /// `ACC_ABSTRACT`.
    pub const fn is_abstract(self) -> bool {
        self.0 & 0x400 != 0
    }

    /// `ACC_SYNTHETIC`: made by a compiler, such as the body of a lambda.
    pub const fn is_synthetic(self) -> bool {
        self.0 & 0x1000 != 0
    }
}

impl JavaMethod {
    /// Its name for a profile: `org.example.App.mul`.
    pub fn symbol(&self) -> String {
        format!("{}.{}", self.class.readable(), self.name)
    }

    /// Its layer. What belongs to the JDK is the framework.
    pub fn layer(&self) -> Layer {
        match self.class.is_of_jdk() {
            true => Layer::Framework,
            false => Layer::App,
        }
    }

    /// Returns the instruction at an address of its bytecode.
    pub fn bci(&self, address: Address) -> Option<Bci> {
        let inside = self.bytecode.contains(&address);
        let offset = address.offset_from(self.bytecode.start);
        let index = offset.and_then(|offset| u16::try_from(offset).ok());
        index.filter(|_| inside).map(Bci::new)
    }

    /// Returns the instruction that an interpreter frame executes whose bytecode pointer is `bcp`. None: a native method has none.
    ///
    /// # Errors
    ///
    /// The pointer is not in the bytecode: the frame is not complete yet, or the class is unloaded.
    pub fn executed_at(&self, bcp: Address) -> Result<Option<Bci>, MethodError> {
        let bci = self.bci(bcp);
        match bci.is_some() || self.bytecode.is_empty() {
            true => Ok(bci),
            false => {
                let why = "it is outside of the method's bytecode";
                let what = "the bytecode pointer of a frame";
                Err(MethodError::implausible(what, bcp.get(), why))
            }
        }
    }

    /// Its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let texts = [
            self.class.vm_name(),
            &self.name,
            &self.signature,
            self.source_file.as_deref().unwrap_or_default(),
        ];
        let texts = texts.iter().map(|text| text.len()).sum::<usize>();
        size_of::<Self>()
            .saturating_add(texts)
            .saturating_add(size_of_val(self.lines.entries()))
    }
}

/// Reads methods from the VM's memory.
#[derive(Clone, Copy)]
pub(super) struct MethodReader<'j> {
    pub(super) jvm: &'j Jvm,
    pub(super) memory: &'j dyn Memory,
}

/// What of a method says whether it is the same one as before, together with its names: the VM reuses the memory of unloaded classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MethodIdentity {
    access: AccessFlags,
    const_method: Address,
    /// Words of the constant part.
    size: u64,
    pool: Address,
    name: u64,
    signature: u64,
    code_size: u64,
    has_lines: bool,
}

/// The names of a method and of its class. Classes of equal size that follow each other at one place differ in nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MethodNames {
    /// The class, an `InstanceKlass`.
    holder: Address,
    class: Symbol,
    name: Symbol,
    signature: Symbol,
}

impl MethodNames {
    /// Its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let symbols = [&self.class, &self.name, &self.signature];
        let texts = symbols.iter().map(|symbol| symbol.text.len());
        size_of::<Self>().saturating_add(texts.sum())
    }
}

/// A `Symbol` of the VM.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Symbol {
    address: Address,
    text: String,
}

impl MethodReader<'_> {
    /// Reads what identifies a method, in two reads. `known`: what the pointer led to before, of which both are attempted at once.
    pub(super) fn identity(
        &self,
        method: MethodPointer,
        known: Option<&MethodIdentity>,
    ) -> Result<MethodIdentity> {
        let layout = &self.jvm.layout.metadata;
        let access = Member {
            offset: layout.access_flags,
            width: Width::Two,
        };
        let members = [layout.const_method, access];
        let known = known.map(|known| (known.const_method, self.constant_part(known.const_method)));
        let header = Structure::with_members("a Method", method.0, &members, self.memory)?;
        let const_method = header.pointer(layout.const_method)?;
        let found = match known {
            Some((address, found)) if address == const_method => found?,
            _ => self.constant_part(const_method)?,
        };
        let constant = &layout.constant;
        let flags = found.number(constant.flags)?;
        Ok(MethodIdentity {
            access: AccessFlags(header.number(access)? as u16),
            const_method,
            size: found.number(constant.words)?,
            pool: found.pointer(constant.pool)?,
            name: found.number(constant.name)?,
            signature: found.number(constant.signature)?,
            code_size: found.number(constant.code_size)?,
            has_lines: flags & u64::from(constant.has_lines) != 0,
        })
    }

    /// Reads the header of a method's constant part.
    fn constant_part(&self, address: Address) -> Result<Structure> {
        let constant = &self.jvm.layout.metadata.constant;
        let members = [
            constant.words,
            constant.pool,
            constant.name,
            constant.signature,
            constant.code_size,
            constant.flags,
        ];
        Structure::with_members("a ConstMethod", address, &members, self.memory)
    }

    /// Reads a method. All that is known to be needed is attempted before an error ends it.
    pub(super) fn method(&self, method: &MethodIdentity) -> Result<(MethodNames, JavaMethod)> {
        let header = self.jvm.layout.metadata.constant.size.into();
        let start = method.const_method.wrapping_add(header);
        let code = start..start.wrapping_add(method.code_size);
        let lines = self.lines(method, &code);
        let names = self.names(method, None);
        let pool = self.pool(method.pool)?;
        // A method that the VM makes for method handles has a small pool, which has copied its holder's index.
        let source_file = pool.check(pool.source_file).ok();
        let source_file = source_file.map(|()| self.constant(method.pool, pool.source_file));
        let names = names?;
        let method = JavaMethod {
            class: ClassName::new(&names.class.text),
            name: printable(&names.name.text),
            signature: printable(&names.signature.text),
            access: method.access,
            lines: lines?,
            bytecode: code,
            source_file: source_file.transpose()?.map(|file| printable(&file.text)),
        };
        Ok((names, method))
    }

    /// Reads the names of a method and of its class. `known`: those of the method that was there before, which are attempted at once.
    pub(super) fn names(
        &self,
        method: &MethodIdentity,
        known: Option<&MethodNames>,
    ) -> Result<MethodNames> {
        if let Some(known) = known {
            let _ = self.class_symbol(known.holder);
            for symbol in [&known.class, &known.name, &known.signature] {
                let _ = self.symbol(symbol.address);
            }
        }
        let pool = self.pool(method.pool);
        let indices = [method.name, method.signature];
        let [name, signature] = indices.map(|index| self.constant(method.pool, index));
        let pool = pool?;
        for index in indices {
            pool.check(index)?;
        }
        let class = self.class_symbol(pool.holder);
        let class = class.and_then(|address| self.symbol(address));
        Ok(MethodNames {
            holder: pool.holder,
            class: class?,
            name: name?,
            signature: signature?,
        })
    }

    /// Reads the lines of a method, whose table is between its bytecode and the end of its constant part.
    fn lines(&self, method: &MethodIdentity, code: &Range<Address>) -> Result<LineTable> {
        const TABLE: &str = "a table of lines";
        if !method.has_lines {
            return Ok(LineTable::default());
        }
        let size = method.size.saturating_mul(WORD);
        let most = MAX_CONST_METHOD;
        if size > most {
            let what = "a ConstMethod";
            return Err(MethodError::TooLarge { what, size, most });
        }
        let end = method.const_method.wrapping_add(size);
        let size = end.offset_from(code.end).unwrap_or(0);
        let bytes = Structure::read(TABLE, code.end, size, most, self.memory)?;
        Ok(LineTable::parse(&bytes.bytes, self.jvm.unexported.numbers))
    }

    fn pool(&self, address: Address) -> Result<Pool> {
        let layout = &self.jvm.layout.metadata.pool;
        let members = [layout.holder, layout.length, layout.source_file];
        let found = Structure::with_members("a ConstantPool", address, &members, self.memory)?;
        Ok(Pool {
            holder: found.pointer(layout.holder)?,
            length: found.number(layout.length)?,
            source_file: found.number(layout.source_file)?,
        })
    }

    /// Reads where the name of a class is.
    fn class_symbol(&self, class: Address) -> Result<Address> {
        let name = self.jvm.layout.metadata.class_name;
        let found = Structure::with_members("a Klass", class, &[name], self.memory)?;
        found.pointer(name)
    }

    /// Reads the symbol that a constant of a pool is. The pool must have one with this index.
    fn constant(&self, pool: Address, index: u64) -> Result<Symbol> {
        let first = pool.wrapping_add(self.jvm.layout.metadata.pool.size.into());
        let place = first.wrapping_add(index.wrapping_mul(CONSTANT));
        let pointer = Member {
            offset: Offset::new(0),
            width: Width::Eight,
        };
        let found = Structure::with_members("a constant", place, &[pointer], self.memory)?;
        self.symbol(found.pointer(pointer)?)
    }

    /// Reads a symbol: its length, and a few bytes with it, if there are any.
    fn symbol(&self, address: Address) -> Result<Symbol> {
        const SYMBOL: &str = "a Symbol";
        let layout = &self.jvm.layout.metadata.symbol;
        let start = u64::from(layout.body.bytes());
        let most = start.saturating_add(MAX_SYMBOL);
        let read = |size| Structure::read(SYMBOL, address, size, most, self.memory);
        // The memory may end behind a short symbol.
        let guess = start.saturating_add(SYMBOL_GUESS);
        let members = [layout.length];
        let header = read(guess)
            .or_else(|_| Structure::with_members(SYMBOL, address, &members, self.memory))?;
        let size = start.saturating_add(header.number(layout.length)?);
        let all = match size <= header.bytes.len() as u64 {
            true => header,
            false => read(size)?,
        };
        let range = usize::try_from(start).ok().zip(usize::try_from(size).ok());
        let bytes = range.and_then(|(start, end)| all.bytes.get(start..end));
        let text = decode_modified_utf8(bytes.unwrap_or_default());
        Ok(Symbol { address, text })
    }
}

/// Reads the name of a class from its `Klass`.
pub(in crate::hotspot) fn class_name(
    jvm: &Jvm,
    class: Address,
    memory: &dyn Memory,
) -> Result<ClassName> {
    let reader = MethodReader { jvm, memory };
    let name = reader.symbol(reader.class_symbol(class)?)?;
    Ok(ClassName::new(&name.text))
}

/// A constant pool.
struct Pool {
    /// The class.
    holder: Address,
    /// The number of constants. The one with index 0 is none.
    length: u64,
    /// The index of the name of the class's source file. 0 is none.
    source_file: u64,
}

impl Pool {
    /// Checks that it has a constant with this index.
    fn check(&self, index: u64) -> Result<()> {
        let why = "the constant pool has no such constant";
        let outside = MethodError::implausible("the index of a constant", index, why);
        match (1..self.length).contains(&index) {
            true => Ok(()),
            false => Err(outside),
        }
    }
}
