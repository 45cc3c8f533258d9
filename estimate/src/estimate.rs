//! The sums: what each context, instruction and the whole program costs.

mod accesses;

use std::collections::{BTreeMap, HashMap};

use varid_model::CodeUnits;
use varid_recording::NodeId;

use crate::{
    code::{MethodCode, Operand},
    cost_model::{Cost, PricedMethod, Transfer},
    method_cache::Geometry,
    price::Price,
    program::{MethodBody, Program, ProgramNode},
    replay::CacheCharges,
    target::Target,
};

/// How the method cache is taken into account.
#[derive(Debug, Clone, Copy)]
pub enum CacheAccesses<'c> {
    /// All code is always in it.
    Hit,
    /// No code is ever in it.
    Miss,
    /// The order is not known: `low` has all hits, `high` all misses.
    Bounds,
    /// As [`Replay`](crate::Replay) has simulated it.
    Charged(&'c CacheCharges),
}

/// What a program costs on a target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// All of it. The value has no meaning where the order of calls is not known.
    pub total: Price,
    /// Executions of instructions.
    pub instructions: u64,
    /// Calls of methods.
    pub calls: u64,
    /// What costs nothing in this estimate because its cost is not known.
    pub uncosted: Vec<Uncosted>,
    /// By [`NodeId`] and place.
    pub nodes: Vec<Vec<PlaceCost>>,
    /// What is missing, and what the target does not do.
    pub notes: Vec<String>,
}

/// What has no known cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncosted {
    /// The instruction, such as `fadd`, or the method: `java.lang.Math.min`.
    pub name: String,
    /// Whether it is a method whose instructions are not known, such as a native one.
    pub is_method: bool,
    /// Its executions, or calls.
    pub executions: u64,
    /// Their part of all executions of instructions, from 0 to 1.
    pub share: f64,
}

/// What the executions of an instruction in a context cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceCost {
    /// The instruction.
    pub place: CodeUnits,
    /// The cost.
    pub cost: Price,
}

/// A method cache and what a program costs with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheSummary {
    /// The cache.
    pub geometry: Geometry,
    /// The program's cost.
    pub total: Price,
    /// Accesses that found their code.
    pub hits: u64,
    /// Accesses that loaded it.
    pub misses: u64,
}

/// Whole costs, by [`NodeId`] and the place of the instruction, as contexts' counts have them.
pub type WholeCosts = Vec<Vec<(Option<u32>, u64)>>;

/// 2^64.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

impl Estimate {
    /// Returns a part of the costs as whole numbers. Their sum is the total, rounded: what rounding leaves of a
    /// cost is carried to the next one. None: the total has no bound, or is not below 2^64.
    #[must_use]
    pub fn whole(&self, part: fn(Price) -> f64) -> Option<WholeCosts> {
        if part(self.total) >= TOO_LARGE {
            return None;
        }
        let (mut exact, mut written) = (0.0, 0_u64);
        let mut whole = Vec::with_capacity(self.nodes.len());
        for places in &self.nodes {
            let costs = places.iter().map(|place| {
                exact += part(place.cost);
                let value = (exact.round() as u64).saturating_sub(written);
                written = written.saturating_add(value);
                (Some(place.place.get()), value)
            });
            whole.push(costs.collect());
        }
        Some(whole)
    }
}

/// Prices what a program has executed.
#[must_use]
pub fn estimate(
    program: &Program,
    target: &Target,
    priced: &[Option<PricedMethod>],
    accesses: CacheAccesses<'_>,
) -> Estimate {
    let mut sums = Sums {
        program,
        target,
        priced,
        nodes: vec![BTreeMap::new(); program.nodes.len()],
        called: called(program),
        uncosted: BTreeMap::new(),
        instructions: 0,
        calls: 0,
    };
    let ids = (0..=u32::MAX).map(NodeId);
    for (id, node) in ids.zip(&program.nodes).filter(|(_, node)| node.is_priced) {
        sums.add_node(id, node);
    }
    let mut unordered = 0;
    if let Some(cache) = &target.method_cache {
        sums.add_cache(cache, accesses);
        if let CacheAccesses::Charged(charges) = accesses {
            unordered = sums.add_unordered(&cache.load, charges);
        }
    }
    let mut found = sums.finish();
    if unordered > 0 {
        found.notes.push(format!(
            "{unordered} instructions that access the method cache are not in the order of calls: the code is taken to be there, but not in the upper bound"
        ));
    }
    found
}

struct Sums<'p> {
    program: &'p Program,
    target: &'p Target,
    priced: &'p [Option<PricedMethod>],
    /// By node: costs by the index of the instruction.
    nodes: Vec<BTreeMap<usize, Price>>,
    /// The calls of contexts, by the context and the index of the instruction that makes them.
    called: HashMap<(NodeId, usize), u64>,
    uncosted: BTreeMap<(bool, String), u64>,
    instructions: u64,
    calls: u64,
}

