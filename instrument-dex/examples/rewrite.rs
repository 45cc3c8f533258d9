//! Rewrites a dex file: `rewrite FROM TO [--blocks] [--inline]`. Prints what stayed as it was.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use varid_instrument::{Body, Counted, MethodNumber};
use varid_instrument_dex::{Entries, Plan, RuntimeClass, rewrite};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, ..] = arguments.as_slice() else {
        panic!("usage: rewrite FROM TO [--blocks] [--inline]");
    };
    let has = |option: &str| arguments.iter().any(|one| one == option);
    let plan = Plan {
        counted: match has("--blocks") {
            true => Counted::Blocks,
            false => Counted::Calls,
        },
        entries: match has("--inline") {
            true => Entries::Inline,
            false => Entries::Called,
        },
    };
    let dex = std::fs::read(from).unwrap();
    let found = rewrite(&dex, plan, MethodNumber::FIRST, RuntimeClass::Added);
    let found = found.unwrap_or_else(|error| panic!("{from}: {error}"));
    for class in &found.classes {
        for method in &class.methods {
            if let Body::Plain(reason) = method.body {
                println!("{}.{}: {reason:?}", class.name, method.name);
            }
        }
    }
    println!("{} bytes before, {} after", dex.len(), found.bytes.len());
    std::fs::write(to, found.bytes).unwrap();
}
