//! Parses the names of functions, members, local entities and special symbols.

use crate::node::{Function, Id, Node, Qualifiers};
use crate::operators::{self, Kind};
use crate::parser::{NameState, Parser};

/// What a special symbol belongs to.
#[derive(Clone, Copy)]
enum SpecialOperand {
    Type,
    Name,
    TemplateArgument,
    Encoding,
}

/// The special symbols that are a code and an operand: the code, the words in front of the operand, and the operand.
const SPECIALS: [(&str, &str, SpecialOperand); 10] = [
    ("TV", "vtable for ", SpecialOperand::Type),
    ("TT", "VTT for ", SpecialOperand::Type),
    ("TI", "typeinfo for ", SpecialOperand::Type),
    ("TS", "typeinfo name for ", SpecialOperand::Type),
    (
        "TW",
        "thread-local wrapper routine for ",
        SpecialOperand::Name,
    ),
    (
        "TH",
        "thread-local initialization routine for ",
        SpecialOperand::Name,
    ),
    ("GV", "guard variable for ", SpecialOperand::Name),
    (
        "TA",
        "template parameter object for ",
        SpecialOperand::TemplateArgument,
    ),
    ("GTt", "transaction clone for ", SpecialOperand::Encoding),
    (
        "GTn",
        "non-transaction clone for ",
        SpecialOperand::Encoding,
    ),
];

impl<'s> Parser<'s> {
    /// `<encoding>`: a function with its parameters, or an object.
    pub(crate) fn encoding(&mut self) -> Option<Id> {
        self.nested(|parser| {
            // A nested function has its own template parameters.
            let outer = std::mem::take(&mut parser.parameters);
            let result = parser.encoding_here();
            parser.parameters = outer;
            result
        })
    }

    fn encoding_here(&mut self) -> Option<Id> {
        if matches!(self.peek(0), b'G' | b'T') {
            return self.special();
        }
        let mut state = NameState::default();
        let unresolved = self.forward_references.len();
        let name = self.name(Some(&mut state))?;
        self.resolve(unresolved)?;
        let at_end = |parser: &Self| matches!(parser.peek(0), 0 | b'E' | b'.' | b'_');
        if at_end(self) {
            return Some(name);
        }
        let returns = match !state.no_return_type && state.ends_with_arguments {
            true => Some(self.type_()?),
            false => None,
        };
        let mut parameters = Vec::new();
        if !self.eat("v") {
            parameters.push(self.type_()?);
            while !at_end(self) {
                parameters.push(self.type_()?);
            }
        }
        self.make(Node::Function(Box::new(Function {
            returns,
            name: Some(name),
            parameters,
            qualifiers: state.qualifiers,
            reference: state.reference,
            exceptions: None,
        })))
    }

    /// Resolves the forward references from index `from` on.
    fn resolve(&mut self, from: usize) -> Option<()> {
        for reference in self.forward_references.split_off(from) {
            let Some(&Node::Forward(index, _)) = self.node(reference) else {
                return None;
            };
            let argument = *self.parameters.first()?.get(index)?;
            *self.nodes.get_mut(reference.index())? = Node::Forward(index, Some(argument));
        }
        Some(())
    }

    /// `<special-name>`: a virtual table, a thunk and other symbols that the compiler generates.
    fn special(&mut self) -> Option<Id> {
        for (code, prefix, operand) in SPECIALS {
            if self.eat(code) {
                let of = match operand {
                    SpecialOperand::Type => self.type_()?,
                    SpecialOperand::Name => self.name(None)?,
                    SpecialOperand::TemplateArgument => self.template_argument()?,
                    SpecialOperand::Encoding => self.encoding()?,
                };
                return self.make(Node::Special(prefix, of));
            }
        }
        if self.eat("TC") {
            return self.construction_vtable();
        }
        if self.eat("GR") {
            return self.reference_temporary();
        }
        self.thunk()
    }

