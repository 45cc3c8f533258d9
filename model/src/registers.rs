//! The register map: the position of registers in a record, by DWARF number, for each machine.

/// Number of registers in a sample's record. Unused ones are zero.
pub const RECORD_REGS: usize = 16;

/// The machine of the profiled process, whose registers a record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
    /// 32-bit x86: a process on an x86-64 kernel.
    X86,
    /// 32-bit ARM: a process on a 32-bit or an AArch64 kernel.
    Arm,
}

/// One register of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegInfo {
    /// DWARF number, as in CFI and in the tunnel's layouts.
    pub dwarf: u16,
    /// Bit in perf's `sample_regs_user` (arch/*/include/uapi/asm/perf_regs.h) of the machine's own kernel.
    pub perf: u8,
}

const fn reg(dwarf: u16, perf: u8) -> RegInfo {
    RegInfo { dwarf, perf }
}

/// Registers in record order: the callee-saved ones; rax, which has the return address while HotSpot's interpreter enters a method; r9 and r11,
/// which lead to a frame that ART's nterp is building; then sp, then ip. `varid_x86_reg`.
const X86_64: &[RegInfo] = &[
    reg(0, 0),   // rax
    reg(3, 1),   // rbx
    reg(6, 6),   // rbp
    reg(9, 17),  // r9
    reg(11, 19), // r11
    reg(12, 20), // r12
    reg(13, 21), // r13
    reg(14, 22), // r14
    reg(15, 23), // r15
    reg(7, 7),   // rsp
    reg(16, 8),  // rip, the return address' column
];

/// `varid_i386_reg`. edx is not callee-saved, but an interpreter loop may keep its pc in it.
const X86: &[RegInfo] = &[
    reg(2, 3), // edx
    reg(3, 1), // ebx
    reg(5, 6), // ebp
    reg(6, 4), // esi
    reg(7, 5), // edi
    reg(4, 7), // esp
    reg(8, 8), // eip, the return address' column
];

/// `varid_arm64_reg`: x19 to x30, sp, pc; and x12 and x13, which have a method and its caller's stack pointer while HotSpot's interpreter
/// enters it.
const AARCH64: &[RegInfo] = &[
    reg(19, 19),
    reg(20, 20),
    reg(21, 21),
    reg(22, 22),
    reg(23, 23),
    reg(24, 24),
    reg(25, 25),
    reg(26, 26),
    reg(27, 27),
    reg(28, 28),
    reg(29, 29),
    reg(30, 30),
    reg(12, 12),
    reg(13, 13),
    reg(31, 31),
    reg(32, 32),
];

/// `varid_arm_reg`: r4 to r11, lr, sp, pc.
const ARM: &[RegInfo] = &[
    reg(4, 4),
    reg(5, 5),
    reg(6, 6),
    reg(7, 7),
    reg(8, 8),
    reg(9, 9),
    reg(10, 10),
    reg(11, 11),
    reg(14, 14),
    reg(13, 13),
    reg(15, 15),
];

/// The bits of an address in a process. Higher bits are not part of the address on any machine here (but a tag, if the processor ignores
/// the top byte).
pub const ADDRESS_MASK: u64 = (1 << 56) - 1;

