//! How are expressions written? With the parentheses that operators need, and no others.

use super::super::node::{Id, Node, Precedence};
use super::Printer;

impl<'n, 's> Printer<'n, 's> {
    pub(super) fn expression(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Integer(of, digits) => {
                let long = of.len() > 3;
                if long {
                    self.parenthesized(|printer| printer.text(of))?;
                }
                self.number(digits)?;
                if long { Some(()) } else { self.text(of) }
            }
            Node::Cast(of, digits) => {
                self.parenthesized(|printer| printer.all(*of))?;
                self.number(digits)
            }
            Node::Parameter(number) => {
                self.text("fp")?;
                self.text(number)
            }
            Node::Binary(first, symbol, second, own) => {
                let close = self.open == 0 && matches!(*symbol, ">" | ">>");
                let write = |printer: &mut Self| {
                    let assign = *own == Precedence::Assign;
                    let within = if assign { Precedence::OrIf } else { *own };
                    printer.operand(*first, within, !assign)?;
                    if *symbol != "," {
                        printer.text(" ")?;
                    }
                    printer.text(symbol)?;
                    printer.text(" ")?;
                    printer.operand(*second, *own, assign)
                };
                if close {
                    self.parenthesized(write)
                } else {
                    write(self)
                }
            }
            Node::Prefix(symbol, of, own) => {
                self.text(symbol)?;
                self.operand(*of, *own, false)
            }
            Node::Postfix(of, symbol, own) => {
                self.operand(*of, *own, true)?;
                self.text(symbol)
            }
            Node::Subscript(of, index) => {
                self.operand(*of, Precedence::Postfix, true)?;
                self.text("[")?;
                self.all(*index)?;
                self.text("]")
            }
            Node::Access(of, symbol, member, own) => {
                self.operand(*of, *own, true)?;
                self.text(symbol)?;
                self.operand(*member, *own, false)
            }
            Node::Conditional(when, then, otherwise) => {
                self.operand(*when, Precedence::Conditional, false)?;
                self.text(" ? ")?;
                self.all(*then)?;
                self.text(" : ")?;
                self.operand(*otherwise, Precedence::Assign, true)
            }
            Node::NamedCast(word, to, from) => {
                self.text(word)?;
                let open = std::mem::take(&mut self.open);
                self.text("<")?;
                self.left(*to)?;
                self.open = open;
                self.text(">")?;
                self.parenthesized(|printer| printer.all(*from))
            }
            Node::TypeCast(to, from) => {
                self.parenthesized(|printer| printer.all(*to))?;
                self.parenthesized(|printer| printer.list(from))
            }
            Node::Enclosed(word, of, _) => {
                self.text(word)?;
                self.parenthesized(|printer| printer.all(*of))
            }
            Node::SizeOfPack(pack) => {
                self.text("sizeof...")?;
                self.parenthesized(|printer| printer.expansion(*pack))
            }
            Node::SizeOfArguments(arguments) => {
                self.text("sizeof...")?;
                self.parenthesized(|printer| printer.list(arguments))
            }
            Node::Call(callee, arguments) => {
                self.all(*callee)?;
                self.parenthesized(|printer| printer.list(arguments))
            }
            Node::New {
                global,
                array,
                placement,
                of,
                arguments,
            } => {
                self.text(if *global { "::new" } else { "new" })?;
                self.text(if *array { "[]" } else { "" })?;
                if !placement.is_empty() {
                    self.parenthesized(|printer| printer.list(placement))?;
                }
                self.text(" ")?;
                self.all(*of)?;
                match arguments {
                    Some(arguments) => self.parenthesized(|printer| printer.list(arguments)),
                    None => Some(()),
                }
            }
            Node::Delete { global, array, of } => {
                self.text(if *global { "::delete" } else { "delete" })?;
                self.text(if *array { "[] " } else { " " })?;
                self.all(*of)
            }
            Node::Throw(what) => {
                self.text("throw ")?;
                self.all(*what)
            }
            Node::Braces(of, elements) => {
                of.map_or(Some(()), |of| self.all(of))?;
                self.text("{")?;
                self.list(elements)?;
                self.text("}")
            }
            Node::Designated(field, value, is_index) => {
                self.text(if *is_index { "[" } else { "." })?;
                self.all(*field)?;
                self.text(if *is_index { "]" } else { "" })?;
                let nested = matches!(self.node(*value)?, Node::Designated(..) | Node::Braces(..));
                if !nested {
                    self.text(" = ")?;
                }
                self.all(*value)
            }
            Node::Fold {
                left,
                operator,
                pack,
                start,
            } => self.parenthesized(|printer| {
                let pack =
                    |printer: &mut Self| printer.parenthesized(|printer| printer.expansion(*pack));
                let between = |printer: &mut Self| {
                    printer.text(" ")?;
                    printer.text(operator)?;
                    printer.text(" ")
                };
                if !*left || start.is_some() {
                    match (*left, *start) {
                        (true, Some(start)) => printer.operand(start, Precedence::Cast, true)?,
                        _ => pack(printer)?,
                    }
                    between(printer)?;
                }
                printer.text("...")?;
                if *left || start.is_some() {
                    between(printer)?;
                    match (*left, *start) {
                        (false, Some(start)) => printer.operand(start, Precedence::Cast, true)?,
                        _ => pack(printer)?,
                    }
                }
                Some(())
            }),
            Node::Global(name) => {
                self.text("::")?;
                self.all(*name)
            }
            _ => None,
        }
    }

    fn number(&mut self, digits: &str) -> Option<()> {
        match digits.strip_prefix('n') {
            Some(digits) => {
                self.text("-")?;
                self.text(digits)
            }
            None => self.text(digits),
        }
    }

    pub(super) fn precedence(&self, id: Id) -> Precedence {
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
            Some(Node::New { .. } | Node::Delete { .. }) => Precedence::Unary,
            Some(Node::Cast(..)) => Precedence::Cast,
            _ => Precedence::Primary,
        }
    }
}
