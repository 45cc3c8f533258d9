//! Finds the nodes that packs, references and qualifiers lead to.

use super::{Expansion, Printer};
use crate::node::{Id, Node};

/// The kind of a type's right part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Plain,
    Array,
    Function,
}

impl<'n, 's> Printer<'n, 's> {
    /// Prints a pattern once for each element of the packs in it.
    pub(crate) fn expansion(&mut self, pattern: Id) -> Option<()> {
        let outer = std::mem::replace(&mut self.expansion, Expansion::NoPack);
        let start = self.out.len();
        self.write(pattern)?;
        match self.expansion {
            Expansion::Element { length: 0, .. } => self.out.truncate(start),
            Expansion::Element { length, .. } => {
                for index in 1..length {
                    self.push(", ")?;
                    self.expansion = Expansion::Element { index, length };
                    self.write(pattern)?;
                }
            }
            // It is a pack of function parameters. The mangled name does not contain its length.
            Expansion::NoPack | Expansion::Outside => self.push("...")?,
        }
        self.expansion = outer;
        Some(())
    }

    /// Returns the element of a pack that is being printed. `None` if the pack has no such element.
    pub(crate) fn pack_element(&mut self, pack: &Node<'_>) -> Option<Id> {
        let Node::Pack(elements) = pack else {
            return None;
        };
        if self.expansion == Expansion::NoPack {
            self.expansion = Expansion::Element {
                index: 0,
                length: elements.len(),
            };
        }
        match self.expansion {
            Expansion::Element { index, .. } => elements.get(index).copied(),
            // As in llvm.
            Expansion::NoPack | Expansion::Outside => elements.first().copied(),
        }
    }

    /// Returns the type that a reference to references refers to, and whether it is an rvalue reference: `& &&` collapses to `&`.
    pub(crate) fn collapse_references(&mut self, node: &'n Node<'s>) -> Option<(Id, bool)> {
        let &Node::Reference(mut to, mut rvalue) = node else {
            return None;
        };
        loop {
            self.step()?;
            match self.node(to)? {
                &Node::Reference(inner, inner_rvalue) => {
                    to = inner;
                    rvalue &= inner_rvalue;
                }
                &Node::Forward(_, argument) => to = argument?,
                pack @ Node::Pack(_) => match self.pack_element(pack) {
                    Some(element) => to = element,
                    None => return Some((to, rvalue)),
                },
                _ => return Some((to, rvalue)),
            }
        }
    }

    /// Returns the shape of a type without qualifiers and template parameters.
    pub(crate) fn shape(&mut self, mut id: Id) -> Shape {
        loop {
            if self.step().is_none() {
                return Shape::Plain;
            }
            match self.node(id) {
                Some(Node::Array(..)) => return Shape::Array,
                Some(Node::FunctionType(_) | Node::Function(_)) => return Shape::Function,
                Some(Node::Qualified(of, _) | Node::Forward(_, Some(of))) => id = *of,
                Some(pack @ Node::Pack(_)) => match self.pack_element(pack) {
                    Some(element) => id = element,
                    None => return Shape::Plain,
                },
                _ => return Shape::Plain,
            }
        }
    }

    /// Returns true if a type has a right part.
    pub(crate) fn has_right(&mut self, mut id: Id) -> bool {
        loop {
            if self.step().is_none() {
                return false;
            }
            match self.node(id) {
                Some(Node::Array(..) | Node::FunctionType(_) | Node::Function(_)) => return true,
                Some(
                    Node::Qualified(of, _)
                    | Node::Forward(_, Some(of))
                    | Node::Pointer(of)
                    | Node::Reference(of, _)
                    | Node::MemberPointer(_, of),
                ) => id = *of,
                Some(pack @ Node::Pack(_)) => match self.pack_element(pack) {
                    Some(element) => id = element,
                    None => return false,
                },
                _ => return false,
            }
        }
    }

    /// Prints the unqualified name of a class, which is the name of its constructors.
    pub(crate) fn base_name(&mut self, mut id: Id) -> Option<()> {
        loop {
            self.step()?;
            match self.node(id)? {
                Node::Name(name) => return self.push(name),
                Node::Standard(.., base) | Node::StandardInFull(_, base) => return self.push(base),
                Node::Member(_, name) => id = *name,
                Node::Template(name, _) | Node::Tagged(name, _) => id = *name,
                Node::Forward(_, argument) => id = (*argument)?,
                _ => return Some(()),
            }
        }
    }
}
