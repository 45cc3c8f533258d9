//! Which registers differ from memory, at each block of a plan.

use varid_riscv::{Instruction, Operation, Register};

use crate::plan::{Leave, Plan, Version, VersionId, Way};

/// A set of the integer registers but `zero`: a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers(u32);

impl Registers {
    /// Those of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// A set of one, or none.
    pub fn of(register: Option<Register>) -> Self {
        let known = register.filter(|register| !register.is_float());
        let bit = known.map_or(0, |register| 1_u32.wrapping_shl(register.number() as u32));
        Self(bit & !1)
    }

    /// Their numbers.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (1..32)
            .filter(move |number| self.0.wrapping_shr(*number) & 1 != 0)
            .map(|number| number as usize)
    }
}

/// The register that translated code writes for an instruction.
pub fn written(instruction: &Instruction) -> Registers {
    match instruction.operation {
        Operation::Fence => Registers::default(),
        _ => Registers::of(instruction.writes()),
    }
}

/// All registers that a plan's blocks read or write.
pub fn used(plan: &Plan) -> Registers {
    let instructions = plan.versions.iter().flat_map(translated);
    let used = instructions.flat_map(|one| {
        let [first, second, _] = one.reads();
        [Registers::of(first), Registers::of(second), written(one)]
    });
    // Calls note the stack pointer.
    used.fold(Registers::of(Some(Register::SP)), Registers::with)
}

fn translated(version: &Version) -> &[Instruction] {
    let instructions = &version.block.instructions;
    instructions.get(..version.translated()).unwrap_or_default()
}

/// For each block the registers that were perhaps written since the code was entered.
pub fn changed(plan: &Plan) -> Vec<Registers> {
    let count = plan.versions.len();
    let mut changed = vec![Registers::default(); count];
    let mut work: Vec<VersionId> = (0..count).rev().map(VersionId).collect();
    let mut is_waiting = vec![true; count];
    while let Some(id) = work.pop() {
        let (Some(version), Some(before)) = (plan.versions.get(id.0), changed.get(id.0)) else {
            continue;
        };
        if let Some(waits) = is_waiting.get_mut(id.0) {
            *waits = false;
        }
        let instructions = translated(version).iter().map(written);
        let behind = instructions.fold(*before, Registers::with);
        for next in successors(plan, version) {
            let (Some(known), Some(waits)) = (changed.get_mut(next.0), is_waiting.get_mut(next.0))
            else {
                continue;
            };
            let all = known.with(behind);
            if *known != all {
                *known = all;
                if !*waits {
                    *waits = true;
                    work.push(next);
                }
            }
        }
    }
    changed
}

fn successors(plan: &Plan, version: &Version) -> Vec<VersionId> {
    let ways: &[Way] = match &version.leave {
        Leave::Always(way) => &[*way],
        Leave::Branch { next, taken } => &[*next, *taken],
        Leave::Switch { .. } => {
            return plan.targets.iter().map(|(_, version)| *version).collect();
        }
        _ => &[],
    };
    let blocks = ways.iter().filter_map(|way| match way {
        Way::Block(version, _) => Some(*version),
        _ => None,
    });
    blocks.collect()
}
