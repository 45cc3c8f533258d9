//! Removes differences in notation between demanglers.
//!
//! Demanglers print the same name in several notations. [`plain`] converts all of them to one. If the results differ, the names differ.

/// The abbreviations of the standard library that have members, and their full forms.
const ABBREVIATIONS: [(&str, &str); 4] = [
    (
        "string",
        "basic_string<char,std::char_traits<char>,std::allocator<char>>",
    ),
    ("istream", "basic_istream<char,std::char_traits<char>>"),
    ("ostream", "basic_ostream<char,std::char_traits<char>>"),
    ("iostream", "basic_iostream<char,std::char_traits<char>>"),
];

/// Types of literals, and their suffixes.
const LITERALS: [(&str, &str); 6] = [
    ("(unsignedlonglong)", "ull"),
    ("(longlong)", "ll"),
    ("(unsignedlong)", "ul"),
    ("(long)", "l"),
    ("(unsignedint)", "u"),
    ("(int)", ""),
];

/// Converts a name to the notation in which names are compared.
pub fn plain(name: &str) -> String {
    let name: String = name.split_whitespace().collect();
    full_forms(&literals(&unnamed(&lambdas(&special(&name)))))
}

/// `{vtable(X)}` is `vtable for X`.
fn special(name: &str) -> String {
    let Some(inner) = name
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix(")}"))
    else {
        return name.to_owned();
    };
    for (theirs, usual) in [
        ("vtable(", "vtablefor"),
        ("vtt(", "VTTfor"),
        ("typeinfo(", "typeinfofor"),
        ("typeinfoname(", "typeinfonamefor"),
    ] {
        if let Some(of) = inner.strip_prefix(theirs) {
            return format!("{usual}{of}");
        }
    }
    for (theirs, usual) in [
        ("virtualoverridethunk({offset(", "non-virtualthunkto"),
        ("virtualoverridethunk({virtualoffset(", "virtualthunkto"),
    ] {
        let of = inner.strip_prefix(theirs);
        if let Some((_, of)) = of.and_then(|rest| rest.split_once(")},")) {
            return format!("{usual}{of}");
        }
    }
    name.to_owned()
}

/// llvm counts `''`, `'0'`, `'1'`; the others count from 1.
fn number(digits: &str) -> usize {
    digits.parse::<usize>().map_or(1, |number| number + 2)
}

/// `'lambda'(X)` is `{lambda(X)#1}`.
fn lambdas(name: &str) -> String {
    let Some((before, rest)) = name.split_once("'lambda") else {
        return name.to_owned();
    };
    let Some((digits, rest)) = rest.split_once('\'') else {
        return name.to_owned();
    };
    let mut depth = 0usize;
    let end = rest.char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    });
    let (parameters, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let parameters = lambdas(parameters);
    let number = number(digits);
    format!("{before}{{lambda{parameters}#{number}}}{}", lambdas(rest))
}

/// `'unnamed'` is `{unnamed type#1}`.
fn unnamed(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("'unnamed") {
        let (digits, after) = after.split_once('\'').unwrap_or_default();
        text += &format!("{before}{{unnamedtype#{}}}", number(digits));
        rest = after;
    }
    text + rest
}

/// `(unsigned long)16` is `16ul`.
fn literals(name: &str) -> String {
    let mut text = name.to_owned();
    for (of, suffix) in LITERALS {
        let mut done = String::new();
        let mut rest = &*text;
        while let Some((before, after)) = rest.split_once(of) {
            let digits = after.strip_prefix('-').unwrap_or(after);
            let behind = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
            done += before;
            if behind.len() < digits.len() {
                done += &after[..after.len() - behind.len()];
                done += suffix;
                rest = behind;
            } else {
                done += of;
                rest = after;
            }
        }
        text = done + rest;
    }
    text
}

/// `std::string` is `std::basic_string<char, std::char_traits<char>, std::allocator<char>>`, and its constructor's name is
/// `basic_string`.
fn full_forms(name: &str) -> String {
    let mut text = name.to_owned();
    for (short, full) in ABBREVIATIONS {
        let mut done = String::new();
        let mut rest = &*text;
        let abbreviation = format!("std::{short}");
        while let Some((before, after)) = rest.split_once(&abbreviation) {
            done += before;
            if after.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
                done += &abbreviation;
                rest = after;
                continue;
            }
            done += &format!("std::{full}");
            rest = after;
            for member in ["::", "::~"] {
                let behind = after.strip_prefix(&format!("{member}{short}"));
                if let Some(behind) = behind.filter(|behind| behind.starts_with(['(', '<', '['])) {
                    done += &format!("{member}basic_{short}");
                    rest = behind;
                }
            }
        }
        text = done + rest;
    }
    text
}

#[test]
fn notations_of_one_name_are_equal() {
    for (one, other) in [
        ("{vtable(art::Thread)}", "vtable for art::Thread"),
        (
            "{virtual override thunk({virtual offset(0, -24)}, A::~A())}",
            "virtual thunk to A::~A()",
        ),
        (
            "A<16ul, (char)1>::f(std::string)",
            "A<(unsigned long)16, (char)1>::f(std::basic_string<char, std::char_traits<char>, std::allocator<char> >)",
        ),
        (
            "f()::'lambda0'('unnamed')::operator()() const",
            "f()::{lambda({unnamed type#1})#2}::operator()() const",
        ),
        (
            "std::string::string<char*>(char*)",
            "std::basic_string<char, std::char_traits<char>, std::allocator<char>>::basic_string<char*>(char*)",
        ),
    ] {
        assert_eq!(plain(one), plain(other));
    }
    for (one, other) in [
        ("f(int)", "f(int&)"),
        ("A<16ul>", "A<16l>"),
        ("std::string_view", "std::string"),
        ("{lambda(bool&)#1}", "'lambda0'(bool&)"),
    ] {
        assert_ne!(plain(one), plain(other));
    }
}
