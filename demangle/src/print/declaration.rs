//! Prints names and types.
//!
//! A declaration surrounds the declared name. `int (*name)[3]` has a left part, `int (*`, and a right part, `)[3]`.

use super::Printer;
use super::resolve::Shape;
use crate::node::{Function, Id, Node, Qualifiers};

impl<'n, 's> Printer<'n, 's> {
    pub(crate) fn left_of(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Name(name) => self.push(name),
            Node::Standard(short, ..) => self.push(short),
            Node::StandardInFull(full, _) => self.push(full),
            Node::Member(scope, name) => {
                self.write(*scope)?;
                self.push("::")?;
                self.write(*name)
            }
            Node::Template(name, arguments) => {
                self.write(*name)?;
                self.write(*arguments)
            }
            Node::Arguments(arguments) => self.in_angle_brackets(arguments),
            Node::ArgumentPack(elements) => self.list(elements),
            Node::Pack(_) => match self.pack_element(node) {
                Some(element) => self.left(element),
                None => Some(()),
            },
            Node::Expansion(pattern) => self.expansion(*pattern),
            Node::Tagged(name, tag) => {
                self.write(*name)?;
                self.push("[abi:")?;
                self.push(tag)?;
                self.push("]")
            }
            Node::Constructor(class) => self.base_name(*class),
            Node::Destructor(class) => {
                self.push("~")?;
                self.base_name(*class)
            }
            Node::Literal(name) => {
                self.push("operator\"\" ")?;
                self.write(*name)
            }
            Node::Conversion(to) => {
                self.push("operator ")?;
                self.write(*to)
            }
            Node::Binding(names) => {
                self.push("[")?;
                self.list(names)?;
                self.push("]")
            }
            Node::Unnamed(number) => {
                self.push("'unnamed")?;
                self.push(number)?;
                self.push("'")
            }
            Node::Lambda(declared, parameters, number) => self.lambda(declared, parameters, number),
            Node::Forward(_, argument) => self.left((*argument)?),
            other => self.type_left(other),
        }
    }

    /// Prints the left part of a type, of a symbol that the compiler generates, or of a template parameter's declaration.
    fn type_left(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Function(function) | Node::FunctionType(function) => self.function_left(function),
            Node::Special(prefix, of) => {
                self.push(prefix)?;
                self.write(*of)
            }
            Node::Joined(before, first, between, second) => {
                self.push(before)?;
                self.write(*first)?;
                self.push(between)?;
                self.write(*second)
            }
            Node::Suffix(of, suffix) => {
                self.write(*of)?;
                self.push(" (")?;
                self.push(suffix)?;
                self.push(")")
            }
            Node::Qualified(of, qualifiers) => {
                self.left(*of)?;
                self.qualifiers(*qualifiers)
            }
            Node::VendorQualified(of, name, arguments) => {
                self.write(*of)?;
                self.push(" ")?;
                self.push(name)?;
                self.write_if_any(*arguments)
            }
            Node::Postfixed(of, suffix) => {
                self.write(*of)?;
                self.push(suffix)
            }
            Node::Elaborated(kind, name) => {
                self.push(kind)?;
                self.push(" ")?;
                self.write(*name)
            }
            Node::Pointer(to) => {
                self.before_pointer(*to)?;
                self.push("*")
            }
            Node::Reference(..) => {
                let (to, rvalue) = self.collapse_references(node)?;
                self.before_pointer(to)?;
                self.push(if rvalue { "&&" } else { "&" })
            }
            Node::MemberPointer(class, member) => self.before_member_pointer(*class, *member),
            Node::Array(of, _) => self.left(*of),
            Node::Vector(of, size) => self.vector(*of, *size),
            Node::ParameterDeclaration(prefix, of, stem, number) => {
                self.push(prefix)?;
                self.parameter_type(*of)?;
                self.parameter_name(stem, *number)
            }
            other => self.expression(other),
        }
    }

    fn lambda(&mut self, declared: &[Id], parameters: &[Id], number: &str) -> Option<()> {
        self.push("'lambda")?;
        self.push(number)?;
        self.push("'")?;
        if !declared.is_empty() {
            self.in_angle_brackets(declared)?;
        }
        self.parenthesized(|printer| printer.list(parameters))
    }

    fn vector(&mut self, of: Id, size: Option<Id>) -> Option<()> {
        self.write(of)?;
        self.push(" vector[")?;
        self.write_if_any(size)?;
        self.push("]")
    }

    /// Prints the type of a template parameter that is a value.
    fn parameter_type(&mut self, of: Option<Id>) -> Option<()> {
        let Some(of) = of else {
            return Some(());
        };
        self.write(of)?;
        self.push(" ")
    }

    /// Prints the name of a template parameter that a lambda declares. The first of a kind has no number.
    fn parameter_name(&mut self, stem: &str, number: usize) -> Option<()> {
        self.push(stem)?;
        match number.checked_sub(1) {
            Some(number) => self.push(&number.to_string()),
            None => Some(()),
        }
    }

    /// Prints a list of template parameters or arguments.
    fn in_angle_brackets(&mut self, elements: &[Id]) -> Option<()> {
        let parentheses = std::mem::take(&mut self.parentheses);
        self.push("<")?;
        self.list(elements)?;
        self.parentheses = parentheses;
        self.push(">")
    }

    pub(crate) fn right_of(&mut self, node: &'n Node<'s>) -> Option<()> {
        match node {
            Node::Function(function) | Node::FunctionType(function) => {
                self.function_right(function)
            }
            Node::Qualified(of, _) => self.right(*of),
            Node::Forward(_, argument) => self.right((*argument)?),
            Node::Pack(_) => match self.pack_element(node) {
                Some(element) => self.right(element),
                None => Some(()),
            },
            Node::Pointer(to) => self.after_pointer(*to),
            Node::Reference(..) => {
                let (to, _) = self.collapse_references(node)?;
                self.after_pointer(to)
            }
            Node::MemberPointer(_, member) => self.after_pointer(*member),
            Node::Array(of, size) => {
                if !self.out.ends_with(']') {
                    self.push(" ")?;
                }
                self.push("[")?;
                self.write_if_any(*size)?;
                self.push("]")?;
                self.right(*of)
            }
            _ => Some(()),
        }
    }

    /// Prints the part before the `*` or `&` of a pointer or reference.
    fn before_pointer(&mut self, to: Id) -> Option<()> {
        self.left(to)?;
        match self.shape(to) {
            Shape::Plain => Some(()),
            Shape::Array => self.push(" ("),
            Shape::Function => self.push("("),
        }
    }

    /// Prints the left part of a pointer to a `member` of a `class`.
    fn before_member_pointer(&mut self, class: Id, member: Id) -> Option<()> {
        self.left(member)?;
        match self.shape(member) {
            Shape::Plain => self.push(" ")?,
            _ => self.push("(")?,
        }
        self.write(class)?;
        self.push("::*")
    }

    /// Prints the part after the `*` or `&` of a pointer or reference.
    fn after_pointer(&mut self, to: Id) -> Option<()> {
        if self.shape(to) != Shape::Plain {
            self.push(")")?;
        }
        self.right(to)
    }

    fn function_left(&mut self, function: &Function) -> Option<()> {
        if let Some(returns) = function.returns {
            self.left(returns)?;
            if function.name.is_none() || !self.has_right(returns) {
                self.push(" ")?;
            }
        }
        self.write_if_any(function.name)
    }

    fn function_right(&mut self, function: &Function) -> Option<()> {
        self.parenthesized(|printer| printer.list(&function.parameters))?;
        if let Some(returns) = function.returns {
            self.right(returns)?;
        }
        self.qualifiers(function.qualifiers)?;
        self.push(function.reference)?;
        if let Some(exceptions) = function.exceptions {
            self.push(" ")?;
            self.write(exceptions)?;
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
                self.push(word)?;
            }
        }
        Some(())
    }
}
