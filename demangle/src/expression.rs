//! Parses expressions and literals.

use crate::node::{Fold, Id, New, Node, Precedence};
use crate::operators::{self, Kind, Operator};
use crate::parser::Parser;

impl Parser<'_> {
    /// `<expression>`, as in `decltype` and template arguments.
    pub(crate) fn expression(&mut self) -> Option<Id> {
        self.nested(Self::expression_here)
    }

    fn expression_here(&mut self) -> Option<Id> {
        let global = self.eat("gs");
        if let Some(operator) = operators::find(self.rest) {
            self.skip(2)?;
            return self.operation(operator, global);
        }
        if global {
            return self.unresolved(true);
        }
        match (self.peek(0), self.peek(1)) {
            (b'L', _) => self.literal(),
            (b'T', _) => self.template_parameter(),
            (b'f', b'p' | b'L') => self.function_parameter(),
            (b'f', _) => self.fold(),
            (b't', b'l') => {
                self.skip(2)?;
                let of = self.type_()?;
                let elements = self.until("E", Self::braced)?;
                self.make(Node::Braces(Some(of), elements))
            }
            (b'i', b'l') => {
                self.skip(2)?;
                let elements = self.until("E", Self::braced)?;
                self.make(Node::Braces(None, elements))
            }
            (b'c', b'v') => self.type_cast(),
            (b'n', b'x') => {
                self.around_expression(|of| Node::Enclosed("noexcept ", of, Precedence::Unary))
            }
            (b's', b'p') => self.around_expression(Node::Expansion),
            (b's', b'Z') => self.size_of_pack(),
            (b's', b'P') => {
                self.skip(2)?;
                let arguments = self.until("E", Self::template_argument)?;
                self.make(Node::SizeOfArguments(arguments))
            }
            (b't', b'w') => self.around_expression(Node::Throw),
            (b't', b'r') => {
                self.skip(2)?;
                self.make(Node::Name("throw"))
            }
            _ => self.unresolved(false),
        }
    }

    /// An expression that is a code of two letters and another expression.
    fn around_expression(&mut self, make: impl FnOnce(Id) -> Node<'static>) -> Option<Id> {
        self.skip(2)?;
        let inner = self.expression()?;
        self.make(make(inner))
    }

    /// `cv <type> <expression>`: a conversion, as in `int(x)`.
    fn type_cast(&mut self) -> Option<Id> {
        self.skip(2)?;
        let no_type_arguments = std::mem::replace(&mut self.no_type_arguments, false);
        let to = self.type_();
        self.no_type_arguments = no_type_arguments;
        let to = to?;
        let from = match self.eat("_") {
            true => self.until("E", Self::expression)?,
            false => vec![self.expression()?],
        };
        self.make(Node::TypeCast(to, from))
    }

    /// `sizeof...` of a template's or a function's parameter pack.
    fn size_of_pack(&mut self) -> Option<Id> {
        self.skip(2)?;
        let pack = match self.peek(0) {
            b'T' => self.template_parameter()?,
            _ => self.function_parameter()?,
        };
        self.make(Node::SizeOfPack(pack))
    }

    /// The operands of an operator that has been read.
    fn operation(&mut self, operator: &'static Operator, global: bool) -> Option<Id> {
        let (symbol, precedence) = (operator.symbol(), operator.precedence);
        match operator.kind {
            Kind::Binary => {
                let left = self.expression()?;
                let right = self.expression()?;
                self.make(Node::Binary(left, symbol, right, precedence))
            }
            Kind::Prefix => {
                let of = self.expression()?;
                self.make(Node::Prefix(symbol, of, precedence))
            }
            Kind::PrefixOrPostfix => {
                let before = self.eat("_");
                let of = self.expression()?;
                self.make(match before {
                    true => Node::Prefix(symbol, of, precedence),
                    false => Node::Postfix(of, symbol, precedence),
                })
            }
            Kind::Subscript => {
                let of = self.expression()?;
                let index = self.expression()?;
                self.make(Node::Subscript(of, index))
            }
            Kind::Member => {
                let of = self.expression()?;
                let member = self.expression()?;
                self.make(Node::Access(of, symbol, member, precedence))
            }
            Kind::Call => {
                let callee = self.expression()?;
                let arguments = self.until("E", Self::expression)?;
                self.make(Node::Call(callee, arguments))
            }
            Kind::New => self.new_expression(symbol, global),
            Kind::Delete => self.delete_expression(symbol, global),
            Kind::Conditional => {
                let when = self.expression()?;
                let then = self.expression()?;
                let otherwise = self.expression()?;
                self.make(Node::Conditional(when, then, otherwise))
            }
            Kind::NamedCast => {
                let to = self.type_()?;
                let from = self.expression()?;
                self.make(Node::NamedCast(symbol, to, from))
            }
            Kind::NotAFunction => {
                let of = match operator.takes_type() {
                    true => self.type_()?,
                    false => self.expression()?,
                };
                self.make(Node::Enclosed(symbol, of, precedence))
            }
        }
    }

    /// `new` or `new[]`, which `symbol` is: the placement, the type, and the arguments of its constructor.
    fn new_expression(&mut self, symbol: &'static str, global: bool) -> Option<Id> {
        let array = symbol.ends_with("[]");
        let placement = self.until("_", Self::expression)?;
        let of = self.type_()?;
        let arguments = match self.eat("pi") {
            true => Some(self.until("E", Self::expression)?),
            false => {
                self.expect("E")?;
                None
            }
        };
        self.make(Node::New(New {
            global,
            array,
            placement,
            of,
            arguments,
        }))
    }

    /// `delete` or `delete[]`, which `symbol` is.
    fn delete_expression(&mut self, symbol: &'static str, global: bool) -> Option<Id> {
        let array = symbol.ends_with("[]");
        let of = self.expression()?;
        self.make(Node::Delete { global, array, of })
    }

    /// `<expr-primary>`: a literal or the name of a function.
    pub(crate) fn literal(&mut self) -> Option<Id> {
        self.expect("L")?;
        if self.eat("_Z") {
            let encoding = self.encoding()?;
            self.expect("E")?;
            return Some(encoding);
        }
        for (code, word) in [
            ("b0E", "false"),
            ("b1E", "true"),
            ("DnE", "nullptr"),
            ("Dn0E", "nullptr"),
        ] {
            if self.eat(code) {
                return self.make(Node::Name(word));
            }
        }
        let suffix = match self.peek(0) {
            b'w' => Some("wchar_t"),
            b'c' => Some("char"),
            b'a' => Some("signed char"),
            b'h' => Some("unsigned char"),
            b's' => Some("short"),
            b't' => Some("unsigned short"),
            b'i' => Some(""),
            b'j' => Some("u"),
            b'l' => Some("l"),
            b'm' => Some("ul"),
            b'x' => Some("ll"),
            b'y' => Some("ull"),
            b'n' => Some("__int128"),
            b'o' => Some("unsigned __int128"),
            // Floating-point literals are mangled as their bits, which are not decoded: the name stays mangled.
            b'f' | b'd' | b'e' => return None,
            _ => None,
        };
        if let Some(suffix) = suffix {
            self.skip(1)?;
            let digits = self.digits(true);
            self.expect("E")?;
            return match digits {
                "" => None,
                digits => self.make(Node::Integer(suffix, digits)),
            };
        }
        let of = self.type_()?;
        let digits = self.digits(true);
        self.expect("E")?;
        match digits {
            "" => None,
            digits => self.make(Node::Cast(of, digits)),
        }
    }

    fn function_parameter(&mut self) -> Option<Id> {
        if self.eat("fpT") {
            return self.make(Node::Name("this"));
        }
        if self.eat("fL") {
            self.digits(false);
        } else {
            self.expect("f")?;
        }
        self.expect("p")?;
        self.qualifiers();
        let number = self.digits(false);
        self.expect("_")?;
        self.make(Node::Parameter(number))
    }

    fn fold(&mut self) -> Option<Id> {
        self.expect("f")?;
        let (left, with_start) = match self.peek(0) {
            b'l' => (true, false),
            b'r' => (false, false),
            b'L' => (true, true),
            b'R' => (false, true),
            _ => return None,
        };
        self.skip(1)?;
        let operator = operators::find(self.rest)?.symbol();
        self.skip(2)?;
        let first = self.expression()?;
        let second = match with_start {
            true => Some(self.expression()?),
            false => None,
        };
        let (pack, start) = match (left, second) {
            (true, Some(second)) => (second, Some(first)),
            (_, second) => (first, second),
        };
        self.make(Node::Fold(Fold {
            left,
            operator,
            pack,
            start,
        }))
    }

    /// `<braced-expression>`: an element of an initializer list.
    fn braced(&mut self) -> Option<Id> {
        self.nested(|parser| {
            if parser.eat("di") {
                let field = parser.source_name()?;
                let value = parser.braced()?;
                return parser.make(Node::Designated(field, value, false));
            }
            if parser.eat("dx") {
                let index = parser.expression()?;
                let value = parser.braced()?;
                return parser.make(Node::Designated(index, value, true));
            }
            parser.expression()
        })
    }

    /// `<unresolved-name>`: a name that depends on template parameters.
    fn unresolved(&mut self, global: bool) -> Option<Id> {
        let mut prefix = None;
        if self.eat("srN") {
            let mut scope = self.unresolved_type()?;
            if self.peek(0) == b'I' {
                let arguments = self.template_arguments(false)?;
                scope = self.make(Node::Template(scope, arguments))?;
            }
            while !self.eat("E") {
                let level = self.simple_id()?;
                scope = self.make(Node::Member(scope, level))?;
            }
            prefix = Some(scope);
        } else if self.eat("sr") {
            if self.peek(0).is_ascii_digit() {
                loop {
                    let level = self.simple_id()?;
                    prefix = Some(match prefix {
                        Some(scope) => self.make(Node::Member(scope, level))?,
                        None if global => self.make(Node::Global(level))?,
                        None => level,
                    });
                    if self.eat("E") {
                        break;
                    }
                }
            } else {
                let mut scope = self.unresolved_type()?;
                if self.peek(0) == b'I' {
                    let arguments = self.template_arguments(false)?;
                    scope = self.make(Node::Template(scope, arguments))?;
                }
                prefix = Some(scope);
            }
        }
        let base = self.base_name()?;
        match prefix {
            Some(scope) => self.make(Node::Member(scope, base)),
            None if global => self.make(Node::Global(base)),
            None => Some(base),
        }
    }

    fn unresolved_type(&mut self) -> Option<Id> {
        let found = match self.peek(0) {
            b'T' => self.template_parameter()?,
            b'D' => self.decltype()?,
            _ => return self.substitution(),
        };
        self.substitutions.push(found);
        Some(found)
    }

    fn simple_id(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        self.with_arguments(name)
    }

    fn with_arguments(&mut self, name: Id) -> Option<Id> {
        match self.peek(0) {
            b'I' => {
                let arguments = self.template_arguments(false)?;
                self.make(Node::Template(name, arguments))
            }
            _ => Some(name),
        }
    }

    fn base_name(&mut self) -> Option<Id> {
        if self.peek(0).is_ascii_digit() {
            return self.simple_id();
        }
        if self.eat("dn") {
            let class = match self.peek(0).is_ascii_digit() {
                true => self.simple_id()?,
                false => self.unresolved_type()?,
            };
            return self.make(Node::Prefix("~", class, Precedence::Primary));
        }
        self.eat("on");
        let name = self.plain_name()?;
        self.with_arguments(name)
    }
}
