//! What do types read like in Java's notation, and methods that share their code?

/// What a class is called whose name is broken.
pub(crate) const NO_CLASS: &str = "??";

/// The class without its package; never empty.
pub(crate) fn simple_name(class: &str) -> &str {
    let simple = class.rsplit_once('.').map_or(class, |(_, simple)| simple);
    if simple.is_empty() { NO_CLASS } else { simple }
}

/// Java's notation of a class descriptor: `Lorg/example/Balls;` is `org.example.Balls`.
///
/// What is not a class descriptor stays as it is.
#[must_use]
pub fn class_name(descriptor: &str) -> String {
    match descriptor
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix(';'))
    {
        Some(path) => path.replace('/', "."),
        None => descriptor.to_owned(),
    }
}

/// Java's notation of a type descriptor: `I` is `int`, `[Ljava/lang/String;` is `java.lang.String[]`.
///
/// What is not a type descriptor stays as it is.
#[must_use]
pub fn type_name(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len().saturating_sub(element.len());
    let mut name = match element {
        "V" => "void".to_owned(),
        "Z" => "boolean".to_owned(),
        "B" => "byte".to_owned(),
        "S" => "short".to_owned(),
        "C" => "char".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "F" => "float".to_owned(),
        "D" => "double".to_owned(),
        _ => class_name(element),
    };
    for _ in 0..dimensions {
        name.push_str("[]");
    }
    name
}

/// The name of code that `others` more methods have than the named one.
pub(super) fn shared_name(name: String, others: u32) -> String {
    match others {
        0 => name,
        _ => format!("{name} and {others} more"),
    }
}

/// The method that [`super::DexFile::code_name`] names, and what is said of others: empty, or ` and 41 more`.
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
    fn a_simple_name_has_no_package_and_is_never_empty() {
        for (class, simple) in [
            ("org.example.Balls$1", "Balls$1"),
            ("Balls", "Balls"),
            ("a.", NO_CLASS),
        ] {
            assert_eq!(simple_name(class), simple);
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

    #[test]
    fn descriptors_in_java_notation() {
        assert_eq!(type_name("I"), "int");
        assert_eq!(type_name("[[J"), "long[][]");
        assert_eq!(type_name("[Ljava/lang/String;"), "java.lang.String[]");
        assert_eq!(type_name("Lorg/example/A$B;"), "org.example.A$B");
        assert_eq!(type_name("La;"), "a");
        assert_eq!(type_name("?"), "?");
        assert_eq!(type_name(""), "");
    }
}
