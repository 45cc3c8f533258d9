//! How are operands packed into code units? The names are those of the dex format's documentation.

/// A register that an instruction names by eight bits, or by four if its format has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Register(pub(super) u8);

impl Register {
    /// Returns the number in the high byte of a code unit.
    const fn high(self) -> u16 {
        (self.0 as u16) << 8
    }

    const fn wide(self) -> u16 {
        self.0 as u16
    }
}

/// Returns the first code unit of an instruction with a register of eight bits.
pub(super) const fn first(opcode: u8, a: Register) -> u16 {
    opcode as u16 | a.high()
}

/// Returns the first code unit of an instruction with two registers of four bits.
pub(super) const fn first_of_two(opcode: u8, a: Register, b: Register) -> u16 {
    opcode as u16 | a.high() | b.wide() << 12
}

/// Two registers of four bits.
pub(super) fn two(opcode: u8, a: Register, b: Register) -> Vec<u16> {
    vec![first_of_two(opcode, a, b)]
}

/// Two registers of four bits and a code unit: 22c, 22s, 22t.
pub(super) fn two_and(opcode: u8, a: Register, b: Register, unit: u16) -> Vec<u16> {
    vec![first_of_two(opcode, a, b), unit]
}

/// A register of eight bits: 11x.
pub(super) fn one(opcode: u8, a: Register) -> Vec<u16> {
    vec![first(opcode, a)]
}

/// A register of eight bits and a code unit: 21c, 21h, 21s, 21t, and 22x.
pub(super) fn one_and(opcode: u8, a: Register, unit: u16) -> Vec<u16> {
    vec![first(opcode, a), unit]
}

/// A register of eight bits and two code units: 31c, 31i, 31t.
pub(super) fn one_and_two(opcode: u8, a: Register, units: [u16; 2]) -> Vec<u16> {
    let [low, high] = units;
    vec![first(opcode, a), low, high]
}

/// Three registers: 23x.
pub(super) fn three(opcode: u8, a: Register, b: Register, c: Register) -> Vec<u16> {
    vec![first(opcode, a), b.wide() | c.high()]
}

/// Two registers and a number of eight bits: 22b.
pub(super) fn two_and_byte(opcode: u8, a: Register, b: Register, value: i8) -> Vec<u16> {
    let value = u16::from(value.cast_unsigned());
    vec![first(opcode, a), b.wide() | value << 8]
}

/// Two registers of 16 bits: 32x.
pub(super) fn wide_two(opcode: u8, a: Register, b: Register) -> Vec<u16> {
    vec![opcode.into(), a.wide(), b.wide()]
}

/// Up to two registers of four bits as arguments, and the place of an index: 35c.
pub(super) fn arguments(opcode: u8, registers: &[Register]) -> Vec<u16> {
    let count: u16 = registers.iter().map(|_| 1_u16 << 12).sum();
    let packed = registers
        .iter()
        .rev()
        .fold(0, |packed, register| packed << 4 | register.wide());
    vec![u16::from(opcode) | count, 0, packed]
}

/// As [`arguments`], of consecutive registers: 3rc.
pub(super) fn range(opcode: u8, registers: &[Register]) -> Vec<u16> {
    let count: u16 = registers.iter().map(|_| 1_u16 << 8).sum();
    let start = registers.first().map_or(0, |register| register.wide());
    vec![u16::from(opcode) | count, 0, start]
}
