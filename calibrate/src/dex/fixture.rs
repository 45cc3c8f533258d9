//! What do the calls, fields and clocks of units need, and the requests of the host?

use super::encode::{self, Register};
use super::instruction::{Instruction, Member};
use crate::clock::Clock;
use varid_instrument::assemble::access;
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Class, Code, DexBuilder, Reference};

/// The class of the units' object.
pub(super) const FIXTURE: &str = "Lvarid/calibrate/Fixture;";
/// Its superclass, and the interface that it implements.
const BASE: &str = "Lvarid/calibrate/Base;";
const CALLS: &str = "Lvarid/calibrate/Calls;";
/// The class of the native clock.
const COUNTER: &str = "Lvarid/calibrate/Counter;";
/// The class that reads requests and writes answers.
pub(super) const HOST: &str = "Lvarid/calibrate/Host;";
const OBJECT: &str = "Ljava/lang/Object;";
const VOID: &str = "()V";

/// The type of a field, as instructions distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Int,
    Wide,
    Reference,
    Boolean,
    Byte,
    Char,
    Short,
}

/// Whether a field belongs to an object or to its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Object,
    Class,
}

impl FieldKind {
    /// All types, in the order of opcodes.
    pub(super) const ALL: [Self; 7] = [
        Self::Int,
        Self::Wide,
        Self::Reference,
        Self::Boolean,
        Self::Byte,
        Self::Char,
        Self::Short,
    ];

    const fn descriptor(self) -> &'static str {
        match self {
            Self::Int => "I",
            Self::Wide => "J",
            Self::Reference => OBJECT,
            Self::Boolean => "Z",
            Self::Byte => "B",
            Self::Char => "C",
            Self::Short => "S",
        }
    }

    fn name(self, holder: Holder) -> String {
        let prefix = match holder {
            Holder::Object => "own",
            Holder::Class => "static",
        };
        format!("{prefix}{self:?}")
    }

    /// Returns an access to the fixture's field, by its code units.
    pub(super) fn access(self, holder: Holder, units: Vec<u16>) -> Instruction {
        let field = Member {
            class: FIXTURE,
            name: self.name(holder),
            descriptor: self.descriptor(),
        };
        Instruction::field(units, field)
    }
}

/// What a method returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returned {
    Nothing,
    Int,
    Long,
    Reference,
}

impl Returned {
    const fn descriptor(self) -> &'static str {
        match self {
            Self::Nothing => VOID,
            Self::Int => "()I",
            Self::Long => "()J",
            Self::Reference => "()Ljava/lang/Object;",
        }
    }

    /// Returns the instructions of a method that returns this. It has registers 0 and 1.
    fn body(self) -> Vec<Instruction> {
        let result = Register(0);
        // const/4 and const-wide/16, then return-void, return, return-wide, return-object.
        let constant = vec![0x0012];
        let instructions = match self {
            Self::Nothing => vec![vec![0x000e]],
            Self::Int => vec![constant, encode::one(0x0f, result)],
            Self::Long => vec![encode::one_and(0x16, result, 0), encode::one(0x10, result)],
            Self::Reference => vec![constant, encode::one(0x11, result)],
        };
        instructions.into_iter().map(Instruction::plain).collect()
    }
}

/// A method of the fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callee {
    Static(Returned),
    /// A static one that adds two numbers.
    Sum,
    Virtual(Returned),
    Interface(Returned),
    Constructor,
    /// A virtual one that calls that of its superclass, by registers of four bits or by a range.
    Super,
    SuperRange,
    /// The one that it calls.
    Base,
    /// The constructors that the fixture's leads to.
    BaseConstructor,
    ObjectConstructor,
}

impl Callee {
    /// The methods of the fixture.
    const ALL: [Self; 11] = [
        Self::Static(Returned::Nothing),
        Self::Static(Returned::Int),
        Self::Static(Returned::Long),
        Self::Static(Returned::Reference),
        Self::Sum,
        Self::Virtual(Returned::Nothing),
        Self::Virtual(Returned::Int),
        Self::Interface(Returned::Nothing),
        Self::Interface(Returned::Int),
        Self::Super,
        Self::SuperRange,
    ];

