//! What each instruction of a method costs on a target, and where it accesses the method cache.

use crate::{
    code::{CodeInstruction, MethodCode, Opcode, Operand},
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
    /// What the build adds in front of its instructions.
    pub entry: PricedInstruction,
    /// What the build adds before each return.
    pub exit: PricedInstruction,
    /// The length of its code there, in words of the method cache.
    pub words: Words,
}

/// An instruction, or what the build makes of it, with its cost, if all code is in the method cache.
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
    /// It calls the methods of the target's runtime with these keys, one after the other.
    Runtime(Vec<String>),
}

impl Transfer {
    /// Returns the keys of the methods of the target's runtime that it calls.
    #[must_use]
    pub fn runtime_keys(&self) -> &[String] {
        match self {
            Self::Runtime(keys) => keys,
            Self::None | Self::Invoke | Self::Return(_) => &[],
        }
    }
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
            true => self.sequence(&["aload_0", instruction]),
            false => self.sequence(&[]),
        };
        let mut length = code.length;
        // Of `aload_0` and `monitorenter` or `monitorexit`.
        let lock_length = if locks { 2 } else { 0 };
        length = length.saturating_add(lock_length);
        let instructions = code.instructions.iter().map(|instruction| {
            let mut priced = self.instruction(instruction);
            if let Operand::Increment { .. } = instruction.operand
                && let Some((sequence, change)) = self.increment(instruction)
            {
                priced = sequence;
                length = length.saturating_add_signed(change);
            }
            if let Transfer::Return(_) = priced.transfer {
                length = length.saturating_add(lock_length);
            }
            priced
        });
        let instructions = instructions.collect();
        let cache = self.target.method_cache.as_ref();
        PricedMethod {
            instructions,
            entry: lock("monitorenter"),
            exit: lock("monitorexit"),
            words: cache.map_or(Words(0), |cache| cache.geometry.words(length)),
        }
    }

    /// Prices instructions of the build's own code. If the target does not have the cost of one, that of all is unknown.
    fn sequence(&self, keys: &[&str]) -> PricedInstruction {
        let (mut sum, mut called) = (Price::ZERO, Vec::new());
        for key in keys {
            match (self.target.costs.get(*key), self.runtime(key)) {
                (Some(price), _) => sum = sum.plus(*price),
                (None, Some(method)) => {
                    sum = sum.plus(method.price);
                    called.push((*key).to_owned());
                }
                (None, None) => {
                    return PricedInstruction {
                        cost: Cost::Unknown((*key).to_owned()),
                        transfer: Transfer::None,
                    };
                }
            }
        }
        PricedInstruction {
            cost: Cost::Known(sum),
            transfer: Transfer::Runtime(called),
        }
    }

    fn instruction(&self, instruction: &CodeInstruction) -> PricedInstruction {
        let keys = keys(instruction);
        let runtime = keys
            .iter()
            .find(|key| self.target.runtime.contains_key(*key));
        let known = keys.iter().find(|key| self.target.costs.contains_key(*key));
        let price = known.and_then(|key| self.target.costs.get(key)).copied();
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
                transfer: Transfer::Runtime(vec![key.clone()]),
            };
        }
        let result = match instruction.opcode {
            Opcode::Java(opcode) => ResultKind::of_opcode(opcode),
            // No target of dex code has a method cache, which tells returns apart.
            Opcode::Dex(_) => None,
        };
        let transfer = match result {
            Some(result) => Transfer::Return(result),
            None if instruction.opcode.is_invoke() => Transfer::Invoke,
            None => Transfer::None,
        };
        let cost = match (self.branch(instruction), price) {
            (Some(branch), _) => branch,
            (None, Some(price)) => Cost::Known(price),
            (None, None) => Cost::Unknown(keys.first().cloned().unwrap_or_default()),
        };
        PricedInstruction { cost, transfer }
    }

    /// Returns the cost of a branch that has one for an outcome. That of the branch stands for an outcome that has none; without it the
    /// cost is unknown.
    fn branch(&self, instruction: &CodeInstruction) -> Option<Cost> {
        if !instruction.opcode.is_condition() {
            return None;
        }
        let name = instruction.opcode.name();
        let cost = |form| self.target.costs.get(&format!("{name}{form}")).copied();
        let (taken, not) = (cost("_taken"), cost("_not"));
        taken.or(not)?;
        let other = cost("");
        Some(match (taken.or(other), not.or(other)) {
            (Some(taken), Some(not)) => Cost::Branch { taken, not },
            (None, _) => Cost::Unknown(format!("{name}_taken")),
            (_, None) => Cost::Unknown(format!("{name}_not")),
        })
    }

    /// Returns what the build makes of `iinc`, and by how many bytes its code is longer, if the target's build replaces it.
    fn increment(&self, instruction: &CodeInstruction) -> Option<(PricedInstruction, i32)> {
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
        let load = format!("iload{form}");
        let store = format!("istore{form}");
        let sequence = self.sequence(&[&load, &constant, "iadd", &store]);
        let before: i32 = if wide { 6 } else { 3 };
        let after = [local_length, constant_length, 1, local_length]
            .iter()
            .sum::<i32>();
        Some((sequence, after.saturating_sub(before)))
    }
}