impl<'p> Sums<'p> {
    fn method(&self, node: &ProgramNode) -> Option<(&'p MethodCode, &'p PricedMethod)> {
        let priced = self.priced.get(node.method)?.as_ref()?;
        Some((self.program.code(node)?, priced))
    }

    fn add(&mut self, id: NodeId, index: usize, cost: Price) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            let sum = node.entry(index).or_default();
            *sum = sum.plus(cost);
        }
    }

    fn add_uncosted(&mut self, is_method: bool, name: String, count: u64) {
        if count > 0 {
            let sum = self.uncosted.entry((is_method, name)).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn add_node(&mut self, id: NodeId, node: &ProgramNode) {
        self.calls = self.calls.saturating_add(node.calls);
        let Some((code, priced)) = self.method(node).filter(|_| !node.executions.is_empty()) else {
            let method = self.program.methods.get(node.method);
            let name = method.and_then(|method| method.name.as_ref());
            let name = name.map_or("?".to_owned(), |name| {
                format!("{}.{}", name.class, name.name)
            });
            return self.add_uncosted(true, name, node.calls);
        };
        for (index, count) in &node.executions {
            self.instructions = self.instructions.saturating_add(*count);
            let Some(instruction) = priced.instructions.get(*index) else {
                continue;
            };
            let operand = code.instructions.get(*index).map(|one| &one.operand);
            if let Some(Operand::Method(name)) = operand {
                let called = self.called.get(&(id, *index)).copied().unwrap_or_default();
                self.add_uncosted(true, name.clone(), count.saturating_sub(called));
            }
            if let Cost::Branch { taken, not } = instruction.cost {
                let cost = branch(code, node, *index, *count, taken, not);
                self.add(id, *index, cost);
            }
            self.add_cost(id, *index, &instruction.cost, *count);
            if let Transfer::Return(_) = instruction.transfer {
                self.add_cost(id, *index, &priced.exit.cost, *count);
            }
        }
        self.add_cost(id, 0, &priced.entry.cost, node.calls);
    }

    /// Adds a cost that is the same for each execution.
    fn add_cost(&mut self, id: NodeId, index: usize, cost: &Cost, count: u64) {
        match cost {
            Cost::Known(price) if *price != Price::ZERO => self.add(id, index, price.times(count)),
            Cost::Unknown(key) => self.add_uncosted(false, key.clone(), count),
            Cost::Known(_) | Cost::Branch { .. } => {}
        }
    }

    fn finish(self) -> Estimate {
        let all = self.instructions.max(1) as f64;
        let uncosted = self
            .uncosted
            .into_iter()
            .map(|((is_method, name), executions)| Uncosted {
                name,
                is_method,
                executions,
                share: executions as f64 / all,
            });
        let mut uncosted: Vec<_> = uncosted.collect();
        uncosted.sort_by_key(|one| std::cmp::Reverse(one.executions));
        let nodes = self.nodes.into_iter().zip(&self.program.nodes);
        let nodes = nodes.map(|(costs, node)| {
            let code = self.program.code(node);
            let places = costs.into_iter().filter_map(|(index, cost)| {
                let place = code?.instructions.get(index)?.place;
                Some(PlaceCost { place, cost })
            });
            places.collect::<Vec<_>>()
        });
        let nodes: Vec<_> = nodes.collect();
        let costs = nodes.iter().flatten();
        Estimate {
            total: costs.fold(Price::ZERO, |sum, place| sum.plus(place.cost)),
            instructions: self.instructions,
            calls: self.calls,
            uncosted,
            nodes,
            notes: notes(self.program, self.target, self.priced),
        }
    }
}

/// Returns the calls of contexts, by the context and the index of the instruction that makes them.
fn called(program: &Program) -> HashMap<(NodeId, usize), u64> {
    let mut called = HashMap::new();
    for node in &program.nodes {
        let caller = node.parent.and_then(|parent| program.node(parent));
        let code = caller.and_then(|caller| program.code(caller));
        let site = node.site.and_then(|site| code?.at(site));
        if let Some(place) = node.parent.zip(site) {
            let sum: &mut u64 = called.entry(place).or_default();
            *sum = sum.saturating_add(node.calls);
        }
    }
    called
}

/// Returns the cost of a branch that has another one if it is taken. How often it was follows from the counts, unless several ways lead to
/// both the instruction behind it and its target; then the cost is between those of both outcomes.
fn branch(
    code: &MethodCode,
    node: &ProgramNode,
    index: usize,
    count: u64,
    taken: Price,
    not: Price,
) -> Price {
    let executions = |index: usize| {
        let found = node
            .executions
            .binary_search_by_key(&index, |(index, _)| *index);
        let found = found.ok().and_then(|found| node.executions.get(found));
        found.map_or(0, |(_, count)| *count)
    };
    let is_only_way = |index: &usize| code.instructions.get(*index).is_some_and(|to| to.ways == 1);
    let behind = Some(index.saturating_add(1)).filter(is_only_way);
    let target = code
        .instructions
        .get(index)
        .and_then(|branch| branch.target);
    let times_not = behind.map(executions).or_else(|| {
        let target = target.filter(is_only_way)?;
        Some(count.saturating_sub(executions(target)))
    });
    match times_not {
        Some(times) => {
            let times = times.min(count);
            not.times(times)
                .plus(taken.times(count.saturating_sub(times)))
        }
        None => taken.either(not).times(count),
    }
}

fn notes(program: &Program, target: &Target, priced: &[Option<PricedMethod>]) -> Vec<String> {
    let mut notes = program.notes.clone();
    let vm = program.nodes.iter().filter(|node| !node.is_run);
    let vm = vm
        .flat_map(|node| &node.executions)
        .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    if vm > 0 {
        notes.push(format!(
            "{vm} bytecodes are not priced: the VM ran them to load, link and initialise classes, which {} does before the program starts",
            target.name
        ));
    }
    let mut unknown: HashMap<usize, &str> = HashMap::new();
    let mut too_long = std::collections::HashSet::new();
    for node in program.nodes.iter().filter(|node| node.is_priced) {
        if let Some(MethodBody::Unknown(why)) =
            program.methods.get(node.method).map(|method| &method.body)
        {
            unknown.insert(node.method, why);
        }
        let words = priced
            .get(node.method)
            .and_then(Option::as_ref)
            .map(|priced| priced.words);
        if let (Some(words), Some(cache)) = (words, &target.method_cache)
            && words >= cache.geometry.words(cache.geometry.size)
        {
            too_long.insert(node.method);
        }
    }
    if let Some(why) = unknown.values().min() {
        notes.push(format!(
            "the code of {} methods is not known, so they cost nothing: {why}",
            unknown.len()
        ));
    }
    if !too_long.is_empty() {
        let count = too_long.len();
        notes.push(format!(
            "{count} methods are longer than the method cache: each access loads them"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{CodeInstruction, Opcode, Operand};

    /// A condition at 0 that leads to 2, with so many ways to the instruction behind it and to its target.
    fn cost(ways: [u32; 2], executions: [u64; 3]) -> Price {
        let instruction = |place: u32, ways, target| CodeInstruction {
            place: CodeUnits::new(place),
            opcode: Opcode::Java(0x99),
            operand: Operand::None,
            leads: true,
            falls_through: true,
            target,
            ways,
        };
        let code = MethodCode {
            instructions: vec![
                instruction(0, 1, Some(2)),
                instruction(1, ways[0], None),
                instruction(2, ways[1], None),
            ],
            length: 3,
            is_synchronized: false,
        };
        let node = ProgramNode {
            method: 0,
            parent: None,
            site: None,
            calls: 1,
            executions: executions.iter().copied().enumerate().collect(),
            is_leaf: false,
            is_run: true,
            is_priced: true,
        };
        let (taken, not) = (Price::exact(10.0), Price::exact(1.0));
        branch(&code, &node, 0, executions[0], taken, not)
    }

    #[test]
    fn whole_costs_have_the_sum_of_the_costs() {
        let cost = |high| PlaceCost {
            place: CodeUnits::new(7),
            cost: Price {
                low: 0.3,
                value: 0.3,
                high,
            },
        };
        let costs = [0.3, 0.3, 0.3, 0.3, f64::INFINITY].map(cost);
        let found = Estimate {
            total: costs
                .iter()
                .fold(Price::ZERO, |sum, one| sum.plus(one.cost)),
            nodes: costs.iter().map(|one| vec![*one]).collect(),
            ..Estimate::default()
        };
        let whole = found.whole(|price| price.value).unwrap();
        let expected = [0, 1, 0, 0, 1].map(|value| vec![(Some(7), value)]);
        assert_eq!(whole, expected);
        assert_eq!(found.whole(|price| price.high), None);
    }

    #[test]
    fn how_often_a_branch_is_taken_follows_from_counts_or_is_between() {
        // 7 of 10 go on behind it.
        assert_eq!(cost([1, 2], [10, 7, 99]), Price::exact(37.0));
        assert_eq!(cost([2, 1], [10, 99, 3]), Price::exact(37.0));
        let between = cost([2, 2], [10, 99, 99]);
        assert_eq!(
            (between.low, between.value, between.high),
            (10.0, 55.0, 100.0)
        );
    }
}