    const fn class(self) -> &'static str {
        match self {
            Self::Interface(_) => CALLS,
            Self::Base | Self::BaseConstructor => BASE,
            Self::ObjectConstructor => OBJECT,
            _ => FIXTURE,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Constructor | Self::BaseConstructor | Self::ObjectConstructor => {
                "<init>".to_owned()
            }
            Self::Static(returned) => format!("static{returned:?}"),
            Self::Virtual(returned) => format!("virtual{returned:?}"),
            Self::Interface(returned) => format!("interface{returned:?}"),
            other => format!("call{other:?}"),
        }
    }

    const fn descriptor(self) -> &'static str {
        match self {
            Self::Static(returned) | Self::Virtual(returned) | Self::Interface(returned) => {
                returned.descriptor()
            }
            Self::Sum => "(II)I",
            _ => VOID,
        }
    }

    const fn is_static(self) -> bool {
        matches!(self, Self::Static(_) | Self::Sum)
    }

    /// Returns a call of the method, by its code units.
    pub(super) fn call(self, units: Vec<u16>) -> Instruction {
        let method = Member {
            class: self.class(),
            name: self.name(),
            descriptor: self.descriptor(),
        };
        Instruction::call(units, method, self.body())
    }

    /// Returns the instructions of the method. Its last registers are those of its arguments.
    fn body(self) -> Vec<Instruction> {
        let this = [Register(2)];
        let nothing = Returned::Nothing.body();
        let with_call = |call| [vec![call], nothing.clone()].concat();
        match self {
            Self::Static(returned) | Self::Virtual(returned) | Self::Interface(returned) => {
                returned.body()
            }
            Self::Sum => {
                let [result, one, other] = [0, 1, 2].map(Register);
                let sum = encode::three(0x90, result, one, other);
                vec![
                    Instruction::plain(sum),
                    Instruction::plain(encode::one(0x0f, result)),
                ]
            }
            Self::Constructor => {
                with_call(Self::BaseConstructor.call(encode::arguments(0x70, &this)))
            }
            Self::BaseConstructor => {
                with_call(Self::ObjectConstructor.call(encode::arguments(0x70, &this)))
            }
            Self::Super => with_call(Self::Base.call(encode::arguments(0x6f, &this))),
            Self::SuperRange => with_call(Self::Base.call(encode::range(0x75, &this))),
            Self::Base | Self::ObjectConstructor => nothing,
        }
    }

    /// Adds the method to its class.
    fn add(self, class: &mut Class, dex: &mut DexBuilder) -> Result<(), NotRewritten> {
        /// Two for results, and one for the instance or the second argument.
        const REGISTERS: u16 = 3;
        let mut code = Code::new(REGISTERS, 1);
        for instruction in self.body() {
            instruction.write(dex, &mut code)?;
        }
        let flags = match self.is_static() {
            true => access::PUBLIC | access::STATIC,
            false => access::PUBLIC,
        };
        class.method(flags, &self.name(), self.descriptor(), Some(code));
        Ok(())
    }
}

/// Returns the reference to the method that reads a clock.
pub(super) fn clock(clock: Clock, dex: &mut DexBuilder) -> Result<Reference, NotRewritten> {
    let (class, name) = match clock {
        Clock::Nano => ("Ljava/lang/System;", "nanoTime"),
        Clock::Millis => ("Ljava/lang/System;", "currentTimeMillis"),
        Clock::Counter => (COUNTER, "counter"),
    };
    dex.method(class, name, "()J")
}

/// Adds the classes that units use.
pub(super) fn add_classes(dex: &mut DexBuilder) -> Result<(), NotRewritten> {
    let mut calls = Class::interface(CALLS);
    let mut base = Class::new(BASE);
    let mut fixture = Class::new(FIXTURE).extends(BASE).implements(CALLS);
    for kind in FieldKind::ALL {
        for (holder, flags) in [
            (Holder::Object, access::PUBLIC),
            (Holder::Class, access::PUBLIC | access::STATIC),
        ] {
            fixture.field(flags, &kind.name(holder), kind.descriptor());
        }
    }
    for callee in [Callee::Base, Callee::BaseConstructor] {
        callee.add(&mut base, dex)?;
    }
    Callee::Constructor.add(&mut fixture, dex)?;
    for callee in Callee::ALL {
        callee.add(&mut fixture, dex)?;
        if let Callee::Interface(_) = callee {
            let flags = access::PUBLIC | access::ABSTRACT;
            calls.method(flags, &callee.name(), callee.descriptor(), None);
        }
    }
    let native = access::PUBLIC | access::STATIC | access::NATIVE;
    let mut counter = Class::new(COUNTER);
    counter.method(native, "counter", "()J", None);
    let mut host = Class::new(HOST);
    for (name, descriptor) in [("next", "()I"), ("answer", "(J)V"), ("flush", VOID)] {
        host.method(native, name, descriptor, None);
    }
    for class in [calls, base, fixture, counter, host] {
        dex.class(class);
    }
    Ok(())
}