impl Machine {
    /// The machine that this program runs on.
    pub const NATIVE: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::Arm
    };

    /// Returns the machine for the `e_machine` of an ELF header.
    pub fn of_elf(e_machine: u16) -> Option<Self> {
        match e_machine {
            3 => Some(Self::X86),
            62 => Some(Self::X86_64),
            183 => Some(Self::Aarch64),
            40 => Some(Self::Arm),
            _ => None,
        }
    }

    /// Its registers in the order of a record.
    #[inline]
    pub fn regs(self) -> &'static [RegInfo] {
        match self {
            Self::X86_64 => X86_64,
            Self::X86 => X86,
            Self::Aarch64 => AARCH64,
            Self::Arm => ARM,
        }
    }

    /// Size of a pointer in bytes.
    #[inline]
    pub fn word(self) -> u8 {
        match self {
            Self::X86_64 | Self::Aarch64 => 8,
            Self::X86 | Self::Arm => 4,
        }
    }

    /// DWARF number of the instruction pointer in records.
    #[inline]
    pub fn ip(self) -> u16 {
        match self {
            Self::X86_64 => 16,
            Self::X86 => 8,
            Self::Aarch64 => 32,
            Self::Arm => 15,
        }
    }

    /// DWARF number of the stack pointer.
    #[inline]
    pub fn sp(self) -> u16 {
        match self {
            Self::X86_64 => 7,
            Self::X86 => 4,
            Self::Aarch64 => 31,
            Self::Arm => 13,
        }
    }

    /// DWARF number of the frame pointer.
    #[inline]
    pub fn fp(self) -> u16 {
        match self {
            Self::X86_64 => 6,
            Self::X86 => 5,
            Self::Aarch64 => 29,
            Self::Arm => 11,
        }
    }

    /// DWARF number of the register for the return address of a call. None if calls push it.
    #[inline]
    pub fn link(self) -> Option<u16> {
        match self {
            Self::X86_64 | Self::X86 => None,
            Self::Aarch64 => Some(30),
            Self::Arm => Some(14),
        }
    }

    /// The column of the return address in call frame information.
    #[inline]
    pub fn return_address(self) -> u16 {
        self.link().unwrap_or(self.ip())
    }

    /// The machine of processes that a 64-bit kernel of this machine also runs, but that have other registers.
    pub fn compat(self) -> Option<Self> {
        match self {
            Self::X86_64 => Some(Self::X86),
            Self::Aarch64 => Some(Self::Arm),
            Self::X86 | Self::Arm => None,
        }
    }

    /// The bit in this machine's `sample_regs_user` for a register of a process of `machine`.
    fn perf_bit(self, machine: Self, reg: &RegInfo) -> u8 {
        // arch/arm64/kernel/perf_regs.c: the last registers of a 32-bit process have the positions of the 64-bit ones.
        match (self, machine, reg.dwarf) {
            (Self::Aarch64, Self::Arm, 14) => 30,
            (Self::Aarch64, Self::Arm, 13) => 31,
            (Self::Aarch64, Self::Arm, 15) => 32,
            _ => reg.perf,
        }
    }

    /// The registers to request from this machine's kernel, as `sample_regs_user`: those of all processes that it runs.
    pub fn perf_mask(self) -> u64 {
        std::iter::once(self)
            .chain(self.compat())
            .flat_map(|machine| {
                machine
                    .regs()
                    .iter()
                    .map(move |reg| self.perf_bit(machine, reg))
            })
            .fold(0, |mask, bit| mask | 1 << bit)
    }

    /// The index of a register in a record, by its DWARF number.
    #[inline]
    pub fn index(self, dwarf: u16) -> Option<usize> {
        let regs = self.regs();
        // Most numbers are consecutive, from the first one on or up to the last one.
        let ((first, _), (last, before)) = (regs.split_first()?, regs.split_last()?);
        let up = usize::from(dwarf.wrapping_sub(first.dwarf));
        let down = before
            .len()
            .wrapping_sub(last.dwarf.wrapping_sub(dwarf).into());
        let is_at = |index: &usize| regs.get(*index).is_some_and(|reg| reg.dwarf == dwarf);
        [up, down]
            .into_iter()
            .find(is_at)
            .or_else(|| regs.iter().position(|reg| reg.dwarf == dwarf))
    }
}

/// The user registers of a sample, as in a record. Some may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regs {
    machine: Machine,
    /// Bit mask of the registers that are known.
    known: u16,
    /// Zero if the register is not known.
    values: [u64; RECORD_REGS],
}

impl Default for Regs {
    fn default() -> Self {
        Self::unknown(Machine::NATIVE)
    }
}

impl Regs {
    /// Makes a set of registers that are all unknown.
    pub fn unknown(machine: Machine) -> Self {
        Self {
            machine,
            known: 0,
            values: [0; RECORD_REGS],
        }
    }

    /// Makes a set of registers that are all known.
    #[inline]
    pub fn from_record(machine: Machine, values: &[u64; RECORD_REGS]) -> Self {
        let count = machine.regs().len();
        let unknown = RECORD_REGS.saturating_sub(count) as u32;
        let mut regs = Self {
            machine,
            known: u16::MAX.checked_shr(unknown).unwrap_or(0),
            values: *values,
        };
        regs.values
            .iter_mut()
            .skip(count)
            .for_each(|value| *value = 0);
        regs
    }

    /// Parses the registers that the kernel of `host` wrote for [`Machine::perf_mask`]. `abi` is the word before them. It is zero if there
    /// are no user registers.
    pub fn from_perf(host: Machine, abi: u64, words: &[u64]) -> Self {
        const ABI_NONE: u64 = 0;
        const ABI_32: u64 = 1;
        let machine = match (abi, host.compat()) {
            (ABI_32, Some(compat)) => compat,
            _ => host,
        };
        let mut regs = Self::unknown(machine);
        if abi == ABI_NONE {
            return regs;
        }
        let mask = host.perf_mask();
        for (place, reg) in machine.regs().iter().enumerate() {
            // The kernel writes the registers of the mask in ascending order of their bits.
            let bit = u32::from(host.perf_bit(machine, reg));
            let lower = !(u64::MAX << bit);
            let before = (mask & lower).count_ones();
            let word = words.get(before as usize);
            if let Some(word) = word {
                regs.set_at(place, Some(*word));
            }
        }
        regs
    }

