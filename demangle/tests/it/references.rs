//! Counts the wrong names of this crate and of cpp_demangle for real libraries, according to two independent demanglers.
//!
//! A name is wrong if binutils' `c++filt` and llvm's `llvm-cxxfilt` agree on it except for notation, and it differs from theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::notation::plain;

/// Libraries of Debian, and their packages.
const LIBRARIES: [(&str, &str); 2] = [
    (
        "/usr/lib/x86_64-linux-gnu/android/libart.so.0",
        "android-libart",
    ),
    ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "libstdc++6"),
];

/// The results of a demangler for the names.
#[derive(Debug, Default)]
struct Tally {
    names: usize,
    /// The references agree, and the result differs from theirs.
    wrong: Vec<String>,
    /// The references disagree, and the result differs from both.
    disputed: usize,
    /// The name stays mangled although a reference demangles it.
    mangled: usize,
}

/// Returns the output of `program` for `input`. `None` if it cannot be run; the reason is printed.
fn filter(program: &str, input: &str) -> Option<Vec<String>> {
    let child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("not compared with {program}: {error}");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    Some(printed.lines().map(str::to_owned).collect())
}

/// Returns the C++ names of the dynamic symbols. `None` if a library is missing; the reason is printed.
fn mangled_names() -> Option<Vec<String>> {
    let mut names = BTreeSet::new();
    for (library, package) in LIBRARIES {
        if !Path::new(library).exists() {
            eprintln!("not compared: {library} is missing ({package})");
            return None;
        }
        let output = Command::new("nm").args(["-D", library]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let symbols = printed.lines().filter_map(|line| line.rsplit(' ').next());
        let symbols = symbols.filter_map(|symbol| symbol.split('@').next());
        names.extend(
            symbols
                .filter(|name| name.starts_with("_Z"))
                .map(str::to_owned),
        );
    }
    Some(names.into_iter().collect())
}

/// The kind of mistake in a wrong name.
fn mistake(wrong: &str, right: &str) -> &'static str {
    let without = |text: &str, removed: &str| text.replace(removed, "");
    if wrong.contains("const<") {
        "qualifier before template arguments"
    } else if wrong.contains("&::") {
        "reference before a member"
    } else if without(wrong, "&") == without(right, "&") {
        match wrong.contains("{lambda(")
            && wrong.matches("&&").count() == right.matches("&&").count()
        {
            true => "reference missing in a lambda's parameters",
            false => "reference missing in a parameter pack",
        }
    } else if wrong.matches(',').count() < right.matches(',').count() {
        "parameter missing"
    } else {
        "other"
    }
}

#[test]
fn no_name_of_libart_or_libstdcxx_is_wrong_and_cpp_demangle_is_not_good_enough() {
    let Some(mangled) = mangled_names() else {
        return;
    };
    let input: String = mangled.iter().map(|name| format!("{name}\n")).collect();
    let (Some(gnu), Some(llvm)) = (filter("c++filt", &input), filter("llvm-cxxfilt-16", &input))
    else {
        return;
    };
    assert_eq!((gnu.len(), llvm.len()), (mangled.len(), mangled.len()));
    assert!(mangled.len() > 15_000);

    let tally = |demangle: &dyn Fn(&str) -> Option<String>| {
        let mut tally = Tally::default();
        let mut mistakes = BTreeMap::<_, usize>::new();
        for ((mangled, gnu), llvm) in mangled.iter().zip(&gnu).zip(&llvm) {
            tally.names += 1;
            let Some(name) = demangle(mangled) else {
                tally.mangled += usize::from(gnu != mangled || llvm != mangled);
                continue;
            };
            let (name, gnu, llvm) = (plain(&name), plain(gnu), plain(llvm));
            if name == gnu || name == llvm {
                continue;
            }
            if gnu != llvm {
                tally.disputed += 1;
                continue;
            }
            *mistakes.entry(mistake(&name, &gnu)).or_default() += 1;
            tally.wrong.push(format!("{mangled}\n  {name}\n  {gnu}"));
        }
        println!(
            "{} names: {} wrong, {} disputed, {} still mangled; {mistakes:?}",
            tally.names,
            tally.wrong.len(),
            tally.disputed,
            tally.mangled
        );
        tally
    };
    let ours = tally(&|name| varid_demangle::demangle(name, 1 << 16));
    let theirs = tally(&|name| {
        let symbol = cpp_demangle::Symbol::new(name).ok()?;
        symbol.demangle().ok()
    });
    assert_eq!(ours.wrong, Vec::<String>::new());
    assert_eq!((ours.disputed, ours.mangled), (0, 0));
    // docs/adr/0014: if less than 0.5 % are wrong, cpp_demangle replaces this crate.
    assert!(
        theirs.wrong.len() * 200 > theirs.names,
        "cpp_demangle is good enough now: see docs/adr/0014"
    );
}
