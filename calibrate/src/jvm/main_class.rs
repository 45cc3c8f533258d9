//! Which class calls the timed methods?
//!
//! Requests are three numbers of four bytes on standard input: a method, its argument, and how often to call it. The answer is a number of eight
//! bytes for each call, on standard output. A count of 0 asks for all answers so far. A negative method ends the program. In Java:
//!
//! ```java
//! public static void main(String[] arguments) {
//!     if (arguments.length != 0) System.load(arguments[0]);
//!     DataInputStream in = new DataInputStream(System.in);
//!     DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
//!     for (;;) {
//!         int method = in.readInt();
//!         if (method < 0) return;
//!         int argument = in.readInt();
//!         int count = in.readInt();
//!         if (count == 0) out.flush();
//!         long[] ticks = new long[count];
//!         for (int i = 0; i < count; i++) ticks[i] = time(method, argument);
//!         for (int i = 0; i < count; i++) out.writeLong(ticks[i]);
//!     }
//! }
//! ```

use super::fixture::file;
use super::timed_method::DESCRIPTOR;
use crate::program::ProgramFile;
use varid_instrument::NotRewritten;
use varid_instrument::assemble::{
    ClassBuilder, ClassKind, CodeBuilder, Limits, Local, Member, access,
};
use varid_instrument::opcode::{
    AALOAD, ARRAYLENGTH, DUP, GETSTATIC, GOTO, ICONST_0, IF_ICMPGE, IFEQ, IFLT, IFNE, IINC,
    INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL, LALOAD, LASTORE, LRETURN, NEW, RETURN, TABLESWITCH,
};

/// Its name.
pub(super) const MAIN: &str = "varid/calibrate/Main";

/// What a method number stands for.
#[derive(Debug, Clone)]
pub(super) enum Called {
    /// A timed method, by its class and name.
    Timed(String, String),
    /// The value of a clock.
    Clock(crate::clock::Clock),
}

const IN: &str = "java/io/DataInputStream";
const OUT: &str = "java/io/DataOutputStream";
const BUFFER: &str = "java/io/BufferedOutputStream";
const FILE: &str = "java/io/FileOutputStream";
const LIMITS: Limits = Limits {
    stack: 8,
    locals: 10,
};

/// Returns the class that calls these methods by their place in the list.
pub(super) fn main_class(methods: &[Called]) -> Result<ProgramFile, NotRewritten> {
    let mut class = ClassBuilder::new(MAIN);
    let member = |name, descriptor| Member {
        access: access::PUBLIC | access::STATIC,
        name,
        descriptor,
        annotation: None,
    };
    class.method(
        &member("main", "([Ljava/lang/String;)V"),
        LIMITS,
        write_main,
    )?;
    class.method(&member("time", "(II)J"), LIMITS, |code| {
        write_time(methods, code)
    })?;
    file(MAIN, class, ClassKind::Final(&[]))
}

