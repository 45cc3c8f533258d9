//! The names of Java's classes, as HotSpot has them, and their layers.

use std::fmt;
use std::rc::Rc;

/// Prefixes of the names of the JDK's classes, as the VM writes them.
const JDK_PREFIXES: [&str; 9] = [
    "java/",
    "javax/",
    "jdk/",
    "sun/",
    "netscape/javascript/",
    "org/ietf/jgss/",
    "org/jcp/xml/dsig/",
    "org/w3c/dom/",
    "org/xml/sax/",
];
/// The JDK's packages below `com/sun/`, where libraries have theirs, too: `com/sun/jna`, `com/sun/mail`.
const SUN: &str = "com/sun/";
const SUN_PACKAGES: [&str; 25] = [
    "accessibility/",
    "awt/",
    "beans/",
    "crypto/",
    "image/",
    "imageio/",
    "jarsigner/",
    "java/",
    "java_cup/",
    "jdi/",
    "jmx/",
    "jndi/",
    "management/",
    "media/",
    "naming/",
    "net/",
    "nio/",
    "org/",
    "proxy/",
    "rmi/",
    "rowset/",
    "security/",
    "source/",
    "swing/",
    "tools/",
];
/// The types of the elements of arrays that are no classes, by their letters.
const PRIMITIVES: [(&str, &str); 8] = [
    ("B", "byte"),
    ("C", "char"),
    ("D", "double"),
    ("F", "float"),
    ("I", "int"),
    ("J", "long"),
    ("S", "short"),
    ("Z", "boolean"),
];
/// What is in the name of a class that a lambda is compiled to, behind the class that it is in.
const LAMBDA: &str = "$$Lambda";

/// The name of a class.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassName(Rc<str>);

impl ClassName {
    /// The class with this name in the VM: `org/example/App`. A hidden class has a suffix, `org/example/App$$Lambda$14+0x0000000800c03000`.
    #[must_use]
    pub fn new(vm_name: &str) -> Self {
        Self(vm_name.into())
    }

    /// Its name in the VM.
    #[must_use]
    pub fn vm_name(&self) -> &str {
        &self.0
    }

    /// Its name for a profile: `org.example.App`. A hidden class has that of its origin, and so have all classes of a class's lambdas:
    /// `org.example.App$$Lambda`. An array is named as in a source: `byte[]`, `java.lang.String[][]`.
    #[must_use]
    pub fn readable(&self) -> String {
        let element = self.0.trim_start_matches('[');
        let dimensions = self.0.len().saturating_sub(element.len());
        if dimensions > 0 {
            let primitive = PRIMITIVES.iter().find(|(letter, _)| *letter == element);
            let element = match primitive {
                Some((_, name)) => (*name).to_owned(),
                None => self.element().readable(),
            };
            return element + &"[]".repeat(dimensions);
        }
        let (name, _) = self.split_hidden();
        let lambda = name.rsplit_once(LAMBDA);
        let name = match lambda {
            // JDK 17 numbers them.
            Some((class, number)) if is_lambda_number(number) => {
                name.get(..class.len().saturating_add(LAMBDA.len()))
            }
            _ => None,
        }
        .unwrap_or(name);
        printable(&name.replace('/', "."))
    }

    /// Returns true if it is a hidden class: several may have the same readable name.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.split_hidden().1.is_some()
    }

    /// Returns the class of an array's elements. Other classes are their own.
    fn element(&self) -> Self {
        let element = self.0.trim_start_matches('[');
        let class = element
            .strip_prefix('L')
            .and_then(|name| name.strip_suffix(';'))
            .filter(|name| !name.starts_with('['));
        match self.0.starts_with('[') {
            true => Self::new(class.unwrap_or(element)),
            false => self.clone(),
        }
    }

    /// Returns true if it is a class of the JDK, or an array of primitive types.
    #[must_use]
    pub fn is_of_jdk(&self) -> bool {
        if self.0.starts_with('[') {
            let letter = self.0.trim_start_matches('[');
            let is_primitive = PRIMITIVES.iter().any(|(primitive, _)| *primitive == letter);
            return is_primitive || self.element().is_of_jdk();
        }
        let starts_with =
            |prefixes: &[&str], name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let of_sun = self.0.strip_prefix(SUN);
        let is_of_sun = of_sun.is_some_and(|package| starts_with(&SUN_PACKAGES, package));
        is_of_sun || starts_with(&JDK_PREFIXES, &self.0)
    }

    /// Splits the suffix of a hidden class off, which is the address of something in the VM.
    fn split_hidden(&self) -> (&str, Option<&str>) {
        let split = self.0.rsplit_once('+');
        match split.filter(|(_, suffix)| suffix.starts_with("0x")) {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (&self.0, None),
        }
    }
}

