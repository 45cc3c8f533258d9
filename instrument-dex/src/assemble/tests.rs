use super::*;
use varid_symbolizer::dex::DexFile;

#[test]
fn an_assembled_file_is_read_with_its_references_and_branches() {
    let mut dex = DexBuilder::default();
    let text = dex.string("zebra");
    let field = dex.field("La/App;", "count", "J");
    let called = dex.method("La/App;", "run", "([[ILa/App;J)D").unwrap();
    let mut code = Code::new(7, 5);
    let (top, end) = (code.label(), code.label());
    code.place(top);
    code.indexed(&[0x011a, 0], text);
    code.indexed(&[0x021b, 0, 0], text);
    code.indexed(&[0x0060, 0], field);
    code.branch(0x0038, end);
    code.goto(top);
    code.place(end);
    code.table(0x002b, &[0x0100, 1, 0, 0], &[top]);
    code.indexed(&[0x5071, 0, 0x3210], called);
    code.units(&[0x0e]);
    let mut class = Class::new("La/App;")
        .extends("La/Base;")
        .implements("La/I;");
    class.field(access::STATIC, "count", "J");
    class.method(access::PUBLIC | access::STATIC, "main", "(I)V", Some(code));
    class.method(
        access::PUBLIC | access::NATIVE,
        "run",
        "([[ILa/App;J)D",
        None,
    );
    dex.class(Class::interface("La/I;"));
    dex.class(Class::new("La/Base;"));
    dex.class(class);
    let bytes = dex.finish().unwrap();
    let dex = DexFile::parse(&bytes).unwrap();
    let methods: Vec<_> = dex.methods().map(|one| one.unwrap()).collect();
    let [main, run] = &methods[..] else {
        panic!("{methods:?}");
    };
    assert_eq!(main.id.name().unwrap(), "main");
    assert_eq!(run.id.descriptor().unwrap(), "([[ILa/App;J)D");
    let code = main.method_code().unwrap();
    let item = dex.code_item(&code).unwrap();
    assert_eq!((item.registers, item.ins, item.outs), (7, 1, 5));
    let text: Vec<String> = dex
        .disassemble(&code)
        .map(|one| one.unwrap().to_string())
        .collect();
    let expected = [
        "const-string v1, \"zebra\" // string@000e",
        "const-string/jumbo v2, \"zebra\" // string@0000000e",
        "sget v0, La/App;.count:J // field@0000",
        "if-eqz v0, 000a // +0003",
        "goto 0000 // -0009",
        "packed-switch v0, 00000012 // +00000008",
        "invoke-static {v0, v1, v2, v3, v0}, La/App;.run:([[ILa/App;J)D // method@0001",
        "return-void",
        "nop // spacer",
        "packed-switch-data (6 units)",
    ];
    assert_eq!(text, expected);
    // The file is one that the rewriter reads, too.
    let first = varid_instrument::MethodNumber::FIRST;
    let plan = crate::Plan {
        counted: varid_instrument::Counted::Calls,
        entries: crate::Entries::Called,
    };
    let added = crate::RuntimeClass::Added;
    let new = crate::rewrite(&bytes, plan, first, added).unwrap();
    assert_eq!(new.classes.len(), 3);
}

#[test]
fn descriptors_are_checked() {
    let mut dex = DexBuilder::default();
    for wrong in ["", "()", "(V", "(Q)V", "(La)V", "([)V", "I"] {
        assert!(dex.method("LA;", "x", wrong).is_err(), "{wrong}");
    }
}