/// Returns the keys of an instruction, the most specific first.
fn keys(instruction: &CodeInstruction) -> Vec<String> {
    let name = instruction.opcode.name();
    match instruction.operand {
        Operand::Wide | Operand::Increment { wide: true, .. } => vec![format!("{name}_wide")],
        Operand::Field(b'L' | b'[') => vec![format!("{name}_ref"), name.to_owned()],
        Operand::Field(b'J' | b'D') => vec![format!("{name}_long"), name.to_owned()],
        _ => vec![name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::CodeUnits;

    fn code(instructions: &[(u8, Operand)], length: u32, is_synchronized: bool) -> MethodCode {
        let places = 0_u32..;
        let instructions = instructions.iter().zip(places);
        let instructions = instructions.map(|((opcode, operand), place)| CodeInstruction {
            place: CodeUnits::new(place),
            opcode: Opcode::Java(*opcode),
            operand: operand.clone(),
            leads: false,
            falls_through: true,
            target: None,
            ways: 1,
        });
        MethodCode {
            instructions: instructions.collect(),
            length,
            is_synchronized,
        }
    }

    fn increment(local: u16, by: i16, wide: bool) -> (u8, Operand) {
        (0x84, Operand::Increment { local, by, wide })
    }

    /// Returns the costs of instructions, and the words of their method.
    fn priced(target: &Target, code: &MethodCode) -> (Vec<Cost>, u32) {
        let priced = CostModel::new(target).price(code);
        let costs = priced.instructions.into_iter().map(|one| one.cost);
        (costs.collect(), priced.words.0)
    }

    fn known(cycles: f64) -> Cost {
        Cost::Known(Price::exact(cycles))
    }

    #[test]
    fn an_increment_costs_what_the_build_makes_of_it() {
        let mut target = Target::named("jop-2011", &[]).unwrap();
        let increments = [
            increment(1, 1, false),
            increment(7, -100, false),
            increment(3, 1000, true),
        ];
        // iload_1 iconst_1 iadd istore_1; iload bipush iadd istore; iload_3 sipush iadd istore_3: 4, 7 and 6 bytes for 3, 3 and 6.
        let code = code(&increments, 12, false);
        let expected = [4.0, 2.0 + 2.0 + 1.0 + 2.0, 1.0 + 3.0 + 1.0 + 1.0].map(known);
        assert_eq!(priced(&target, &code), (expected.to_vec(), 5));
        target.build.increment = IncrementCode::Keep;
        let unknown = Cost::Unknown("iinc_wide".to_owned());
        let expected = vec![known(8.0), known(8.0), unknown];
        assert_eq!(priced(&target, &code), (expected, 3));
    }

    #[test]
    fn a_synchronized_method_has_the_instructions_of_its_monitor() {
        let mut target = Target::named("jop-2011", &[]).unwrap();
        let code = code(&[(0xb1, Operand::None)], 1, true);
        // return; two bytes at the entry, and two before it.
        assert_eq!(priced(&target, &code), (vec![known(21.0)], 2));
        let locks = |target: &Target| {
            let priced = CostModel::new(target).price(&code);
            [priced.entry, priced.exit]
        };
        let of = |cost, called: &[&str]| PricedInstruction {
            cost,
            transfer: Transfer::Runtime(called.iter().map(|&key| key.to_owned()).collect()),
        };
        let expected = [of(known(1.0 + 19.0), &[]), of(known(1.0 + 20.0), &[])];
        assert_eq!(locks(&target), expected);
        let method = target.runtime["idiv"].clone();
        for key in ["monitorenter", "monitorexit"] {
            target.costs.remove(key);
        }
        target.runtime.insert("monitorenter".to_owned(), method);
        let [entry, exit] = locks(&target);
        assert_eq!(entry.transfer.runtime_keys(), ["monitorenter"]);
        assert_eq!(exit.cost, Cost::Unknown("monitorexit".to_owned()));
    }

    #[test]
    fn an_outcome_of_a_branch_has_precedence() {
        let mut target = Target::named("jop-2011", &[]).unwrap();
        let code = code(&[(0x99, Operand::None)], 3, false);
        assert_eq!(priced(&target, &code).0, [known(4.0)]);
        let mut set = |key: &str, cycles| {
            target.costs.insert(key.to_owned(), Price::exact(cycles));
            priced(&target, &code).0
        };
        let branch = |taken, not| Cost::Branch {
            taken: Price::exact(taken),
            not: Price::exact(not),
        };
        assert_eq!(set("ifeq_taken", 9.0), [branch(9.0, 4.0)]);
        assert_eq!(set("ifeq_not", 1.0), [branch(9.0, 1.0)]);
        target.costs.retain(|key, _| key == "ifeq_taken");
        let unknown = Cost::Unknown("ifeq_not".to_owned());
        assert_eq!(priced(&target, &code).0, [unknown]);
    }

    #[test]
    fn the_most_specific_form_decides() {
        let target = Target::named("jop-2011", &[]).unwrap();
        let fields = [b'I', b'J', b'L', b'['].map(|kind| (0xb5, Operand::Field(kind)));
        let code = code(&fields, 12, false);
        let expected = [12.0, 32.0, 200.0, 200.0].map(known);
        assert_eq!(priced(&target, &code).0, expected);
        let transfer = &CostModel::new(&target).price(&code).instructions[2].transfer;
        assert_eq!(transfer.runtime_keys(), ["putfield_ref"]);
    }
}
