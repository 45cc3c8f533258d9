//! Shortens long names.
//!
//! The most important part is the function's own name. The other parts are omitted first: its parameters, return type
//! and template arguments, as in pprof; then its namespaces, packages and folders. A name is only cut if it is still
//! too long.

mod scan;

use std::borrow::Cow;

use scan::{Scan, is_operator};

/// V8's prefixes for the tier of a compiled function.
const TIERS: [char; 5] = ['*', '^', '~', '+', '\''];
/// Replaces the omitted part of a name.
const DOTS: &str = "..";

/// Fits a name into `columns`: the longest form that fits, or both ends of the shortest form.
pub fn fitted(name: &str, columns: usize) -> Cow<'_, str> {
    if length(name) <= columns {
        return name.into();
    }
    let (function, mark) = split_mark(name);
    let room = columns.saturating_sub(length(mark));
    let forms = forms(function);
    let form = forms.iter().find(|form| length(form) <= room);
    match (form, forms.last()) {
        (Some(form), _) => format!("{form}{mark}").into(),
        (None, Some(shortest)) => format!("{}{mark}", ends(shortest, room)).into(),
        (None, None) => ends(name, columns).into(),
    }
}

/// Splits a name from a mark that reports append: ` (inlined)`, ` (3 deep)`, ` [self]`.
fn split_mark(name: &str) -> (&str, &str) {
    let mut function = name;
    loop {
        let marked = [" (inlined)", " [self]"];
        let marked = marked.iter().find_map(|mark| function.strip_suffix(mark));
        let deep = || {
            let (shorter, frames) = function.strip_suffix(" deep)")?.rsplit_once(" (")?;
            let is_number = frames.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some(shorter)
        };
        match marked.or_else(deep) {
            Some(shorter) => function = shorter,
            None => return (function, name.get(function.len()..).unwrap_or_default()),
        }
    }
}

/// Returns the shorter forms of a name, longest first: without parameters and types, with its class only, and the
/// function's own name. Empty for a name without parts. A trait's method keeps its type, and a closure the surrounding
/// function, because `next` and `{{closure}}` alone are ambiguous.
pub fn forms(name: &str) -> Vec<Cow<'_, str>> {
    let plain = plain(name);
    let typed = of_type(&plain);
    let parts = parts(typed.as_deref().unwrap_or(&plain));
    let closures = parts.closures();
    let [class, own] = [2, 1].map(|count| last(&parts, closures.saturating_add(count)).to_owned());
    let own = typed.is_none().then_some(own);
    let mut forms: Vec<Cow<str>> = Vec::new();
    let in_file = in_file(name).map(Cow::Owned);
    let shorter = [typed, Some(class), own].into_iter().flatten();
    let all = std::iter::once(plain).chain(shorter.map(Cow::Owned));
    for form in in_file.into_iter().chain(all) {
        let longest = forms.last().map_or(name, |form| form.as_ref());
        if !form.is_empty() && length(&form) < length(longest) {
            forms.push(form);
        }
    }
    forms
}

/// Removes parameters, return type, template arguments, the suffix of a copy, and a runtime's decoration.
pub fn plain(name: &str) -> Cow<'_, str> {
    // Names made by varid: markers, and addresses in an image.
    if name.starts_with('[') || name.contains("+0x") {
        return name.into();
    }
    if let Some(known) = runtime_name(name) {
        // A function without a name is named after its place.
        let named = Some(known.function).filter(|function| !function.is_empty());
        return named.unwrap_or(name).into();
    }
    Scan::new(name)
        .plain()
        .filter(|plain| !plain.is_empty())
        .map_or(name.into(), Cow::Owned)
}

/// Returns a function's own name, without class or namespace.
pub fn own(name: &str) -> String {
    let plain = plain(name);
    last(&parts(&plain), 1).to_owned()
}

/// The parts of a runtime's name for compiled code.
struct RuntimeName<'n> {
    /// The prefix before the function: the runtime and the tier.
    mark: &'n str,
    function: &'n str,
    separator: char,
    /// The file. V8 appends line and column.
    place: &'n str,
}

/// Splits a name of V8, `JS:*work /srv/app.js:4:14`, or of CPython, `py::work:/srv/app.py`. None for other names.
fn runtime_name(name: &str) -> Option<RuntimeName<'_>> {
    let (function, separator) = match name.strip_prefix("py::") {
        Some(function) => (function, ':'),
        None => {
            let function = name.strip_prefix("JS:")?;
            (function.trim_start_matches(TIERS), ' ')
        }
    };
    let mark = name.strip_suffix(function)?;
    let (function, place) = function.split_once(separator).unwrap_or((function, ""));
    Some(RuntimeName {
        mark,
        function,
        separator,
        place,
    })
}

/// Returns the function and place in a runtime's name, regardless of the tier. None for other names.
pub fn compiled_function(name: &str) -> Option<(&str, &str)> {
    runtime_name(name).map(|known| (known.function, known.place))
}

