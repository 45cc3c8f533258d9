//! What are the parts of a C++ name?

/// A node's index.
pub(super) type Id = u32;

/// A part of a name.
#[derive(Debug, Clone)]
pub(super) enum Node<'s> {
    Name(&'s str),
    /// `std::string` and the like: as it is written, as it is written where it has members, and
    /// what its constructor is called.
    Standard(&'static str, &'static str, &'static str),
    /// The same, written out.
    StandardInFull(&'static str, &'static str),
    /// Scope and member.
    Member(Id, Id),
    Template(Id, Id),
    Arguments(Vec<Id>),
    /// A pack as a template argument: all of it.
    ArgumentPack(Vec<Id>),
    /// A pack that a parameter stands for: one at a time.
    Pack(Vec<Id>),
    Expansion(Id),
    /// An ABI tag.
    Tagged(Id, &'s str),
    Constructor(Id),
    Destructor(Id),
    Literal(Id),
    Conversion(Id),
    Binding(Vec<Id>),
    Unnamed(&'s str),
    /// Template parameters, parameters, number.
    Lambda(Vec<Id>, Vec<Id>, &'s str),
    /// A reference to a template argument that comes later: its number, and what it is.
    Forward(usize, Option<Id>),
    /// A function with its signature.
    Function(Box<Function>),
    /// Words before a name: `vtable for`.
    Special(&'static str, Id),
    Between(&'static str, Id, &'static str, Id),
    Suffix(Id, &'s str),

    Qualified(Id, Qualifiers),
    VendorQualified(Id, &'s str, Option<Id>),
    Postfixed(Id, &'static str),
    Elaborated(&'static str, Id),
    Pointer(Id),
    /// Whether of an rvalue.
    Reference(Id, bool),
    MemberPointer(Id, Id),
    Array(Id, Option<Id>),
    Vector(Id, Option<Id>),
    FunctionType(Box<Function>),
    ParameterDeclaration(&'static str, Option<Id>, &'static str, usize),

    /// Type as it is printed, digits.
    Integer(&'static str, &'s str),
    Cast(Id, &'s str),
    Parameter(&'s str),
    Binary(Id, &'static str, Id, Precedence),
    Prefix(&'static str, Id, Precedence),
    Postfix(Id, &'static str, Precedence),
    Subscript(Id, Id),
    Access(Id, &'static str, Id, Precedence),
    Conditional(Id, Id, Id),
    NamedCast(&'static str, Id, Id),
    TypeCast(Id, Vec<Id>),
    Enclosed(&'static str, Id, Precedence),
    SizeOfPack(Id),
    SizeOfArguments(Vec<Id>),
    Call(Id, Vec<Id>),
    New {
        global: bool,
        array: bool,
        placement: Vec<Id>,
        of: Id,
        arguments: Option<Vec<Id>>,
    },
    Delete {
        global: bool,
        array: bool,
        of: Id,
    },
    Throw(Id),
    Braces(Option<Id>, Vec<Id>),
    Designated(Id, Id, bool),
    Fold {
        left: bool,
        operator: &'static str,
        pack: Id,
        start: Option<Id>,
    },
    Global(Id),
}

/// A function's signature. `name` is none in types.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) returns: Option<Id>,
    pub(super) name: Option<Id>,
    pub(super) parameters: Vec<Id>,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: &'static str,
    pub(super) exceptions: Option<Id>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) constant: bool,
    pub(super) volatile: bool,
    pub(super) restrict: bool,
}

impl Qualifiers {
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }
}

/// How strongly an expression's operator binds, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Primary,
    Postfix,
    Unary,
    Cast,
    PointerToMember,
    Multiplicative,
    Additive,
    Shift,
    Spaceship,
    Relational,
    Equality,
    And,
    Xor,
    Or,
    AndIf,
    OrIf,
    Conditional,
    Assign,
    Comma,
    Default,
}
