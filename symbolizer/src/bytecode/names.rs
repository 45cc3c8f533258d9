//! Names of classes without their package, and of code that several methods share.

/// Stands for a class name that is broken.
pub(crate) const NO_CLASS: &str = "??";

/// The class's name without its package. Never empty.
pub(crate) fn unqualified(class: &str) -> &str {
    let simple = class.rsplit_once('.').map_or(class, |(_, simple)| simple);
    if simple.is_empty() { NO_CLASS } else { simple }
}

/// Returns the name of code that the named method shares with `others` more.
pub(crate) fn shared_name(name: String, others: u32) -> String {
    match others {
        0 => name,
        _ => format!("{name} and {others} more"),
    }
}

/// Splits a [`super::BytecodeImage::code_name`] into the name of the method and the suffix about others: empty, or ` and 41 more`.
#[must_use]
pub fn split_shared_name(name: &str) -> (&str, &str) {
    let method = name
        .strip_suffix(" more")
        .and_then(|rest| rest.rsplit_once(" and "))
        .filter(|(_, others)| others.parse::<u32>().is_ok())
        .map_or(name, |(method, _)| method);
    name.split_at_checked(method.len()).unwrap_or((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unqualified_name_has_no_package_and_is_never_empty() {
        for (class, simple) in [
            ("org.example.Balls$1", "Balls$1"),
            ("Balls", "Balls"),
            ("a.", NO_CLASS),
        ] {
            assert_eq!(unqualified(class), simple);
        }
    }

    #[test]
    fn a_shared_name_is_split_again() {
        for (name, others) in [("a.b(int)", 0), ("a.b", 1), ("a.<init> and 2 more", 41)] {
            let shared = shared_name(name.to_owned(), others);
            let more = shared.strip_prefix(name).unwrap();
            if others != 0 {
                assert_eq!(split_shared_name(&shared), (name, more));
            }
        }
        for name in ["a.b", "a. and x more", "", " more"] {
            assert_eq!(split_shared_name(name), (name, ""));
        }
    }
}
