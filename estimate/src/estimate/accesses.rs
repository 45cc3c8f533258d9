//! What the accesses of the method cache cost.

use varid_recording::NodeId;

use super::{CacheAccesses, Sums};
use crate::{
    cost_model::{CostModel, PricedInstruction, Transfer},
    method_cache::Words,
    price::Price,
    program::ProgramNode,
    replay::{CacheCharges, runtime_accesses},
    target::{LoadTimes, MethodCacheParameters, ResultKind},
};

impl Sums<'_> {
    pub(super) fn add_cache(&mut self, cache: &MethodCacheParameters, accesses: CacheAccesses<'_>) {
        match accesses {
            CacheAccesses::Charged(charges) => self.add_charges(charges),
            CacheAccesses::Hit => self.add_assumed(&cache.load, |hit, _| Price::exact(hit)),
            CacheAccesses::Miss => self.add_assumed(&cache.load, |_, miss| Price::exact(miss)),
            CacheAccesses::Bounds => self.add_assumed(&cache.load, |hit, miss| {
                Price::exact(hit).either(Price::exact(miss))
            }),
        }
    }

    fn add_charges(&mut self, charges: &CacheCharges) {
        for ((id, index), cost) in &charges.places {
            match index {
                Some(index) => self.add(*id, *index, Price::exact(*cost)),
                None => self.add_to_returns(*id, Price::exact(*cost)),
            }
        }
    }

    /// Adds the accesses of all calls and returns, each with its cost on a hit and on a miss.
    fn add_assumed(&mut self, load: &LoadTimes, cost: impl Fn(f64, f64) -> Price) {
        let visible = |words, hides| visible(load, words, hides, &cost);
        let ids = (0..=u32::MAX).map(NodeId);
        for (id, node) in ids.zip(&self.program.nodes) {
            let own = self.method(node);
            let caller = node.parent.and_then(|parent| self.program.node(parent));
            let caller_method = caller.and_then(|caller| self.method(caller));
            // The call, in the caller.
            let site = caller_method.and_then(|(code, _)| code.at(node.site?));
            let is_called = caller.is_some_and(|caller| caller.is_priced);
            if let (Some(parent), Some(site), Some((_, own)), true) =
                (node.parent, site, own, is_called)
            {
                self.add(
                    parent,
                    site,
                    visible(own.words, load.invoke_hides).times(node.calls),
                );
            }
            let Some((_, own)) = own.filter(|_| node.is_priced) else {
                continue;
            };
            // The return to the caller.
            if let Some((_, caller)) = caller_method {
                let hides = load.hidden_by(self.result_of(node));
                self.add_to_returns(id, visible(caller.words, hides).times(node.calls));
            }
            // The methods of the runtime.
            let runtime =
                |instruction: &PricedInstruction| self.runtime(instruction, own.words, load, &cost);
            let (entry, exit) = (runtime(&own.entry), runtime(&own.exit));
            let own = node.executions.iter().filter_map(|(index, count)| {
                let instruction = own.instructions.get(*index)?;
                Some((*index, runtime(instruction).times(*count)))
            });
            let own: Vec<_> = own.filter(|(_, cost)| *cost != Price::ZERO).collect();
            for (index, cost) in own.into_iter().chain([(0, entry.times(node.calls))]) {
                self.add(id, index, cost);
            }
            self.add_to_returns(id, exit.times(node.calls));
        }
    }

    /// Returns what the accesses cost by which an instruction calls the runtime.
    fn runtime(
        &self,
        instruction: &PricedInstruction,
        caller: Words,
        load: &LoadTimes,
        cost: &impl Fn(f64, f64) -> Price,
    ) -> Price {
        let keys = instruction.transfer.runtime_keys().iter();
        let methods = keys.filter_map(|key| CostModel::new(self.target).runtime(key));
        let accesses = methods.flat_map(|method| runtime_accesses(method, load, caller));
        accesses.fold(Price::ZERO, |sum, access| {
            sum.plus(visible(load, access.words, access.hides, cost))
        })
    }

    /// Adds the accesses of instructions that the order of calls does not have: as hits, which may be misses. Returns how many
    /// instructions that are.
    pub(super) fn add_unordered(&mut self, load: &LoadTimes, charges: &CacheCharges) -> u64 {
        let cost = |hit: f64, miss: f64| Price {
            low: hit.min(miss),
            value: hit,
            high: hit.max(miss),
        };
        let mut unordered = 0_u64;
        let mut executed = charges.executed.clone();
        // Takes what was simulated from what was counted.
        let mut left = |place, count: u64| {
            let done: &mut u64 = executed.entry(place).or_default();
            let left = count.saturating_sub(*done);
            *done = done.saturating_sub(count);
            unordered = unordered.saturating_add(left);
            left
        };
        let mut added = Vec::new();
        let ids = (0..=u32::MAX).map(NodeId);
        for (id, node) in ids.zip(&self.program.nodes) {
            let Some((_, own)) = self.method(node) else {
                continue;
            };
            for (index, count) in node.executions.iter().filter(|_| node.is_priced) {
                let instruction = own.instructions.get(*index);
                let runtime = instruction.filter(|one| !one.transfer.runtime_keys().is_empty());
                if let Some(runtime) = runtime {
                    let cost = self.runtime(runtime, own.words, load, &cost);
                    added.push((id, *index, cost.times(left((id, *index), *count))));
                }
            }
            let caller = node.parent.and_then(|parent| self.program.node(parent));
            let caller = caller.filter(|caller| caller.is_priced && node.is_leaf);
            if let Some((code, caller)) = caller.and_then(|caller| self.method(caller))
                && let Some(place) = node.parent.zip(node.site.and_then(|site| code.at(site)))
            {
                let hides = load.hidden_by(self.result_of(node));
                let call = visible(load, own.words, load.invoke_hides, &cost);
                let both = call.plus(visible(load, caller.words, hides, &cost));
                added.push((place.0, place.1, both.times(left(place, node.calls))));
            }
        }
        for (id, index, cost) in added {
            self.add(id, index, cost);
        }
        unordered
    }

    fn result_of(&self, node: &ProgramNode) -> ResultKind {
        let method = self.program.methods.get(node.method);
        let name = method.and_then(|method| method.name.as_ref());
        name.map_or(ResultKind::Void, |name| {
            ResultKind::of_descriptor(&name.descriptor)
        })
    }

    /// Adds a cost to the return instructions of a context, by their executions.
    fn add_to_returns(&mut self, id: NodeId, cost: Price) {
        let Some(node) = self.program.node(id) else {
            return;
        };
        let Some((_, priced)) = self.method(node) else {
            return;
        };
        let is_return = |index: &usize| {
            let priced = priced.instructions.get(*index);
            priced.is_some_and(|priced| matches!(priced.transfer, Transfer::Return(_)))
        };
        let returns = node
            .executions
            .iter()
            .filter(|(index, count)| *count > 0 && is_return(index));
        let returns: Vec<_> = returns.copied().collect();
        let all = returns
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if all == 0 {
            // It was left by exceptions only, or runs still.
            return self.add(id, 0, cost);
        }
        for (index, count) in returns {
            let part = count as f64 / all as f64;
            let part = Price {
                low: cost.low * part,
                value: cost.value * part,
                high: cost.high * part,
            };
            self.add(id, index, part);
        }
    }
}

/// Returns what is visible of an access, by its cost on a hit and on a miss.
fn visible(load: &LoadTimes, words: Words, hides: f64, cost: &impl Fn(f64, f64) -> Price) -> Price {
    cost(
        load.visible(true, words, hides),
        load.visible(false, words, hides),
    )
}
