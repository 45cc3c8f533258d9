//! Parses types and template arguments.

use crate::node::{Function, Id, Node, Precedence};
use crate::parser::{NameState, Parser};

impl Parser<'_> {
    /// `<type>`.
    pub(crate) fn type_(&mut self) -> Option<Id> {
        self.nested(Self::type_here)
    }

    fn type_here(&mut self) -> Option<Id> {
        if let Some((name, length)) = builtin(self.rest) {
            self.skip(length)?;
            return self.make(Node::Name(name));
        }
        let found = match (self.peek(0), self.peek(1)) {
            (b'r' | b'V' | b'K' | b'U', _) => match self.is_qualified_function() {
                true => self.function_type()?,
                false => self.qualified_type()?,
            },
            (b'u', _) => self.vendor_type()?,
            (b'D', b't' | b'T') => self.decltype()?,
            (b'D', b'v') => self.vector()?,
            (b'D', b'p') => {
                self.skip(2)?;
                let pattern = self.type_()?;
                self.make(Node::Expansion(pattern))?
            }
            (b'D', b'F') => self.float_of_width()?,
            (b'F', _) | (b'D', b'o' | b'O' | b'w' | b'x') => self.function_type()?,
            (b'A', _) => self.array()?,
            (b'M', _) => {
                self.skip(1)?;
                let class = self.type_()?;
                let member = self.type_()?;
                self.make(Node::MemberPointer(class, member))?
            }
            (b'T', b's') => self.elaborated_type("struct")?,
            (b'T', b'u') => self.elaborated_type("union")?,
            (b'T', b'e') => self.elaborated_type("enum")?,
            (b'T', _) => self.template_parameter_type()?,
            (b'P', _) => self.around(Node::Pointer)?,
            (b'R', _) => self.around(|to| Node::Reference(to, false))?,
            (b'O', _) => self.around(|to| Node::Reference(to, true))?,
            (b'C', _) => self.around(|of| Node::Postfixed(of, " complex"))?,
            (b'G', _) => self.around(|of| Node::Postfixed(of, " imaginary"))?,
            (b'S', second) if second != b't' => return self.substituted_type(),
            _ => self.name(None)?,
        };
        self.substitutions.push(found);
        Some(found)
    }

    /// A type that a vendor has added, with its arguments.
    fn vendor_type(&mut self) -> Option<Id> {
        self.skip(1)?;
        let name = self.source_name()?;
        match self.peek(0) {
            b'I' => {
                let arguments = self.template_arguments(false)?;
                self.make(Node::Template(name, arguments))
            }
            _ => Some(name),
        }
    }

    /// A floating-point type with its number of bits, such as `_Float16`.
    fn float_of_width(&mut self) -> Option<Id> {
        self.skip(2)?;
        let bits = self.digits(false);
        self.expect("_")?;
        let prefix = self.make(Node::Name("_Float"))?;
        let bits = self.make(Node::Name(bits))?;
        self.make(Node::Joined("", prefix, "", bits))
    }

    /// A type that is named with its `keyword`.
    fn elaborated_type(&mut self, keyword: &'static str) -> Option<Id> {
        self.skip(2)?;
        let name = self.name(None)?;
        self.make(Node::Elaborated(keyword, name))
    }

    /// A template parameter, or a template template parameter with its arguments.
    fn template_parameter_type(&mut self) -> Option<Id> {
        let parameter = self.template_parameter()?;
        match self.peek(0) == b'I' && !self.no_type_arguments {
            true => {
                self.substitutions.push(parameter);
                let arguments = self.template_arguments(false)?;
                self.make(Node::Template(parameter, arguments))
            }
            false => Some(parameter),
        }
    }

    /// A substitution, or a template of one. Only what is more than the substitution can be substituted itself.
    fn substituted_type(&mut self) -> Option<Id> {
        let (name, substituted) = self.unscoped_name(None)?;
        let found = if self.peek(0) == b'I' && (!substituted || !self.no_type_arguments) {
            if !substituted {
                self.substitutions.push(name);
            }
            let arguments = self.template_arguments(false)?;
            self.make(Node::Template(name, arguments))?
        } else if substituted {
            return Some(name);
        } else {
            name
        };
        self.substitutions.push(found);
        Some(found)
    }

    /// A type that is one letter and another type.
    fn around(&mut self, make: impl FnOnce(Id) -> Node<'static>) -> Option<Id> {
        self.skip(1)?;
        let inner = self.type_()?;
        self.make(make(inner))
    }

    /// Returns true if a function type follows the qualifiers here.
    fn is_qualified_function(&mut self) -> bool {
        let before = self.rest;
        self.qualifiers();
        let function = self.is_function();
        self.rest = before;
        function
    }

    fn is_function(&self) -> bool {
        matches!(
            (self.peek(0), self.peek(1)),
            (b'F', _) | (b'D', b'o' | b'O' | b'w' | b'x')
        )
    }

    fn qualified_type(&mut self) -> Option<Id> {
        if self.eat("U") {
            let name = self.identifier()?;
            let arguments = match self.peek(0) {
                b'I' => Some(self.template_arguments(false)?),
                _ => None,
            };
            let of = self.nested(Self::qualified_type)?;
            return self.make(Node::VendorQualified(of, name, arguments));
        }
        let qualifiers = self.qualifiers();
        let of = self.type_()?;
        match qualifiers.any() {
            true => self.make(Node::Qualified(of, qualifiers)),
            false => Some(of),
        }
    }

    fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers();
        let exceptions = if self.eat("Do") {
            Some(self.make(Node::Name("noexcept"))?)
        } else if self.eat("DO") {
            let when = self.expression()?;
            self.expect("E")?;
            Some(self.make(Node::Enclosed("noexcept", when, Precedence::Primary))?)
        } else if self.eat("Dw") {
            let types = self.until("E", Self::type_)?;
            let word = self.make(Node::Name("throw"))?;
            Some(self.make(Node::Call(word, types))?)
        } else {
            None
        };
        self.eat("Dx");
        self.expect("F")?;
        self.eat("Y");
        let returns = self.type_()?;
        let mut parameters = Vec::new();
        let reference = loop {
            if self.eat("E") {
                break "";
            }
            if self.eat("RE") {
                break " &";
            }
            if self.eat("OE") {
                break " &&";
            }
            if !self.eat("v") {
                parameters.push(self.type_()?);
            }
        };
        self.make(Node::FunctionType(Box::new(Function {
            returns: Some(returns),
            name: None,
            parameters,
            qualifiers,
            reference,
            exceptions,
        })))
    }

    fn array(&mut self) -> Option<Id> {
        self.expect("A")?;
        let size = match self.peek(0) {
            b'0'..=b'9' => {
                let digits = self.digits(false);
                Some(self.make(Node::Name(digits))?)
            }
            b'_' => None,
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        let of = self.type_()?;
        self.make(Node::Array(of, size))
    }

    fn vector(&mut self) -> Option<Id> {
        self.expect("Dv")?;
        let size = match self.peek(0) {
            b'0'..=b'9' => {
                let digits = self.digits(false);
                Some(self.make(Node::Name(digits))?)
            }
            b'_' => None,
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        if self.eat("p") {
            let pixel = self.make(Node::Name("pixel"))?;
            return self.make(Node::Vector(pixel, size));
        }
        let of = self.type_()?;
        self.make(Node::Vector(of, size))
    }

    pub(crate) fn decltype(&mut self) -> Option<Id> {
        if !self.eat("Dt") {
            self.expect("DT")?;
        }
        let of = self.expression()?;
        self.expect("E")?;
        self.make(Node::Enclosed("decltype", of, Precedence::Primary))
    }

    /// `<substitution>`: an abbreviation such as `Ss`, or a reference to an earlier part.
    pub(crate) fn substitution(&mut self) -> Option<Id> {
        self.expect("S")?;
        let standard = match self.peek(0) {
            b'a' => Some(Node::Standard(
                "std::allocator",
                "std::allocator",
                "allocator",
            )),
            b'b' => Some(Node::Standard(
                "std::basic_string",
                "std::basic_string",
                "basic_string",
            )),
            b's' => Some(Node::Standard(
                "std::string",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char>>",
                "basic_string",
            )),
            b'i' => Some(Node::Standard(
                "std::istream",
                "std::basic_istream<char, std::char_traits<char>>",
                "basic_istream",
            )),
            b'o' => Some(Node::Standard(
                "std::ostream",
                "std::basic_ostream<char, std::char_traits<char>>",
                "basic_ostream",
            )),
            b'd' => Some(Node::Standard(
                "std::iostream",
                "std::basic_iostream<char, std::char_traits<char>>",
                "basic_iostream",
            )),
            _ => None,
        };
        if let Some(standard) = standard {
            self.skip(1)?;
            let name = self.make(standard)?;
            let tagged = self.tags(name)?;
            if tagged != name {
                self.substitutions.push(tagged);
            }
            return Some(tagged);
        }
        let index = match self.peek(0) {
            b'_' => 0,
            _ => self.sequence()?.checked_add(1)?,
        };
        self.expect("_")?;
        self.substitutions.get(index).copied()
    }

    /// `<seq-id>`: a number in base 36.
    pub(crate) fn sequence(&mut self) -> Option<usize> {
        let length = self
            .rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            .count();
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        usize::from_str_radix(digits, 36).ok()
    }

    pub(crate) fn template_parameter(&mut self) -> Option<Id> {
        self.expect("T")?;
        let level = match self.eat("L") {
            true => {
                let level: usize = self.digits(false).parse().ok()?;
                self.expect("_")?;
                level.checked_add(1)?
            }
            false => 0,
        };
        let index = self.index()?;
        if self.allow_forward_references && level == 0 {
            let reference = self.make(Node::Forward(index, None))?;
            self.forward_references.push(reference);
            return Some(reference);
        }
        let known = self
            .parameters
            .get(level)
            .and_then(|parameters| parameters.get(index));
        if let Some(&known) = known {
            return Some(known);
        }
        // A lambda's parameter that is declared `auto`.
        if self.lambda_level == Some(level) && level <= self.parameters.len() {
            if level == self.parameters.len() {
                self.parameters.push(Vec::new());
            }
            return self.make(Node::Name("auto"));
        }
        None
    }

    /// `<template-args>`. If `tagged`, later template parameters refer to them.
    pub(crate) fn template_arguments(&mut self, tagged: bool) -> Option<Id> {
        self.expect("I")?;
        if tagged {
            self.parameters = vec![Vec::new()];
        }
        let mut arguments = Vec::new();
        while !self.eat("E") {
            let outer = tagged.then(|| self.parameters.clone());
            let argument = self.template_argument()?;
            arguments.push(argument);
            if let Some(outer) = outer {
                self.parameters = outer;
                let entry = match self.node(argument)? {
                    Node::ArgumentPack(elements) => {
                        let pack = Node::Pack(elements.clone());
                        self.make(pack)?
                    }
                    _ => argument,
                };
                self.parameters.last_mut()?.push(entry);
            }
        }
        self.make(Node::Arguments(arguments))
    }

    pub(crate) fn template_argument(&mut self) -> Option<Id> {
        self.nested(|parser| match (parser.peek(0), parser.peek(1)) {
            (b'X', _) => {
                parser.skip(1)?;
                let expression = parser.expression()?;
                parser.expect("E")?;
                Some(expression)
            }
            (b'J', _) => {
                parser.skip(1)?;
                let elements = parser.until("E", Self::template_argument)?;
                parser.make(Node::ArgumentPack(elements))
            }
            (b'L', b'Z') => {
                parser.skip(2)?;
                let encoding = parser.encoding()?;
                parser.expect("E")?;
                Some(encoding)
            }
            (b'L', _) => parser.literal(),
            _ => parser.type_(),
        })
    }

    /// `<unqualified-name>` in an expression.
    pub(crate) fn plain_name(&mut self) -> Option<Id> {
        let mut state = NameState::default();
        self.unqualified_name(Some(&mut state), None)
    }
}

/// `<builtin-type>`: its name and the length of its code.
fn builtin(rest: &str) -> Option<(&'static str, usize)> {
    let mut letters = rest.bytes();
    let name = match letters.next()? {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        b'D' => {
            let name = match letters.next()? {
                b'd' => "decimal64",
                b'e' => "decimal128",
                b'f' => "decimal32",
                b'h' => "half",
                b'i' => "char32_t",
                b's' => "char16_t",
                b'u' => "char8_t",
                b'a' => "auto",
                b'c' => "decltype(auto)",
                b'n' => "std::nullptr_t",
                _ => return None,
            };
            return Some((name, 2));
        }
        _ => return None,
    };
    Some((name, 1))
}
