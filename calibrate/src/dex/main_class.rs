//! Which class calls the timed methods?
//!
//! Requests and answers are those of the program of class files. Natives read and write them, because a VM of dex files may have no streams. In
//! Java:
//!
//! ```java
//! public static long serve(int ignored) {
//!     for (int method; (method = Host.next()) >= 0;) {
//!         int argument = Host.next(), count = Host.next();
//!         if (count == 0) Host.flush();
//!         long[] ticks = new long[count];
//!         for (int i = 0; i < count; i++) ticks[i] = time(method, argument);
//!         for (int i = 0; i < count; i++) Host.answer(ticks[i]);
//!     }
//!     return 0;
//! }
//! ```

use super::encode::{self, Register};
use super::fixture::{self, HOST};
use super::timed_method::DESCRIPTOR;
use crate::clock::Clock;
use varid_instrument::assemble::access;
use varid_instrument_dex::NotRewritten;
use varid_instrument_dex::assemble::{Class, Code, DexBuilder, Reference};

const MAIN: &str = "Lvarid/calibrate/Main;";
/// The name of the main class as Java writes it, and its method that serves requests.
pub(super) const MAIN_CLASS: &str = "varid.calibrate.Main";
const SERVE: &str = "serve";
const TIME: (&str, &str) = ("time", "(II)J");

/// A method that is called by its number.
pub(super) enum Called {
    /// A timed method: its class and its name.
    Timed(String, String),
    /// A clock.
    Clock(Clock),
}

/// Adds the main class, whose methods call the others.
pub(super) fn add_main(methods: &[Called], dex: &mut DexBuilder) -> Result<(), NotRewritten> {
    let mut class = Class::new(MAIN);
    let flags = access::PUBLIC | access::STATIC;
    class.method(flags, SERVE, DESCRIPTOR, Some(serve(dex)?));
    class.method(flags, TIME.0, TIME.1, Some(time(methods, dex)?));
    dex.class(class);
    Ok(())
}

fn serve(dex: &mut DexBuilder) -> Result<Code, NotRewritten> {
    const INVOKE_STATIC: u8 = 0x71;
    let [method, argument, count, index] = [0, 1, 2, 3].map(Register);
    let (ticks, value) = (Register(4), Register(6));
    let mut code = Code::new(9, 2);
    let (next, enough, end) = (code.label(), code.label(), code.label());
    let call = |reference: Reference, registers: &[Register], code: &mut Code| {
        code.indexed(&encode::arguments(INVOKE_STATIC, registers), reference);
    };
    let read = dex.method(HOST, "next", "()I")?;
    let flush = dex.method(HOST, "flush", "()V")?;
    let answer = dex.method(HOST, "answer", "(J)V")?;
    let time = dex.method(MAIN, TIME.0, TIME.1)?;
    let longs = dex.type_of("[J");

    code.place(next);
    for register in [method, argument, count] {
        call(read, &[], &mut code);
        code.units(&encode::one(0x0a, register));
        if register == method {
            // if-ltz.
            code.branch(encode::first(0x3a, method), end);
        }
    }
    // if-nez.
    code.branch(encode::first(0x39, count), enough);
    call(flush, &[], &mut code);
    code.place(enough);
    code.indexed(&encode::two_and(0x23, ticks, count, 0), longs);
    for_each(index, count, &mut code, |code| {
        call(time, &[method, argument], code);
        // move-result-wide and aput-wide.
        code.units(&encode::one(0x0b, value));
        code.units(&encode::three(0x4c, value, ticks, index));
    });
    for_each(index, count, &mut code, |code| {
        // aget-wide.
        code.units(&encode::three(0x45, value, ticks, index));
        call(answer, &[value, Register(value.0.saturating_add(1))], code);
    });
    code.goto(next);
    code.place(end);
    // const-wide/16 and return-wide.
    code.units(&encode::one_and(0x16, value, 0));
    code.units(&encode::one(0x10, value));
    Ok(code)
}

/// Appends a loop over the numbers below a limit.
fn for_each(index: Register, limit: Register, code: &mut Code, mut write: impl FnMut(&mut Code)) {
    let (top, end) = (code.label(), code.label());
    // const/4, if-ge, add-int/lit8.
    code.units(&encode::two(0x12, index, Register(0)));
    code.place(top);
    code.branch(encode::first_of_two(0x35, index, limit), end);
    write(code);
    code.units(&encode::two_and_byte(0xd8, index, index, 1));
    code.goto(top);
    code.place(end);
}

/// Returns the code that calls a method by its number.
fn time(methods: &[Called], dex: &mut DexBuilder) -> Result<Code, NotRewritten> {
    /// The registers of the result, the method and the argument.
    const REGISTERS: [Register; 3] = [Register(0), Register(2), Register(3)];
    let [result, method, argument] = REGISTERS;
    let mut code = Code::new(4, 1);
    let cases: Vec<_> = methods.iter().map(|_| code.label()).collect();
    let count = u16::try_from(methods.len()).map_err(|_| NotRewritten::Full("methods"))?;
    // packed-switch from 0 on. Another number is the host's mistake: the first method is as good as any.
    code.table(encode::first(0x2b, method), &[0x0100, count, 0, 0], &cases);
    for (case, called) in cases.into_iter().zip(methods) {
        code.place(case);
        match called {
            Called::Timed(class, name) => {
                let reference = dex.method(class, name, DESCRIPTOR)?;
                code.indexed(&encode::arguments(0x71, &[argument]), reference);
            }
            Called::Clock(clock) => {
                let reference = fixture::clock(*clock, dex)?;
                code.indexed(&encode::arguments(0x71, &[]), reference);
            }
        }
        code.units(&encode::one(0x0b, result));
        code.units(&encode::one(0x10, result));
    }
    Ok(code)
}
