//! How often each instruction of a context ran, and each method that cannot count its own calls.

use std::collections::HashMap;

use varid_instrument::opcode::{INVOKESPECIAL, INVOKESTATIC};
use varid_instrument::{Body, Executions, MethodNumber, MethodReference, Plain};

use crate::{
    context::Node,
    tables::{CountedMethod, Tables},
};

/// Those of dex code: invoke-direct, invoke-static, and both with consecutive registers. Class files have no calls with these numbers.
const DEX_CALLS: [u8; 4] = [0x70, 0x71, 0x76, 0x77];

/// Returns how often each instruction of a context ran, by ascending instruction. Empty if blocks are not counted.
///
/// An exception leaves a block behind the instruction that throws. The instructions that follow in the block did not run then. A thread that
/// is killed in a block counts as if it had reached the block's end.
pub(crate) fn of_instructions<'n>(
    node: &'n Node,
    method: &'n CountedMethod,
) -> impl Iterator<Item = (u16, u64)> + 'n {
    let instructions = &method.instructions;
    method.table.blocks.iter().flat_map(move |block| {
        let executions = match block.executions {
            Executions::Calls => node.calls,
            Executions::Counter(counter) | Executions::Ordered(counter) => {
                let counter = node.counters.get(usize::from(counter));
                counter.copied().unwrap_or(0)
            }
        };
        let (start, end) = (block.start.0, block.end.0);
        let first = instructions.partition_point(|bci| *bci < start);
        let inside = instructions.get(first..).unwrap_or_default().iter();
        let inside = inside.copied().take_while(move |bci| *bci < end);
        inside.map(move |bci| {
            let left = node.aborts.iter();
            let left = left.filter(|(at, _)| (start..bci).contains(at));
            let left = left.fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
            (bci, executions.saturating_sub(left))
        })
    })
}

/// Returns how many calls of a context have not returned: an exception ended them, or they were executed when the VM ended. Meaningful if
/// blocks are counted.
pub(crate) fn without_return(node: &Node, method: &CountedMethod) -> u64 {
    let executions = of_instructions(node, method);
    let returns = executions.filter(|(bci, _)| method.returns.binary_search(bci).is_ok());
    returns.fold(node.calls, |left, (_, count)| left.saturating_sub(count))
}

/// The methods that cannot count their calls: native ones, those that the VM's compilers replace, and `Object.<init>`.
#[derive(Debug)]
pub(crate) struct Leaves<'t> {
    /// None if several classes have the name, so that a call may be of any of them.
    methods: HashMap<(&'t str, &'t str, &'t str), Option<MethodNumber>>,
}

impl<'t> Leaves<'t> {
    pub(crate) fn of(tables: &'t Tables) -> Self {
        let mut methods = HashMap::new();
        for (number, method) in &tables.methods {
            let table = &method.table;
            let key = (
                method.class.as_str(),
                table.name.as_str(),
                table.descriptor.as_str(),
            );
            let is_leaf = match table.body {
                Body::Leaf
                | Body::Native
                | Body::Plain(Plain::ObjectConstructor | Plain::EmptyFinalizer) => true,
                Body::Counted | Body::Abstract | Body::Plain(_) => false,
            };
            methods
                .entry(key)
                .and_modify(|known| *known = None)
                .or_insert_with(|| is_leaf.then_some(*number));
        }
        Self { methods }
    }

    /// Returns the calls of leaves by the sites of a context: the index of each site, the method, and how often.
    ///
    /// Only calls whose method is certain are among them: those of static and of special methods. `executions` are those of
    /// [`of_instructions`].
    pub(crate) fn calls(
        &self,
        method: &CountedMethod,
        executions: &[(u16, u64)],
    ) -> Vec<(usize, MethodNumber, u64)> {
        let sites = method.table.sites.iter().enumerate();
        let calls = sites.filter_map(|(index, site)| {
            let is_certain = [INVOKESPECIAL, INVOKESTATIC].contains(&site.opcode);
            if !is_certain && !DEX_CALLS.contains(&site.opcode) {
                return None;
            }
            let leaf = self.find(&site.target)?;
            let at = executions.binary_search_by_key(&site.bci.0, |(bci, _)| *bci);
            let (_, count) = executions.get(at.ok()?)?;
            (*count > 0).then_some((index, leaf, *count))
        });
        calls.collect()
    }

    fn find(&self, target: &MethodReference) -> Option<MethodNumber> {
        let key = (
            target.class.as_str(),
            target.name.as_str(),
            target.descriptor.as_str(),
        );
        *self.methods.get(&key)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::{method, number};
    use varid_instrument::{Bci, Block, Site};

    /// Two blocks: instructions 0, 1, 4 and 7, 8. The site is at 4.
    fn counted() -> CountedMethod {
        let mut found = method(1, "run", 1);
        found.instructions = vec![0, 1, 4, 7, 8];
        found.returns = vec![8];
        found.table.code_length = 9;
        found.table.counters = 1;
        found.table.blocks = [(0, 7, Executions::Calls), (7, 9, Executions::Counter(0))]
            .map(|(start, end, executions)| Block {
                start: Bci(start),
                end: Bci(end),
                executions,
            })
            .to_vec();
        found
    }

    fn node(calls: u64, counter: u64, aborts: &[(u16, u64)]) -> Node {
        Node {
            offset: 0,
            method: number(1),
            site: None,
            calls,
            counters: vec![counter],
            aborts: aborts.to_vec(),
        }
    }

    #[test]
    fn instructions_behind_one_that_throws_did_not_run() {
        let method = counted();
        let count = |node: &Node| of_instructions(node, &method).collect::<Vec<_>>();
        assert_eq!(
            count(&node(5, 20, &[])),
            [(0, 5), (1, 5), (4, 5), (7, 20), (8, 20)]
        );
        assert_eq!(
            count(&node(5, 20, &[(1, 2), (7, 1)])),
            [(0, 5), (1, 5), (4, 3), (7, 20), (8, 19)]
        );
    }

    #[test]
    fn calls_that_an_exception_ends_do_not_return() {
        let method = counted();
        assert_eq!(without_return(&node(5, 5, &[]), &method), 0);
        assert_eq!(without_return(&node(5, 4, &[(4, 1), (7, 2)]), &method), 3);
        // Caught in the method, which returns then.
        assert_eq!(without_return(&node(5, 5, &[(4, 1)]), &method), 0);
    }

    #[test]
    fn a_native_method_is_called_as_often_as_its_site_ran_if_it_is_the_only_one() {
        let mut caller = counted();
        let mut native = method(2, "nanoTime", 0);
        native.table.body = Body::Native;
        let target = MethodReference {
            class: native.class.clone(),
            name: native.table.name.clone(),
            descriptor: native.table.descriptor.clone(),
        };
        caller.table.sites = vec![Site {
            bci: Bci(4),
            opcode: INVOKESTATIC,
            target,
        }];
        let mut tables = Tables::default();
        tables.methods.insert(number(2), native.clone());
        let executions: Vec<_> = of_instructions(&node(5, 0, &[]), &caller).collect();
        assert_eq!(
            Leaves::of(&tables).calls(&caller, &executions),
            [(0, number(2), 5)]
        );
        native.table.number = number(3);
        tables.methods.insert(number(3), native);
        assert_eq!(Leaves::of(&tables).calls(&caller, &executions), []);
    }
}
