//! Tests with made-up code.
