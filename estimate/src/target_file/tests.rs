use crate::Target;

const RIGHT: &str = r#"
target = "t"
unit = "cycles"
[sources]
book = "A book"
[cost]
source = "book"
iadd = 1
putfield_ref = 2.5
ifeq_taken = { value = 4, low = 3, high = 9, source = "book", n = 7 }
ifeq_not = 2
[runtime]
idiv = { value = 100, words = [3, 4], result = "int" }
[method_cache]
size = 1024
blocks = 16
policy = "fifo-variable-block"
[load]
hit = 4
miss = { base = 6, word = 2, more_words = 1 }
invoke_hides = 37
return_hides = { ireturn = 10, lreturn = 11, freturn = 10, dreturn = 11, areturn = 10, return = 9 }
"#;

/// A part of the file, what replaces it, and what the error says.
const WRONG: &[(&str, &str, &str)] = &[
    ("iadd = 1", "iadd = -1", "t.toml: cost.iadd: -1 is below 0"),
    ("iadd = 1", "iadd = nan", "t.toml: cost.iadd: nan"),
    ("iadd = 1", "iadd = inf", "t.toml: cost.iadd: inf is above"),
    ("iadd = 1", "iadd = 'x'", "cost.iadd: \"x\" is not a number"),
    ("iadd = 1", "idd = 1", "cost.idd: it is no instruction"),
    (
        "iadd = 1",
        "iadd_ref = 1",
        "cost.iadd_ref: it is no instruction",
    ),
    (
        "iadd = 1",
        "iadd = ",
        "t.toml: TOML parse error at line 8, column",
    ),
    (
        "low = 3",
        "low = 5",
        "cost.ifeq_taken.low: it is above value",
    ),
    (
        "high = 9",
        "high = 1",
        "cost.ifeq_taken.high: it is below value",
    ),
    (
        "high = 9",
        "hi = 9",
        "cost.ifeq_taken.hi: varid does not know it; known are value, low",
    ),
    (
        "source = \"book\", n",
        "source = \"film\", n",
        "cost.ifeq_taken.source: \"film\" is not in [sources]",
    ),
    (
        "iadd = 1",
        "iadd = 1\nidiv = 3",
        "runtime.idiv: it also has a cost",
    ),
    (
        "idiv = {",
        "ifeq_not = {",
        "runtime.ifeq_not: it also has a cost",
    ),
    (
        "idiv = {",
        "ifne_not = {",
        "runtime.ifne_not: outcomes of branches",
    ),
    (
        "words = [3, 4]",
        "words = 0",
        "runtime.idiv.words: it is a number of words",
    ),
    (
        "words = [3, 4], ",
        "",
        "runtime.idiv.words: it is a number of words",
    ),
    (
        "\"int\"",
        "\"intt\"",
        "runtime.idiv.result: it is one of int, long",
    ),
    (
        "blocks = 16",
        "blocks = 0",
        "method_cache.blocks: 0 is not a whole number from 1",
    ),
    (
        "blocks = 16",
        "blocks = 3",
        "method_cache.size: 1024 bytes are not 3 blocks of whole words",
    ),
    (
        "size = 1024",
        "size = 99999999999",
        "method_cache.size: 99999999999 is not",
    ),
    ("size = 1024", "", "method_cache.size: it is missing"),
    ("fifo-", "lru-", "method_cache.policy: varid simulates"),
    ("hit = 4", "hit = -4", "load.hit: -4 is below 0"),
    (
        "lreturn = 11, ",
        "",
        "load.return_hides.lreturn: it is missing",
    ),
    (
        "unit = \"cycles\"",
        "unit = \"hours\"",
        "unit: it is 'cycles' or 'ns'",
    ),
    ("[cost]", "[costs]", "costs: varid does not know it"),
    (
        "target = \"t\"",
        "target = \"a,b\"",
        "target: a name has no commas",
    ),
    ("target = \"t\"", "target = 1", "target: it is not a text"),
    (
        "[load]",
        "[build]\nincrement = 'x'\n[load]",
        "build.increment: it is 'keep'",
    ),
];

#[test]
fn a_wrong_value_is_named() {
    let target = Target::parse("t.toml", RIGHT).unwrap();
    assert_eq!(target.costs["ifeq_taken"].high, 9.0);
    for (part, other, expected) in WRONG {
        assert!(RIGHT.contains(part), "{part}");
        let error = Target::parse("t.toml", &RIGHT.replacen(part, other, 1)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
}

#[test]
fn costs_of_dex_code_are_by_its_opcodes() {
    let read = |text: &str| {
        let text = format!("target = \"t\"\nunit = \"ns\"\nbytecode = \"dex\"\n{text}");
        Target::parse("t.toml", &text).map_err(|error| error.to_string())
    };
    let found = read("[cost]\n\"add-int/lit8\" = 2\nif-eqz_taken = 3\nnop = 1").unwrap();
    assert_eq!(found.bytecode, crate::Bytecode::Dex);
    assert_eq!(found.costs["add-int/lit8"], crate::Price::exact(2.0));
    for (text, problem) in [
        (
            "[cost]\niadd = 1",
            "cost.iadd: it is no instruction of dex code",
        ),
        (
            "[cost]\nnop_taken = 1",
            "cost.nop_taken: it is no instruction",
        ),
        (
            "[cost]\nunused-3e = 1",
            "cost.unused-3e: it is no instruction",
        ),
        (
            "[cost]\nnop = 1\n[runtime]",
            "runtime: targets of dex code have none",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
}
