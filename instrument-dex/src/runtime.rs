//! The class that the rewritten code refers to: an array with the tree, and native methods for what is rare.
//!
//! | member | what it is |
//! |---|---|
//! | `static long[] words` | the words of the tree, and others. It is set before rewritten code runs |
//! | `static Thread owner` | the thread whose entries are counted by the rewritten code, or null |
//! | `static int enter(int method, int shape)` | called at the entry of a method, where the code itself does not find its node. Returns its frame |
//! | `static void caught(int frame, int pc)` | called in a handler: the instruction at `pc` has thrown. The next call is in slot 0 |
//! | `static void thrown(int frame, int pc)` | called where an exception leaves the method, which is marked as left: the instruction at `pc` has thrown |
//!
//! A frame is the index of the node's [frame](varid_instrument::node::frame) in `words`. A shape is the number of slots, in the high 16 bits,
//! and the words from the node upwards, in the low ones.

use crate::error::{NotRewritten, Result};
use crate::file::{FieldId, MethodId, Order, Pools};

/// The descriptor of the class.
pub const CLASS: &str = "Lvarid/Tree;";
/// The field with the array.
const WORDS: (&str, &str) = ("words", "[J");
/// The field with the thread.
const OWNER: (&str, &str) = ("owner", THREAD);
/// The class of threads, and its static method that returns the current one.
const THREAD: &str = "Ljava/lang/Thread;";
const CURRENT_THREAD: &str = "currentThread";

/// The annotation of all methods: ART calls them like functions, without an environment, a class, and the transition that would let it
/// collect garbage meanwhile. A VM that does not know it passes the environment and the class.
const CRITICAL: &str = "Ldalvik/annotation/optimization/CriticalNative;";

/// A method of the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Enter,
    Caught,
    Thrown,
}

/// All methods.
const METHODS: [(Call, &str, Shape); 3] = [
    (Call::Enter, "enter", Shape::TwoToInt),
    (Call::Caught, "caught", Shape::Two),
    (Call::Thrown, "thrown", Shape::Two),
];

/// The prototypes of the methods.
#[derive(Debug, Clone, Copy)]
enum Shape {
    TwoToInt,
    Two,
}

/// The class and its members, among the items of a file.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) class: u32,
    pub(crate) superclass: u32,
    /// The type of the methods' annotation.
    pub(crate) annotation: u32,
    words: u32,
    owner: u32,
    current_thread: u32,
    methods: Vec<(Call, u32)>,
}

/// The new indices of the members.
#[derive(Debug)]
pub(crate) struct RuntimeMembers {
    /// The field with the array.
    pub(crate) words: u16,
    /// The field with the thread.
    pub(crate) owner: u16,
    /// The method that returns the current thread.
    pub(crate) current_thread: u16,
    methods: Vec<(Call, u16)>,
}

impl Runtime {
    /// Adds the class and its members to the items of a file.
    pub(crate) fn add(pools: &mut Pools<'_>) -> Result<Self> {
        if pools.has_type(CLASS) {
            return Err(NotRewritten::IsRewritten);
        }
        let class = pools.add_type(CLASS);
        let superclass = pools.add_type("Ljava/lang/Object;");
        let annotation = pools.add_type(CRITICAL);
        let [words, owner] = [WORDS, OWNER].map(|(name, kind)| {
            let kind = pools.add_type(kind);
            let name = pools.add_string(name);
            pools.add_field(FieldId { class, kind, name })
        });
        let current_thread = MethodId {
            class: pools.add_type(THREAD),
            proto: pools.add_proto("L", THREAD, &[]),
            name: pools.add_string(CURRENT_THREAD),
        };
        let current_thread = pools.add_method(current_thread);
        let mut methods = Vec::new();
        for (call, name, shape) in METHODS {
            let proto = match shape {
                Shape::TwoToInt => pools.add_proto("III", "I", &["I", "I"]),
                Shape::Two => pools.add_proto("VII", "V", &["I", "I"]),
            };
            let name = pools.add_string(name);
            methods.push((call, pools.add_method(MethodId { class, proto, name })));
        }
        Ok(Self {
            class,
            superclass,
            annotation,
            words,
            owner,
            current_thread,
            methods,
        })
    }

    /// Returns the new indices of the members.
    pub(crate) fn members(&self, order: &Order) -> Result<RuntimeMembers> {
        let method = |old: u32| {
            let new = u16::try_from(order.methods.get(old, 0)?);
            new.map_err(|_| NotRewritten::Full("methods"))
        };
        let field = |old: u32| {
            let new = u16::try_from(order.fields.get(old, 0)?);
            new.map_err(|_| NotRewritten::Full("fields"))
        };
        let methods = self.methods.iter();
        let methods = methods.map(|(call, old)| Ok((*call, method(*old)?)));
        Ok(RuntimeMembers {
            words: field(self.words)?,
            owner: field(self.owner)?,
            current_thread: method(self.current_thread)?,
            methods: methods.collect::<Result<_>>()?,
        })
    }
}

impl RuntimeMembers {
    /// Returns the index of a method.
    pub(crate) fn method(&self, call: Call) -> u16 {
        let mut methods = self.methods.iter();
        let found = methods.find(|(known, _)| *known == call);
        found.map_or(0, |(_, index)| *index)
    }

    /// Returns the indices of all fields, ascending.
    pub(crate) fn fields(&self) -> [u16; 2] {
        let mut all = [self.words, self.owner];
        all.sort_unstable();
        all
    }

    /// Returns the indices of all methods of the class, ascending.
    pub(crate) fn methods(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.methods.iter().map(|(_, index)| *index).collect();
        all.sort_unstable();
        all
    }
}