impl fmt::Display for ClassName {
    /// Writes its full name, as `Class::getName` does: `org.example.App$$Lambda$14/0x0000000800c03000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, suffix) = self.split_hidden();
        f.write_str(&printable(&name.replace('/', ".")))?;
        match suffix {
            Some(suffix) => write!(f, "/{}", printable(suffix)),
            None => Ok(()),
        }
    }
}

/// Returns true if it is what JDK 17 puts behind `$$Lambda`, or nothing, as in later versions.
fn is_lambda_number(text: &str) -> bool {
    let number = text.strip_prefix('$').unwrap_or(text);
    text.is_empty() || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Replaces what is not for terminals.
#[must_use]
pub fn printable(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_of_their_sources() {
        for (vm_name, readable, full) in [
            ("org/example/App", "org.example.App", "org.example.App"),
            ("App$Inner$1", "App$Inner$1", "App$Inner$1"),
            (
                "org/example/App$$Lambda$14+0x0000000800c03000",
                "org.example.App$$Lambda",
                "org.example.App$$Lambda$14/0x0000000800c03000",
            ),
            (
                "org/example/App$$Lambda+0x00007f0c4c002200",
                "org.example.App$$Lambda",
                "org.example.App$$Lambda/0x00007f0c4c002200",
            ),
            (
                "java/lang/invoke/LambdaForm$DMH+0x0000000800c04000",
                "java.lang.invoke.LambdaForm$DMH",
                "java.lang.invoke.LambdaForm$DMH/0x0000000800c04000",
            ),
            ("a/B+C", "a.B+C", "a.B+C"),
            ("[B", "byte[]", "[B"),
            ("[[J", "long[][]", "[[J"),
            (
                "[Ljava/lang/String;",
                "java.lang.String[]",
                "[Ljava.lang.String;",
            ),
            ("[[LI;", "I[][]", "[[LI;"),
            ("[", "[]", "["),
            ("[L[B;", "L[B;[]", "[L[B;"),
            ("a/B$$LambdaMaker", "a.B$$LambdaMaker", "a.B$$LambdaMaker"),
            ("a/B$$Lambda$", "a.B$$Lambda$", "a.B$$Lambda$"),
            ("a/\u{1b}[31mB", "a.\u{fffd}[31mB", "a.\u{fffd}[31mB"),
        ] {
            let name = ClassName::new(vm_name);
            assert_eq!(
                (name.readable().as_str(), name.to_string().as_str()),
                (readable, full)
            );
            assert_eq!(name.is_hidden(), full.contains("/0x"));
        }
    }

    #[test]
    fn classes_of_the_jdk_are_known_by_their_packages() {
        let is_of_jdk = |name: &str| ClassName::new(name).is_of_jdk();
        for name in [
            "java/util/HashMap",
            "jdk/internal/misc/Unsafe",
            "com/sun/proxy/$Proxy1",
            "com/sun/tools/javac/Main",
            "org/xml/sax/helpers/DefaultHandler",
            "java/lang/invoke/LambdaForm$MH+0x0000000800c04000",
            "[B",
            "[[Ljava/lang/String;",
        ] {
            assert!(is_of_jdk(name), "{name}");
        }
        for name in [
            "org/example/App",
            "javassist/A",
            "com/sunny/A",
            "com/sun/jna/Native",
            "org/w3c/A",
            "java",
            "[Lorg/example/App;",
            "[LB;",
        ] {
            assert!(!is_of_jdk(name), "{name}");
        }
    }
}
