//! What does a mangled C++ name say, in the words of llvm-symbolizer?
//!
//! By the Itanium C++ ABI, section 5.1. A name is parsed into nodes that refer to each other
//! (substitutions and template parameters repeat what came before), and they are printed.
//! Depth, steps and length are bounded: short names can unfold without end.

mod expression;
mod name;
mod node;
mod operators;
mod print;
mod types;

use node::{Id, Node};

/// The readable form of a name that begins with `_Z`; none if it is not a C++ name, or one that
/// unfolds to more than `limit` bytes.
pub(super) fn demangle(mangled: &str, limit: usize) -> Option<String> {
    let mut parser = Parser {
        rest: mangled.strip_prefix("_Z")?,
        ..Parser::default()
    };
    let name = parser.encoding()?;
    // What compilers add to copies and parts of a function: `.cold`, `.isra.0`, `.llvm.123`.
    let root = match parser.rest {
        "" => name,
        suffix if suffix.starts_with('.') => parser.make(Node::Suffix(name, suffix))?,
        _ => return None,
    };
    print::print(&parser.nodes, root, limit)
}

/// How deep names, types and expressions may nest.
const MAX_DEPTH: usize = 192;

/// What is left of a name, and what has been read.
#[derive(Default)]
struct Parser<'s> {
    rest: &'s str,
    nodes: Vec<Node<'s>>,
    /// What `S_`, `S0_` and so on stand for.
    substitutions: Vec<Id>,
    /// What `T_`, `T0_` and so on stand for, outermost level first.
    parameters: Vec<Vec<Id>>,
    /// At which level a lambda's parameters are read, where unknown ones are `auto`.
    lambda_level: Option<usize>,
    /// Whether template parameters may refer to arguments further ahead.
    forward: bool,
    /// References to them that have not been resolved.
    forward_references: Vec<Id>,
    /// Whether a type must not take template arguments that follow it.
    no_arguments: bool,
    depth: usize,
}

/// What a name says of the function that it names.
#[derive(Default, Clone, Copy)]
struct State {
    /// A constructor, destructor or conversion: it has no return type.
    no_return_type: bool,
    ends_with_arguments: bool,
    qualifiers: node::Qualifiers,
    reference: &'static str,
}

impl<'s> Parser<'s> {
    fn make(&mut self, node: Node<'s>) -> Option<Id> {
        let id = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(id)
    }

    fn node(&self, id: Id) -> Option<&Node<'s>> {
        self.nodes.get(id as usize)
    }

    /// The character after `ahead` others.
    fn look(&self, ahead: usize) -> u8 {
        self.rest.as_bytes().get(ahead).copied().unwrap_or_default()
    }

    /// Passes over `text` if it is next.
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Passes over what must be next.
    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        Some(())
    }

    /// The digits that come next, with the sign of negative ones if `signed`.
    fn digits(&mut self, signed: bool) -> &'s str {
        let sign = usize::from(signed && self.look(0) == b'n');
        let digits = self
            .rest
            .bytes()
            .skip(sign)
            .take_while(u8::is_ascii_digit)
            .count();
        if digits == 0 {
            return "";
        }
        let (number, rest) = self
            .rest
            .split_at_checked(sign.saturating_add(digits))
            .unwrap_or_default();
        self.rest = rest;
        number
    }

    /// An index as template parameters have it: `_` is 0, `0_` is 1.
    fn index(&mut self) -> Option<usize> {
        if self.eat("_") {
            return Some(0);
        }
        let index: usize = self.digits(false).parse().ok()?;
        self.expect("_")?;
        index.checked_add(1)
    }

    /// Reads something that may nest.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Reads as long as `end` does not come.
    fn until(
        &mut self,
        end: &str,
        mut read: impl FnMut(&mut Self) -> Option<Id>,
    ) -> Option<Vec<Id>> {
        let mut found = Vec::new();
        while !self.eat(end) {
            found.push(read(self)?);
        }
        Some(found)
    }
}
