//! The nodes of a C++ name.

/// The index of a node in the list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u32);

impl Id {
    /// Returns the id with this index. None if it does not fit.
    pub(crate) fn of(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }

    /// Returns the index.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a name.
#[derive(Debug, Clone)]
pub(crate) enum Node<'s> {
    /// Literal text.
    Name(&'s str),
    /// An abbreviation of the standard library: its short form (`std::string`), its full form (`std::basic_string<char, …>`)
    /// and the name of its constructor (`basic_string`).
    Standard(&'static str, &'static str, &'static str),
    /// The same, if the full form is printed, as before a constructor: the full form, and the name of the constructor.
    StandardInFull(&'static str, &'static str),
    /// Scope and member.
    Member(Id, Id),
    /// Name and arguments.
    Template(Id, Id),
    Arguments(Vec<Id>),
    /// A parameter pack as a template argument. All elements are printed.
    ArgumentPack(Vec<Id>),
    /// The parameter pack that a template parameter refers to. An expansion prints one element at a time.
    Pack(Vec<Id>),
    /// A pack expansion of this pattern.
    Expansion(Id),
    /// A name with an ABI tag.
    Tagged(Id, &'s str),
    /// The constructor of this class.
    Constructor(Id),
    Destructor(Id),
    /// A literal operator.
    Literal(Id),
    /// A conversion to this type.
    Conversion(Id),
    /// A structured binding.
    Binding(Vec<Id>),
    /// An unnamed type and its number.
    Unnamed(&'s str),
    /// Template parameters, parameters, number.
    Lambda(Vec<Id>, Vec<Id>, &'s str),
    /// A reference to a template argument that is read later: its index, and the argument once it is known.
    Forward(usize, Option<Id>),
    /// A function with its signature.
    Function(Box<Function>),
    /// Text before a name: `vtable for `.
    Special(&'static str, Id),
    /// Text, node, text, node.
    Joined(&'static str, Id, &'static str, Id),
    /// A suffix that a compiler adds: `.cold`.
    Suffix(Id, &'s str),

    Qualified(Id, Qualifiers),
    VendorQualified(Id, &'s str, Option<Id>),
    Postfixed(Id, &'static str),
    Elaborated(&'static str, Id),
    Pointer(Id),
    /// Whether it is an rvalue reference.
    Reference(Id, bool),
    /// Class and member type.
    MemberPointer(Id, Id),
    /// Element type and length.
    Array(Id, Option<Id>),
    /// Element type and length.
    Vector(Id, Option<Id>),
    FunctionType(Box<Function>),
    /// A template parameter of a lambda: text before it, its type, the stem of its name and its number.
    ParameterDeclaration(&'static str, Option<Id>, &'static str, usize),

    /// How the type is printed, and the digits; negative numbers begin with `n`.
    Integer(&'static str, &'s str),
    /// A literal of a type without a suffix.
    Cast(Id, &'s str),
    /// A function's parameter in an expression.
    Parameter(&'s str),
    Binary(Id, &'static str, Id, Precedence),
    Prefix(&'static str, Id, Precedence),
    Postfix(Id, &'static str, Precedence),
    Subscript(Id, Id),
    Access(Id, &'static str, Id, Precedence),
    Conditional(Id, Id, Id),
    NamedCast(&'static str, Id, Id),
    TypeCast(Id, Vec<Id>),
    /// A word and its operand in parentheses: `sizeof (T)`.
    Enclosed(&'static str, Id, Precedence),
    SizeOfPack(Id),
    SizeOfArguments(Vec<Id>),
    Call(Id, Vec<Id>),
    New(New),
    Delete {
        global: bool,
        array: bool,
        of: Id,
    },
    Throw(Id),
    Braces(Option<Id>, Vec<Id>),
    Designated(Id, Id, bool),
    Fold(Fold),
    Global(Id),
}

/// A `new` expression.
#[derive(Debug, Clone)]
pub(crate) struct New {
    pub(crate) global: bool,
    pub(crate) array: bool,
    pub(crate) placement: Vec<Id>,
    pub(crate) of: Id,
    /// The arguments of the constructor. None: there are no parentheses.
    pub(crate) arguments: Option<Vec<Id>>,
}

/// A fold expression.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) left: bool,
    pub(crate) operator: &'static str,
    pub(crate) pack: Id,
    pub(crate) start: Option<Id>,
}

/// A function's signature. Function types have no name.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) returns: Option<Id>,
    pub(crate) name: Option<Id>,
    pub(crate) parameters: Vec<Id>,
    pub(crate) qualifiers: Qualifiers,
    pub(crate) reference: &'static str,
    pub(crate) exceptions: Option<Id>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Qualifiers {
    pub(crate) constant: bool,
    pub(crate) volatile: bool,
    pub(crate) restrict: bool,
}

impl Qualifiers {
    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }
}

/// The precedence of an expression's operator. The strongest is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
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