/// Returns the name of a V8 function without its tier: `work /srv/app.js:4:14`. Other names are returned unchanged.
pub fn any_way(name: &str) -> &str {
    let function = name.strip_prefix("JS:");
    function.map_or(name, |function| function.trim_start_matches(TIERS))
}

/// Returns a runtime's function name with the file name, without the folder.
fn in_file(name: &str) -> Option<String> {
    let RuntimeName {
        mark,
        function,
        separator,
        place,
    } = runtime_name(name)?;
    let file = place.rsplit('/').next()?;
    Some(format!("{mark}{function}{separator}{file}"))
}

/// The parts of a plain name between separators.
struct Parts<'n> {
    name: &'n str,
    /// The start of each part.
    starts: Vec<usize>,
}

fn parts(name: &str) -> Parts<'_> {
    let has_parts = !name.starts_with('[') && !name.contains("+0x") && !name.starts_with("JS:");
    let separators: &[&str] = match name.contains("::") {
        _ if !has_parts => &[],
        true => &["::"],
        false => &[".", "/", ";"],
    };
    let mut starts = vec![0];
    let mut depth = 0_usize;
    for (at, char) in name.char_indices() {
        let rest = name.get(at..).unwrap_or_default();
        // An operator is followed by a sign or a type.
        if starts.last() == Some(&at) && is_operator(rest) {
            break;
        }
        match char {
            '{' | '(' | '[' | '<' => depth = depth.saturating_add(1),
            '}' | ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separator = separators.iter().find(|one| rest.starts_with(**one));
        if let (0, Some(separator)) = (depth, separator) {
            starts.push(at.saturating_add(separator.len()));
        }
    }
    starts.retain(|start| *start < name.len());
    Parts { name, starts }
}

impl Parts<'_> {
    /// The number of parts at the end that are closures: `{{closure}}`, `{closure#0}`, and `{lambda#1}::operator()`.
    fn closures(&self) -> usize {
        let texts = self.starts.iter().rev();
        let texts = texts.map(|start| self.name.get(*start..).unwrap_or_default());
        let mut calls = 0_usize;
        let mut closures = 0_usize;
        for (text, number) in texts.zip(1..) {
            match text {
                "operator()" => calls = 1,
                _ if text.starts_with('{') => closures = number,
                _ => break,
            }
        }
        match closures {
            0 => 0,
            closures => closures.max(calls),
        }
    }
}

/// Replaces a trait implementation in a method's name by its type: `<a::Vec as a::Drop>::drop` and `a::<impl a::Drop
/// for a::Vec>::drop` become `a::Vec::drop`. None for other names.
fn of_type(plain: &str) -> Option<String> {
    let parts = parts(plain);
    let ends = parts.starts.iter().skip(1).copied();
    let texts = parts.starts.iter().zip(ends);
    let (implementation, rest) = texts.rev().find_map(|(start, end)| {
        let part = plain.get(*start..end)?.strip_suffix("::")?;
        let inside = part.strip_prefix('<')?.strip_suffix('>')?;
        Some((inside, plain.get(end..)?))
    })?;
    let of = match implementation.strip_prefix("impl ") {
        Some(inside) => inside.split_once(" for ").map_or(inside, |(_, of)| of),
        None => implementation
            .split_once(" as ")
            .map_or(implementation, |(of, _)| of),
    };
    let mut of = of.trim_start_matches(['&', '*']).trim_start();
    for word in ["mut ", "const ", "dyn "] {
        of = of.strip_prefix(word).unwrap_or(of);
    }
    (!of.is_empty()).then(|| format!("{of}::{rest}"))
}

/// The last `count` parts of a name.
fn last<'n>(parts: &Parts<'n>, count: usize) -> &'n str {
    let first = parts.starts.len().saturating_sub(count);
    let start = parts.starts.get(first).copied().unwrap_or_default();
    parts.name.get(start..).unwrap_or(parts.name)
}

