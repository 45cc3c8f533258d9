use super::*;

const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 W a_weak_alias
ffffffff81000100 t __do_one
ffffffff81000100 t do_one
ffffffff81000100 t do_one_alias
ffffffff81000200 W do_two
ffffffff81000280 D a_variable
ffffffff81000300 T _etext
ffffffffc0201000 t mod_a\t[ext4]
ffffffffc0201040 t mod_b\t[ext4]
ffffffffc0301010 t bpf_prog_6deef7357e7b4530_walk\t[bpf]
";

#[test]
fn symbols_are_bounded_by_their_neighbours_and_their_module() {
    let table = KernelSymbols::parse_kallsyms(TEXT.as_bytes()).unwrap();
    let name = |at| table.lookup(at).map(|symbol| (symbol.name, symbol.module));
    assert_eq!(name(0xffff_ffff_8100_00ff), Some(("_text", None)));
    assert_eq!(name(0xffff_ffff_8100_0100), Some(("do_one_alias", None)));
    assert_eq!(name(0xffff_ffff_8100_027f), Some(("do_two", None)));
    assert_eq!(name(0xffff_ffff_8100_0280), None);
    assert_eq!(name(0xffff_ffff_c020_1041), Some(("mod_b", Some("ext4"))));
    assert_eq!(name(0xffff_ffff_c020_3000), None);
    assert_eq!(
        name(0xffff_ffff_c030_1020),
        Some(("bpf_prog_6deef7357e7b4530_walk", Some("bpf")))
    );
    assert_eq!(name(0), None);
    assert_eq!(name(u64::MAX), None);
    let text = table.text().unwrap();
    assert_eq!(
        (text.symbol, &text.range),
        ("_text", &(0xffff_ffff_8100_0000..0xffff_ffff_8100_0300))
    );
    assert_eq!(table.hidden(), 0);
}

#[test]
fn what_was_loaded_later_is_added_and_what_has_gone_is_kept() {
    let mut table = KernelSymbols::parse_kallsyms(TEXT.as_bytes()).unwrap();
    let later = TEXT.replace(
        "c0301010 t bpf_prog_6deef7357e7b4530_walk",
        "c0301450 t bpf_prog_1_new",
    );
    table.add_new(&KernelSymbols::parse_kallsyms(later.as_bytes()).unwrap());
    let name = |at| table.lookup(at).map(|symbol| symbol.name);
    assert_eq!(
        name(0xffff_ffff_c030_1020),
        Some("bpf_prog_6deef7357e7b4530_walk")
    );
    assert_eq!(name(0xffff_ffff_c030_1450), Some("bpf_prog_1_new"));
    assert_eq!(name(0xffff_ffff_8100_0100), Some("do_one_alias"));
}

#[test]
fn memory_that_was_reused_has_no_name() {
    let parse = |text: &str| KernelSymbols::parse_kallsyms(text.as_bytes()).unwrap();
    let mut table = parse("ffffffffc0001000 t a\t[bpf]\nffffffffc0003000 t stays\t[bpf]\n");
    let later = parse("ffffffffc0001000 t b\t[bpf]\nffffffffc0003000 t stays\t[bpf]\n");
    // The result is the same if it is added twice.
    for _ in 0..2 {
        table.add_new(&later);
        assert_eq!(table.lookup(0xffff_ffff_c000_1010), None);
        assert_eq!(table.lookup(0xffff_ffff_c000_3010).unwrap().name, "stays");
    }
}

#[test]
fn addresses_that_are_hidden_in_part_are_counted() {
    let some = TEXT
        .replace("ffffffffc020", "000000000000")
        .replace("0000000000001", "0000000000000");
    let table = KernelSymbols::parse_kallsyms(some.as_bytes()).unwrap();
    assert_eq!(table.hidden(), 1);
}

#[test]
fn hidden_addresses_are_named_as_such() {
    let hidden = "0000000000000000 T _stext\n0000000000000000 t do_one\n";
    let error = KernelSymbols::parse_kallsyms(hidden.as_bytes()).unwrap_err();
    assert!(matches!(error, Error::KernelHidden), "{error}");
}

#[test]
fn what_is_written_reads_back() {
    let table = KernelSymbols::parse_kallsyms(TEXT.as_bytes()).unwrap();
    let mut text = Vec::new();
    table.write(None, &mut text).unwrap();
    let back = KernelSymbols::parse(&text).unwrap();
    assert_eq!(back.len(), table.len());
    for entry in &table.symbols {
        assert_eq!(back.lookup(entry.start), table.lookup(entry.start));
    }
    let mut text = Vec::new();
    table
        .write(Some(&[0xffff_ffff_8100_0142, 7]), &mut text)
        .unwrap();
    let some = KernelSymbols::parse(&text).unwrap();
    assert_eq!(some.len(), 1);
    assert_eq!(
        some.lookup(0xffff_ffff_8100_0100).unwrap().name,
        "do_one_alias"
    );

    let (mut head, first) = (Vec::new(), table.symbols[0].start);
    table.write(Some(&[]), &mut head).unwrap();
    table.write_more(&[first], &mut head).unwrap();
    let whole = head.len();
    table
        .write_more(&[0xffff_ffff_8100_0142], &mut head)
        .unwrap();
    for (len, symbols) in [
        (head.len(), 2),
        (head.len() - 1, 1),
        (whole + 3, 1),
        (whole, 1),
    ] {
        let written = KernelSymbols::parse(&head[..len]).unwrap();
        assert_eq!(
            written.len(),
            symbols,
            "a line that is being written is none"
        );
        assert!(written.lookup(first).is_some());
    }
}

#[test]
fn broken_lines_are_named() {
    for text in ["ffff\n", "zz t f\n", "1 t f\n\n2 t\n"] {
        assert!(
            KernelSymbols::parse_kallsyms(text.as_bytes()).is_err(),
            "{text}"
        );
    }
    let error = KernelSymbols::parse(b"# x\n1\t2\tf\t\nffffffffffffffff\t2\tf\t\n").unwrap_err();
    assert!(matches!(error, Error::Kernel { line: 3, .. }), "{error}");
    assert!(KernelSymbols::parse(b"\xff\n").is_err());
}
