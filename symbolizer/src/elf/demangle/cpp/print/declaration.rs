//! How are names and types written?
//!
//! A declaration is written around its name: what comes before it (`left`) and what comes
//! after it (`right`), as in `int (*name)[3]`.

use super::super::node::{Function, Id, Node, Qualifiers};
use super::Printer;
use super::sight::Shape;

impl<'n, 's> Printer<'n, 's> {
    pub(super) fn left_of(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Name(name) => self.text(name),
            Node::Standard(short, ..) => self.text(short),
            Node::StandardInFull(full, _) => self.text(full),
            Node::Member(scope, name) => {
                self.all(*scope)?;
                self.text("::")?;
                self.all(*name)
            }
            Node::Template(name, arguments) => {
                self.all(*name)?;
                self.all(*arguments)
            }
            Node::Arguments(arguments) => {
                let open = std::mem::take(&mut self.open);
                self.text("<")?;
                self.list(arguments)?;
                self.open = open;
                self.text(">")
            }
            Node::ArgumentPack(elements) => self.list(elements),
            Node::Pack(_) => match self.element(node) {
                Some(element) => self.left(element),
                None => Some(()),
            },
            Node::Expansion(pattern) => self.expansion(*pattern),
            Node::Tagged(name, tag) => {
                self.all(*name)?;
                self.text("[abi:")?;
                self.text(tag)?;
                self.text("]")
            }
            Node::Constructor(class) => self.base_name(*class),
            Node::Destructor(class) => {
                self.text("~")?;
                self.base_name(*class)
            }
            Node::Literal(name) => {
                self.text("operator\"\" ")?;
                self.all(*name)
            }
            Node::Conversion(to) => {
                self.text("operator ")?;
                self.all(*to)
            }
            Node::Binding(names) => {
                self.text("[")?;
                self.list(names)?;
                self.text("]")
            }
            Node::Unnamed(number) => {
                self.text("'unnamed")?;
                self.text(number)?;
                self.text("'")
            }
            Node::Lambda(declared, parameters, number) => {
                self.text("'lambda")?;
                self.text(number)?;
                self.text("'")?;
                if !declared.is_empty() {
                    let open = std::mem::take(&mut self.open);
                    self.text("<")?;
                    self.list(declared)?;
                    self.open = open;
                    self.text(">")?;
                }
                self.parenthesized(|printer| printer.list(parameters))
            }
            Node::Forward(_, argument) => self.left((*argument)?),
            Node::Function(function) | Node::FunctionType(function) => self.function_left(function),
            Node::Special(words, of) => {
                self.text(words)?;
                self.all(*of)
            }
            Node::Between(before, first, between, second) => {
                self.text(before)?;
                self.all(*first)?;
                self.text(between)?;
                self.all(*second)
            }
            Node::Suffix(of, suffix) => {
                self.all(*of)?;
                self.text(" (")?;
                self.text(suffix)?;
                self.text(")")
            }
            Node::Qualified(of, qualifiers) => {
                self.left(*of)?;
                self.qualifiers(*qualifiers)
            }
            Node::VendorQualified(of, name, arguments) => {
                self.all(*of)?;
                self.text(" ")?;
                self.text(name)?;
                arguments.map_or(Some(()), |arguments| self.all(arguments))
            }
            Node::Postfixed(of, words) => {
                self.all(*of)?;
                self.text(words)
            }
            Node::Elaborated(kind, name) => {
                self.text(kind)?;
                self.text(" ")?;
                self.all(*name)
            }
            Node::Pointer(to) => {
                self.opening(*to, "")?;
                self.text("*")
            }
            Node::Reference(..) => {
                let (to, rvalue) = self.collapsed(node)?;
                self.opening(to, "")?;
                self.text(if rvalue { "&&" } else { "&" })
            }
            Node::MemberPointer(class, member) => {
                self.left(*member)?;
                match self.shape(*member) {
                    Shape::Plain => self.text(" ")?,
                    _ => self.text("(")?,
                }
                self.all(*class)?;
                self.text("::*")
            }
            Node::Array(of, _) => self.left(*of),
            Node::Vector(of, size) => {
                self.all(*of)?;
                self.text(" vector[")?;
                size.map_or(Some(()), |size| self.all(size))?;
                self.text("]")
            }
            Node::ParameterDeclaration(words, of, stem, number) => {
                self.text(words)?;
                if let Some(of) = of {
                    self.all(*of)?;
                    self.text(" ")?;
                }
                self.text(stem)?;
                match number.checked_sub(1) {
                    Some(number) => self.text(&number.to_string()),
                    None => Some(()),
                }
            }
            other => self.expression(other),
        }
    }

    pub(super) fn right_of(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Function(function) | Node::FunctionType(function) => {
                self.function_right(function)
            }
            Node::Qualified(of, _) => self.right(*of),
            Node::Forward(_, argument) => self.right((*argument)?),
            Node::Pack(_) => match self.element(node) {
                Some(element) => self.right(element),
                None => Some(()),
            },
            Node::Pointer(to) => self.closing(*to),
            Node::Reference(..) => {
                let (to, _) = self.collapsed(node)?;
                self.closing(to)
            }
            Node::MemberPointer(_, member) => self.closing(*member),
            Node::Array(of, size) => {
                if !self.out.ends_with(']') {
                    self.text(" ")?;
                }
                self.text("[")?;
                size.map_or(Some(()), |size| self.all(size))?;
                self.text("]")?;
                self.right(*of)
            }
            _ => Some(()),
        }
    }

    /// What comes before the * or & of a pointer.
    fn opening(&mut self, to: Id, plain: &str) -> Option<()> {
        self.left(to)?;
        match self.shape(to) {
            Shape::Plain => self.text(plain),
            Shape::Array => self.text(" ("),
            Shape::Function => self.text("("),
        }
    }

    /// What comes after it.
    fn closing(&mut self, to: Id) -> Option<()> {
        if self.shape(to) != Shape::Plain {
            self.text(")")?;
        }
        self.right(to)
    }

    fn function_left(&mut self, function: &Function) -> Option<()> {
        if let Some(returns) = function.returns {
            self.left(returns)?;
            if function.name.is_none() || !self.has_right(returns) {
                self.text(" ")?;
            }
        }
        function.name.map_or(Some(()), |name| self.all(name))
    }

    fn function_right(&mut self, function: &Function) -> Option<()> {
        self.parenthesized(|printer| printer.list(&function.parameters))?;
        if let Some(returns) = function.returns {
            self.right(returns)?;
        }
        self.qualifiers(function.qualifiers)?;
        self.text(function.reference)?;
        if let Some(exceptions) = function.exceptions {
            self.text(" ")?;
            self.all(exceptions)?;
        }
        Some(())
    }

    fn qualifiers(&mut self, qualifiers: Qualifiers) -> Option<()> {
        for (has, word) in [
            (qualifiers.constant, " const"),
            (qualifiers.volatile, " volatile"),
            (qualifiers.restrict, " restrict"),
        ] {
            if has {
                self.text(word)?;
            }
        }
        Some(())
    }
}
