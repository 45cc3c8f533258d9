//! Rewrites a dex file: `rewrite FROM TO [--blocks]`. Prints what stayed as it was.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use varid_instrument::{Body, Counted, MethodNumber};
use varid_instrument_dex::{RuntimeClass, rewrite};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, ..] = arguments.as_slice() else {
        panic!("usage: rewrite FROM TO [--blocks]");
    };
    let counted = match arguments.iter().any(|one| one == "--blocks") {
        true => Counted::Blocks,
        false => Counted::Calls,
    };
    let dex = std::fs::read(from).unwrap();
    let found = rewrite(&dex, counted, MethodNumber::FIRST, RuntimeClass::Added);
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
