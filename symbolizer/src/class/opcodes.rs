//! The opcodes of Java's bytecode, with their operands.

/// What follows an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    None,
    /// A signed number of one byte.
    Byte,
    /// A signed number of two bytes.
    Short,
    /// A local variable, in one byte; in two behind `wide`.
    Local,
    /// A local variable and a signed number, in one byte each; in two behind `wide`.
    Increment,
    /// A constant's index in one byte.
    ShortConstant,
    /// A constant's index in two bytes.
    Constant,
    /// The same, and two zeros.
    DynamicCall,
    /// The same, the number of arguments, and a zero.
    InterfaceCall,
    /// A class, and a number of dimensions.
    MultiArray,
    /// The type of a primitive array's elements.
    ArrayType,
    /// A signed distance of two bytes.
    Branch,
    /// A signed distance of four bytes.
    WideBranch,
    TableSwitch,
    LookupSwitch,
    /// An instruction with wider operands.
    Wide,
}

/// An opcode's name and its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opcode {
    pub(super) number: u8,
    pub(super) name: &'static str,
    pub(super) operands: Operands,
}

/// Returns an opcode. None if it is not used in class files.
pub(super) fn opcode(byte: u8) -> Option<Opcode> {
    use Operands::{
        ArrayType, Branch, Byte, Constant, DynamicCall, Increment, InterfaceCall, Local,
        LookupSwitch, MultiArray, Short, ShortConstant, TableSwitch, Wide, WideBranch,
    };
    let name = java_mnemonic(byte)?;
    let operands = match byte {
        0x10 => Byte,
        0x11 => Short,
        0x12 => ShortConstant,
        0x13 | 0x14 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 => Constant,
        0x15..=0x19 | 0x36..=0x3a | 0xa9 => Local,
        0x84 => Increment,
        0x99..=0xa8 | 0xc6 | 0xc7 => Branch,
        0xaa => TableSwitch,
        0xab => LookupSwitch,
        0xb9 => InterfaceCall,
        0xba => DynamicCall,
        0xbc => ArrayType,
        0xc4 => Wide,
        0xc5 => MultiArray,
        0xc8 | 0xc9 => WideBranch,
        _ => Operands::None,
    };
    Some(Opcode {
        number: byte,
        name,
        operands,
    })
}

/// Returns the name of an opcode of Java's bytecode, as the specification has it. None if it is not used in class files.
#[must_use]
pub fn java_mnemonic(opcode: u8) -> Option<&'static str> {
    NAMES.get(usize::from(opcode)).copied()
}

/// Returns the name of a primitive array's element type (`newarray`).
pub(super) const fn array_type(code: u8) -> &'static str {
    match code {
        4 => "boolean",
        5 => "char",
        6 => "float",
        7 => "double",
        8 => "byte",
        9 => "short",
        10 => "int",
        11 => "long",
        _ => "?",
    }
}

/// The names of opcodes, by opcode.
#[rustfmt::skip]
const NAMES: [&str; 202] = [
    "nop", "aconst_null", "iconst_m1", "iconst_0", "iconst_1", "iconst_2", "iconst_3", "iconst_4",
    "iconst_5", "lconst_0", "lconst_1", "fconst_0", "fconst_1", "fconst_2", "dconst_0", "dconst_1",
    "bipush", "sipush", "ldc", "ldc_w", "ldc2_w", "iload", "lload", "fload",
    "dload", "aload", "iload_0", "iload_1", "iload_2", "iload_3", "lload_0", "lload_1",
    "lload_2", "lload_3", "fload_0", "fload_1", "fload_2", "fload_3", "dload_0", "dload_1",
    "dload_2", "dload_3", "aload_0", "aload_1", "aload_2", "aload_3", "iaload", "laload",
    "faload", "daload", "aaload", "baload", "caload", "saload", "istore", "lstore",
    "fstore", "dstore", "astore", "istore_0", "istore_1", "istore_2", "istore_3", "lstore_0",
    "lstore_1", "lstore_2", "lstore_3", "fstore_0", "fstore_1", "fstore_2", "fstore_3", "dstore_0",
    "dstore_1", "dstore_2", "dstore_3", "astore_0", "astore_1", "astore_2", "astore_3", "iastore",
    "lastore", "fastore", "dastore", "aastore", "bastore", "castore", "sastore", "pop",
    "pop2", "dup", "dup_x1", "dup_x2", "dup2", "dup2_x1", "dup2_x2", "swap",
    "iadd", "ladd", "fadd", "dadd", "isub", "lsub", "fsub", "dsub",
    "imul", "lmul", "fmul", "dmul", "idiv", "ldiv", "fdiv", "ddiv",
    "irem", "lrem", "frem", "drem", "ineg", "lneg", "fneg", "dneg",
    "ishl", "lshl", "ishr", "lshr", "iushr", "lushr", "iand", "land",
    "ior", "lor", "ixor", "lxor", "iinc", "i2l", "i2f", "i2d",
    "l2i", "l2f", "l2d", "f2i", "f2l", "f2d", "d2i", "d2l",
    "d2f", "i2b", "i2c", "i2s", "lcmp", "fcmpl", "fcmpg", "dcmpl",
    "dcmpg", "ifeq", "ifne", "iflt", "ifge", "ifgt", "ifle", "if_icmpeq",
    "if_icmpne", "if_icmplt", "if_icmpge", "if_icmpgt", "if_icmple", "if_acmpeq", "if_acmpne", "goto",
    "jsr", "ret", "tableswitch", "lookupswitch", "ireturn", "lreturn", "freturn", "dreturn",
    "areturn", "return", "getstatic", "putstatic", "getfield", "putfield", "invokevirtual", "invokespecial",
    "invokestatic", "invokeinterface", "invokedynamic", "new", "newarray", "anewarray", "arraylength", "athrow",
    "checkcast", "instanceof", "monitorenter", "monitorexit", "wide", "multianewarray", "ifnull", "ifnonnull",
    "goto_w", "jsr_w",
];
