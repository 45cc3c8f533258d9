//! Demangles C++ and Rust names.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The maximum length of a demangled name, in bytes. Short mangled names can expand to unbounded ones.
const MAX_DEMANGLED: usize = 8192;

/// Returns the C++ or Rust name of `mangled`, or `mangled` itself if it is neither.
#[must_use]
pub fn demangle(mangled: &str) -> Cow<'_, str> {
    rust(mangled)
        .or_else(|| varid_demangle::demangle(mangled, MAX_DEMANGLED))
        .map_or(Cow::Borrowed(mangled), Cow::Owned)
}

fn rust(mangled: &str) -> Option<String> {
    if !mangled.starts_with("_R") && !mangled.starts_with("_ZN") {
        return None;
    }
    let name = rustc_demangle::try_demangle(mangled).ok()?;
    let mut text = Bounded(String::new());
    // The alternate form omits the hash.
    write!(text, "{name:#}").ok()?;
    Some(text.0)
}

/// A text that refuses to grow beyond [`MAX_DEMANGLED`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len().saturating_add(more.len()) > MAX_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_every_language() {
        assert_eq!(
            demangle("_ZN3art6Thread6AttachEPKcbP8_jobjectb"),
            "art::Thread::Attach(char const*, bool, _jobject*, bool)"
        );
        assert_eq!(
            demangle("_ZN4core3fmt5write17h0123456789abcdefE"),
            "core::fmt::write"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        for plain in ["main", "org.example.Balls.draw", "_Zz", "_R", "", "_ZN"] {
            assert_eq!(demangle(plain), plain);
        }
    }

    #[test]
    fn a_name_that_expands_without_bounds_stays_mangled() {
        // Each template argument doubles the one before.
        let mut name = String::from("_Z1fI1aI1bS_S_E");
        for level in 0..24 {
            name.push_str(&format!("1cIS{0}_S{0}_E", char::from(b'0' + level % 10)));
        }
        name.push_str("Evv");
        assert!(demangle(&name).len() <= super::MAX_DEMANGLED);
    }
}