/// Shortens a text to its two ends.
pub fn ends(text: &str, columns: usize) -> String {
    let length = length(text);
    if length <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(DOTS.len());
    let front: String = text.chars().take(kept.div_ceil(2)).collect();
    let back: String = text.chars().skip(length.saturating_sub(kept / 2)).collect();
    format!("{front}{DOTS}{back}")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_name_keep_the_function_s_own() {
        for (name, expected) in [
            (
                "void v8::internal::Handle<v8::internal::String>::copy<int, (bool)1>(v8::base::Vector<char const> const&, int) const",
                &["v8::internal::Handle::copy", "Handle::copy", "copy"][..],
            ),
            (
                "std::vector<int, std::allocator<int>>::push_back(int&&)",
                &["std::vector::push_back", "vector::push_back", "push_back"],
            ),
            (
                "std::basic_ostream<char>& std::operator<< <std::char_traits<char>>(std::basic_ostream<char>&, char const*)",
                &["std::operator<<", "operator<<"],
            ),
            (
                "geo::Grid<int>::operator()(int, int) const",
                &["geo::Grid::operator()", "Grid::operator()", "operator()"],
            ),
            (
                "geo::Grid::operator std::vector<int>() const",
                &[
                    "geo::Grid::operator std::vector",
                    "Grid::operator std::vector",
                    "operator std::vector",
                ],
            ),
            ("operator new(unsigned long)", &["operator new"]),
            (
                "(anonymous namespace)::scan(char const*, int)",
                &["(anonymous namespace)::scan", "scan"],
            ),
            (
                "geo::run(int)::{lambda(int)#1}::operator()(int) const",
                &[
                    "geo::run::{lambda#1}::operator()",
                    "run::{lambda#1}::operator()",
                ],
            ),
            (
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
                &[
                    "<alloc::vec::Vec as core::ops::Drop>::drop",
                    "alloc::vec::Vec::drop",
                    "Vec::drop",
                ],
            ),
            (
                "<&mut core::slice::iter::Iter<'_, T> as core::iter::Iterator>::next",
                &[
                    "<&mut core::slice::iter::Iter as core::iter::Iterator>::next",
                    "core::slice::iter::Iter::next",
                    "Iter::next",
                ],
            ),
            (
                "core::fmt::num::imp::<impl core::fmt::Display for u32>::fmt",
                &["u32::fmt"],
            ),
            (
                "app::grid::fill::{{closure}}::{{closure}}",
                &[
                    "grid::fill::{{closure}}::{{closure}}",
                    "fill::{{closure}}::{{closure}}",
                ],
            ),
            (
                "<app::Grid<T> as app::Draw>::draw::{closure#0}",
                &[
                    "<app::Grid as app::Draw>::draw::{closure#0}",
                    "app::Grid::draw::{closure#0}",
                    "Grid::draw::{closure#0}",
                ],
            ),
            (
                "Lorg/example/App;mul(ILjava/lang/String;)[J",
                &["Lorg/example/App;mul", "App;mul", "mul"],
            ),
            (
                "org/example/App.parse()Lorg/example/Tree;",
                &["org/example/App.parse", "App.parse", "parse"],
            ),
            (
                "core::ptr::drop_in_place::<alloc::vec::Vec<u8>>",
                &[
                    "core::ptr::drop_in_place",
                    "ptr::drop_in_place",
                    "drop_in_place",
                ],
            ),
            (
                "java.lang.Object java.util.HashMap.merge(java.lang.Object, java.util.function.BiFunction)",
                &["java.util.HashMap.merge", "HashMap.merge", "merge"],
            ),
            (
                "org.example.Balls.fib(int)",
                &["org.example.Balls.fib", "Balls.fib", "fib"],
            ),
            (
                "github.com/example/store.(*Tree[go.shape.int]).Walk",
                &["(*Tree[go.shape.int]).Walk", "Walk"],
            ),
            (
                "JS:*work /home/x/hot.js:4:14",
                &["JS:*work hot.js:4:14", "work"],
            ),
            ("JS:~ node:internal/main:1:1", &["JS:~ main:1:1"]),
            (
                "py::Table.find:/home/x/table.py",
                &["py::Table.find:table.py", "Table.find", "find"],
            ),
            ("org.part.App.coldStart", &["App.coldStart", "coldStart"]),
            ("unmap_page_range.isra.0", &["unmap_page_range"]),
            ("f(int) [clone .cold]", &["f"]),
            ("org.example.Wine.cold", &["Wine.cold", "cold"]),
            (
                "std::map<int, X>::at(int) [clone .isra.0]",
                &["std::map::at", "map::at", "at"],
            ),
            ("memcpy", &[]),
            ("libdraw.so+0x1234", &[]),
            ("[unnamed JIT code]", &[]),
            // Unbalanced brackets leave a name unchanged.
            ("a<b::c(", &[]),
        ] {
            assert_eq!(forms(name), expected, "{name}");
        }
    }

    #[test]
    fn a_name_is_cut_only_where_its_shortest_form_is_too_long() {
        let name = "void geo::Grid<int>::visit(int, int) (inlined)";
        for (columns, expected) in [
            (46, name),
            (45, "geo::Grid::visit (inlined)"),
            (26, "geo::Grid::visit (inlined)"),
            (25, "Grid::visit (inlined)"),
            (20, "visit (inlined)"),
            (14, "v..t (inlined)"),
        ] {
            assert_eq!(fitted(name, columns), expected);
        }
        assert_eq!(fitted("geo::fib(long) (12 deep)", 17), "fib (12 deep)");
        assert_eq!(fitted("geo::fib(long) [self]", 20), "geo::fib [self]");
        assert_eq!(fitted("a_name_without_parts", 10), "a_na..arts");
        assert_eq!(fitted("äöüäöüäöü", 6), "äö..öü");
    }
}
