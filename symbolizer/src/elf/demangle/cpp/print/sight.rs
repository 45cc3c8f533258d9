//! What does a part stand for, seen through packs, references and qualifiers?

use super::super::node::{Id, Node};
use super::Printer;

/// What a declaration has after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Array,
    Function,
}

impl<'n, 's> Printer<'n, 's> {
    /// The pattern, once for each element of the packs in it.
    pub(super) fn expansion(&mut self, pattern: Id) -> Option<()> {
        let outer = self.pack.replace(None);
        let start = self.out.len();
        self.all(pattern)?;
        match self.pack {
            Some(Some((_, 0))) => self.out.truncate(start),
            Some(Some((_, count))) => {
                for index in 1..count {
                    self.text(", ")?;
                    self.pack = Some(Some((index, count)));
                    self.all(pattern)?;
                }
            }
            // No pack is known: that of a function's parameters.
            _ => self.text("...")?,
        }
        self.pack = outer;
        Some(())
    }

    /// The element of a pack that is being written.
    pub(super) fn element(&mut self, pack: &Node<'_>) -> Option<Id> {
        let Node::Pack(elements) = pack else {
            return None;
        };
        if let Some(position @ None) = &mut self.pack {
            *position = Some((0, elements.len()));
        }
        // Outside of an expansion there is nothing to choose by: llvm writes the first one.
        let index = self.pack.flatten().map_or(0, |(index, _)| index);
        elements.get(index).copied()
    }

    /// What a reference refers to in the end, and whether as an rvalue: & wins over &&.
    pub(super) fn collapsed(&mut self, node: &'n Node<'s>) -> Option<(Id, bool)> {
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
                pack @ Node::Pack(_) => match self.element(pack) {
                    Some(element) => to = element,
                    None => return Some((to, rvalue)),
                },
                _ => return Some((to, rvalue)),
            }
        }
    }

    /// What a type has after its name, seen through qualifiers and parameters.
    pub(super) fn shape(&mut self, mut id: Id) -> Shape {
        loop {
            if self.step().is_none() {
                return Shape::Plain;
            }
            match self.node(id) {
                Some(Node::Array(..)) => return Shape::Array,
                Some(Node::FunctionType(_) | Node::Function(_)) => return Shape::Function,
                Some(Node::Qualified(of, _) | Node::Forward(_, Some(of))) => id = *of,
                Some(pack @ Node::Pack(_)) => match self.element(pack) {
                    Some(element) => id = element,
                    None => return Shape::Plain,
                },
                _ => return Shape::Plain,
            }
        }
    }

    /// Whether a type has something after its name.
    pub(super) fn has_right(&mut self, mut id: Id) -> bool {
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
                Some(pack @ Node::Pack(_)) => match self.element(pack) {
                    Some(element) => id = element,
                    None => return false,
                },
                _ => return false,
            }
        }
    }

    /// A class's own name, as its constructors have it.
    pub(super) fn base_name(&mut self, mut id: Id) -> Option<()> {
        loop {
            self.step()?;
            match self.node(id)? {
                Node::Name(name) => return self.text(name),
                Node::Standard(.., base) | Node::StandardInFull(_, base) => return self.text(base),
                Node::Member(_, name) => id = *name,
                Node::Template(name, _) | Node::Tagged(name, _) => id = *name,
                Node::Forward(_, argument) => id = (*argument)?,
                _ => return Some(()),
            }
        }
    }
}
