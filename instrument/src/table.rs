//! What does the rewriter report of a class and its methods?

use std::fmt;

/// The number of a method in a VM: at least 1, and different for each method of each class that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodNumber(u32);

impl MethodNumber {
    /// The first number.
    pub const FIRST: Self = Self(1);

    /// The largest number. It is an `int` of Java.
    pub const LAST: Self = Self(i32::MAX as u32);

    /// Returns the method number with this value. None: the value is 0 or above [`LAST`](Self::LAST).
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value == 0 || value > Self::LAST.0 {
            return None;
        }
        Some(Self(value))
    }

    /// Returns its value.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number that is `count` larger. None: there is no such number.
    #[must_use]
    pub fn after(self, count: usize) -> Option<Self> {
        let count = u32::try_from(count).ok()?;
        self.0.checked_add(count).and_then(Self::new)
    }
}

impl fmt::Display for MethodNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// A bytecode index: the offset in bytes of an instruction in its method's original code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bci(pub u16);

/// A class that was rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The class file that the VM should define.
    pub bytes: Vec<u8>,
    /// The class's name with slashes, such as `java/lang/String`.
    pub class: String,
    /// The attribute `SourceFile`.
    pub source_file: Option<String>,
    /// All methods, in the class file's order. Each has a number; the numbers follow each other from the first one that was given.
    pub methods: Vec<MethodTable>,
}

/// What is counted of one method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodTable {
    /// The number that its nodes hold.
    pub number: MethodNumber,
    /// Its name.
    pub name: String,
    /// Its descriptor, such as `(ILjava/lang/String;)V`.
    pub descriptor: String,
    /// Its access flags, by the Java Virtual Machine Specification, section 4.6.
    pub access: u16,
    /// How its code was treated.
    pub body: Body,
    /// Length of its original code in bytes; 0 without code.
    pub code_length: u16,
    /// Its call sites in the order of the code: site `k` has slot `k + 1`. Empty if its code was not rewritten.
    pub sites: Vec<Site>,
    /// Its basic blocks in the order of the code. Empty without block counters, or if its code was not rewritten.
    pub blocks: Vec<Block>,
    /// Its counters: the number of blocks that have one.
    pub counters: u16,
    /// Its source lines, sorted by bci.
    pub lines: Vec<Line>,
}

/// How a method's code was treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// It is rewritten: its calls are counted.
    Counted,
    /// The VM's compilers may replace it: neither its own calls nor what it calls is recorded. Its calls follow from those of its callers' sites.
    Leaf,
    /// It has no code: a native method.
    Native,
    /// It has no code: an abstract method.
    Abstract,
    /// Its code is as it was. What it calls is recorded under its caller's site.
    Plain(Plain),
}

/// Why a method's code is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// `Object.<init>`, which HotSpot treats specially and which calls nothing.
    ObjectConstructor,
    /// An empty method `finalize`: HotSpot registers the objects of a class for finalization if it is not empty. It calls nothing.
    EmptyFinalizer,
    /// The rewritten code would be longer than 65,535 bytes.
    TooLarge,
    /// It has more local variables, or a deeper stack, than a method may have with those that are added.
    TooManyLocals,
    /// A branch to a target more than 32,767 bytes away needs a trampoline, for which there is no place.
    BranchTooFar,
    /// Its code is not valid, or holds what the rewriter does not know. The VM decides about it.
    Invalid,
}

/// A call site: an instruction that calls a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its place in the original code.
    pub bci: Bci,
    /// `invokevirtual` 182, `invokespecial` 183, `invokestatic` 184, `invokeinterface` 185, `invokedynamic` 186.
    pub opcode: u8,
    /// The method that is declared there. The class is empty for `invokedynamic`.
    pub target: MethodReference,
}

/// A method as a class file names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MethodReference {
    /// Its class's name with slashes.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
}

/// A basic block: instructions that are executed one after the other, unless an exception leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its first instruction.
    pub start: Bci,
    /// The bci after its last instruction; at most 65,535.
    pub end: Bci,
    /// How often it was entered.
    pub executions: Executions,
}

/// Where the number of a block's executions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executions {
    /// It is the number of the method's calls: the first block, if no branch leads to it.
    Calls,
    /// The value of this counter of the node.
    Counter(u16),
    /// The same. Each execution is an event of the call order.
    Ordered(u16),
}

impl Executions {
    /// Returns the counter. None: it is the number of calls.
    #[must_use]
    pub const fn counter(self) -> Option<u16> {
        match self {
            Self::Calls => None,
            Self::Counter(counter) | Self::Ordered(counter) => Some(counter),
        }
    }
}

/// A source line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The first instruction of the line.
    pub start: Bci,
    /// The line's number in the source file.
    pub line: u16,
}
