//! The names of opcodes, and the formats of their operands.

use Format::{
    F3rc, F4rcc, F10t, F10x, F11n, F11x, F12x, F20bc, F20t, F21c, F21h, F21hw, F21s, F21t, F22b,
    F22c, F22s, F22t, F22x, F23x, F30t, F31c, F31i, F31t, F32x, F35c, F45cc, F51l,
};
use Index::{
    Any, CallSite, DexMethod, Field, FieldOffset, Inline, MethodAndProto, MethodHandle, No, Proto,
    String, Type, Vtable,
};

/// The VM whose opcodes a file has. VMs replace standard opcodes by their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The standard opcodes, and those that ART up to 11 writes into vdex files by quickening.
    #[default]
    Art,
    /// The standard opcodes up to version 036, and those that Dalvik 4 writes into odex files by optimization.
    Dalvik,
}

impl Dialect {
    /// Returns the description of `code`: the low byte of an instruction's first code unit.
    #[must_use]
    pub fn opcode(self, code: u8) -> &'static Opcode {
        const UNKNOWN: Opcode = op("unknown", F10x, No);
        let of_dalvik = match self {
            Self::Art => None,
            Self::Dalvik => code
                .checked_sub(DALVIK_FROM)
                .and_then(|code| DALVIK.get(usize::from(code))),
        };
        of_dalvik
            .or_else(|| ART.get(usize::from(code)))
            .unwrap_or(&UNKNOWN)
    }
}

/// The description of an opcode.
#[derive(Debug)]
pub struct Opcode {
    /// Its name, as the dex format has it.
    pub name: &'static str,
    /// How its operands are packed.
    pub format: Format,
    /// What the index among its operands refers to.
    pub index: Index,
}

const fn op(name: &'static str, format: Format, index: Index) -> Opcode {
    Opcode {
        name,
        format,
        index,
    }
}

/// How the operands are packed. The names are those of the dex format. Their first digit is the number of code units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// No operands.
    F10x,
    /// Two registers of four bits.
    F12x,
    /// A register and a number of four bits each.
    F11n,
    /// A register of eight bits.
    F11x,
    /// A branch of eight bits.
    F10t,
    /// A kind of error and an index.
    F20bc,
    /// A branch of 16 bits.
    F20t,
    /// Registers of eight and of 16 bits.
    F22x,
    /// A register and a branch of 16 bits.
    F21t,
    /// A register and a number of 16 bits.
    F21s,
    /// A register and the high 16 bits of a number.
    F21h,
    /// As 21h, for a pair of registers.
    F21hw,
    /// A register and an index.
    F21c,
    /// Three registers of eight bits.
    F23x,
    /// Two registers and a number of eight bits each.
    F22b,
    /// Two registers of four bits and a branch of 16 bits.
    F22t,
    /// Two registers of four bits and a number of 16 bits.
    F22s,
    /// Two registers of four bits and an index.
    F22c,
    /// A branch of 32 bits.
    F30t,
    /// Two registers of 16 bits.
    F32x,
    /// A register and a number of 32 bits.
    F31i,
    /// A register and the distance of a table.
    F31t,
    /// A register and an index of 32 bits.
    F31c,
    /// Up to five registers of four bits and an index.
    F35c,
    /// Consecutive registers and an index.
    F3rc,
    /// As 35c, with the index of a prototype.
    F45cc,
    /// As 3rc, with the index of a prototype.
    F4rcc,
    /// A register and a number of 64 bits.
    F51l,
}

impl Format {
    /// Size of an instruction in code units.
    #[must_use]
    pub fn units(self) -> u32 {
        match self {
            F10x | F12x | F11n | F11x | F10t => 1,
            F20bc | F20t | F22x | F21t | F21s | F21h | F21hw | F21c | F23x | F22b | F22t | F22s
            | F22c => 2,
            F30t | F32x | F31i | F31t | F31c | F35c | F3rc => 3,
            F45cc | F4rcc => 4,
            F51l => 5,
        }
    }
}

/// What the index among the operands refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// It has none.
    No,
    /// A string.
    String,
    /// A type.
    Type,
    /// A field.
    Field,
    /// A method.
    DexMethod,
    /// A method, and a prototype in addition.
    MethodAndProto,
    /// A call site.
    CallSite,
    /// A method handle.
    MethodHandle,
    /// A prototype.
    Proto,
    /// Offset in an object, in bytes.
    FieldOffset,
    /// Index in a class's table of virtual methods.
    Vtable,
    /// Index in the VM's table of inlined native methods.
    Inline,
    /// A type, field or method, depending on the other operand.
    Any,
}

