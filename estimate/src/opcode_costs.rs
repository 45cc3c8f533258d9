//! The parts of an estimate: what the executions of each opcode cost.

use std::collections::BTreeMap;

use crate::{estimate::Estimate, price::Price, program::Program};

/// What the executions of an opcode cost, in all contexts that are priced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpcodeCost {
    /// The opcode's name, without `wide`.
    pub opcode: &'static str,
    /// Its executions.
    pub executions: u64,
    /// Their cost, with the accesses of the method cache that they make.
    pub cost: Price,
}

/// Returns the parts of an estimate, the most expensive first. Their sum is the total.
#[must_use]
pub fn opcode_costs(program: &Program, found: &Estimate) -> Vec<OpcodeCost> {
    let mut parts: BTreeMap<&'static str, (u64, Price)> = BTreeMap::new();
    let nodes = program.nodes.iter().zip(&found.nodes);
    for (node, places) in nodes.filter(|(node, _)| node.is_priced) {
        let Some(code) = program.code(node) else {
            continue;
        };
        for (index, count) in &node.executions {
            if let Some(instruction) = code.instructions.get(*index) {
                let part = parts.entry(instruction.opcode.name()).or_default();
                part.0 = part.0.saturating_add(*count);
            }
        }
        for place in places {
            let instruction = code
                .at(place.place)
                .and_then(|at| code.instructions.get(at));
            if let Some(instruction) = instruction {
                let part = parts.entry(instruction.opcode.name()).or_default();
                part.1 = part.1.plus(place.cost);
            }
        }
    }
    let parts = parts
        .into_iter()
        .map(|(opcode, (executions, cost))| OpcodeCost {
            opcode,
            executions,
            cost,
        });
    let mut parts: Vec<_> = parts.collect();
    parts.sort_by(|a, b| b.cost.value.total_cmp(&a.cost.value));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        code::{CodeInstruction, MethodCode, Opcode, Operand},
        estimate::PlaceCost,
        program::{MethodBody, ProgramMethod, ProgramNode},
    };
    use varid_model::CodeUnits;

    #[test]
    fn parts_have_the_sum_of_the_estimate_and_those_of_contexts_that_are_not_priced_are_none() {
        // iconst_1, iadd, iadd.
        let instructions = [(0, 4), (1, 0x60), (2, 0x60)];
        let instructions = instructions.map(|(place, opcode)| CodeInstruction {
            place: CodeUnits::new(place),
            opcode: Opcode::Java(opcode),
            operand: Operand::None,
            leads: false,
            falls_through: true,
            target: None,
            ways: 1,
        });
        let code = MethodCode {
            instructions: instructions.to_vec(),
            length: 3,
            is_synchronized: false,
        };
        let node = |is_priced| ProgramNode {
            method: 0,
            parent: None,
            site: None,
            calls: 7,
            executions: vec![(0, 7), (1, 7), (2, 5)],
            is_leaf: false,
            is_run: true,
            is_priced,
        };
        let program = Program {
            methods: vec![ProgramMethod {
                name: None,
                body: MethodBody::Code(code),
            }],
            nodes: vec![node(true), node(false)],
            notes: Vec::new(),
        };
        let costs = [(0, 7.0), (1, 20.0), (2, 10.0)];
        let costs = costs.map(|(place, cost)| PlaceCost {
            place: CodeUnits::new(place),
            cost: Price::exact(cost),
        });
        let found = Estimate {
            nodes: vec![costs.to_vec(), Vec::new()],
            ..Estimate::default()
        };
        let part = |opcode, executions, cost| OpcodeCost {
            opcode,
            executions,
            cost: Price::exact(cost),
        };
        let expected = [part("iadd", 12, 30.0), part("iconst_1", 7, 7.0)];
        assert_eq!(opcode_costs(&program, &found), expected);
    }
}
