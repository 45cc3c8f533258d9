//! Prints expressions. Operands get parentheses only if precedence requires them.

use super::Printer;
use crate::node::{Fold, Id, New, Node, Precedence};

/// An operand of a fold expression.
#[derive(Clone, Copy)]
enum FoldOperand {
    Pack(Id),
    Start(Id),
}

impl<'n, 's> Printer<'n, 's> {
    /// Prints literals and operators.
    pub(crate) fn expression(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Integer(of, digits) => self.integer(of, digits),
            Node::Cast(of, digits) => {
                self.parenthesized(|printer| printer.write(*of))?;
                self.number(digits)
            }
            Node::Parameter(number) => {
                self.push("fp")?;
                self.push(number)
            }
            Node::Binary(first, symbol, second, own) => {
                let write = |printer: &mut Self| printer.binary(*first, symbol, *second, *own);
                match self.parentheses == 0 && matches!(*symbol, ">" | ">>") {
                    true => self.parenthesized(write),
                    false => write(self),
                }
            }
            Node::Prefix(symbol, of, own) => {
                self.push(symbol)?;
                self.operand(*of, *own, false)
            }
            Node::Postfix(of, symbol, own) => {
                self.operand(*of, *own, true)?;
                self.push(symbol)
            }
            Node::Subscript(of, index) => {
                self.operand(*of, Precedence::Postfix, true)?;
                self.push("[")?;
                self.write(*index)?;
                self.push("]")
            }
            Node::Access(of, symbol, member, own) => {
                self.operand(*of, *own, true)?;
                self.push(symbol)?;
                self.operand(*member, *own, false)
            }
            Node::Conditional(when, then, otherwise) => {
                self.operand(*when, Precedence::Conditional, false)?;
                self.push(" ? ")?;
                self.write(*then)?;
                self.push(" : ")?;
                self.operand(*otherwise, Precedence::Assign, true)
            }
            Node::Global(name) => {
                self.push("::")?;
                self.write(*name)
            }
            other => self.call_or_keyword(other),
        }
    }

    /// Prints calls, casts, initializers, and what begins with a keyword.
    fn call_or_keyword(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Call(callee, arguments) => {
                self.write(*callee)?;
                self.parenthesized(|printer| printer.list(arguments))
            }
            Node::NamedCast(word, to, from) => {
                self.push(word)?;
                let parentheses = std::mem::take(&mut self.parentheses);
                self.push("<")?;
                self.left(*to)?;
                self.parentheses = parentheses;
                self.push(">")?;
                self.parenthesized(|printer| printer.write(*from))
            }
            Node::TypeCast(to, from) => {
                self.parenthesized(|printer| printer.write(*to))?;
                self.parenthesized(|printer| printer.list(from))
            }
            Node::Enclosed(word, of, _) => {
                self.push(word)?;
                self.parenthesized(|printer| printer.write(*of))
            }
            Node::SizeOfPack(pack) => {
                self.push("sizeof...")?;
                self.parenthesized(|printer| printer.expansion(*pack))
            }
            Node::SizeOfArguments(arguments) => {
                self.push("sizeof...")?;
                self.parenthesized(|printer| printer.list(arguments))
            }
            Node::New(new) => self.new_expression(new),
            Node::Delete { global, array, of } => {
                self.push(if *global { "::delete" } else { "delete" })?;
                self.push(if *array { "[] " } else { " " })?;
                self.write(*of)
            }
            Node::Throw(what) => {
                self.push("throw ")?;
                self.write(*what)
            }
            Node::Braces(of, elements) => {
                self.write_if_any(*of)?;
                self.push("{")?;
                self.list(elements)?;
                self.push("}")
            }
            Node::Designated(field, value, is_index) => {
                self.push(if *is_index { "[" } else { "." })?;
                self.write(*field)?;
                self.push(if *is_index { "]" } else { "" })?;
                self.designated_value(*value)
            }
            Node::Fold(fold) => self.parenthesized(|printer| printer.fold(fold)),
            _ => None,
        }
    }

    /// Prints an integer of the type `of`: a long name is printed in front of it, a suffix after it.
    fn integer(&mut self, of: &str, digits: &str) -> Option<()> {
        let long = of.len() > 3;
        if long {
            self.parenthesized(|printer| printer.push(of))?;
        }
        self.number(digits)?;
        if long { Some(()) } else { self.push(of) }
    }

    fn binary(&mut self, first: Id, symbol: &str, second: Id, own: Precedence) -> Option<()> {
        let assign = own == Precedence::Assign;
        let within = if assign { Precedence::OrIf } else { own };
        self.operand(first, within, !assign)?;
        if symbol != "," {
            self.push(" ")?;
        }
        self.push(symbol)?;
        self.push(" ")?;
        self.operand(second, own, assign)
    }

    fn new_expression(&mut self, new: &New) -> Option<()> {
        self.push(if new.global { "::new" } else { "new" })?;
        self.push(if new.array { "[]" } else { "" })?;
        if !new.placement.is_empty() {
            self.parenthesized(|printer| printer.list(&new.placement))?;
        }
        self.push(" ")?;
        self.write(new.of)?;
        match &new.arguments {
            Some(arguments) => self.parenthesized(|printer| printer.list(arguments)),
            None => Some(()),
        }
    }

    /// Prints the value of a designated initializer. Another designator, or braces, follow without `=`.
    fn designated_value(&mut self, value: Id) -> Option<()> {
        let nested = matches!(self.node(value)?, Node::Designated(..) | Node::Braces(..));
        if !nested {
            self.push(" = ")?;
        }
        self.write(value)
    }

    /// Prints a fold expression without its parentheses.
    fn fold(&mut self, fold: &Fold) -> Option<()> {
        let pack = Some(FoldOperand::Pack(fold.pack));
        let start = fold.start.map(FoldOperand::Start);
        let (before, after) = match fold.left {
            true => (start, pack),
            false => (pack, start),
        };
        if let Some(before) = before {
            self.fold_operand(before)?;
            self.between_operands(fold.operator)?;
        }
        self.push("...")?;
        if let Some(after) = after {
            self.between_operands(fold.operator)?;
            self.fold_operand(after)?;
        }
        Some(())
    }

    fn fold_operand(&mut self, operand: FoldOperand) -> Option<()> {
        match operand {
            FoldOperand::Pack(pack) => self.parenthesized(|printer| printer.expansion(pack)),
            FoldOperand::Start(start) => self.operand(start, Precedence::Cast, true),
        }
    }

    fn between_operands(&mut self, operator: &str) -> Option<()> {
        self.push(" ")?;
        self.push(operator)?;
        self.push(" ")
    }

    fn number(&mut self, digits: &str) -> Option<()> {
        match digits.strip_prefix('n') {
            Some(digits) => {
                self.push("-")?;
                self.push(digits)
            }
            None => self.push(digits),
        }
    }

    pub(crate) fn precedence(&self, id: Id) -> Precedence {
        match self.node(id) {
            Some(
                Node::Binary(.., own)
                | Node::Prefix(.., own)
                | Node::Postfix(.., own)
                | Node::Access(.., own)
                | Node::Enclosed(.., own),
            ) => *own,
            Some(Node::Subscript(..) | Node::Call(..) | Node::NamedCast(..)) => Precedence::Postfix,
            Some(Node::Conditional(..)) => Precedence::Conditional,
            Some(Node::TypeCast(..)) => Precedence::Cast,
            Some(Node::New(_) | Node::Delete { .. }) => Precedence::Unary,
            Some(Node::Cast(..)) => Precedence::Cast,
            _ => Precedence::Primary,
        }
    }
}
