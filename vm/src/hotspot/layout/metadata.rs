//! How a method leads to its name, its class and its bytecode.

use crate::hotspot::fields::Fields;
use crate::hotspot::member::{Member, Offset};

/// `Method` (oops/method.hpp), `Klass` (oops/klass.hpp), and what they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataLayout {
    /// `Method::_constMethod`.
    pub const_method: Member,
    /// `Method::_code`: the compiled method, or null.
    pub method_code: Member,
    /// `Method::_access_flags`: those of the class file in its lower 16 bits.
    pub access_flags: Offset,
    /// `ConstMethod`.
    pub constant: ConstMethodLayout,
    /// `ConstantPool`.
    pub pool: ConstantPoolLayout,
    /// `Klass::_name`: a `Symbol`.
    pub class_name: Member,
    /// `Symbol`.
    pub symbol: SymbolLayout,
}

impl MetadataLayout {
    pub(super) fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            const_method: fields.member("Method::_constMethod"),
            method_code: fields.member("Method::_code"),
            access_flags: fields.offset("Method::_access_flags"),
            constant: ConstMethodLayout::take(fields),
            pool: ConstantPoolLayout::take(fields),
            class_name: fields.member("Klass::_name"),
            symbol: SymbolLayout::take(fields),
        }
    }
}

/// What of a method does not change, `ConstMethod` (oops/constMethod.hpp). The bytecode follows it, then the compressed table of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstMethodLayout {
    /// Its size in bytes: the bytecode starts there.
    pub size: u32,
    /// `_constMethod_size`: in words, with the bytecode and the tables behind it.
    pub words: Member,
    /// `_constants`: the `ConstantPool`.
    pub pool: Member,
    /// `_code_size`: of the bytecode, in bytes.
    pub code_size: Member,
    /// `_name_index`: of a symbol in the constant pool.
    pub name: Member,
    /// `_signature_index`: of a symbol in the constant pool.
    pub signature: Member,
    /// `_flags`.
    pub flags: Member,
    /// The flag of a method with a table of lines.
    pub has_lines: u32,
}

impl ConstMethodLayout {
    fn take(fields: &mut Fields<'_>) -> Self {
        // JDK 21 and later have a structure around the flags.
        let flags = fields.one_of(["ConstMethod::_flags", "ConstMethod::_flags._flags"]);
        let has_lines = match flags {
            "ConstMethod::_flags" => "ConstMethod::_has_linenumber_table",
            _ => "ConstMethodFlags::_misc_has_linenumber_table",
        };
        Self {
            size: fields.size("ConstMethod"),
            words: fields.member("ConstMethod::_constMethod_size"),
            pool: fields.member("ConstMethod::_constants"),
            code_size: fields.member("ConstMethod::_code_size"),
            name: fields.member("ConstMethod::_name_index"),
            signature: fields.member("ConstMethod::_signature_index"),
            flags: fields.member(flags),
            has_lines: fields.constant(has_lines) as u32,
        }
    }
}

/// The constants of a class, `ConstantPool` (oops/constantPool.hpp). Words follow it, one for each constant; that of a symbol is a pointer
/// to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstantPoolLayout {
    /// Its size in bytes: the constants start there.
    pub size: u32,
    /// `_pool_holder`: the class, an `InstanceKlass`.
    pub holder: Member,
    /// `_length`: the number of constants.
    pub length: Member,
    /// `_source_file_name_index`: of a symbol. 0 is none.
    pub source_file: Member,
}

impl ConstantPoolLayout {
    fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            size: fields.size("ConstantPool"),
            holder: fields.member("ConstantPool::_pool_holder"),
            length: fields.member("ConstantPool::_length"),
            source_file: fields.member("ConstantPool::_source_file_name_index"),
        }
    }
}

/// A name, `Symbol` (oops/symbol.hpp), in modified UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolLayout {
    /// `_length`: in bytes.
    pub length: Member,
    /// `_body`: the bytes.
    pub body: Offset,
}

impl SymbolLayout {
    fn take(fields: &mut Fields<'_>) -> Self {
        Self {
            length: fields.member("Symbol::_length"),
            body: fields.offset("Symbol::_body[0]"),
        }
    }
}
