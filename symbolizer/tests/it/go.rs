//! Tests that functions of a stripped Go program are named by its function table (pclntab).

use crate::common;

use std::path::{Path, PathBuf};

use varid_symbolizer::elf::ElfSymbols;

/// The differences between versions.
struct Layout {
    magic: u32,
    /// The section, with its flags.
    section: &'static str,
    /// Directives of the header after the number of functions, which is two.
    header: &'static str,
    /// The directive for a number in the pairs, and the expression for a symbol's address in it.
    number: &'static str,
    address: fn(&str) -> String,
    /// The bases of the descriptions' offsets and of the names' offsets.
    places: &'static str,
    names: &'static str,
    /// Additional sections of the program.
    more: &'static str,
}

const GO116: &str = ".quad 1, names - table, 0, 0, 0, pairs - table";
const GO118: &str = ".quad 1, first, names - table, 0, 0, 0, pairs - table";
const GO126: &str = ".quad 1, 0, names - table, 0, 0, 0, pairs - table";
const READ_ONLY: &str = ".gopclntab,\"a\"";

fn absolute(symbol: &str) -> String {
    symbol.to_owned()
}

fn distance(symbol: &str) -> String {
    format!("{symbol} - first")
}

/// The layout of Go 1.18.
const RELATIVE: Layout = Layout {
    magic: 0xffff_fff0,
    section: READ_ONLY,
    header: GO118,
    number: ".long",
    address: distance,
    places: "pairs",
    names: "names",
    more: "",
};

/// The layout of Go 1.16.
const ABSOLUTE: Layout = Layout {
    magic: 0xffff_fffa,
    header: GO116,
    number: ".quad",
    address: absolute,
    ..RELATIVE
};

/// A program of two functions, with other code before and after them.
fn source(layout: &Layout) -> String {
    let Layout {
        magic,
        section,
        header,
        number,
        address,
        places,
        names,
        more,
    } = layout;
    let [first, second, end] = ["first", "second", "end"].map(address);
    format!(
        "
.text
.fill 16, 1, 0
.globl _start
_start:
first: .fill 8, 1, 0
second: .fill 8, 1, 0
end: .fill 16, 1, 0
.section {section}
table: .long {magic}
.byte 0, 0, 1, 8
.quad 2
{header}
pairs: {number} {first}, of_first - {places}, {second}, of_second - {places}, {end}
of_first: {number} {first}
.long name_of_first - {names}
of_second: {number} {second}
.long name_of_second - {names}
names: .byte 0
name_of_first: .asciz \"main.first\"
name_of_second: .asciz \"main.(*Second).run.func1\"
{more}
"
    )
}

/// A stripped program. None if there is no compiler.
fn stripped(folder: &Path, layout: &Layout, arguments: &[&str]) -> Option<PathBuf> {
    let source = source(layout);
    let arguments = [&["-nostdlib", "-s"], arguments].concat();
    common::compiled(folder, ("go.s", &source), "go", &arguments)
}

/// The start, the size and the name of each function.
fn named(symbols: &ElfSymbols) -> Vec<(u64, String)> {
    let functions = symbols.functions();
    let named =
        functions.map(|function| (function.end - function.start, function.raw.into_owned()));
    named.collect()
}

#[test]
fn the_functions_of_a_stripped_program_have_names_whatever_version_of_go_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let go12 = Layout {
        magic: 0xffff_fffb,
        header: "",
        places: "table",
        names: "table",
        ..ABSOLUTE
    };
    let go120 = Layout {
        magic: 0xffff_fff1,
        ..RELATIVE
    };
    let go126 = Layout {
        header: GO126,
        more: ".section .go.module,\"aw\"\n.fill 22, 8, 1\n.quad first",
        ..go120
    };
    // A linker other than Go's puts it into `.data.rel.ro`, after other data.
    let anywhere = Layout {
        section: ".data.rel.ro.other,\"aw\"\n.fill 5, 8, 0\n.section .data.rel.ro.gopclntab,\"aw\"",
        more: ".section .go.buildinfo,\"aw\"\n.fill 4, 8, 0",
        ..RELATIVE
    };
    let fixed: &[&str] = &["-static", "-no-pie"];
    let relocated: &[&str] = &["-shared", "-fPIC"];
    for (name, layout, arguments) in [
        ("1.2", &go12, fixed),
        ("1.16", &ABSOLUTE, fixed),
        ("1.18", &RELATIVE, fixed),
        ("1.18, position-independent", &anywhere, relocated),
        ("1.20", &go120, fixed),
        ("1.26", &go126, fixed),
        ("1.26, position-independent", &go126, relocated),
    ] {
        let Some(file) = stripped(folder.path(), layout, arguments) else {
            return;
        };
        let symbols = ElfSymbols::open(&file).unwrap();
        let expected = [(8, "main.first"), (8, "main.(*Second).run.func1")];
        let expected = expected.map(|(size, name)| (size, name.to_owned()));
        assert_eq!(named(&symbols), expected, "Go {name}");
        let first = symbols.functions().next().unwrap().start;
        let at = |address| symbols.lookup(address).map(|found| found.start);
        let found = [first - 1, first + 7, first + 8, first + 16].map(at);
        assert_eq!(
            found,
            [None, Some(first), Some(first + 8), None],
            "Go {name}"
        );
    }
}

#[test]
fn a_table_that_says_nothing_or_too_much_names_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let fixed: &[&str] = &["-static", "-no-pie"];
    let unknown = Layout {
        magic: 0xffff_fff7,
        ..RELATIVE
    };
    // Without module data, the start of the code is unknown.
    let nowhere = Layout {
        header: GO126,
        ..RELATIVE
    };
    for layout in [&unknown, &nowhere] {
        let Some(file) = stripped(folder.path(), layout, fixed) else {
            return;
        };
        assert_eq!(named(&ElfSymbols::open(&file).unwrap()), []);
    }
    let Some(file) = stripped(folder.path(), &ABSOLUTE, fixed) else {
        return;
    };
    let bytes = std::fs::read(&file).unwrap();
    let magic = ABSOLUTE.magic.to_le_bytes();
    let table = bytes.windows(4).position(|bytes| bytes == magic).unwrap();
    let known = named(&ElfSymbols::from_bytes(&bytes, "go").unwrap());
    for at in table..table + 240 {
        for value in [0x00, 0x7f, 0xff] {
            let mut broken = bytes.clone();
            broken[at] = value;
            let symbols = ElfSymbols::from_bytes(&broken, "go").unwrap();
            // A changed word may be another code address or another name, but the number of functions must not grow.
            let found = named(&symbols);
            assert!(found.len() <= known.len(), "{at} {value}: {found:?}");
        }
    }
}