    /// The virtual table of a base while a derived class is constructed.
    fn construction_vtable(&mut self) -> Option<Id> {
        let derived = self.type_()?;
        self.digits(true);
        self.expect("_")?;
        let base = self.type_()?;
        self.make(Node::Joined(
            "construction vtable for ",
            base,
            "-in-",
            derived,
        ))
    }

    /// A temporary whose lifetime a reference extends.
    fn reference_temporary(&mut self) -> Option<Id> {
        let of = self.name(None)?;
        let numbered = self.peek(0).is_ascii_digit() || self.peek(0).is_ascii_uppercase();
        if numbered {
            self.sequence()?;
        }
        if !self.eat("_") && numbered {
            return None;
        }
        self.make(Node::Special("reference temporary for ", of))
    }

    /// A function that adjusts `this`, or `this` and the result, and calls another.
    fn thunk(&mut self) -> Option<Id> {
        self.expect("T")?;
        let prefix = if self.eat("c") {
            self.call_offset()?;
            "covariant return thunk to "
        } else if self.peek(0) == b'v' {
            "virtual thunk to "
        } else {
            "non-virtual thunk to "
        };
        self.call_offset()?;
        let of = self.encoding()?;
        self.make(Node::Special(prefix, of))
    }

    fn call_offset(&mut self) -> Option<()> {
        let offsets = match self.peek(0) {
            b'h' => 1,
            b'v' => 2,
            _ => return None,
        };
        self.skip(1)?;
        for _ in 0..offsets {
            self.digits(true);
            self.expect("_")?;
        }
        Some(())
    }

    /// `<name>`. `state` is given if the name belongs to an encoding.
    pub(crate) fn name(&mut self, mut state: Option<&mut NameState>) -> Option<Id> {
        self.nested(|parser| {
            match parser.peek(0) {
                b'N' => return parser.nested_name(state),
                b'Z' => return parser.local_name(state),
                _ => {}
            }
            let (name, substituted) = parser.unscoped_name(state.as_deref_mut())?;
            if parser.peek(0) == b'I' {
                if !substituted {
                    parser.substitutions.push(name);
                }
                let arguments = parser.template_arguments(state.is_some())?;
                if let Some(state) = state {
                    state.ends_with_arguments = true;
                }
                return parser.make(Node::Template(name, arguments));
            }
            (!substituted).then_some(name)
        })
    }

    /// `<unscoped-name>`, and whether it was a substitution.
    pub(crate) fn unscoped_name(&mut self, state: Option<&mut NameState>) -> Option<(Id, bool)> {
        let scope = match self.eat("St") {
            true => Some(self.make(Node::Name("std"))?),
            false => None,
        };
        if self.peek(0) == b'S' {
            return match scope {
                None => Some((self.substitution()?, true)),
                Some(_) => None,
            };
        }
        Some((self.unqualified_name(state, scope)?, false))
    }

