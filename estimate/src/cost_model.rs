//! What each instruction of a method costs on a target, and where it accesses the method cache.

use crate::{
    code::{CodeInstruction, MethodCode, Operand},
    method_cache::Words,
    price::Price,
    target::{IncrementCode, ResultKind, RuntimeMethod, Synchronized, Target},
};

/// Prices instructions by a target's tables.
#[derive(Debug, Clone, Copy)]
pub struct CostModel<'t> {
    target: &'t Target,
}

/// A method's code on the target.
#[derive(Debug, Clone, PartialEq)]
pub struct PricedMethod {
    /// By the index of the instruction.
    pub instructions: Vec<PricedInstruction>,
    /// What each call costs beside its instructions.
    pub entry: Price,
    /// The length of its code there, in words of the method cache.
    pub words: Words,
}

/// An instruction with its cost, if all code is in the method cache.
#[derive(Debug, Clone, PartialEq)]
pub struct PricedInstruction {
    /// The cost.
    pub cost: Cost,
    /// Where it accesses the method cache.
    pub transfer: Transfer,
}

/// The cost of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Cost {
    /// This.
    Known(Price),
    /// That of a branch, which depends on whether it is taken.
    Branch {
        /// It is.
        taken: Price,
        /// It is not.
        not: Price,
    },
    /// The target has none for this key.
    Unknown(String),
}

/// How an instruction leads to other code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transfer {
    /// It does not.
    None,
    /// It calls a method.
    Invoke,
    /// It returns.
    Return(ResultKind),
    /// It calls the method of the target's runtime with this key.
    Runtime(String),
}

impl<'t> CostModel<'t> {
    /// Makes the model of a target.
    #[must_use]
    pub const fn new(target: &'t Target) -> Self {
        Self { target }
    }

    /// Returns the method of the runtime with this key.
    #[must_use]
    pub fn runtime(&self, key: &str) -> Option<&'t RuntimeMethod> {
        self.target.runtime.get(key)
    }

    /// Prices a method.
    #[must_use]
    pub fn price(&self, code: &MethodCode) -> PricedMethod {
        let locks = code.is_synchronized
            && self.target.build.synchronized == Synchronized::MonitorInstructions;
        let lock = |instruction| match locks {
            true => self.fixed("aload_0").plus(self.fixed(instruction)),
            false => Price::ZERO,
        };
        let (entry, exit) = (lock("monitorenter"), lock("monitorexit"));
        let mut length = code.length;
        // Of `aload_0` and `monitorenter` or `monitorexit`.
        let lock_length = if locks { 2 } else { 0 };
        length = length.saturating_add(lock_length);
        let instructions = code.instructions.iter().map(|instruction| {
            let mut priced = self.instruction(instruction);
            if let Operand::Increment { .. } = instruction.operand
                && let Some((cost, change)) = self.increment(instruction)
            {
                priced.cost = cost;
                length = length.saturating_add_signed(change);
            }
            if let Transfer::Return(_) = priced.transfer {
                length = length.saturating_add(lock_length);
                if let Cost::Known(price) = &mut priced.cost {
                    *price = price.plus(exit);
                }
            }
            priced
        });
        let instructions = instructions.collect();
        let cache = self.target.method_cache.as_ref();
        PricedMethod {
            instructions,
            entry,
            words: cache.map_or(Words(0), |cache| cache.geometry.words(length)),
        }
    }

    /// Returns the cost of an instruction of the build's own code. An unknown one is in the table, too, if the method has it.
    fn fixed(&self, key: &str) -> Price {
        self.target.costs.get(key).copied().unwrap_or(Price::ZERO)
    }

    fn instruction(&self, instruction: &CodeInstruction) -> PricedInstruction {
        let keys = keys(instruction);
        let runtime = keys
            .iter()
            .find(|key| self.target.runtime.contains_key(*key));
        let known = keys.iter().find(|key| self.target.costs.contains_key(*key));
        let rank = |key: Option<&String>| keys.iter().position(|one| Some(one) == key);
        // The most specific form decides.
        let is_runtime = match (rank(runtime), rank(known)) {
            (Some(runtime), Some(known)) => runtime < known,
            (runtime, _) => runtime.is_some(),
        };
        if is_runtime
            && let Some(key) = runtime
            && let Some(method) = self.runtime(key)
        {
            return PricedInstruction {
                cost: Cost::Known(method.price),
                transfer: Transfer::Runtime(key.clone()),
            };
        }
        let transfer = match ResultKind::of_opcode(instruction.opcode) {
            Some(result) => Transfer::Return(result),
            None if instruction.is_invoke() => Transfer::Invoke,
            None => Transfer::None,
        };
        let cost = match known {
            Some(key) => Cost::Known(self.fixed(key)),
            None => self
                .branch(instruction)
                .unwrap_or_else(|| Cost::Unknown(keys.first().cloned().unwrap_or_default())),
        };
        PricedInstruction { cost, transfer }
    }

    /// Returns the cost of a branch that has one for each outcome.
    fn branch(&self, instruction: &CodeInstruction) -> Option<Cost> {
        let name = instruction.name();
        let cost = |form| self.target.costs.get(&format!("{name}{form}")).copied();
        let (taken, not) = (cost("_taken")?, cost("_not")?);
        instruction
            .is_condition()
            .then_some(Cost::Branch { taken, not })
    }

    /// Returns the cost of `iinc` and by how many bytes its code is longer, if the target's build replaces it.
    fn increment(&self, instruction: &CodeInstruction) -> Option<(Cost, i32)> {
        let Operand::Increment { local, by, wide } = instruction.operand else {
            return None;
        };
        if self.target.build.increment == IncrementCode::Keep {
            return None;
        }
        let (form, local_length) = match local {
            0..=3 => (format!("_{local}"), 1),
            _ => (String::new(), 2),
        };
        let (constant, constant_length) = match by {
            -1 => ("iconst_m1".to_owned(), 1),
            0..=5 => (format!("iconst_{by}"), 1),
            -128..=127 => ("bipush".to_owned(), 2),
            _ => ("sipush".to_owned(), 3),
        };
        let parts = [
            format!("iload{form}"),
            constant,
            "iadd".to_owned(),
            format!("istore{form}"),
        ];
        let mut sum = Price::ZERO;
        for part in parts {
            match self.target.costs.get(&part) {
                Some(price) => sum = sum.plus(*price),
                None => return Some((Cost::Unknown(part), 0)),
            }
        }
        let (before, after) = (
            if wide { 6 } else { 3 },
            local_length * 2 + constant_length + 1,
        );
        Some((Cost::Known(sum), after - before))
    }
}

/// Returns the keys of an instruction, the most specific first.
fn keys(instruction: &CodeInstruction) -> Vec<String> {
    let name = instruction.name();
    match instruction.operand {
        Operand::Wide | Operand::Increment { wide: true, .. } => vec![format!("{name}_wide")],
        Operand::Field(b'L' | b'[') => vec![format!("{name}_ref"), name.to_owned()],
        Operand::Field(b'J' | b'D') => vec![format!("{name}_long"), name.to_owned()],
        _ => vec![name.to_owned()],
    }
}
