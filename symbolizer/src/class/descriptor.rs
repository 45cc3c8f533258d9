//! The types of a method's parameters, in Java's notation.

use crate::dex::type_name;

/// Returns the parameters of a method descriptor as Java writes them: `(ILjava/lang/String;)V` is `(int, java.lang.String)`. None if it is
/// not a descriptor.
#[must_use]
pub fn parameters(descriptor: &str) -> Option<String> {
    let (mut rest, _result) = descriptor.strip_prefix('(')?.split_once(')')?;
    let mut types = Vec::new();
    while !rest.is_empty() {
        let (one, others) = rest.split_at_checked(length(rest)?)?;
        types.push(type_name(one));
        rest = others;
    }
    Some(format!("({})", types.join(", ")))
}

/// Returns the length of the first type descriptor of a text, in bytes.
fn length(text: &str) -> Option<usize> {
    let element = text.trim_start_matches('[');
    let dimensions = text.len().saturating_sub(element.len());
    let name = match element.chars().next()? {
        'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' | 'Z' => 1,
        'L' => element.find(';')?.saturating_add(1),
        _ => return None,
    };
    Some(dimensions.saturating_add(name))
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn parameters_are_written_as_in_java() {
        for (descriptor, expected) in [
            ("()V", Some("()")),
            ("(I)D", Some("(int)")),
            (
                "([[JLjava/lang/String;Z[Lorg/example/A$B;)V",
                Some("(long[][], java.lang.String, boolean, org.example.A$B[])"),
            ),
            ("(La/Größe;)V", Some("(a.Größe)")),
            // Not descriptors.
            ("", None),
            ("I", None),
            ("(I", None),
            ("(V)V", None),
            ("([)V", None),
            ("(Ljava/lang/String)V", None),
            ("(é)V", None),
        ] {
            assert_eq!(parameters(descriptor).as_deref(), expected, "{descriptor}");
        }
    }
}
