//! Which methods and classes does a name select?

/// A method as a user names it: `org.example.App.run`, or the end of that behind a dot. The parameters of an overloaded one stand behind it:
/// `App.run(int,java.lang.String[])`.
///
/// ```
/// use varid_instrument::MethodPattern;
///
/// let run = MethodPattern::new("App.run(int,java.lang.String[])");
/// assert!(run.matches("org/example/App", "run", "(I[Ljava/lang/String;)V"));
/// assert!(!run.matches("org/example/App", "run", "(I)V"));
/// assert!(!run.matches("org/example/MyApp", "run", "(I[Ljava/lang/String;)V"));
/// assert!(MethodPattern::new("run").matches("org/example/App", "run", "(I)V"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPattern(String);

impl MethodPattern {
    /// Makes the pattern of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a method is selected. `class` has slashes.
    #[must_use]
    pub fn matches(&self, class: &str, name: &str, descriptor: &str) -> bool {
        let (named, wanted) = match self.0.split_once('(') {
            Some((named, wanted)) => (named, Some(wanted)),
            None => (self.0.as_str(), None),
        };
        let has_types = |wanted: &str| {
            let types = wanted.strip_suffix(')');
            types.is_some() && types == parameters(descriptor).as_deref()
        };
        let full = format!("{}.{name}", class.replace('/', "."));
        let rest = full.strip_suffix(named);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            && wanted.is_none_or(has_types)
    }
}

/// Classes as a user names them: `org.example.App`, or `org.example.*` for all whose names begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPattern(String);

impl ClassPattern {
    /// Makes the pattern of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a class is selected. `class` has slashes. A hidden class has the name of its origin and a suffix.
    #[must_use]
    pub fn matches(&self, class: &str) -> bool {
        let class = class.replace('/', ".");
        match self.0.strip_suffix('*') {
            Some(start) => class.starts_with(start),
            None => class == self.0,
        }
    }
}

/// Returns the parameters of a descriptor as source code names their types. None: it is not one of a method.
fn parameters(descriptor: &str) -> Option<String> {
    let (mut rest, _) = descriptor.strip_prefix('(')?.split_once(')')?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let element = rest.trim_start_matches('[');
        let dimensions = rest.len().saturating_sub(element.len());
        let (name, behind) = match element.strip_prefix('L') {
            Some(class) => {
                let (class, behind) = class.split_once(';')?;
                (class.replace('/', "."), behind)
            }
            None => {
                let (letter, behind) = element.split_at_checked(1)?;
                (primitive(letter)?.to_owned(), behind)
            }
        };
        names.push(name + &"[]".repeat(dimensions));
        rest = behind;
    }
    Some(names.join(","))
}

/// Returns the type that a letter stands for in descriptors.
fn primitive(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_named_as_in_source_code() {
        for (descriptor, expected) in [
            ("()V", Some("")),
            (
                "(I[[JLjava/lang/String;Z)V",
                Some("int,long[][],java.lang.String,boolean"),
            ),
            ("(Q)V", None),
            ("(Ljava/lang/String)V", None),
            ("([)V", None),
            ("I", None),
        ] {
            assert_eq!(parameters(descriptor).as_deref(), expected, "{descriptor}");
        }
    }

    #[test]
    fn a_method_whose_parameters_are_no_list_of_types_is_none() {
        for text in ["App.run(I)V", "App.run(", "App.run(int"] {
            assert!(
                !MethodPattern::new(text).matches("App", "run", "(I)V"),
                "{text}"
            );
        }
    }

    #[test]
    fn classes_are_selected_by_name_or_by_its_start() {
        let matches = |pattern, class| ClassPattern::new(pattern).matches(class);
        assert!(matches("org.example.*", "org/example/a/App$$Lambda"));
        assert!(matches("org.example.App", "org/example/App"));
        assert!(!matches("org.example.App", "org/example/App$Inner"));
        assert!(!matches("org.example.*", "org/examples/App"));
    }
}
