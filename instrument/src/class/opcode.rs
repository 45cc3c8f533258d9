//! Opcodes of Java's bytecode by their mnemonics, and their properties for the rewriter.
#![expect(
    missing_docs,
    reason = "the Java Virtual Machine Specification, 6.5, has each mnemonic"
)]

pub const ACONST_NULL: u8 = 1;
pub const ICONST_0: u8 = 3;
pub const LCONST_0: u8 = 9;
pub const LCONST_1: u8 = 10;
pub const BIPUSH: u8 = 16;
pub const SIPUSH: u8 = 17;
pub const LDC: u8 = 18;
pub const LDC_W: u8 = 19;
pub const LDC2_W: u8 = 20;
pub const ILOAD: u8 = 21;
pub const LLOAD: u8 = 22;
pub const ALOAD: u8 = 25;
pub const ILOAD_0: u8 = 26;
pub const LLOAD_0: u8 = 30;
pub const ALOAD_0: u8 = 42;
pub const IALOAD: u8 = 46;
pub const LALOAD: u8 = 47;
pub const AALOAD: u8 = 50;
pub const SALOAD: u8 = 53;
pub const ISTORE: u8 = 54;
pub const LSTORE: u8 = 55;
pub const ASTORE: u8 = 58;
pub const ISTORE_0: u8 = 59;
pub const LSTORE_0: u8 = 63;
pub const ASTORE_0: u8 = 75;
pub const IASTORE: u8 = 79;
pub const LASTORE: u8 = 80;
pub const SASTORE: u8 = 86;
pub const AASTORE: u8 = 83;
pub const POP2: u8 = 88;
pub const DUP: u8 = 89;
pub const DUP_X1: u8 = 90;
pub const DUP_X2: u8 = 91;
pub const DUP2: u8 = 92;
pub const DUP2_X1: u8 = 93;
pub const DUP2_X2: u8 = 94;
pub const SWAP: u8 = 95;
pub const IADD: u8 = 96;
pub const LADD: u8 = 97;
pub const LSUB: u8 = 101;
pub const IDIV: u8 = 108;
pub const LDIV: u8 = 109;
pub const IREM: u8 = 112;
pub const LREM: u8 = 113;
pub const LSHR: u8 = 123;
pub const IINC: u8 = 132;
pub const I2L: u8 = 133;
pub const L2I: u8 = 136;
pub const LCMP: u8 = 148;
pub const IFEQ: u8 = 153;
pub const IFNE: u8 = 154;
pub const IFLT: u8 = 155;
pub const IFGE: u8 = 156;
pub const IFGT: u8 = 157;
pub const IFLE: u8 = 158;
pub const IF_ICMPGE: u8 = 162;
pub const IF_ACMPEQ: u8 = 165;
pub const GOTO: u8 = 167;
pub const JSR: u8 = 168;
pub const RET: u8 = 169;
pub const TABLESWITCH: u8 = 170;
pub const LOOKUPSWITCH: u8 = 171;
pub const IRETURN: u8 = 172;
pub const LRETURN: u8 = 173;
pub const ARETURN: u8 = 176;
pub const RETURN: u8 = 177;
pub const GETSTATIC: u8 = 178;
pub const PUTSTATIC: u8 = 179;
pub const GETFIELD: u8 = 180;
pub const PUTFIELD: u8 = 181;
pub const INVOKEVIRTUAL: u8 = 182;
pub const INVOKESPECIAL: u8 = 183;
pub const INVOKESTATIC: u8 = 184;
pub const INVOKEINTERFACE: u8 = 185;
pub const INVOKEDYNAMIC: u8 = 186;
pub const NEW: u8 = 187;
pub const NEWARRAY: u8 = 188;
pub const ANEWARRAY: u8 = 189;
pub const ARRAYLENGTH: u8 = 190;
pub const ATHROW: u8 = 191;
pub const MONITOREXIT: u8 = 195;
pub const WIDE: u8 = 196;
pub const MULTIANEWARRAY: u8 = 197;
pub const IFNULL: u8 = 198;
pub const IFNONNULL: u8 = 199;
pub const GOTO_W: u8 = 200;
pub const JSR_W: u8 = 201;

/// Returns the length of an instruction that has a fixed one. None: it has not, or is not an instruction of a class file.
pub(crate) const fn length(opcode: u8) -> Option<u8> {
    Some(match opcode {
        BIPUSH | LDC | ILOAD..=ALOAD | ISTORE..=ASTORE | RET | NEWARRAY => 2,
        SIPUSH
        | LDC_W
        | LDC2_W
        | IINC
        | IFEQ..=JSR
        | GETSTATIC..=INVOKESTATIC
        | NEW
        | ANEWARRAY
        | 192
        | 193
        | IFNULL
        | IFNONNULL => 3,
        MULTIANEWARRAY => 4,
        INVOKEINTERFACE | INVOKEDYNAMIC | GOTO_W | JSR_W => 5,
        TABLESWITCH | LOOKUPSWITCH | WIDE | 202..=255 => return None,
        _ => 1,
    })
}

/// Returns true if the instruction calls a method.
pub(crate) const fn is_call(opcode: u8) -> bool {
    matches!(opcode, INVOKEVIRTUAL..=INVOKEDYNAMIC)
}

/// Returns true if the instruction returns from the method.
pub(crate) const fn is_return(opcode: u8) -> bool {
    matches!(opcode, IRETURN..=RETURN)
}

/// Returns true if the next instruction can follow.
pub(crate) const fn falls_through(opcode: u8) -> bool {
    !matches!(
        opcode,
        GOTO | GOTO_W | JSR | JSR_W | RET | TABLESWITCH..=RETURN | ATHROW
    )
}

/// Returns true if the instruction, other than a call or `ldc`, can throw an exception, or load or initialise a class.
pub(crate) const fn can_throw(opcode: u8) -> bool {
    matches!(
        opcode,
        IALOAD..=SALOAD
            | IASTORE..=SASTORE
            | IDIV
            | LDIV
            | IREM
            | LREM
            | GETSTATIC..=PUTFIELD
            | NEW..=MONITOREXIT
            | MULTIANEWARRAY
    )
}
