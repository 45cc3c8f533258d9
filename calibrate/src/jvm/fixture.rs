//! What do the calls, fields and clocks of units need?

use super::opcode::{Call, Kind, Opcode};
use crate::clock::Clock;
use crate::program::ProgramFile;
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{
    Assembler, ClassBuilder, ClassKind, Limits, Local, Member, access,
};
use varid_instrument::opcode::{ALOAD_0, INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL, RETURN};

/// The class of the units' objects.
pub(super) const FIXTURE: &str = "varid/calibrate/Fixture";
/// The interface that it implements.
const CALLS: &str = "varid/calibrate/Calls";
/// The class of the native clock.
const COUNTER: &str = "varid/calibrate/Counter";
const OBJECT: &str = "java/lang/Object";

/// The types of the fixture's fields.
pub(super) const FIELDS: [Kind; 3] = [Kind::Int, Kind::Long, Kind::Reference];

/// Returns the name and descriptor of a field.
pub(super) fn field(kind: Kind, is_static: bool) -> (String, &'static str) {
    let prefix = if is_static { "static" } else { "own" };
    (format!("{prefix}{kind:?}"), descriptor(kind))
}

const fn descriptor(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "I",
        Kind::Long => "J",
        Kind::Float => "F",
        Kind::Double => "D",
        Kind::Reference => "Ljava/lang/Object;",
    }
}

/// Returns the opcodes that a method executes, which have no operands. The constructor also executes that of `Object`.
pub(super) fn method_body(call: Call, returned: Option<Kind>) -> Vec<Opcode> {
    match (call, returned) {
        (Call::Constructor, _) => vec![Opcode(ALOAD_0)],
        (_, None) => vec![Opcode(RETURN)],
        (_, Some(kind)) => vec![kind.one_opcode(), kind.return_opcode()],
    }
}

/// Returns the name and descriptor of a method.
fn method(call: Call, returned: Option<Kind>) -> (String, String) {
    match (call, returned) {
        (Call::Constructor, _) => ("<init>".to_owned(), "()V".to_owned()),
        (_, None) => (format!("{call:?}"), "()V".to_owned()),
        (_, Some(kind)) => (
            format!("{call:?}{kind:?}"),
            format!("(){}", descriptor(kind)),
        ),
    }
}

/// The methods that are called, beside the constructor.
pub(super) const METHODS: [(Call, Option<Kind>); 10] = [
    (Call::Static, None),
    (Call::Static, Some(Kind::Int)),
    (Call::Static, Some(Kind::Long)),
    (Call::Static, Some(Kind::Float)),
    (Call::Static, Some(Kind::Double)),
    (Call::Static, Some(Kind::Reference)),
    (Call::Virtual, None),
    (Call::Virtual, Some(Kind::Int)),
    (Call::Interface, None),
    (Call::Interface, Some(Kind::Int)),
];

/// Appends a call. The object, if it needs one, is on the stack.
pub(super) fn write_call(
    call: Call,
    returned: Option<Kind>,
    to: &mut Assembler<'_, '_>,
) -> Result<(), NotRewritten> {
    let (name, descriptor) = method(call, returned);
    let opcode = match call {
        Call::Static => INVOKESTATIC,
        Call::Virtual => INVOKEVIRTUAL,
        Call::Constructor => INVOKESPECIAL,
        Call::Interface => return to.call_interface([CALLS, &name, &descriptor], 1),
    };
    to.call(opcode, FIXTURE, &name, &descriptor)
}

/// Appends the read of a clock, a `long`.
pub(super) fn write_clock(clock: Clock, to: &mut Assembler<'_, '_>) -> Result<(), NotRewritten> {
    let (class, name) = match clock {
        Clock::Nano => ("java/lang/System", "nanoTime"),
        Clock::Millis => ("java/lang/System", "currentTimeMillis"),
        Clock::Counter => (COUNTER, "counter"),
    };
    to.call(INVOKESTATIC, class, name, "()J")
}

const fn member<'a>(access: u16, name: &'a str, descriptor: &'a str) -> Member<'a> {
    Member {
        access,
        name,
        descriptor,
        annotation: None,
    }
}

/// Returns a class's file.
pub(super) fn file(
    name: &str,
    class: ClassBuilder,
    kind: ClassKind<'_>,
) -> Result<ProgramFile, NotRewritten> {
    Ok(ProgramFile {
        path: format!("{name}.class"),
        bytes: class.finish(kind)?,
    })
}

/// Returns the classes that units use.
pub(super) fn classes() -> Result<Vec<ProgramFile>, NotRewritten> {
    let mut calls = ClassBuilder::new(CALLS);
    let mut fixture = ClassBuilder::new(FIXTURE);
    for kind in FIELDS {
        for (is_static, flags) in [
            (true, access::PUBLIC | access::STATIC),
            (false, access::PUBLIC),
        ] {
            let (name, descriptor) = field(kind, is_static);
            fixture.field(&member(flags, &name, descriptor))?;
        }
    }
    let limits = Limits {
        stack: 2,
        locals: 1,
    };
    fixture.method(&member(access::PUBLIC, "<init>", "()V"), limits, |code| {
        code.to.load_reference(Local(0));
        code.to.call(INVOKESPECIAL, OBJECT, "<init>", "()V")?;
        code.to.op(RETURN);
        Ok(())
    })?;
    for (call, returned) in METHODS {
        let (name, descriptor) = method(call, returned);
        let flags = match call {
            Call::Static => access::PUBLIC | access::STATIC,
            _ => access::PUBLIC,
        };
        fixture.method(&member(flags, &name, &descriptor), limits, |code| {
            for Opcode(opcode) in method_body(call, returned) {
                code.to.op(opcode);
            }
            Ok(())
        })?;
        if call == Call::Interface {
            let flags = access::PUBLIC | access::ABSTRACT;
            calls.method_without_code(&member(flags, &name, &descriptor))?;
        }
    }
    let mut counter = ClassBuilder::new(COUNTER);
    let flags = access::PUBLIC | access::STATIC | access::NATIVE;
    counter.method_without_code(&member(flags, "counter", "()J"))?;
    Ok(vec![
        file(CALLS, calls, ClassKind::Interface)?,
        file(FIXTURE, fixture, ClassKind::Final(&[CALLS]))?,
        file(COUNTER, counter, ClassKind::Final(&[]))?,
    ])
}