/// The opcodes of ART 11.
static ART: [Opcode; 256] = [
    op("nop", F10x, No),
    op("move", F12x, No),
    op("move/from16", F22x, No),
    op("move/16", F32x, No),
    op("move-wide", F12x, No),
    op("move-wide/from16", F22x, No),
    op("move-wide/16", F32x, No),
    op("move-object", F12x, No),
    op("move-object/from16", F22x, No),
    op("move-object/16", F32x, No),
    op("move-result", F11x, No),
    op("move-result-wide", F11x, No),
    op("move-result-object", F11x, No),
    op("move-exception", F11x, No),
    op("return-void", F10x, No),
    op("return", F11x, No),
    op("return-wide", F11x, No),
    op("return-object", F11x, No),
    op("const/4", F11n, No),
    op("const/16", F21s, No),
    op("const", F31i, No),
    op("const/high16", F21h, No),
    op("const-wide/16", F21s, No),
    op("const-wide/32", F31i, No),
    op("const-wide", F51l, No),
    op("const-wide/high16", F21hw, No),
    op("const-string", F21c, String),
    op("const-string/jumbo", F31c, String),
    op("const-class", F21c, Type),
    op("monitor-enter", F11x, No),
    op("monitor-exit", F11x, No),
    op("check-cast", F21c, Type),
    op("instance-of", F22c, Type),
    op("array-length", F12x, No),
    op("new-instance", F21c, Type),
    op("new-array", F22c, Type),
    op("filled-new-array", F35c, Type),
    op("filled-new-array/range", F3rc, Type),
    op("fill-array-data", F31t, No),
    op("throw", F11x, No),
    op("goto", F10t, No),
    op("goto/16", F20t, No),
    op("goto/32", F30t, No),
    op("packed-switch", F31t, No),
    op("sparse-switch", F31t, No),
    op("cmpl-float", F23x, No),
    op("cmpg-float", F23x, No),
    op("cmpl-double", F23x, No),
    op("cmpg-double", F23x, No),
    op("cmp-long", F23x, No),
    op("if-eq", F22t, No),
    op("if-ne", F22t, No),
    op("if-lt", F22t, No),
    op("if-ge", F22t, No),
    op("if-gt", F22t, No),
    op("if-le", F22t, No),
    op("if-eqz", F21t, No),
    op("if-nez", F21t, No),
    op("if-ltz", F21t, No),
    op("if-gez", F21t, No),
    op("if-gtz", F21t, No),
    op("if-lez", F21t, No),
    op("unused-3e", F10x, No),
    op("unused-3f", F10x, No),
    op("unused-40", F10x, No),
    op("unused-41", F10x, No),
    op("unused-42", F10x, No),
    op("unused-43", F10x, No),
    op("aget", F23x, No),
    op("aget-wide", F23x, No),
    op("aget-object", F23x, No),
    op("aget-boolean", F23x, No),
    op("aget-byte", F23x, No),
    op("aget-char", F23x, No),
    op("aget-short", F23x, No),
    op("aput", F23x, No),
    op("aput-wide", F23x, No),
    op("aput-object", F23x, No),
    op("aput-boolean", F23x, No),
    op("aput-byte", F23x, No),
    op("aput-char", F23x, No),
    op("aput-short", F23x, No),
    op("iget", F22c, Field),
    op("iget-wide", F22c, Field),
    op("iget-object", F22c, Field),
    op("iget-boolean", F22c, Field),
    op("iget-byte", F22c, Field),
    op("iget-char", F22c, Field),
    op("iget-short", F22c, Field),
    op("iput", F22c, Field),
    op("iput-wide", F22c, Field),
    op("iput-object", F22c, Field),
    op("iput-boolean", F22c, Field),
    op("iput-byte", F22c, Field),
    op("iput-char", F22c, Field),
    op("iput-short", F22c, Field),
    op("sget", F21c, Field),
    op("sget-wide", F21c, Field),
    op("sget-object", F21c, Field),
    op("sget-boolean", F21c, Field),
    op("sget-byte", F21c, Field),
    op("sget-char", F21c, Field),
    op("sget-short", F21c, Field),
    op("sput", F21c, Field),
    op("sput-wide", F21c, Field),
    op("sput-object", F21c, Field),
    op("sput-boolean", F21c, Field),
    op("sput-byte", F21c, Field),
    op("sput-char", F21c, Field),
    op("sput-short", F21c, Field),
    op("invoke-virtual", F35c, DexMethod),
    op("invoke-super", F35c, DexMethod),
    op("invoke-direct", F35c, DexMethod),
    op("invoke-static", F35c, DexMethod),
    op("invoke-interface", F35c, DexMethod),
    op("return-void-no-barrier", F10x, No),
    op("invoke-virtual/range", F3rc, DexMethod),
    op("invoke-super/range", F3rc, DexMethod),
    op("invoke-direct/range", F3rc, DexMethod),
    op("invoke-static/range", F3rc, DexMethod),
    op("invoke-interface/range", F3rc, DexMethod),
    op("unused-79", F10x, No),
    op("unused-7a", F10x, No),
    op("neg-int", F12x, No),
    op("not-int", F12x, No),
    op("neg-long", F12x, No),
    op("not-long", F12x, No),
    op("neg-float", F12x, No),
    op("neg-double", F12x, No),
    op("int-to-long", F12x, No),
    op("int-to-float", F12x, No),
    op("int-to-double", F12x, No),
    op("long-to-int", F12x, No),
    op("long-to-float", F12x, No),
    op("long-to-double", F12x, No),
    op("float-to-int", F12x, No),
    op("float-to-long", F12x, No),
    op("float-to-double", F12x, No),
    op("double-to-int", F12x, No),
    op("double-to-long", F12x, No),
    op("double-to-float", F12x, No),
    op("int-to-byte", F12x, No),
    op("int-to-char", F12x, No),
    op("int-to-short", F12x, No),
    op("add-int", F23x, No),
    op("sub-int", F23x, No),
    op("mul-int", F23x, No),
    op("div-int", F23x, No),
    op("rem-int", F23x, No),
    op("and-int", F23x, No),
    op("or-int", F23x, No),
    op("xor-int", F23x, No),
    op("shl-int", F23x, No),
    op("shr-int", F23x, No),
    op("ushr-int", F23x, No),
    op("add-long", F23x, No),
    op("sub-long", F23x, No),
    op("mul-long", F23x, No),
    op("div-long", F23x, No),
    op("rem-long", F23x, No),
    op("and-long", F23x, No),
    op("or-long", F23x, No),
    op("xor-long", F23x, No),
    op("shl-long", F23x, No),
    op("shr-long", F23x, No),
    op("ushr-long", F23x, No),
    op("add-float", F23x, No),
    op("sub-float", F23x, No),
    op("mul-float", F23x, No),
    op("div-float", F23x, No),
    op("rem-float", F23x, No),
    op("add-double", F23x, No),
    op("sub-double", F23x, No),
    op("mul-double", F23x, No),
    op("div-double", F23x, No),
    op("rem-double", F23x, No),
    op("add-int/2addr", F12x, No),
    op("sub-int/2addr", F12x, No),
    op("mul-int/2addr", F12x, No),
    op("div-int/2addr", F12x, No),
    op("rem-int/2addr", F12x, No),
    op("and-int/2addr", F12x, No),
    op("or-int/2addr", F12x, No),
    op("xor-int/2addr", F12x, No),
    op("shl-int/2addr", F12x, No),
    op("shr-int/2addr", F12x, No),
    op("ushr-int/2addr", F12x, No),
    op("add-long/2addr", F12x, No),
    op("sub-long/2addr", F12x, No),
    op("mul-long/2addr", F12x, No),
    op("div-long/2addr", F12x, No),
    op("rem-long/2addr", F12x, No),
    op("and-long/2addr", F12x, No),
    op("or-long/2addr", F12x, No),
    op("xor-long/2addr", F12x, No),
    op("shl-long/2addr", F12x, No),
    op("shr-long/2addr", F12x, No),
    op("ushr-long/2addr", F12x, No),
    op("add-float/2addr", F12x, No),
    op("sub-float/2addr", F12x, No),
    op("mul-float/2addr", F12x, No),
    op("div-float/2addr", F12x, No),
    op("rem-float/2addr", F12x, No),
    op("add-double/2addr", F12x, No),
    op("sub-double/2addr", F12x, No),
    op("mul-double/2addr", F12x, No),
    op("div-double/2addr", F12x, No),
    op("rem-double/2addr", F12x, No),
    op("add-int/lit16", F22s, No),
    op("rsub-int", F22s, No),
    op("mul-int/lit16", F22s, No),
    op("div-int/lit16", F22s, No),
    op("rem-int/lit16", F22s, No),
    op("and-int/lit16", F22s, No),
    op("or-int/lit16", F22s, No),
    op("xor-int/lit16", F22s, No),
    op("add-int/lit8", F22b, No),
    op("rsub-int/lit8", F22b, No),
    op("mul-int/lit8", F22b, No),
    op("div-int/lit8", F22b, No),
    op("rem-int/lit8", F22b, No),
    op("and-int/lit8", F22b, No),
    op("or-int/lit8", F22b, No),
    op("xor-int/lit8", F22b, No),
    op("shl-int/lit8", F22b, No),
    op("shr-int/lit8", F22b, No),
    op("ushr-int/lit8", F22b, No),
    op("iget-quick", F22c, FieldOffset),
    op("iget-wide-quick", F22c, FieldOffset),
    op("iget-object-quick", F22c, FieldOffset),
    op("iput-quick", F22c, FieldOffset),
    op("iput-wide-quick", F22c, FieldOffset),
    op("iput-object-quick", F22c, FieldOffset),
    op("invoke-virtual-quick", F35c, Vtable),
    op("invoke-virtual/range-quick", F3rc, Vtable),
    op("iput-boolean-quick", F22c, FieldOffset),
    op("iput-byte-quick", F22c, FieldOffset),
    op("iput-char-quick", F22c, FieldOffset),
    op("iput-short-quick", F22c, FieldOffset),
    op("iget-boolean-quick", F22c, FieldOffset),
    op("iget-byte-quick", F22c, FieldOffset),
    op("iget-char-quick", F22c, FieldOffset),
    op("iget-short-quick", F22c, FieldOffset),
    op("unused-f3", F10x, No),
    op("unused-f4", F10x, No),
    op("unused-f5", F10x, No),
    op("unused-f6", F10x, No),
    op("unused-f7", F10x, No),
    op("unused-f8", F10x, No),
    op("unused-f9", F10x, No),
    op("invoke-polymorphic", F45cc, MethodAndProto),
    op("invoke-polymorphic/range", F4rcc, MethodAndProto),
    op("invoke-custom", F35c, CallSite),
    op("invoke-custom/range", F3rc, CallSite),
    op("const-method-handle", F21c, MethodHandle),
    op("const-method-type", F21c, Proto),
];

