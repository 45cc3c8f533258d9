//! How is a C++ name written?
//!
//! - `declaration`: names and types, around what they declare;
//! - `expression`: what template arguments compute;
//! - `sight`: what a part stands for, seen through packs, references and qualifiers.

mod declaration;
mod expression;
mod sight;

use super::node::{Id, Node, Precedence};

/// How many parts are written at most: parts that write nothing cost time, too.
const MAX_STEPS: usize = 200_000;

/// How deep parts may refer to parts.
const MAX_DEPTH: usize = 320;

/// Writes a name; none if it is longer than `limit` bytes.
pub(super) fn print(nodes: &[Node<'_>], root: Id, limit: usize) -> Option<String> {
    let mut printer = Printer {
        nodes,
        out: String::new(),
        limit,
        steps: MAX_STEPS,
        depth: 0,
        pack: None,
        open: 1,
    };
    printer.all(root)?;
    Some(printer.out)
}

struct Printer<'n, 's> {
    nodes: &'n [Node<'s>],
    out: String,
    limit: usize,
    steps: usize,
    depth: usize,
    /// The element of the packs that is written, and how many they have; none outside of an expansion.
    pack: Option<Option<(usize, usize)>>,
    /// How many parentheses are open within template arguments: without any, > would close them.
    open: usize,
}

impl<'n, 's> Printer<'n, 's> {
    fn node(&self, id: Id) -> Option<&'n Node<'s>> {
        self.nodes.get(id as usize)
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let length = self.out.len().checked_add(text.len())?;
        (length <= self.limit).then(|| self.out.push_str(text))
    }

    fn parenthesized(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.open = self.open.saturating_add(1);
        self.text("(")?;
        write(self)?;
        self.open = self.open.saturating_sub(1);
        self.text(")")
    }

    fn all(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    /// An operand, in parentheses if its operator does not bind more strongly.
    fn operand(&mut self, id: Id, within: Precedence, strictly: bool) -> Option<()> {
        let own = self.precedence(id);
        if own > within || own == within && !strictly {
            self.parenthesized(|printer| printer.all(id))
        } else {
            self.all(id)
        }
    }

    /// A list; elements that write nothing have no comma.
    fn list(&mut self, ids: &[Id]) -> Option<()> {
        let mut first = true;
        for &id in ids {
            let before = self.out.len();
            if !first {
                self.text(", ")?;
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

    fn left(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.left_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }

    fn right(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.right_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }
}
