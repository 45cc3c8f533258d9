//! Which names come out of other tools as they went in?

/// A name as a line of text and a string table can hold it: control characters become U+FFFD.
pub(super) fn printable(name: String) -> String {
    replace(name, char::is_control)
}

/// A method's name as its symbol.
///
/// Readers demangle symbols without being asked: a name that one of them would take for a mangled one
/// stands in single quotes, with which no mangled name starts. `;`, which cannot be part
/// of a Java name, becomes U+FFFD: perf's demangler of Java and folded stacks end a name there.
pub(super) fn symbol(name: String) -> String {
    let name = replace(name, |c| c == ';' || c.is_control());
    if looks_mangled(&name) {
        format!("'{name}'")
    } else {
        name
    }
}

/// Whether perf, binutils, llvm or a Rust program may take `name` for a mangled one.
fn looks_mangled(name: &str) -> bool {
    // C++, Rust and D, behind what binutils skips.
    let bare = name.trim_start_matches(['$', '.']);
    let underscored = bare.strip_prefix('_').is_some_and(|rest| {
        let rest = rest.trim_start_matches('_');
        rest.starts_with(['Z', 'R', 'D']) || rest.starts_with("GLOBAL_")
    });
    let ocaml = name
        .strip_prefix("caml")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    // Rust's demangler takes names without underscore, too.
    underscored || ocaml || rustc_demangle::try_demangle(name).is_ok()
}

fn replace(name: String, unwanted: impl Fn(char) -> bool) -> String {
    if name.contains(&unwanted) {
        name.replace(unwanted, "\u{fffd}")
    } else {
        name
    }
}

/// Where a source file lies in its source tree: in the folder of its class's package, as Java has it
/// and debuggers look for it. A file that was recorded with a folder stays as it is.
pub(super) fn source_path(class: &str, file: &str) -> String {
    match class.rsplit_once('.') {
        Some((package, _)) if !file.contains('/') => {
            format!("{}/{file}", package.replace('.', "/"))
        }
        _ => file.to_owned(),
    }
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
    fn what_would_end_a_name_is_replaced() {
        assert_eq!(
            symbol("Lx;.f(int)\n".to_owned()),
            "Lx\u{fffd}.f(int)\u{fffd}"
        );
        assert_eq!(printable("a;b\0".to_owned()), "a;b\u{fffd}");
    }

    #[test]
    fn a_source_file_is_in_the_folder_of_its_package() {
        assert_eq!(
            source_path("org.example.Balls$1", "Balls.java"),
            "org/example/Balls.java"
        );
        assert_eq!(source_path("Balls", "Balls.java"), "Balls.java");
        assert_eq!(source_path("org.example.Balls", "gen/B.java"), "gen/B.java");
    }
}
