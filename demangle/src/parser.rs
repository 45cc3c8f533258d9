//! The state of the parser: what has been parsed of a mangled name, and the rest of it.

use crate::node::{Id, Node, Qualifiers};

/// The maximum nesting of names, types and expressions.
const MAX_DEPTH: usize = 192;

/// The parser's state. The grammar is in `name`, `types` and `expression`.
#[derive(Default)]
pub(crate) struct Parser<'s> {
    /// The input that has not been read.
    pub(crate) rest: &'s str,
    pub(crate) nodes: Vec<Node<'s>>,
    /// The nodes that `S_`, `S0_` and so on refer to.
    pub(crate) substitutions: Vec<Id>,
    /// The nodes that `T_`, `T0_` and so on refer to. The outermost level is first.
    pub(crate) parameters: Vec<Vec<Id>>,
    /// The template level of the lambda whose parameters are being read. Unknown parameters of this level are `auto`.
    pub(crate) lambda_level: Option<usize>,
    /// Whether a template parameter may refer to an argument that has not been read yet, as in a conversion operator.
    pub(crate) allow_forward_references: bool,
    /// Forward references that have not been resolved.
    pub(crate) forward_references: Vec<Id>,
    /// Whether template arguments that follow a type belong to something else, as in `operator T<int>()`.
    pub(crate) no_type_arguments: bool,
    depth: usize,
}

/// The effects of a function's name on its signature.
#[derive(Default, Clone, Copy)]
pub(crate) struct NameState {
    /// Constructors, destructors and conversions have no return type.
    pub(crate) no_return_type: bool,
    pub(crate) ends_with_arguments: bool,
    pub(crate) qualifiers: Qualifiers,
    pub(crate) reference: &'static str,
}

impl<'s> Parser<'s> {
    pub(crate) fn new(rest: &'s str) -> Self {
        Self {
            rest,
            ..Self::default()
        }
    }

    /// Adds a node.
    pub(crate) fn make(&mut self, node: Node<'s>) -> Option<Id> {
        let id = Id::of(self.nodes.len())?;
        self.nodes.push(node);
        Some(id)
    }

    pub(crate) fn node(&self, id: Id) -> Option<&Node<'s>> {
        self.nodes.get(id.index())
    }

    /// The byte at offset `ahead` of the rest. 0 at the end.
    pub(crate) fn peek(&self, ahead: usize) -> u8 {
        self.rest.as_bytes().get(ahead).copied().unwrap_or_default()
    }

    /// Consumes `text` if it is next. Returns true if it was.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes `text`. Fails if it is not next.
    pub(crate) fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        Some(())
    }

    /// Consumes decimal digits. If `signed`, an `n` may precede them. It marks negative numbers, and is returned as well.
    pub(crate) fn digits(&mut self, signed: bool) -> &'s str {
        let sign = usize::from(signed && self.peek(0) == b'n');
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

    /// Consumes the index of a template parameter: `_` is 0, `0_` is 1.
    pub(crate) fn index(&mut self) -> Option<usize> {
        if self.eat("_") {
            return Some(0);
        }
        let index: usize = self.digits(false).parse().ok()?;
        self.expect("_")?;
        index.checked_add(1)
    }

    /// Calls `read` one level deeper. Fails at the maximum depth.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Calls `read` until `end` has been consumed.
    pub(crate) fn until(
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
