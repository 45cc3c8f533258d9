//! Prepares names so that other tools show them unchanged.

/// Prepares a name for a line of text and a string table: control characters become U+FFFD.
pub(super) fn printable(name: String) -> String {
    replace(name, char::is_control)
}

/// Returns the symbol name of a method.
///
/// Tools demangle every symbol, so a name that one of them would take for a mangled one is put into single quotes: no mangled name starts
/// with a quote. `;`, which cannot be part of a Java name, becomes U+FFFD: perf's Java demangler and folded stacks end a name there.
pub(super) fn symbol(name: String) -> String {
    let name = replace(name, |c| c == ';' || c.is_control());
    if looks_mangled(&name) {
        format!("'{name}'")
    } else {
        name
    }
}

/// Returns true if perf, binutils, llvm or a Rust program may take `name` for a mangled one.
fn looks_mangled(name: &str) -> bool {
    // C++, Rust and D, after the prefix that binutils skips.
    let bare = name.trim_start_matches(['$', '.']);
    let underscored = bare.strip_prefix('_').is_some_and(|rest| {
        let rest = rest.trim_start_matches('_');
        rest.starts_with(['Z', 'R', 'D']) || rest.starts_with("GLOBAL_")
    });
    let ocaml = name
        .strip_prefix("caml")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    // Rust's demangler also accepts names without the underscore.
    underscored || ocaml || rustc_demangle::try_demangle(name).is_ok()
}

fn replace(name: String, unwanted: impl Fn(char) -> bool) -> String {
    if name.contains(&unwanted) {
        name.replace(unwanted, "\u{fffd}")
    } else {
        name
    }
}

/// The folder of a class's package in a source tree, by Java's convention, where debuggers search for source files. Empty for a class
/// without a package.
pub(super) fn source_folder(class: &str) -> String {
    let (package, _) = class.rsplit_once('.').unwrap_or_default();
    package.replace('.', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_java_stay_as_they_are() {
        for name in [
            "org.example.Balls.draw(int,java.lang.String[])",
            "org.example.Init.<clinit>",
            "org.example.-$$Lambda$Foo$x1.lambda$static$0",
            "org.example.Größe$世界.größe",
            "a.a.b.a",
            "R.a",
            "R$id.<init>",
            "Zip.open",
            "camlistore.Client.get",
            "_COROUTINE._BOUNDARY.<init>",
            "[torn-frames]",
        ] {
            assert_eq!(symbol(name.to_owned()), name);
        }
    }

    #[test]
    fn names_that_look_mangled_are_quoted() {
        for name in [
            "_Z1fi.clone(int)",
            "__ZN3foo3barEv.part",
            "$_Z1fv.clone",
            "_RNvC6_123foo3bar.f",
            "RNvC6_123foo3bar.f",
            "ZN3foo3barE.f",
            "_D3foo3barFZv.main",
            "camlFoo__bar.f",
        ] {
            assert_eq!(symbol(name.to_owned()), format!("'{name}'"));
        }
    }

    #[test]
    fn reserved_characters_are_replaced() {
        assert_eq!(
            symbol("Lx;.f(int)\n".to_owned()),
            "Lx\u{fffd}.f(int)\u{fffd}"
        );
        assert_eq!(printable("a;b\0".to_owned()), "a;b\u{fffd}");
    }

    #[test]
    fn source_files_are_in_the_folder_of_their_package() {
        assert_eq!(source_folder("org.example.Balls$1"), "org/example");
        assert_eq!(source_folder("Balls"), "");
    }
}
