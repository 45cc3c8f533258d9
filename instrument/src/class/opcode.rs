//! Which opcodes does the rewriter know by name, and what are their properties?

pub(crate) const ACONST_NULL: u8 = 1;
pub(crate) const ICONST_0: u8 = 3;
pub(crate) const LCONST_0: u8 = 9;
pub(crate) const LCONST_1: u8 = 10;
pub(crate) const BIPUSH: u8 = 16;
pub(crate) const SIPUSH: u8 = 17;
pub(crate) const LDC: u8 = 18;
pub(crate) const LDC_W: u8 = 19;
pub(crate) const LDC2_W: u8 = 20;
pub(crate) const ILOAD: u8 = 21;
pub(crate) const LLOAD: u8 = 22;
pub(crate) const ALOAD: u8 = 25;
pub(crate) const ILOAD_0: u8 = 26;
pub(crate) const LLOAD_0: u8 = 30;
pub(crate) const ALOAD_0: u8 = 42;
pub(crate) const IALOAD: u8 = 46;
pub(crate) const SALOAD: u8 = 53;
pub(crate) const ISTORE: u8 = 54;
pub(crate) const LSTORE: u8 = 55;
pub(crate) const ASTORE: u8 = 58;
pub(crate) const ISTORE_0: u8 = 59;
pub(crate) const LSTORE_0: u8 = 63;
pub(crate) const ASTORE_0: u8 = 75;
pub(crate) const IASTORE: u8 = 79;
pub(crate) const SASTORE: u8 = 86;
pub(crate) const AASTORE: u8 = 83;
pub(crate) const POP2: u8 = 88;
pub(crate) const DUP: u8 = 89;
pub(crate) const DUP_X1: u8 = 90;
pub(crate) const DUP_X2: u8 = 91;
pub(crate) const DUP2: u8 = 92;
pub(crate) const DUP2_X1: u8 = 93;
pub(crate) const DUP2_X2: u8 = 94;
pub(crate) const SWAP: u8 = 95;
pub(crate) const IADD: u8 = 96;
pub(crate) const LADD: u8 = 97;
pub(crate) const LSUB: u8 = 101;
pub(crate) const IDIV: u8 = 108;
pub(crate) const LDIV: u8 = 109;
pub(crate) const IREM: u8 = 112;
pub(crate) const LREM: u8 = 113;
pub(crate) const LSHR: u8 = 123;
pub(crate) const IINC: u8 = 132;
pub(crate) const I2L: u8 = 133;
pub(crate) const L2I: u8 = 136;
pub(crate) const LCMP: u8 = 148;
pub(crate) const IFEQ: u8 = 153;
pub(crate) const IFNE: u8 = 154;
pub(crate) const IFLT: u8 = 155;
pub(crate) const IFGE: u8 = 156;
pub(crate) const IFGT: u8 = 157;
pub(crate) const IFLE: u8 = 158;
pub(crate) const IF_ACMPEQ: u8 = 165;
pub(crate) const GOTO: u8 = 167;
pub(crate) const JSR: u8 = 168;
pub(crate) const RET: u8 = 169;
pub(crate) const TABLESWITCH: u8 = 170;
pub(crate) const LOOKUPSWITCH: u8 = 171;
pub(crate) const IRETURN: u8 = 172;
pub(crate) const LRETURN: u8 = 173;
pub(crate) const ARETURN: u8 = 176;
pub(crate) const RETURN: u8 = 177;
pub(crate) const GETSTATIC: u8 = 178;
pub(crate) const PUTSTATIC: u8 = 179;
pub(crate) const GETFIELD: u8 = 180;
pub(crate) const PUTFIELD: u8 = 181;
pub(crate) const INVOKEVIRTUAL: u8 = 182;
pub(crate) const INVOKESPECIAL: u8 = 183;
pub(crate) const INVOKESTATIC: u8 = 184;
pub(crate) const INVOKEINTERFACE: u8 = 185;
pub(crate) const INVOKEDYNAMIC: u8 = 186;
pub(crate) const NEW: u8 = 187;
pub(crate) const NEWARRAY: u8 = 188;
pub(crate) const ANEWARRAY: u8 = 189;
pub(crate) const ATHROW: u8 = 191;
pub(crate) const MONITOREXIT: u8 = 195;
pub(crate) const WIDE: u8 = 196;
pub(crate) const MULTIANEWARRAY: u8 = 197;
pub(crate) const IFNULL: u8 = 198;
pub(crate) const IFNONNULL: u8 = 199;
pub(crate) const GOTO_W: u8 = 200;
pub(crate) const JSR_W: u8 = 201;

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
