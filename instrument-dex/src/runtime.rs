//! The class that the rewritten code calls: native methods, which keep the tree.
//!
//! | method | when it is called |
//! |---|---|
//! | `static int enter(int method, int shape)` | at the entry of a method. Returns its node |
//! | `static void at(int node, int slot)` | before what calls: slot 0 is for calls by the VM, slot `k + 1` for call site `k` |
//! | `static void count(int node, int counter)` | in a block with a counter |
//! | `static void caught(int node, int pc)` | in a handler: the instruction at `pc` has thrown. The next call is in slot 0 |
//! | `static void leave(int node)` | before a return. The next call is in the slot of the node |
//! | `static void abandon(int node, int pc)` | where an exception leaves the method: `caught` and `leave` |
//!
//! A node is the number of its word in the tree's file; 0 or less if the call is not recorded. A shape is the number of slots, in the high
//! 16 bits, and the words from the node upwards, in the low ones.

use crate::error::{NotRewritten, Result};
use crate::file::{MethodId, Order, Pools};

/// The descriptor of the class.
pub const CLASS: &str = "Lvarid/Tree;";

/// The annotation of all methods: ART calls them without the transition that would let it collect garbage meanwhile.
const FAST: &str = "Ldalvik/annotation/optimization/FastNative;";

/// A method of the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Enter,
    At,
    Count,
    Caught,
    Leave,
    Abandon,
}

/// All methods, by their place in [`Call`].
const METHODS: [(Call, &str, Shape); 6] = [
    (Call::Enter, "enter", Shape::TwoToInt),
    (Call::At, "at", Shape::Two),
    (Call::Count, "count", Shape::Two),
    (Call::Caught, "caught", Shape::Two),
    (Call::Leave, "leave", Shape::One),
    (Call::Abandon, "abandon", Shape::Two),
];

/// The prototypes of the methods.
#[derive(Debug, Clone, Copy)]
enum Shape {
    TwoToInt,
    Two,
    One,
}

/// The class and its methods, among the items of a file.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) class: u32,
    pub(crate) superclass: u32,
    /// The type of the methods' annotation.
    pub(crate) annotation: u32,
    methods: Vec<(Call, u32)>,
}

/// The new indices of the methods.
#[derive(Debug)]
pub(crate) struct RuntimeMethods(Vec<(Call, u16)>);

impl Runtime {
    /// Adds the class and its methods to the items of a file.
    pub(crate) fn add(pools: &mut Pools<'_>) -> Result<Self> {
        if pools.has_type(CLASS) {
            return Err(NotRewritten::IsRewritten);
        }
        let class = pools.add_type(CLASS);
        let superclass = pools.add_type("Ljava/lang/Object;");
        let annotation = pools.add_type(FAST);
        let mut methods = Vec::new();
        for (call, name, shape) in METHODS {
            let proto = match shape {
                Shape::TwoToInt => pools.add_proto("III", "I", &["I", "I"]),
                Shape::Two => pools.add_proto("VII", "V", &["I", "I"]),
                Shape::One => pools.add_proto("VI", "V", &["I"]),
            };
            let name = pools.add_string(name);
            methods.push((call, pools.add_method(MethodId { class, proto, name })));
        }
        Ok(Self {
            class,
            superclass,
            annotation,
            methods,
        })
    }

    /// Returns the new indices of the methods.
    pub(crate) fn methods(&self, order: &Order) -> Result<RuntimeMethods> {
        let methods = self.methods.iter().map(|(call, old)| {
            let new = u16::try_from(order.methods.get(*old, 0)?);
            Ok((*call, new.map_err(|_| NotRewritten::Full("methods"))?))
        });
        Ok(RuntimeMethods(methods.collect::<Result<_>>()?))
    }
}

impl RuntimeMethods {
    /// Returns the index of a method.
    pub(crate) fn index(&self, call: Call) -> u16 {
        let mut methods = self.0.iter();
        let found = methods.find(|(known, _)| *known == call);
        found.map_or(0, |(_, index)| *index)
    }

    /// Returns all indices, ascending.
    pub(crate) fn ascending(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.0.iter().map(|(_, index)| *index).collect();
        all.sort_unstable();
        all
    }
}