fn write_main(code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    let (arguments, input, output, ticks) = (Local(0), Local(1), Local(2), Local(3));
    let (method, argument, count, index) = (Local(4), Local(5), Local(6), Local(7));
    let (loaded, next, end, enough) = (code.label(), code.label(), code.label(), code.label());
    code.to.load_reference(arguments);
    code.to.op(ARRAYLENGTH);
    code.branch(IFEQ, loaded);
    code.to.load_reference(arguments);
    code.to.op(ICONST_0);
    code.to.op(AALOAD);
    code.to.call(
        INVOKESTATIC,
        "java/lang/System",
        "load",
        "(Ljava/lang/String;)V",
    )?;
    code.place(loaded);
    new(IN, code)?;
    code.to
        .field(GETSTATIC, "java/lang/System", "in", "Ljava/io/InputStream;")?;
    code.to
        .call(INVOKESPECIAL, IN, "<init>", "(Ljava/io/InputStream;)V")?;
    code.to.store_reference(input);
    new(OUT, code)?;
    new(BUFFER, code)?;
    new(FILE, code)?;
    code.to.field(
        GETSTATIC,
        "java/io/FileDescriptor",
        "out",
        "Ljava/io/FileDescriptor;",
    )?;
    code.to
        .call(INVOKESPECIAL, FILE, "<init>", "(Ljava/io/FileDescriptor;)V")?;
    for stream in [BUFFER, OUT] {
        code.to
            .call(INVOKESPECIAL, stream, "<init>", "(Ljava/io/OutputStream;)V")?;
    }
    code.to.store_reference(output);

    code.place(next);
    for (local, is_method) in [(method, true), (argument, false), (count, false)] {
        code.to.load_reference(input);
        code.to.call(INVOKEVIRTUAL, IN, "readInt", "()I")?;
        code.to.store_int(local);
        if is_method {
            code.to.load_int(method);
            code.branch(IFLT, end);
        }
    }
    code.to.load_int(count);
    code.branch(IFNE, enough);
    code.to.load_reference(output);
    code.to.call(INVOKEVIRTUAL, OUT, "flush", "()V")?;
    code.place(enough);
    code.to.load_int(count);
    code.to.bytes(&[188, 11]); // newarray long
    code.to.store_reference(ticks);
    for_each(index, count, code, |code| {
        code.to.load_reference(ticks);
        code.to.load_int(index);
        code.to.load_int(method);
        code.to.load_int(argument);
        code.to.call(INVOKESTATIC, MAIN, "time", "(II)J")?;
        code.to.op(LASTORE);
        Ok(())
    })?;
    for_each(index, count, code, |code| {
        code.to.load_reference(output);
        code.to.load_reference(ticks);
        code.to.load_int(index);
        code.to.op(LALOAD);
        code.to.call(INVOKEVIRTUAL, OUT, "writeLong", "(J)V")
    })?;
    code.branch(GOTO, next);
    code.place(end);
    code.to.op(RETURN);
    Ok(())
}

fn new(class: &str, code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    code.to.class(NEW, class)?;
    code.to.op(DUP);
    Ok(())
}

/// Appends a loop over the numbers below a limit.
fn for_each(
    index: Local,
    limit: Local,
    code: &mut CodeBuilder<'_>,
    write: impl FnOnce(&mut CodeBuilder<'_>) -> Result<(), NotRewritten>,
) -> Result<(), NotRewritten> {
    let (top, end) = (code.label(), code.label());
    code.to.op(ICONST_0);
    code.to.store_int(index);
    code.place(top);
    code.to.load_int(index);
    code.to.load_int(limit);
    code.branch(IF_ICMPGE, end);
    write(code)?;
    let [_, low] = index.0.to_be_bytes();
    code.to.bytes(&[IINC, low, 1]);
    code.branch(GOTO, top);
    code.place(end);
    Ok(())
}

/// Writes the method that calls one of the others by its number.
fn write_time(methods: &[Called], code: &mut CodeBuilder<'_>) -> Result<(), NotRewritten> {
    /// The length of each case: a load or a `nop`, a call, a return.
    const CASE: usize = 5;
    code.to.load_int(Local(0));
    let start = code.to.offset();
    let padding = 3_usize.wrapping_sub(start) % 4;
    let words = methods.len().saturating_add(3);
    let head = words
        .saturating_mul(4)
        .saturating_add(padding)
        .saturating_add(1);
    let target = |case: usize| {
        let offset = case.saturating_mul(CASE).saturating_add(head);
        i32::try_from(offset).map_err(|_| NotRewritten::CodeTooLong)
    };
    code.to.op(TABLESWITCH);
    code.to.bytes(&vec![0; padding]);
    let highest = i32::try_from(methods.len()).map_err(|_| NotRewritten::CodeTooLong)?;
    // Another number is the host's mistake: the last method is as good as any.
    let default = target(methods.len().saturating_sub(1))?;
    for word in [default, 0, highest.saturating_sub(1)] {
        code.to.bytes(&word.to_be_bytes());
    }
    for case in 0..methods.len() {
        code.to.bytes(&target(case)?.to_be_bytes());
    }
    for method in methods {
        match method {
            Called::Timed(class, name) => {
                code.to.load_int(Local(1));
                code.to.call(INVOKESTATIC, class, name, DESCRIPTOR)?;
            }
            Called::Clock(clock) => {
                code.to.op(0);
                super::fixture::write_clock(*clock, &mut code.to)?;
            }
        }
        code.to.op(LRETURN);
    }
    Ok(())
}
