//! What values of Cranelift stand for, while a function is emitted.

use std::collections::HashMap;

use cranelift_codegen::ir::{Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};

use crate::{
    held::Held,
    loops::LoopId,
    plan::{CounterId, VersionId},
};

/// A place in the guest's memory that was checked.
#[derive(Debug, Clone, Copy)]
pub struct Accessed {
    /// How far behind the region's beginning the lowest place is that was checked with it.
    pub distance: Value,
    /// How far behind that it is itself.
    pub offset: i32,
}

/// What is compared of a block while it is emitted.
#[derive(Debug, Default)]
pub struct Observed {
    /// The addresses of its accesses until now.
    pub addresses: Vec<Value>,
    /// The address of the word that it stored last, divided by 4.
    pub stored: Option<Value>,
}

/// Where a block leads to.
#[derive(Debug, Clone, Copy)]
pub enum Destination {
    /// To a block of the same context.
    Block(VersionId),
    /// To an entry of another context, or of the same.
    Entry {
        /// The context.
        context: Value,
        /// The entry's number.
        entry: Value,
    },
}

/// The variables of the counters that are held in loops.
pub struct HeldVariables {
    /// By counter.
    pub by_counter: HashMap<usize, Variable>,
    /// By loop.
    pub by_loop: HashMap<LoopId, Vec<(CounterId, Variable)>>,
}

impl HeldVariables {
    /// Declares them.
    pub fn new(builder: &mut FunctionBuilder<'_>, held: &Held) -> Self {
        let mut variables = Self {
            by_counter: HashMap::new(),
            by_loop: HashMap::new(),
        };
        for (id, counter) in &held.counters {
            let variable = builder.declare_var(types::I64);
            variables.by_counter.insert(counter.0, variable);
            let of_loop = variables.by_loop.entry(*id).or_default();
            of_loop.push((*counter, variable));
        }
        variables
    }

    /// Those of a loop.
    pub fn of_loop(&self, id: Option<LoopId>) -> Vec<(CounterId, Variable)> {
        let known = id.and_then(|id| self.by_loop.get(&id));
        known.cloned().unwrap_or_default()
    }
}
