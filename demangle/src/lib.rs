//! Prints mangled C++ names in the notation of llvm-symbolizer.
//!
//! [`demangle`] parses the grammar of the [Itanium C++ ABI], section 5.1, into nodes that refer to each other
//! (substitutions and template parameters repeat earlier parts), and prints them. Depth, steps and length are bounded,
//! because a short name can expand to an unbounded one.
//!
//! ```
//! let name = varid_demangle::demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", 4096);
//! assert_eq!(name.as_deref(), Some("std::vector<int, std::allocator<int>>::push_back(int const&)"));
//! assert_eq!(varid_demangle::demangle("main", 4096), None);
//! ```
//!
//! | question | file |
//! |---|---|
//! | what is a name made of | `node` |
//! | how are functions, members, local and special names mangled | `name` |
//! | how are types and template arguments mangled | `types` |
//! | how are expressions and literals mangled | `expression` |
//! | which operators are there | `operators` |
//! | how are nodes printed | `print` |
//!
//! [Itanium C++ ABI]: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod expression;
mod name;
mod node;
mod operators;
mod parser;
mod print;
mod types;

use node::Node;
use parser::Parser;

/// Returns the C++ name of `mangled`. `None` if it does not begin with `_Z`, is not a valid name, or expands to more than `max_length`
/// bytes.
///
/// A suffix that a compiler adds to a part or copy of a function (`.cold`, `.isra.0`, `.llvm.123`) is printed in
/// parentheses.
#[must_use]
pub fn demangle(mangled: &str, max_length: usize) -> Option<String> {
    let mut parser = Parser::new(mangled.strip_prefix("_Z")?);
    let name = parser.encoding()?;
    let root = match parser.rest {
        "" => name,
        suffix if suffix.starts_with('.') => parser.make(Node::Suffix(name, suffix))?,
        _ => return None,
    };
    print::print(&parser.nodes, root, max_length)
}