/// The first opcode that is Dalvik's own.
const DALVIK_FROM: u8 = 0xe3;

/// Dalvik's opcodes from there on.
static DALVIK: [Opcode; 29] = [
    op("iget-volatile", F22c, Field),
    op("iput-volatile", F22c, Field),
    op("sget-volatile", F21c, Field),
    op("sput-volatile", F21c, Field),
    op("iget-object-volatile", F22c, Field),
    op("iget-wide-volatile", F22c, Field),
    op("iput-wide-volatile", F22c, Field),
    op("sget-wide-volatile", F21c, Field),
    op("sput-wide-volatile", F21c, Field),
    op("breakpoint", F10x, No),
    op("throw-verification-error", F20bc, Any),
    op("execute-inline", F35c, Inline),
    op("execute-inline/range", F3rc, Inline),
    op("invoke-object-init/range", F3rc, DexMethod),
    op("return-void-barrier", F10x, No),
    op("iget-quick", F22c, FieldOffset),
    op("iget-wide-quick", F22c, FieldOffset),
    op("iget-object-quick", F22c, FieldOffset),
    op("iput-quick", F22c, FieldOffset),
    op("iput-wide-quick", F22c, FieldOffset),
    op("iput-object-quick", F22c, FieldOffset),
    op("invoke-virtual-quick", F35c, Vtable),
    op("invoke-virtual-quick/range", F3rc, Vtable),
    op("invoke-super-quick", F35c, Vtable),
    op("invoke-super-quick/range", F3rc, Vtable),
    op("iput-object-volatile", F22c, Field),
    op("sget-object-volatile", F21c, Field),
    op("sput-object-volatile", F21c, Field),
    op("dispatch-ff", F10x, No),
];
