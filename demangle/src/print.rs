//! Prints C++ names.
//!
//! - `declaration`: names and types, around what they declare;
//! - `expression`: expressions in template arguments;
//! - `resolve`: the nodes that packs, references and qualifiers lead to.

mod declaration;
mod expression;
mod resolve;

use crate::node::{Id, Node, Precedence};

/// The maximum number of nodes that are visited. Nodes that print nothing take time, too.
const MAX_STEPS: usize = 200_000;

/// The maximum nesting of nodes.
const MAX_DEPTH: usize = 320;

/// Prints a name. `None` if it is longer than `max_length` bytes.
pub(crate) fn print(nodes: &[Node<'_>], root: Id, max_length: usize) -> Option<String> {
    let mut printer = Printer {
        nodes,
        out: String::new(),
        max_length,
        steps: MAX_STEPS,
        depth: 0,
        expansion: Expansion::Outside,
        parentheses: 1,
    };
    printer.write(root)?;
    Some(printer.out)
}

/// The element of a parameter pack that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expansion {
    /// No pattern is being expanded.
    Outside,
    /// A pattern is being expanded, and no pack has been found in it so far.
    NoPack,
    /// The element at `index` of packs of `length` elements.
    Element { index: usize, length: usize },
}

struct Printer<'n, 's> {
    nodes: &'n [Node<'s>],
    out: String,
    max_length: usize,
    steps: usize,
    depth: usize,
    expansion: Expansion,
    /// The number of open parentheses within the innermost template arguments. At 0 a `>` operator would close the arguments, so
    /// it is printed in parentheses.
    parentheses: usize,
}

impl<'n, 's> Printer<'n, 's> {
    fn node(&self, id: Id) -> Option<&'n Node<'s>> {
        self.nodes.get(id.index())
    }

    fn push(&mut self, text: &str) -> Option<()> {
        let length = self.out.len().checked_add(text.len())?;
        (length <= self.max_length).then(|| self.out.push_str(text))
    }

    fn parenthesized(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.parentheses = self.parentheses.saturating_add(1);
        self.push("(")?;
        write(self)?;
        self.parentheses = self.parentheses.saturating_sub(1);
        self.push(")")
    }

    fn write(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    fn write_if_any(&mut self, id: Option<Id>) -> Option<()> {
        id.map_or(Some(()), |id| self.write(id))
    }

    /// Prints an operand. It gets parentheses if its operator binds less strongly than `within`, or as strongly if not `strictly`.
    fn operand(&mut self, id: Id, within: Precedence, strictly: bool) -> Option<()> {
        let own = self.precedence(id);
        if own > within || own == within && !strictly {
            self.parenthesized(|printer| printer.write(id))
        } else {
            self.write(id)
        }
    }

    /// Prints a list. Elements that print nothing, such as empty packs, get no comma.
    fn list(&mut self, ids: &[Id]) -> Option<()> {
        let mut first = true;
        for &id in ids {
            let before = self.out.len();
            if !first {
                self.push(", ")?;
            }
            let start = self.out.len();
            self.operand(id, Precedence::Comma, false)?;
            match self.out.len() == start {
                true => self.out.truncate(before),
                false => first = false,
            }
        }
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        (self.depth < MAX_DEPTH).then_some(())
    }

    /// Prints what a declaration has before the declared name.
    fn left(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.left_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }

    /// Prints what a declaration has after the declared name.
    fn right(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.right_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }
}
