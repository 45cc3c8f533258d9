//! How is a C++ name written?
//!
//! A declaration is written around its name: what comes before it (`left`) and what comes
//! after it (`right`), as in `int (*name)[3]`.

use super::node::{Function, Id, Node, Precedence, Qualifiers};

/// How many parts are written at most: parts that write nothing cost time, too.
const MAX_STEPS: usize = 200_000;

/// How deep parts may refer to parts.
const MAX_DEPTH: usize = 320;

/// Writes a name; none if it is longer than `limit` bytes.
pub(super) fn print(nodes: &[Node<'_>], root: Id, limit: usize) -> Option<String> {
    let mut printer = Printer {
        nodes,
        out: String::new(),
        limit,
        steps: MAX_STEPS,
        depth: 0,
        pack: None,
        open: 1,
    };
    printer.all(root)?;
    Some(printer.out)
}

struct Printer<'n, 's> {
    nodes: &'n [Node<'s>],
    out: String,
    limit: usize,
    steps: usize,
    depth: usize,
    /// The element of the packs that is written, and how many they have; none outside of an expansion.
    pack: Option<Option<(usize, usize)>>,
    /// How many parentheses are open within template arguments: without any, > would close them.
    open: usize,
}

/// What a declaration has after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Array,
    Function,
}

impl<'n, 's> Printer<'n, 's> {
    fn node(&self, id: Id) -> Option<&'n Node<'s>> {
        self.nodes.get(id as usize)
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let length = self.out.len().checked_add(text.len())?;
        (length <= self.limit).then(|| self.out.push_str(text))
    }

    fn parenthesized(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.open = self.open.saturating_add(1);
        self.text("(")?;
        write(self)?;
        self.open = self.open.saturating_sub(1);
        self.text(")")
    }

    fn all(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    /// An operand, in parentheses if its operator does not bind more strongly.
    fn operand(&mut self, id: Id, within: Precedence, strictly: bool) -> Option<()> {
        let own = self.precedence(id);
        if own > within || own == within && !strictly {
            self.parenthesized(|printer| printer.all(id))
        } else {
            self.all(id)
        }
    }

    /// A list; elements that write nothing have no comma.
    fn list(&mut self, ids: &[Id]) -> Option<()> {
        let mut first = true;
        for &id in ids {
            let before = self.out.len();
            if !first {
                self.text(", ")?;
            }
            let start = self.out.len();
            self.operand(id, Precedence::Comma, false)?;
            match self.out.len() == start {
                true => self.out.truncate(before),
                false => first = false,
            }
        }
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        (self.depth < MAX_DEPTH).then_some(())
    }

    fn left(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.left_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }

    fn right(&mut self, id: Id) -> Option<()> {
        self.step()?;
        self.depth = self.depth.saturating_add(1);
        self.right_of(self.node(id)?)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }

    fn left_of(&mut self, node: &'n Node<'s>) -> Option<()> {
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

    fn expression(&mut self, node: &'n Node<'s>) -> Option<()> {
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

    fn right_of(&mut self, node: &'n Node<'s>) -> Option<()> {
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

    fn number(&mut self, digits: &str) -> Option<()> {
        match digits.strip_prefix('n') {
            Some(digits) => {
                self.text("-")?;
                self.text(digits)
            }
            None => self.text(digits),
        }
    }

    /// The pattern, once for each element of the packs in it.
    fn expansion(&mut self, pattern: Id) -> Option<()> {
        let outer = self.pack.replace(None);
        let start = self.out.len();
        self.all(pattern)?;
        match self.pack {
            Some(Some((_, 0))) => self.out.truncate(start),
            Some(Some((_, count))) => {
                for index in 1..count {
                    self.text(", ")?;
                    self.pack = Some(Some((index, count)));
                    self.all(pattern)?;
                }
            }
            // No pack is known: that of a function's parameters.
            _ => self.text("...")?,
        }
        self.pack = outer;
        Some(())
    }

    /// The element of a pack that is being written.
    fn element(&mut self, pack: &Node<'_>) -> Option<Id> {
        let Node::Pack(elements) = pack else {
            return None;
        };
        if let Some(position @ None) = &mut self.pack {
            *position = Some((0, elements.len()));
        }
        // Outside of an expansion there is nothing to choose by: llvm writes the first one.
        let index = self.pack.flatten().map_or(0, |(index, _)| index);
        elements.get(index).copied()
    }

    /// What a reference refers to in the end, and whether as an rvalue: & wins over &&.
    fn collapsed(&mut self, node: &'n Node<'s>) -> Option<(Id, bool)> {
        let &Node::Reference(mut to, mut rvalue) = node else {
            return None;
        };
        loop {
            self.step()?;
            match self.node(to)? {
                &Node::Reference(inner, inner_rvalue) => {
                    to = inner;
                    rvalue &= inner_rvalue;
                }
                &Node::Forward(_, argument) => to = argument?,
                pack @ Node::Pack(_) => match self.element(pack) {
                    Some(element) => to = element,
                    None => return Some((to, rvalue)),
                },
                _ => return Some((to, rvalue)),
            }
        }
    }

    /// What a type has after its name, seen through qualifiers and parameters.
    fn shape(&mut self, mut id: Id) -> Shape {
        loop {
            if self.step().is_none() {
                return Shape::Plain;
            }
            match self.node(id) {
                Some(Node::Array(..)) => return Shape::Array,
                Some(Node::FunctionType(_) | Node::Function(_)) => return Shape::Function,
                Some(Node::Qualified(of, _) | Node::Forward(_, Some(of))) => id = *of,
                Some(pack @ Node::Pack(_)) => match self.element(pack) {
                    Some(element) => id = element,
                    None => return Shape::Plain,
                },
                _ => return Shape::Plain,
            }
        }
    }

    /// Whether a type has something after its name.
    fn has_right(&mut self, mut id: Id) -> bool {
        loop {
            if self.step().is_none() {
                return false;
            }
            match self.node(id) {
                Some(Node::Array(..) | Node::FunctionType(_) | Node::Function(_)) => return true,
                Some(
                    Node::Qualified(of, _)
                    | Node::Forward(_, Some(of))
                    | Node::Pointer(of)
                    | Node::Reference(of, _)
                    | Node::MemberPointer(_, of),
                ) => id = *of,
                Some(pack @ Node::Pack(_)) => match self.element(pack) {
                    Some(element) => id = element,
                    None => return false,
                },
                _ => return false,
            }
        }
    }

    /// A class's own name, as its constructors have it.
    fn base_name(&mut self, mut id: Id) -> Option<()> {
        loop {
            self.step()?;
            match self.node(id)? {
                Node::Name(name) => return self.text(name),
                Node::Standard(.., base) | Node::StandardInFull(_, base) => return self.text(base),
                Node::Member(_, name) => id = *name,
                Node::Template(name, _) | Node::Tagged(name, _) => id = *name,
                Node::Forward(_, argument) => id = (*argument)?,
                _ => return Some(()),
            }
        }
    }

    fn precedence(&self, id: Id) -> Precedence {
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
