//! The operators, their codes and their precedence.

use crate::node::Precedence::{self, *};

/// An operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operator {
    code: &'static str,
    pub(crate) kind: Kind,
    pub(crate) precedence: Precedence,
    /// The name of the function that overloads it.
    pub(crate) name: &'static str,
}

/// The notation of an operator in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prefix,
    /// Increment and decrement: prefix if `_` follows, else postfix.
    PrefixOrPostfix,
    Binary,
    Subscript,
    Member,
    Call,
    New,
    Delete,
    Conditional,
    NamedCast,
    /// `sizeof`, `alignof` and `typeid` of an expression or a type. They cannot be overloaded.
    NotAFunction,
}

impl Operator {
    /// Returns true if its operand is a type.
    pub(crate) fn takes_type(&self) -> bool {
        matches!(self.code, "at" | "st" | "ti")
    }

    /// The operator as it is printed in an expression.
    pub(crate) fn symbol(&self) -> &'static str {
        let symbol = self.name.strip_prefix("operator").unwrap_or(self.name);
        symbol.strip_prefix(' ').unwrap_or(symbol)
    }
}

/// Returns the operator whose code comes next.
pub(crate) fn find(rest: &str) -> Option<&'static Operator> {
    OPERATORS
        .iter()
        .find(|operator| rest.starts_with(operator.code))
}

const fn operator(
    code: &'static str,
    kind: Kind,
    precedence: Precedence,
    name: &'static str,
) -> Operator {
    Operator {
        code,
        kind,
        precedence,
        name,
    }
}

static OPERATORS: &[Operator] = &[
    operator("aN", Kind::Binary, Assign, "operator&="),
    operator("aS", Kind::Binary, Assign, "operator="),
    operator("aa", Kind::Binary, AndIf, "operator&&"),
    operator("ad", Kind::Prefix, Unary, "operator&"),
    operator("an", Kind::Binary, And, "operator&"),
    operator("at", Kind::NotAFunction, Unary, "alignof "),
    operator("aw", Kind::Prefix, Default, "operator co_await"),
    operator("az", Kind::NotAFunction, Unary, "alignof "),
    operator("cc", Kind::NamedCast, Postfix, "const_cast"),
    operator("cl", Kind::Call, Postfix, "operator()"),
    operator("cm", Kind::Binary, Comma, "operator,"),
    operator("co", Kind::Prefix, Unary, "operator~"),
    operator("dV", Kind::Binary, Assign, "operator/="),
    operator("da", Kind::Delete, Unary, "operator delete[]"),
    operator("dc", Kind::NamedCast, Postfix, "dynamic_cast"),
    operator("de", Kind::Prefix, Unary, "operator*"),
    operator("dl", Kind::Delete, Unary, "operator delete"),
    operator("ds", Kind::Member, PointerToMember, "operator.*"),
    operator("dt", Kind::Member, Postfix, "operator."),
    operator("dv", Kind::Binary, Assign, "operator/"),
    operator("eO", Kind::Binary, Assign, "operator^="),
    operator("eo", Kind::Binary, Xor, "operator^"),
    operator("eq", Kind::Binary, Equality, "operator=="),
    operator("ge", Kind::Binary, Relational, "operator>="),
    operator("gt", Kind::Binary, Relational, "operator>"),
    operator("ix", Kind::Subscript, Postfix, "operator[]"),
    operator("lS", Kind::Binary, Assign, "operator<<="),
    operator("le", Kind::Binary, Relational, "operator<="),
    operator("ls", Kind::Binary, Shift, "operator<<"),
    operator("lt", Kind::Binary, Relational, "operator<"),
    operator("mI", Kind::Binary, Assign, "operator-="),
    operator("mL", Kind::Binary, Assign, "operator*="),
    operator("mi", Kind::Binary, Additive, "operator-"),
    operator("ml", Kind::Binary, Multiplicative, "operator*"),
    operator("mm", Kind::PrefixOrPostfix, Postfix, "operator--"),
    operator("na", Kind::New, Unary, "operator new[]"),
    operator("ne", Kind::Binary, Equality, "operator!="),
    operator("ng", Kind::Prefix, Unary, "operator-"),
    operator("nt", Kind::Prefix, Unary, "operator!"),
    operator("nw", Kind::New, Unary, "operator new"),
    operator("oR", Kind::Binary, Assign, "operator|="),
    operator("oo", Kind::Binary, OrIf, "operator||"),
    operator("or", Kind::Binary, Or, "operator|"),
    operator("pL", Kind::Binary, Assign, "operator+="),
    operator("pl", Kind::Binary, Additive, "operator+"),
    operator("pm", Kind::Member, PointerToMember, "operator->*"),
    operator("pp", Kind::PrefixOrPostfix, Postfix, "operator++"),
    operator("ps", Kind::Prefix, Unary, "operator+"),
    operator("pt", Kind::Member, Postfix, "operator->"),
    operator(
        "qu",
        Kind::Conditional,
        Precedence::Conditional,
        "operator?",
    ),
    operator("rM", Kind::Binary, Assign, "operator%="),
    operator("rS", Kind::Binary, Assign, "operator>>="),
    operator("rc", Kind::NamedCast, Postfix, "reinterpret_cast"),
    operator("rm", Kind::Binary, Multiplicative, "operator%"),
    operator("rs", Kind::Binary, Shift, "operator>>"),
    operator("sc", Kind::NamedCast, Postfix, "static_cast"),
    operator("ss", Kind::Binary, Spaceship, "operator<=>"),
    operator("st", Kind::NotAFunction, Unary, "sizeof "),
    operator("sz", Kind::NotAFunction, Unary, "sizeof "),
    operator("te", Kind::NotAFunction, Postfix, "typeid "),
    operator("ti", Kind::NotAFunction, Postfix, "typeid "),
];
