//! Converts descriptors to Java's notation of types.

/// Java's notation of a class descriptor: `Lorg/example/Balls;` is `org.example.Balls`.
///
/// Any other text is returned unchanged.
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
/// Any other text is returned unchanged.
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

#[cfg(test)]
mod tests {
    use super::*;

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
