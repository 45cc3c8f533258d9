//! Prints expressions. Operands get parentheses only if precedence requires them.

use super::Printer;
use crate::node::{Id, Node, Precedence};

impl<'n, 's> Printer<'n, 's> {
    pub(crate) fn expression(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Integer(of, digits) => {
                let long = of.len() > 3;
                if long {
                    self.parenthesized(|printer| printer.push(of))?;
                }
                self.number(digits)?;
                if long { Some(()) } else { self.push(of) }
            }
            Node::Cast(of, digits) => {
                self.parenthesized(|printer| printer.write(*of))?;
                self.number(digits)
            }
            Node::Parameter(number) => {
                self.push("fp")?;
                self.push(number)
            }
            Node::Binary(first, symbol, second, own) => {
                let close = self.parentheses == 0 && matches!(*symbol, ">" | ">>");
                let write = |printer: &mut Self| {
                    let assign = *own == Precedence::Assign;
                    let within = if assign { Precedence::OrIf } else { *own };
                    printer.operand(*first, within, !assign)?;
                    if *symbol != "," {
                        printer.push(" ")?;
                    }
                    printer.push(symbol)?;
                    printer.push(" ")?;
                    printer.operand(*second, *own, assign)
                };
                if close {
                    self.parenthesized(write)
                } else {
                    write(self)
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
            Node::Call(callee, arguments) => {
                self.write(*callee)?;
                self.parenthesized(|printer| printer.list(arguments))
            }
            Node::New {
                global,
                array,
                placement,
                of,
                arguments,
            } => {
                self.push(if *global { "::new" } else { "new" })?;
                self.push(if *array { "[]" } else { "" })?;
                if !placement.is_empty() {
                    self.parenthesized(|printer| printer.list(placement))?;
                }
                self.push(" ")?;
                self.write(*of)?;
                match arguments {
                    Some(arguments) => self.parenthesized(|printer| printer.list(arguments)),
                    None => Some(()),
                }
            }
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
                of.map_or(Some(()), |of| self.write(of))?;
                self.push("{")?;
                self.list(elements)?;
                self.push("}")
            }
            Node::Designated(field, value, is_index) => {
                self.push(if *is_index { "[" } else { "." })?;
                self.write(*field)?;
                self.push(if *is_index { "]" } else { "" })?;
                let nested = matches!(self.node(*value)?, Node::Designated(..) | Node::Braces(..));
                if !nested {
                    self.push(" = ")?;
                }
                self.write(*value)
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
                    printer.push(" ")?;
                    printer.push(operator)?;
                    printer.push(" ")
                };
                if !*left || start.is_some() {
                    match (*left, *start) {
                        (true, Some(start)) => printer.operand(start, Precedence::Cast, true)?,
                        _ => pack(printer)?,
                    }
                    between(printer)?;
                }
                printer.push("...")?;
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
                self.push("::")?;
                self.write(*name)
            }
            _ => None,
        }
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
            Some(Node::New { .. } | Node::Delete { .. }) => Precedence::Unary,
            Some(Node::Cast(..)) => Precedence::Cast,
            _ => Precedence::Primary,
        }
    }
}
