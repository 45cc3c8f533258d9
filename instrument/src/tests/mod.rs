//! Tests of whole classes, which are assembled here.

mod assembled;
mod mutated;
mod rewritten;