    /// The machine of these registers.
    #[inline]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The register with this DWARF number.
    #[inline]
    pub fn get(&self, dwarf: u16) -> Option<u64> {
        self.at(self.machine.index(dwarf)?)
    }

    /// The register at this index of a record.
    #[inline]
    pub fn at(&self, index: usize) -> Option<u64> {
        let value = self.values.get(index)?;
        (self.known >> index & 1 == 1).then_some(*value)
    }

    /// Sets the register with this DWARF number, if a record has it.
    #[inline]
    pub fn set(&mut self, dwarf: u16, value: Option<u64>) {
        if let Some(index) = self.machine.index(dwarf) {
            self.set_at(index, value);
        }
    }

    /// Sets the register at this index of a record.
    #[inline]
    pub fn set_at(&mut self, index: usize, value: Option<u64>) {
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value.unwrap_or(0);
            self.known &= !(1 << index);
            self.known |= u16::from(value.is_some()) << index;
        }
    }

    /// Sets instruction, stack and frame pointer.
    #[inline]
    pub fn set_frame(&mut self, ip: u64, sp: u64, fp: u64) {
        self.set(self.machine.ip(), Some(ip));
        self.set(self.machine.sp(), Some(sp));
        self.set(self.machine.fp(), Some(fp));
    }

    /// The stack pointer.
    #[inline]
    pub fn sp(&self) -> Option<u64> {
        self.last_but(1).map(|address| address & ADDRESS_MASK)
    }

    /// The instruction pointer.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        self.last_but(0)
    }

    /// Returns a register by its distance from the last one. Samples need the last ones most often, and their index is known.
    #[inline]
    fn last_but(&self, behind: usize) -> Option<u64> {
        let count = self.machine.regs().len();
        self.at(count.checked_sub(behind)?.checked_sub(1)?)
    }

    /// The frame pointer.
    #[inline]
    pub fn fp(&self) -> Option<u64> {
        self.get(self.machine.fp())
            .map(|address| address & ADDRESS_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_and_instruction_pointer_are_the_last_two() {
        for machine in [
            Machine::X86_64,
            Machine::X86,
            Machine::Aarch64,
            Machine::Arm,
        ] {
            let count = machine.regs().len();
            assert!(count <= RECORD_REGS);
            assert_eq!(machine.index(machine.sp()), Some(count - 2));
            assert_eq!(machine.index(machine.ip()), Some(count - 1));
            assert!(machine.index(machine.fp()).is_some());
            assert!(machine.index(machine.return_address()).is_some());
            for (index, reg) in machine.regs().iter().enumerate() {
                assert_eq!(machine.index(reg.dwarf), Some(index));
            }
            assert_eq!(machine.index(99), None);
        }
    }

    #[test]
    fn a_32_bit_process_has_its_registers_where_its_kernel_puts_them() {
        let host = Machine::Aarch64;
        let bits: Vec<u64> = (0..64)
            .filter(|bit| host.perf_mask() >> bit & 1 == 1)
            .collect();
        let words: Vec<u64> = bits.iter().map(|bit| 0x100 + bit).collect();
        let own = Regs::from_perf(host, 2, &words);
        let compat = Regs::from_perf(host, 1, &words);
        assert_eq!((own.machine(), compat.machine()), (host, Machine::Arm));
        for reg in host.regs() {
            assert_eq!(own.get(reg.dwarf), Some(0x100 + u64::from(reg.perf)));
        }
        assert_eq!(compat.get(4), Some(0x104));
        assert_eq!(compat.get(11), Some(0x10b));
        assert_eq!(compat.get(14), Some(0x100 + 30));
        assert_eq!(compat.get(13), Some(0x100 + 31));
        assert_eq!(compat.get(15), Some(0x100 + 32));
        assert_eq!(Regs::from_perf(host, 0, &words), Regs::unknown(host));
        assert_eq!(Machine::X86_64.perf_mask(), 0xfa_01fb);
        let words: Vec<u64> = (0..64)
            .filter(|bit| Machine::X86_64.perf_mask() >> bit & 1 == 1)
            .map(|bit| 0x100 + bit)
            .collect();
        let compat = Regs::from_perf(Machine::X86_64, 1, &words);
        assert_eq!(compat.machine(), Machine::X86);
        let by_number = [2, 3, 4, 5, 6, 7, 8].map(|dwarf| compat.get(dwarf));
        let bits = [3, 1, 7, 6, 4, 5, 8];
        assert_eq!(by_number, bits.map(|bit| Some(0x100 + bit)));
    }

    #[test]
    fn a_tag_is_no_part_of_an_address() {
        let mut regs = Regs::unknown(Machine::Aarch64);
        regs.set_frame(0x1000, 0xb400_0000_7fff_0010, 0xff00_0000_7fff_0020);
        assert_eq!(regs.sp(), Some(0x7fff_0010));
        assert_eq!(regs.fp(), Some(0x7fff_0020));
    }
}