    /// `<local-name>`: an entity inside a function. Template parameters refer to the function's arguments until the entity's
    /// own arguments are read.
    fn local_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        self.expect("Z")?;
        let in_encoding = state.is_some();
        let outer = std::mem::take(&mut self.parameters);
        let function = self.nested(Self::encoding_here)?;
        self.expect("E")?;
        // The number of a default argument.
        if self.eat("d") {
            self.digits(true);
            self.expect("_")?;
        }
        let entity = match self.eat("s") {
            true => self.make(Node::Name("string literal"))?,
            false => self.name(state)?,
        };
        self.discriminator();
        if !in_encoding {
            self.parameters = outer;
        }
        self.make(Node::Member(function, entity))
    }

    /// `<discriminator>`: distinguishes local names. It is not printed.
    fn discriminator(&mut self) {
        let before = self.rest;
        if self.eat("__") {
            if self.digits(false).is_empty() || !self.eat("_") {
                self.rest = before;
            }
        } else if self.eat("_") {
            match self.peek(0).is_ascii_digit() {
                true => {
                    let _ = self.skip(1);
                }
                false => self.rest = before,
            }
        }
    }

    fn nested_name(&mut self, mut state: Option<&mut NameState>) -> Option<Id> {
        self.expect("N")?;
        let qualifiers = self.qualifiers();
        let reference = match () {
            () if self.eat("O") => " &&",
            () if self.eat("R") => " &",
            () => "",
        };
        if let Some(state) = state.as_deref_mut() {
            state.qualifiers = qualifiers;
            state.reference = reference;
        }
        let mut prefix = None;
        while !self.eat("E") {
            if let Some(state) = state.as_deref_mut() {
                state.ends_with_arguments = false;
            }
            let next = match (self.peek(0), self.peek(1)) {
                (b'T', _) if prefix.is_none() => self.template_parameter()?,
                (b'I', _) => {
                    let template = prefix?;
                    if matches!(self.node(template)?, Node::Template(..)) {
                        return None;
                    }
                    let arguments = self.template_arguments(state.is_some())?;
                    if let Some(state) = state.as_deref_mut() {
                        state.ends_with_arguments = true;
                    }
                    self.make(Node::Template(template, arguments))?
                }
                (b'D', b't' | b'T') if prefix.is_none() => self.decltype()?,
                (b'S', b't') if prefix.is_none() => {
                    self.skip(2)?;
                    prefix = Some(self.make(Node::Name("std"))?);
                    continue;
                }
                (b'S', _) if prefix.is_none() => {
                    prefix = Some(self.substitution()?);
                    continue;
                }
                (b'S' | b'T', _) => return None,
                _ => self.unqualified_name(state.as_deref_mut(), prefix)?,
            };
            prefix = Some(next);
            self.substitutions.push(next);
            // A lambda in a member's initializer.
            self.eat("M");
        }
        self.substitutions.pop()?;
        prefix
    }

    /// One component of a name, as a member of `scope` if there is one.
    pub(crate) fn unqualified_name(
        &mut self,
        state: Option<&mut NameState>,
        mut scope: Option<Id>,
    ) -> Option<Id> {
        if scope.is_some() {
            // A friend that is declared in a class.
            self.eat("F");
        }
        // A name with internal linkage.
        self.eat("L");
        let name = match (self.peek(0), self.peek(1)) {
            (b'1'..=b'9', _) => self.source_name()?,
            (b'U', _) => self.unnamed(state.is_some())?,
            (b'D', b'C') => {
                self.skip(2)?;
                let names = self.until("E", Self::source_name)?;
                self.make(Node::Binding(names))?
            }
            (b'C' | b'D', _) => {
                if let Some(&Node::Standard(_, full, base)) = self.node(scope?) {
                    scope = Some(self.make(Node::StandardInFull(full, base))?);
                }
                self.constructor(scope?, state)?
            }
            _ => self.operator_name(state)?,
        };
        let name = self.tags(name)?;
        match scope {
            Some(scope) => self.make(Node::Member(scope, name)),
            None => Some(name),
        }
    }

    fn constructor(&mut self, class: Id, state: Option<&mut NameState>) -> Option<Id> {
        let is_constructor = self.peek(0) == b'C';
        self.skip(1)?;
        let inherited = is_constructor && self.eat("I");
        match (is_constructor, self.peek(0)) {
            (true, b'1'..=b'5') | (false, b'0' | b'1' | b'2' | b'4' | b'5') => self.skip(1)?,
            _ => return None,
        }
        if inherited {
            self.name(None)?;
        }
        if let Some(state) = state {
            state.no_return_type = true;
        }
        self.make(match is_constructor {
            true => Node::Constructor(class),
            false => Node::Destructor(class),
        })
    }

    pub(crate) fn tags(&mut self, mut name: Id) -> Option<Id> {
        while self.eat("B") {
            let tag = self.identifier()?;
            name = self.make(Node::Tagged(name, tag))?;
        }
        Some(name)
    }

    /// A length in bytes, followed by that many bytes.
    pub(crate) fn identifier(&mut self) -> Option<&'s str> {
        let length: usize = self.digits(false).parse().ok()?;
        let (name, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    pub(crate) fn source_name(&mut self) -> Option<Id> {
        let name = self.identifier()?;
        self.make(Node::Name(match name.starts_with("_GLOBAL__N") {
            true => "(anonymous namespace)",
            false => name,
        }))
    }

    /// `<unnamed-type-name>`: an unnamed type or a lambda.
    fn unnamed(&mut self, in_encoding: bool) -> Option<Id> {
        if in_encoding {
            self.parameters.clear();
        }
        if self.eat("Ut") {
            let number = self.digits(false);
            self.expect("_")?;
            return self.make(Node::Unnamed(number));
        }
        if self.eat("Ub") {
            self.digits(false);
            self.expect("_")?;
            return self.make(Node::Name("'block-literal'"));
        }
        self.expect("Ul")?;
        let levels = self.parameters.len();
        let outer = self.lambda_level.replace(levels);
        let result = self.lambda();
        self.lambda_level = outer;
        self.parameters.truncate(levels);
        result
    }

    fn lambda(&mut self) -> Option<Id> {
        let mut declared = Vec::new();
        let mut counts = [0; 2];
        self.parameters.push(Vec::new());
        while self.peek(0) == b'T' && matches!(self.peek(1), b'y' | b'n' | b't' | b'p') {
            declared.push(self.parameter_declaration(&mut counts)?);
        }
        if declared.is_empty() {
            self.parameters.pop();
        }
        let parameters = match self.eat("vE") {
            true => Vec::new(),
            false => self.until("E", Self::type_)?,
        };
        let number = self.digits(false);
        self.expect("_")?;
        self.make(Node::Lambda(declared, parameters, number))
    }

    /// `<template-param-decl>`: a template parameter that a lambda declares. `counts` are the numbers of type and of value
    /// parameters so far.
    fn parameter_declaration(&mut self, counts: &mut [usize; 2]) -> Option<Id> {
        self.nested(|parser| {
            let [types, values] = counts;
            if parser.eat("Tp") {
                let inner = parser.parameter_declaration(counts)?;
                let last = parser.parameters.last_mut()?;
                last.pop();
                let pack = parser.make(Node::Pack(vec![inner]))?;
                parser.parameters.last_mut()?.push(pack);
                return parser.make(Node::Prefix("...", inner, crate::node::Precedence::Primary));
            }
            let (prefix, of, stem, count) = if parser.eat("Ty") {
                ("typename ", None, "$T", types)
            } else if parser.eat("Tn") {
                ("", Some(parser.type_()?), "$N", values)
            } else {
                // Template template parameters are not supported: the name stays mangled.
                return None;
            };
            let number = *count;
            *count = count.saturating_add(1);
            let declared = parser.make(Node::ParameterDeclaration(prefix, of, stem, number))?;
            let name = parser.make(Node::ParameterDeclaration("", None, stem, number))?;
            parser.parameters.last_mut()?.push(name);
            Some(declared)
        })
    }

    fn operator_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        if self.eat("li") {
            let name = self.source_name()?;
            return self.make(Node::Literal(name));
        }
        if self.eat("cv") {
            let in_encoding = state.is_some();
            let (no_type_arguments, forward) =
                (self.no_type_arguments, self.allow_forward_references);
            self.no_type_arguments = true;
            self.allow_forward_references |= in_encoding;
            let to = self.type_();
            self.no_type_arguments = no_type_arguments;
            self.allow_forward_references = forward;
            if let Some(state) = state {
                state.no_return_type = true;
            }
            return self.make(Node::Conversion(to?));
        }
        if self.eat("v") {
            // A vendor extended operator.
            self.skip(1)?;
            let name = self.source_name()?;
            return self.make(Node::Conversion(name));
        }
        let operator = operators::find(self.rest)?;
        if operator.kind == Kind::NotAFunction {
            return None;
        }
        self.skip(2)?;
        self.make(Node::Name(operator.name))
    }

    pub(crate) fn qualifiers(&mut self) -> Qualifiers {
        let restrict = self.eat("r");
        let volatile = self.eat("V");
        let constant = self.eat("K");
        Qualifiers {
            constant,
            volatile,
            restrict,
        }
    }
}
